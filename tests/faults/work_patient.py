"""A worker that dies, and somebody who waits for its lease to be over: half a minute, beside other tests."""

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass
from time import time_ns
from typing import Any

import pytest

from tests.faults.fleet import until
from tests.faults.nursery import Nursery
from tests.faults.work_fleet import Siege, create, job, once, trigger


@dataclass
class Patient:
    """A worker with the default lease that was killed; nobody can look whether its process is there."""

    siege: Siege
    run: int
    killed_ms: int


@pytest.fixture(scope="session")
def patient(cradle: Nursery, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Patient]:
    """It only has to wait, so that it waits beside other tests."""
    folder = tmp_path_factory.mktemp("patient")
    siege = Siege(f"sqlite:///{folder / 'jobs.db'}", folder, cradle)
    leases: dict[str, Any] = {"roles": ["scheduler", "worker"], "ttl_s": 30, "deadline_s": 5, "elsewhere": True}

    async def scenario() -> tuple[int, int]:
        await create(siege.url, [once(job("long", "blocks", 300))])
        doomed = siege.born("doomed", **leases)
        run = await trigger(siege.url, "long")
        await siege.begun()
        siege.survivor(**leases)
        await until(lambda: siege.works("survivor"))
        killed_ms = time_ns() // 1_000_000
        await siege.kill(doomed)
        return run, killed_ms

    yield Patient(siege, *asyncio.run(scenario()))
    siege.end()
