"""The disk of a SQLite file is full while a worker ends runs: nothing is lost, nothing is corrupt, and it goes on."""

import asyncio
import logging
import os
import sqlite3
import subprocess
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, closing
from itertools import count
from pathlib import Path
from typing import Any, Final

import pytest

from tests.faults.test_store_away import File, a_full_file, a_limit_on_files
from tests.worker.crew import PATIENCE_S, Crew, Hall, job
from tests.worker.plays import SUCCEEDED, played

RED_S = 10  # how soon somebody says so
JOBS = [f"job-{number}" for number in range(6)]
BIG = {"text": "x" * 30_000}  # pages of its own: it does not fit into what is left of others

Spoiled = Callable[[File], AbstractAsyncContextManager[None]]
SPOILED: Final[dict[str, Spoiled]] = {"cannot grow": a_full_file, "cannot be read or written": a_limit_on_files}


@pytest.fixture
def a_file(sqlite_file_url: str) -> Any:
    """When it is over the file is whole."""
    yield sqlite_file_url
    with closing(sqlite3.connect(sqlite_file_url.removeprefix("sqlite:///"))) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)


async def at_work(made: Crew, hall: Hall) -> list[int]:
    async def handler(ctx: Any) -> dict[str, str]:
        await hall.handler(ctx)
        return BIG

    made.functions["t:f"] = handler
    await made.define(*(job(name) for name in JOBS))
    made.join(config=None)
    runs = [await made.trigger(name) for name in JOBS]
    for run_id in runs:
        await hall.begun(run_id)
    return runs


async def said(caplog: pytest.LogCaptureFixture, *texts: str) -> None:
    """When one of these is in the log."""
    async with asyncio.timeout(RED_S):
        while not any(text in record.getMessage() for record in caplog.records for text in texts):
            await asyncio.sleep(0.01)


DISK_BYTES: Final = 1_500_000


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path | None]:
    """A disk of its own; None where nobody may mount one."""
    disk = tmp_path / "disk"
    disk.mkdir()
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={DISK_BYTES}", "none", str(disk)], check=False)
    yield disk if done.returncode == 0 else None
    if done.returncode == 0:
        subprocess.run(["umount", "--lazy", str(disk)], check=True)


@asynccontextmanager
async def a_full_disk(disk: Path) -> AsyncIterator[None]:
    """Somebody else fills it to the last byte."""
    filler = disk / "filler"
    with filler.open("wb", buffering=0) as file, pytest.raises(OSError, match="No space left"):
        deque((file.write(bytes(512)) for _ in count()), maxlen=0)
    assert os.statvfs(disk).f_bavail == 0
    yield
    filler.unlink()


def test_a_disk_is_really_full(small_disk: Path | None, sqlite_file_url: str, caplog: pytest.LogCaptureFixture) -> None:
    """A tmpfs of 1.5 MB. What has ended is written when there is room again; health is red meanwhile, the file stays
    whole. Where nobody may mount a disk SQLite is told that its file must not grow, and this says so."""
    caplog.set_level(logging.INFO)
    url = f"sqlite:///{small_disk / 'jobs.db'}" if small_disk else sqlite_file_url

    async def scenario(made: Crew) -> None:
        hall = Hall()
        runs = await at_work(made, hall)
        worker = made.workers["w1"]
        async with a_full_disk(small_disk) if small_disk else a_full_file(File(url, made)):  # type: ignore[arg-type]
            for run_id in runs:
                hall.tell(run_id)
            async with asyncio.timeout(RED_S):
                while worker.health.trouble is None and worker.lease.trouble is None:
                    await asyncio.sleep(0.01)
            assert "cannot grow" in f"{worker.health.trouble} {worker.lease.trouble}"
        for line in await made.ended(*runs):
            assert (line.run.state, line.run.attempt) == (SUCCEEDED, 1)
        assert all(stay.attempts == 1 for stay in hall.stays.values())

    if small_disk is None:
        print("\nno disk may be mounted here: the limit of SQLite instead")
    played(url, scenario, lease_ttl_s=30.0, renew_s=2.0)
    with closing(sqlite3.connect(url.removeprefix("sqlite:///"))) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)


@pytest.mark.parametrize("says", SPOILED)
def test_ends_wait_for_room(a_file: str, says: str, caplog: pytest.LogCaptureFixture) -> None:
    """Shorter than a lease: whatever has ended meanwhile is written once there is room, and nothing is done twice."""
    caplog.set_level(logging.INFO)

    async def scenario(made: Crew) -> None:
        hall = Hall()
        runs = await at_work(made, hall)
        async with SPOILED[says](File(a_file, made)):  # type: ignore[arg-type]
            for run_id in runs:
                hall.tell(run_id)
            await said(caplog, "cannot be written yet", "it is not known whether the end")
            assert [line.run.finished_ms for line in await made.lines(*runs)] == [None] * len(runs)
        for line in await made.ended(*runs):
            assert (line.run.state, line.run.attempt) == (SUCCEEDED, 1)
        assert all(stay.attempts == 1 for stay in hall.stays.values())

    played(a_file, scenario, lease_ttl_s=30.0, renew_s=2.0)


def test_a_disk_that_is_full_for_longer_than_a_lease(a_file: str, caplog: pytest.LogCaptureFixture) -> None:
    """Who cannot renew stops its work; when there is room again it begins anew, and every run is done once more at
    most."""
    caplog.set_level(logging.INFO)

    async def scenario(made: Crew) -> None:
        hall = Hall()
        runs = await at_work(made, hall)
        worker = made.workers["w1"]
        async with a_limit_on_files(File(a_file, made)):  # type: ignore[arg-type]
            async with asyncio.timeout(RED_S):
                while worker.lease.trouble is None:
                    await asyncio.sleep(0.01)
            await said(caplog, "everything is stopped")
        for run_id in runs:
            hall.tell(run_id)
        for line in await made.ended(*runs):
            assert (line.run.state, line.run.attempt) == (SUCCEEDED, 2)
            assert line.run.losses == 1
        assert all(stay.attempts == 2 for stay in hall.stays.values())
        assert all(hall.most_at_once(name) == 1 for name in JOBS)
        again = [await made.trigger(name) for name in JOBS]  # and it goes on
        for run_id in again:
            hall.tell(run_id)
        async with asyncio.timeout(PATIENCE_S):
            await made.ended(*again)

    played(a_file, scenario)


@pytest.mark.parametrize(
    "says", ["cannot be read or written", pytest.param("cannot grow", marks=pytest.mark.soak)]
)  # a full disk says the second one: test_a_disk_is_really_full
def test_a_worker_says_that_it_cannot_write(a_file: str, says: str, caplog: pytest.LogCaptureFixture) -> None:
    """Health is red within ten seconds, not only the log: nobody reads the log of a worker that seems well."""
    caplog.set_level(logging.INFO)

    async def scenario(made: Crew) -> None:
        hall = Hall()
        runs = await at_work(made, hall)
        worker = made.workers["w1"]
        async with SPOILED[says](File(a_file, made)):  # type: ignore[arg-type]
            for run_id in runs:
                hall.tell(run_id)
            async with asyncio.timeout(RED_S):
                while worker.health.trouble is None and worker.lease.trouble is None:
                    await asyncio.sleep(0.01)
        await made.ended(*runs)
        async with asyncio.timeout(PATIENCE_S):
            while worker.health.trouble is not None or worker.lease.trouble is not None:
                await asyncio.sleep(0.01)

    played(a_file, scenario, lease_ttl_s=30.0, renew_s=2.0)
