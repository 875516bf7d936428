"""A PostgreSQL of our own for a benchmark: real, with fsync, and gone afterwards.

`FLEETCRON_BENCH_POSTGRES_URL` names another one; a database is created in it and dropped again.
"""

import asyncio
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from unittest.mock import patch
from urllib.parse import urlsplit, urlunsplit

import asyncpg

from bench.measure import progress
from tests.services import postgres
from tests.services.guard import Guard
from tests.services.service import Program
from tests.services.sources import locate

# As a person would run it who cares for the data: every commit reaches the disk.
SETTINGS = {
    "fsync": "on",
    "synchronous_commit": "on",
    "full_page_writes": "on",
    "shared_buffers": "1GB",
    "max_wal_size": "8GB",
    "checkpoint_timeout": "30min",
}


@contextmanager
def database(name: str) -> Iterator[str]:
    """The URL of an empty database."""
    given = os.environ.get("FLEETCRON_BENCH_POSTGRES_URL")
    with _server() if given is None else _as_it_is(given) as server:
        asyncio.run(_execute(server, f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)', f'CREATE DATABASE "{name}"'))
        try:
            yield urlunsplit(urlsplit(server)._replace(path=f"/{name}"))
        finally:
            asyncio.run(_execute(server, f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)'))


@contextmanager
def _server() -> Iterator[str]:
    progress("starting PostgreSQL")
    service = postgres.POSTGRES18
    found = locate(service, lambda line: print(line, file=sys.stderr))
    assert isinstance(found, Program)
    guard = Guard()
    try:
        with patch.dict(postgres.SETTINGS, SETTINGS):
            yield postgres.start(service, found, guard)
    finally:
        guard.end()


@contextmanager
def _as_it_is(url: str) -> Iterator[str]:
    yield url


async def _execute(url: str, *statements: str) -> None:
    connection = await asyncpg.connect(url)
    try:
        for statement in statements:
            await connection.execute(statement)
    finally:
        await connection.close()
