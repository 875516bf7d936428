"""Scenarios that need a process of their own: `python -m tests.store.victims NAME FOLDER`. 0 if all held."""

import asyncio
import os
import pwd
import resource
import sys
from collections.abc import Awaitable, Callable
from contextlib import closing, suppress
from functools import partial
from pathlib import Path
from sqlite3 import connect

import pytest

from fleetcron.errors import StoreUnavailable
from fleetcron.store.migrations import Altering
from fleetcron.store.written import Ok, Unknown
from tests.store.engines import bare, opened
from tests.store.scratch import found, put

PIECE = 100_000


async def fill(engine: Altering) -> tuple[list[int], StoreUnavailable | Unknown]:
    """Write until there is no more room: what was confirmed, and what the caller is told about the next one."""
    confirmed: list[int] = []
    for number in range(100, 200):
        try:
            answer = await engine.write(partial(put, number, PIECE))
        except StoreUnavailable as full:
            return confirmed, full
        if isinstance(answer, Unknown):
            return confirmed, answer
        confirmed.append(number)
    raise AssertionError("there was room for everything")


async def full_then_not(engine: Altering, make_room: Callable[[], object]) -> StoreUnavailable | Unknown:
    confirmed, told = await fill(engine)
    assert confirmed, "not even one fitted"
    assert await found(engine) == confirmed
    make_room()
    assert await engine.write(lambda: put(300, PIECE)) == Ok(None)
    assert await found(engine) == [*confirmed, 300]
    return told


def whole(path: Path) -> None:
    with closing(connect(path)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]


async def full_disk(folder: Path) -> None:
    """On a file system that is nearly full."""
    (folder / "ballast").write_bytes(bytes(600_000))
    async with opened(f"sqlite:///{folder / 'jobs.db'}") as engine:
        told = await full_then_not(engine, (folder / "ballast").unlink)
        assert isinstance(told, StoreUnavailable), told
        assert "cannot grow (database or disk is full); free space on its disk" in str(told), told
    whole(folder / "jobs.db")


async def file_size_limit(folder: Path) -> None:
    """The kernel refuses to let files grow: a quota in small. To SQLite that is a failed COMMIT, not a full disk."""
    _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    async with opened(f"sqlite:///{folder / 'jobs.db'}") as engine:
        resource.setrlimit(resource.RLIMIT_FSIZE, (1_000_000, hard))
        told = await full_then_not(engine, lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard)))
        assert isinstance(told, Unknown), told
        assert "cannot be read or written (disk I/O error); look at the disk" in told.why
    whole(folder / "jobs.db")


async def read_only(folder: Path) -> None:
    """A file, then its folder, that may not be written. The same engine goes on when it may."""
    path = folder / "jobs.db"
    async with opened(f"sqlite:///{path}") as engine:
        await engine.write(lambda: put(100))
    path.chmod(0o444)
    async with bare(f"sqlite:///{path}") as engine:
        with pytest.raises(StoreUnavailable, match=f"{path} cannot be written .* give this user the right"):
            await engine.write(lambda: put(101))
        assert await found(engine) == [100]
        for file in folder.glob("jobs.db*"):
            file.chmod(0o644)
        await until_written(engine, 102)
    folder.chmod(0o555)
    with pytest.raises(StoreUnavailable, match=f"{path} cannot be .* the folder {folder}"):
        async with bare(f"sqlite:///{path}") as engine:
            await engine.write(lambda: put(103))
    folder.chmod(0o755)
    async with bare(f"sqlite:///{path}") as engine:
        assert await engine.write(lambda: put(104)) == Ok(None)
        assert await found(engine) == [100, 102, 104]


SCENARIOS: dict[str, Callable[[Path], Awaitable[None]]] = {
    scenario.__name__: scenario for scenario in (full_disk, file_size_limit, read_only)
}


async def until_written(engine: Altering, number: int) -> None:
    """Try again while the database is unavailable, as every loop of fleetcron does."""
    async with asyncio.timeout(30):
        while True:
            with suppress(StoreUnavailable):
                assert await engine.write(lambda: put(number)) == Ok(None)
                return


async def imports() -> None:
    async with opened(":memory:") as engine:
        await found(engine)


def main(name: str, folder: str) -> None:
    if name == "read_only" and os.getuid() == 0:  # rights do not bind root
        asyncio.run(imports())  # nobody may not be able to read what Python imports late
        nobody = pwd.getpwnam("nobody")
        os.setgroups([])
        os.setgid(nobody.pw_gid)
        os.setuid(nobody.pw_uid)

    async def run() -> None:
        await SCENARIOS[name](Path(folder))

    asyncio.run(run())


if __name__ == "__main__":
    main(*sys.argv[1:])
