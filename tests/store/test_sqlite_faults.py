"""SQLite with a full disk, without rights, held by another process, damaged or gone: what is said, and what heals."""

import asyncio
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path

import pytest

from fleetcron.clock import SystemClock
from fleetcron.errors import StoreError, StoreUnavailable
from fleetcron.store.sqlite_errors import meaning
from fleetcron.store.sqlite_session import SqliteSession
from fleetcron.store.written import Ok
from tests.store.engines import bare, change, opened
from tests.store.scratch import found, put
from tests.store.victims import fill

ROOT = Path(__file__).parents[2]
DEADLINE_S = 0.3


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "jobs.db"


@pytest.fixture
def folder() -> Iterator[Path]:
    """One that every user can enter, other than those of pytest."""
    with tempfile.TemporaryDirectory(dir="/tmp", prefix="fleetcron-") as name:
        folder = Path(name)
        if os.getuid() == 0:
            shutil.chown(folder, "nobody")
        folder.chmod(0o755)
        yield folder


def survives(scenario: str, folder: Path, *before: str) -> None:
    argv = [*before, sys.executable, "-m", "tests.store.victims", scenario, str(folder)]
    answer = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    assert answer.returncode == 0, answer.stderr


def test_a_full_disk_costs_nothing_that_was_confirmed(path: Path) -> None:
    """SQLite's own limit on the file: the same error, without a disk to fill."""

    async def scenario() -> None:
        async with opened(f"sqlite:///{path}") as engine:
            await change(engine, "PRAGMA max_page_count = 200")
            confirmed, told = await fill(engine)
            assert isinstance(told, StoreUnavailable)  # so nothing of it was written
            assert f"{path} cannot grow (database or disk is full); free space on its disk" in str(told)
            assert await found(engine) == confirmed != []
            await change(engine, "PRAGMA max_page_count = 100000")
            assert await engine.write(lambda: put(300, 100_000)) == Ok(None)
            assert await found(engine) == [*confirmed, 300]

    asyncio.run(scenario())


def test_files_that_may_not_grow(folder: Path) -> None:
    survives("file_size_limit", folder)


def test_a_disk_that_is_really_full(folder: Path) -> None:
    """On a file system of 1.5 MB, where the machine lets us have one."""
    mount = f"mount -t tmpfs -o size=1500k,mode=777 none {folder}"
    alone = ["unshare", "--map-root-user", "--mount", "sh", "-c"]
    if not shutil.which("unshare") or subprocess.run([*alone, mount], capture_output=True, check=False).returncode:
        pytest.skip("this machine lets nobody mount; the two tests above fill a file in other ways")
    survives("full_disk", folder, *alone, f'{mount} && exec "$@"', "sh")


def test_a_file_or_folder_without_the_right_to_write(folder: Path) -> None:
    survives("read_only", folder)


HOLDER = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
connection.execute("BEGIN IMMEDIATE")
print("held", flush=True)
sys.stdin.read()
"""


@contextmanager
def held_by_another_process(path: Path) -> Iterator[None]:
    argv = [sys.executable, "-c", HOLDER, str(path)]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout
        assert holder.stdout.readline() == "held\n"
        yield
        holder.communicate()  # closes its input, which ends it


def test_a_writer_in_another_process_is_waited_for_only_so_long(path: Path) -> None:
    async def scenario() -> None:
        async with opened(f"sqlite:///{path}", deadline_s=DEADLINE_S) as engine:
            await engine.write(lambda: put(100))
            with held_by_another_process(path):
                began = time.monotonic()
                calls = (engine.write(partial(put, number)) for number in range(200, 220))
                answers = await asyncio.gather(*calls, return_exceptions=True)
                assert time.monotonic() - began < 10 * DEADLINE_S  # one after the other it would be 20 deadlines
                assert all(isinstance(answer, StoreUnavailable) for answer in answers)
                assert f"{path} is held by another process (database is locked)" in str(answers[0])
                assert await found(engine) == [100]  # reads go on
            assert await engine.write(lambda: put(101)) == Ok(None)
            assert await found(engine) == [100, 101]

    asyncio.run(scenario())


def test_a_file_that_another_process_has_to_itself_is_waited_for_only_so_long(path: Path) -> None:
    async def scenario() -> None:
        with closing(sqlite3.connect(path, isolation_level=None)) as other:
            other.execute("PRAGMA locking_mode = EXCLUSIVE")
            other.execute("CREATE TABLE mine (x)")
            began = time.monotonic()
            with pytest.raises(StoreUnavailable, match="is held by another process"):
                async with bare(f"sqlite:///{path}", deadline_s=DEADLINE_S):
                    pass
            assert time.monotonic() - began < 10 * DEADLINE_S
        async with opened(f"sqlite:///{path}") as engine:
            assert await found(engine) == []

    asyncio.run(scenario())


def test_a_short_write_of_another_process_is_no_trouble(path: Path) -> None:
    async def scenario() -> None:
        async with opened(f"sqlite:///{path}") as engine:
            with held_by_another_process(path):
                write = asyncio.create_task(engine.write(lambda: put(100)))
                await asyncio.sleep(0)
                assert not write.done()
            assert await write == Ok(None)

    asyncio.run(scenario())


def test_several_may_open_a_new_file_at_once(tmp_path: Path) -> None:
    """SQLite does not wait for others when it switches a file to WAL; of 900 opens 6 failed."""

    def opens(path: Path) -> None:
        session = SqliteSession(str(path), SystemClock(), busy_ms=5_000)
        together.wait()
        session.changes_of_others()
        session.close()

    together = threading.Barrier(6)
    with ThreadPoolExecutor(6) as threads:
        for number in range(30):
            list(threads.map(opens, [tmp_path / f"{number}.db"] * 6))


def test_a_file_that_vanished_is_not_replaced_by_an_empty_one(path: Path) -> None:
    async def scenario() -> None:
        async with opened(f"sqlite:///{path}") as engine:
            await engine.write(lambda: put(100))
            path.rename(path.with_name("moved.db"))
            with pytest.raises(StoreUnavailable, match="look whether it is still there"):
                await engine.write(lambda: put(101))
            with pytest.raises(StoreUnavailable, match="look whether it is still there"):
                await found(engine)
            assert not path.exists()
            path.with_name("moved.db").rename(path)
            assert await engine.write(lambda: put(102)) == Ok(None)
            assert await found(engine) == [100, 102]

    asyncio.run(scenario())


def test_what_is_not_a_database_is_not_touched(path: Path) -> None:
    path.write_text("name,schedule\n" * 1000)

    async def scenario() -> None:
        with pytest.raises(StoreError, match=r"is damaged, or is not a database .* restore it from a backup") as caught:
            async with bare(f"sqlite:///{path}"):
                pass
        assert not isinstance(caught.value, StoreUnavailable)

    asyncio.run(scenario())
    assert path.read_text() == "name,schedule\n" * 1000


def test_a_folder_that_does_not_exist(tmp_path: Path) -> None:
    path = tmp_path / "no" / "such" / "jobs.db"

    async def scenario() -> None:
        with pytest.raises(StoreUnavailable, match=f"there is no folder {path.parent}; create the folder"):
            async with bare(f"sqlite:///{path}"):
                pass
        path.parent.mkdir(parents=True)
        async with opened(f"sqlite:///{path}") as engine:
            assert await found(engine) == []
        with pytest.raises(StoreError, match="it is a folder; name a file in it"):
            async with bare(f"sqlite:///{path.parent}"):
                pass

    asyncio.run(scenario())


def test_a_race_between_many_readers_passes() -> None:
    error = sqlite3.OperationalError("locking protocol")
    error.sqlite_errorcode = sqlite3.SQLITE_PROTOCOL
    named = meaning(error, "/var/jobs.db")
    assert isinstance(named, StoreUnavailable)
    assert "the SQLite file /var/jobs.db is busy (locking protocol)" in str(named)
