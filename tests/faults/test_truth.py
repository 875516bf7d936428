"""The judge is judged: a sound database passes, and every kind of damage is found."""

import asyncio
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tests.faults import truth
from tests.faults.story import life

DAMAGE = {
    "a run is lost": "DELETE FROM runs WHERE run_id = (SELECT run_id FROM runs WHERE covers = 1 LIMIT 1)",
    "a run and its place in the queue are lost": (
        "DELETE FROM upcoming WHERE run_id = 9; DELETE FROM runs WHERE run_id = 9"
    ),
    "a run is not on its way": "DELETE FROM upcoming WHERE run_id = 9",
    "a run is on its way twice": (
        "INSERT INTO upcoming SELECT run_after_ms + 1, run_id, job_id, lane FROM upcoming LIMIT 1"
    ),
    "a run for an instant that is no tick": "UPDATE runs SET scheduled_for_ms = scheduled_for_ms + 1 WHERE run_id = 9",
    "a run of another job": "UPDATE runs SET job_id = (SELECT job_id FROM jobs WHERE name = 'once') WHERE run_id = 9",
    "a run after the cursor": (
        "UPDATE cursors SET cursor_ms = cursor_ms - 10000 WHERE job_id = (SELECT job_id FROM jobs WHERE name = 'skip')"
    ),
    "a run that may start early": "UPDATE runs SET run_after_ms = run_after_ms - 1 WHERE run_id = 9",
    "another jitter": (
        "UPDATE runs SET run_after_ms = run_after_ms - 1 WHERE run_id ="
        " (SELECT max(run_id) FROM runs WHERE run_after_ms > scheduled_for_ms + 1)"
    ),
    "a line of the ledger is lost": "DELETE FROM ledger WHERE entry_id = (SELECT max(entry_id) FROM ledger)",
    "a line of the ledger is too short": (
        "UPDATE ledger SET to_ms = to_ms - 10000 WHERE entry_id = (SELECT max(entry_id) FROM ledger WHERE ticks > 3)"
    ),
    "a line of the ledger counts wrongly": "UPDATE ledger SET ticks = ticks + 1 WHERE entry_id = 1",
    "a tick in the ledger that has a run": (
        "INSERT INTO ledger (job_id, from_ms, to_ms, ticks, answer, reason, revision, almanac, noted_ms)"
        " SELECT job_id, scheduled_for_ms, scheduled_for_ms, 1, 'skipped', 'misfire', 1, 1, 0"
        " FROM runs WHERE run_id = 9"
    ),
    "a cover that covers less": "UPDATE runs SET covers = covers - 1 WHERE covers > 1",
    "a gap over what is decided": (
        "INSERT INTO gaps (job_id, region, shard, from_ms, to_ms, cause, revision, timing_id, almanac, trimmed)"
        " SELECT job_id, '*', 0, scheduled_for_ms - 1, scheduled_for_ms, 'outage', 1, 1, 1, 0"
        " FROM runs WHERE run_id = 9"
    ),
    "a cursor that stands still": (
        "DELETE FROM upcoming WHERE job_id = (SELECT job_id FROM jobs WHERE name = 'every');"
        "DELETE FROM runs WHERE job_id = (SELECT job_id FROM jobs WHERE name = 'every');"
        "DELETE FROM ledger WHERE job_id = (SELECT job_id FROM jobs WHERE name = 'every');"
        "UPDATE cursors SET cursor_ms = (SELECT created_ms FROM jobs WHERE name = 'every')"
        " WHERE job_id = (SELECT job_id FROM jobs WHERE name = 'every')"
    ),
    "a caught-up run that was not late": (
        "UPDATE runs SET lane = 'catchup' WHERE lane = 'live' AND created_ms < scheduled_for_ms"
    ),
}


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, int]:
    path = tmp_path_factory.mktemp("sound") / "sound.db"

    async def scenario() -> int:
        now_ms = 0
        for number in range(2):
            async with life(f"sqlite:///{path}", number) as one:
                await one.tell()
                now_ms = one.clock.now_ms()
        return now_ms

    return path, asyncio.run(scenario())


def test_a_sound_database_passes(sound: tuple[Path, int]) -> None:
    path, now_ms = sound
    verdict = truth.judge(truth.read(f"sqlite:///{path}"), now_ms)
    assert verdict.wrong == []
    assert verdict.runs > 300
    assert verdict.late_runs > 200
    assert verdict.ledger > 500
    assert verdict.ticks == verdict.runs + verdict.ledger


@pytest.mark.parametrize("what", DAMAGE)
def test_damage_is_found(sound: tuple[Path, int], tmp_path: Path, what: str) -> None:
    path, now_ms = sound
    shutil.copyfile(path, tmp_path / "damaged.db")
    with closing(sqlite3.connect(tmp_path / "damaged.db")) as connection:
        before = connection.total_changes
        connection.executescript(DAMAGE[what])
        assert connection.total_changes > before
    assert truth.judge(truth.read(f"sqlite:///{tmp_path / 'damaged.db'}"), now_ms).wrong != []
