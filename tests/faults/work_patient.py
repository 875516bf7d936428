"""A worker that dies, and somebody who waits for its lease to be over: half a minute, beside other tests."""

import asyncio
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from time import time_ns

import pytest

from fleetcron.config import StoreConfig, WorkerConfig
from tests.faults.fleet import until
from tests.faults.nursery import Nursery
from tests.faults.work_fleet import Siege, create, job, once, trigger
from tests.services.postgres import Template


@dataclass
class Patient:
    """A worker with the default lease that was killed; nobody can look whether its process is there."""

    siege: Siege
    run: int
    killed_ms: int


@pytest.fixture(scope="session")
def patients(
    cradle: Nursery, tmp_path_factory: pytest.TempPathFactory, store_template18: Template
) -> Iterator[dict[str, Patient]]:
    """One on each store. They only have to wait, so they wait beside other tests."""
    worker, store = WorkerConfig(), StoreConfig()
    leases = {"roles": ["scheduler", "worker"], "ttl_s": worker.lease_ttl_s, "deadline_s": store.deadline_s}

    async def scenario(siege: Siege) -> Patient:
        await create(siege.url, [once(job("long", "blocks", 300))])
        doomed = siege.born("doomed", elsewhere=True, **leases)
        run = await trigger(siege.url, "long")
        await siege.begun()
        siege.survivor(elsewhere=True, **leases)
        await until(lambda: siege.works("survivor"))
        killed_ms = time_ns() // 1_000_000
        await siege.kill(doomed)
        return Patient(siege, run, killed_ms)

    with ExitStack() as at_the_end:
        found = {}
        for name in ("sqlite", "postgres"):
            folder = tmp_path_factory.mktemp("patient")
            file = f"sqlite:///{folder / 'jobs.db'}"
            url = file if name == "sqlite" else at_the_end.enter_context(store_template18.copy())
            siege = Siege(url, folder, cradle)
            at_the_end.callback(siege.end)
            found[name] = asyncio.run(scenario(siege))
        yield found
