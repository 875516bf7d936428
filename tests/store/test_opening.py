"""From a URL to an engine, and URLs that are shown without their passwords."""

import asyncio
import re
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

from fleetcron.errors import StoreError
from fleetcron.store.opening import masked
from fleetcron.store.postgres_url import parse
from fleetcron.store.sqlite import SqliteEngine
from fleetcron.store.written import Ok
from tests.store.engines import bare, opened
from tests.store.scratch import found, put


def test_the_forms_of_a_sqlite_url(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)

    async def scenario() -> None:
        for url, path in (
            ("sqlite:///jobs.db", tmp_path / "jobs.db"),
            (f"sqlite:///{tmp_path}/a%20b #1?.db", tmp_path / "a%20b #1?.db"),
        ):
            async with bare(url) as engine:
                assert isinstance(engine, SqliteEngine)
                assert engine.path == str(path)
                assert path.exists()
        for url in (":memory:", "sqlite:///:memory:"):
            async with opened(url) as engine:
                assert await engine.write(lambda: put(100)) == Ok(None)
                assert await found(engine) == [100]

    asyncio.run(scenario())
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a%20b #1?.db", "jobs.db"]


@pytest.mark.parametrize("url", ["", "jobs.db", "mysql://root:s3cr3t@db/jobs", "sqlite://jobs.db", "sqlite:///"])
def test_what_is_no_url_of_a_database(url: str) -> None:
    async def scenario() -> None:
        with pytest.raises(StoreError, match=r"is not the URL of a database; write sqlite:///jobs\.db") as caught:
            async with bare(url):
                pass
        assert "s3cr3t" not in str(caught.value)

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("postgres://jobs:s3cr3t@db:5432/jobs", "postgres://jobs:***@db:5432/jobs"),
        ("postgres://jobs@db/jobs", "postgres://jobs@db/jobs"),
        ("postgres://jobs:a/b@c?d@db/jobs", "postgres://jobs:***@db/jobs"),
        ("postgres://jobs:p:q@db/jobs", "postgres://jobs:***@db/jobs"),
        ("postgres://:only@db/jobs", "postgres://:***@db/jobs"),
        (
            "postgres://db/jobs?user=jobs&password=s3cr3t&schema=blue",
            "postgres://db/jobs?user=jobs&password=***&schema=blue",
        ),
        ("sqlite:///jobs.db", "sqlite:///jobs.db"),
    ],
)
def test_a_password_is_never_shown(url: str, shown: str) -> None:
    assert masked(url) == shown


def test_what_is_ours_in_a_postgres_url() -> None:
    url = parse("postgres://jobs:a%40b@db/jobs?sslmode=require&schema=blue&pooler=transaction")
    assert (url.dsn, url.schema, url.pooled) == ("postgres://jobs:a%40b@db/jobs?sslmode=require", "blue", True)
    url = parse("postgresql://one,two:6432/jobs")
    assert (url.dsn, url.schema, url.pooled) == ("postgresql://one,two:6432/jobs", "fleetcron", False)


@pytest.mark.parametrize("schema", ["", "Blue", "a-b", "1st", "pg_toast", "x" * 41, 'a"; DROP TABLE jobs; --'])
def test_a_schema_must_be_a_plain_name(schema: str) -> None:
    with pytest.raises(StoreError, match="cannot be the schema"):
        parse(f"postgres://db/jobs?schema={schema}")


def test_an_unknown_pooler() -> None:
    with pytest.raises(StoreError, match="write pooler=transaction or leave it out"):
        parse("postgres://db/jobs?pooler=statement")


@pytest.mark.parametrize("url", ["postgres://jobs:se/cr@et@db/jobs", "postgres://[::1/jobs", "postgres://db:port/jobs"])
def test_a_url_that_cannot_be_read_does_not_show_the_password(url: str) -> None:
    async def scenario() -> None:
        with pytest.raises(StoreError, match=r"cannot be read; .* write @ : / \? # % in a password as %40") as caught:
            async with bare(url):
                pass
        told: BaseException | None = caught.value
        while told:
            assert not re.search("se/|cr@", str(told))
            told = told.__cause__

    asyncio.run(scenario())


def test_without_the_driver_the_user_reads_what_to_install() -> None:
    program = """
import asyncio, sys
sys.modules["asyncpg"] = None
from fleetcron.clock import SystemClock
from fleetcron.store.opening import open_engine
asyncio.run(open_engine("postgres://db/jobs", clock=SystemClock()))
"""
    answer = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert "StoreError: the PostgreSQL driver is not installed; install the extra fleetcron[postgres]" in answer.stderr


def test_behind_a_pooler_every_transaction_brings_its_settings(postgres18_url: str) -> None:
    """There a session may be another one each time: no settings of a session, no prepared statements, no LISTEN."""

    async def scenario() -> None:
        async with bare(f"{postgres18_url}?pooler=transaction", connections=1) as engine:
            for number in range(100, 110):
                assert await engine.write(partial(put, number)) == Ok(None)
            assert await found(engine) == list(range(100, 110))
            async with engine.hints() as hints:
                assert await anext(hints) == "lost"

    asyncio.run(scenario())
