"""Several processes on one SQLite file, of which one after the other is killed: the file's lock puts them in order."""

import asyncio
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from fleetcron.store.migrations import known
from tests.faults import truth
from tests.faults.fleet import Fleet, fleet, until
from tests.faults.inside import JOBS
from tests.faults.test_fleet import desk_of
from tests.services.guard import Guard

SHARDS = 16


@pytest.fixture
def on_a_file(guard: Guard, sqlite_file_url: str, tmp_path: Path) -> Iterator[Fleet]:
    with fleet(guard, sqlite_file_url, tmp_path) as found:
        yield found


class File:
    def __init__(self, url: str) -> None:
        self._path = url.removeprefix("sqlite:///")

    def ask(self, sql: str, *values: object) -> int:
        with closing(sqlite3.connect(self._path, timeout=10)) as connection:
            connection.create_function("db_now_ms", 0, lambda: time.time_ns() // 1_000_000)
            return int(connection.execute(sql, values).fetchone()[0])

    def held_by(self, *names: str) -> bool:
        """Do these hold everything between them, each of them some?"""
        sql = "SELECT count(*) FROM shard_leases WHERE node_id LIKE ? || '-%' AND expires_ms > db_now_ms()"
        counts = [self.ask(sql, name) for name in names]
        return sum(counts) == SHARDS and min(counts) > 0

    def caught_up(self) -> bool:
        sql = "SELECT (SELECT count(*) FROM cursors WHERE next_due_ms <= db_now_ms()) + (SELECT count(*) FROM gaps)"
        return not self.ask(sql)


async def scenario(processes: Fleet) -> int:
    file = File(processes.url)
    members = {name: processes.start(name) for name in ("a0", "b0")}  # both make the tables, or find them made
    await until(lambda: Path(processes.url.removeprefix("sqlite:///")).exists())
    await until(lambda: file.ask("SELECT count(*) FROM sqlite_schema WHERE name = 'migrations'"))
    await until(lambda: file.ask("SELECT count(*) FROM migrations") == len(known("sqlite")))
    async with desk_of(processes.url) as desk:
        await desk.apply(JOBS)
    for letter, other in ("ab", "ba"):
        await until(lambda: file.held_by(*members))
        stays = next(name for name in members if name[0] == other)
        await processes.kill(members.pop(f"{letter}0"))
        await until(lambda stays=stays: file.held_by(stays))
        members[f"{letter}1"] = processes.start(f"{letter}1")
    await until(lambda: file.held_by(*members))
    await until(file.caught_up)
    now_ms = time.time_ns() // 1_000_000
    await until(file.caught_up)
    await processes.stop(list(members.values()))
    return now_ms


def test_processes_on_one_file_die(on_a_file: Fleet) -> None:
    """S1-2, S4-3: no tick is lost or doubled, and the file is whole."""
    now_ms = asyncio.run(scenario(on_a_file))
    verdict = truth.judge(truth.read(on_a_file.url), now_ms)
    print(f"\n{verdict}")
    assert verdict.wrong == []
    assert verdict.undecided == 0
    assert verdict.events["run_conflict"] == 0
    assert verdict.events["shard_taken_over"] > 0
    with closing(sqlite3.connect(on_a_file.url.removeprefix("sqlite:///"))) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
