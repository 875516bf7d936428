"""The judge of work is judged: what really happened passes, and every kind of damage is found."""

import asyncio
import copy
import shutil
import sqlite3
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.faults import truth, work_truth
from tests.faults.nursery import Nursery
from tests.faults.work_fleet import AGAIN_MS, LOAD, Siege, create

Lines = list[dict[str, Any]]
WON = "(SELECT max(run_id) FROM runs WHERE state = 'succeeded' AND attempt = 1)"
LOST = "(SELECT max(run_id) FROM attempts WHERE outcome = 'lost')"


@dataclass
class Sound:
    path: Path
    lines: Lines
    cuts: Counter[str]


@pytest.fixture(scope="module")
def sound(cradle: Nursery, tmp_path_factory: pytest.TempPathFactory) -> Sound:
    folder = tmp_path_factory.mktemp("sound")
    siege = Siege(f"sqlite:///{folder / 'jobs.db'}", folder, cradle)

    async def scenario() -> None:
        await create(siege.url, LOAD)
        siege.survivor()
        doomed = siege.born("doomed")
        await siege.begun(3, node="doomed")
        await siege.kill(doomed)
        await siege.begun(len(siege.said("start")) + 5)
        await siege.heals()

    asyncio.run(scenario())
    return Sound(folder / "jobs.db", siege.lines(), siege.cuts)


def judged(sound: Sound, folder: Path, sql: str = "", lines: Lines | None = None) -> work_truth.Verdict:
    shutil.copyfile(sound.path, folder / "copy.db")
    with closing(sqlite3.connect(folder / "copy.db")) as connection:
        connection.executescript(sql)
    tables = truth.read(f"sqlite:///{folder / 'copy.db'}", (*truth.TABLES, *work_truth.TABLES))
    return work_truth.judge(tables, sound.lines if lines is None else lines, sound.cuts, AGAIN_MS)


def test_what_happened_passes(sound: Sound, tmp_path: Path) -> None:
    verdict = judged(sound, tmp_path)
    assert verdict.wrong == []
    assert verdict.attempts["lost"] > 0
    assert verdict.attempts["failed"] > 0


ROWS = {
    "a run without an answer": ("I1", f"UPDATE runs SET state = 'running', finished_ms = NULL WHERE run_id = {WON}"),
    "a tick that was lost": (
        "without an answer",
        f"DELETE FROM attempts WHERE run_id = {WON}; DELETE FROM runs WHERE run_id = {WON}",
    ),
    "a lease that is left": (
        "leases",
        "INSERT INTO leases (run_id, attempt, job_id, tenant, pool, type, lane, kind, due_ms, scheduled_for_ms,"
        " overlap, slot, claimed_ms, failures, losses, round)"
        " SELECT run_id, 1, job_id, 't', 'p', 't', 'live', 'tick', 0, 0, 'skip', 0, 0, 0, 0, 0 FROM runs LIMIT 1",
    ),
    "a hole in the numbers": ("I8", f"UPDATE attempts SET attempt = 5 WHERE run_id = {LOST} AND attempt = 2"),
    "an attempt more than the run knows": ("I8", f"UPDATE runs SET attempt = attempt + 1 WHERE run_id = {WON}"),
    "a success that went on": ("I7", f"UPDATE attempts SET outcome = 'succeeded' WHERE run_id = {LOST}"),
    "a success that nobody had": ("I7", f"UPDATE attempts SET outcome = 'failed' WHERE run_id = {WON}"),
    "an end that another one wrote": ("I9", f"UPDATE attempts SET node_id = 'other-1' WHERE run_id = {WON}"),
    "a loss without a fault": ("I6", "UPDATE attempts SET node_id = 'survivor-1' WHERE outcome = 'lost'"),
    "a budget that was not charged": ("I12", f"UPDATE runs SET losses = 0 WHERE run_id = {LOST}"),
    "a run that began too early": ("I4", f"UPDATE runs SET run_after_ms = run_after_ms + 60000 WHERE run_id = {WON}"),
    "a retry that began too early": (
        "I4",
        "UPDATE attempts SET finished_ms = finished_ms + 250 WHERE error_code <> ''",
    ),
}


@pytest.mark.parametrize("damage", ROWS)
def test_damaged_rows_are_found(sound: Sound, tmp_path: Path, damage: str) -> None:
    tag, sql = ROWS[damage]
    assert any(tag in wrong for wrong in judged(sound, tmp_path, sql).wrong)


def _first(lines: Lines, say: str) -> dict[str, Any]:
    return next(line for line in lines if line["say"] == say)


def _end_of_a_success(lines: Lines) -> dict[str, Any]:
    """The last one: of the node that was killed nobody may have heard that it was done."""
    return next(line for line in reversed(lines) if line["say"] == "end" and line["how"] == "done")


LINES: dict[str, tuple[str, Callable[[Lines], object]]] = {
    "two at the same time": (
        "I3",
        lambda lines: lines.append({**_first(lines, "start"), "say": "beside", "what": "run"}),
    ),
    "an attempt that began twice": ("I3", lambda lines: lines.append(_first(lines, "start"))),
    "a handler that never ended": ("I9", lambda lines: lines.remove(_end_of_a_success(lines))),
    "a handler that was stopped": ("I9", lambda lines: _end_of_a_success(lines).update(how="stopped")),
    "work on another node": ("I9", lambda lines: _first(lines, "start").update(node="elsewhere")),
    "work that no row knows": ("I12", lambda lines: lines.append({**_first(lines, "start"), "attempt": 9})),
    "work on a run that is not there": ("is not there", lambda lines: _first(lines, "start").update(run=10**9)),
    "work before its time": ("I4", lambda lines: _first(lines, "start").update(at_ms=0)),
}


@pytest.mark.parametrize("damage", LINES)
def test_other_words_of_the_handlers_are_found(sound: Sound, tmp_path: Path, damage: str) -> None:
    tag, change = LINES[damage]
    lines = copy.deepcopy(sound.lines)
    change(lines)
    assert any(tag in wrong for wrong in judged(sound, tmp_path, lines=lines).wrong)


def test_violations_are_counted_by_kind(sound: Sound, tmp_path: Path) -> None:
    """What the long suite says at its end."""
    sql = ROWS["a run that began too early"][1] + ";" + ROWS["a run without an answer"][1]
    lines = [*sound.lines, {**_first(sound.lines, "start"), "say": "beside", "what": "run"}]
    verdict = judged(sound, tmp_path, sql, lines)
    found = verdict.violations()
    assert found.total() == len(verdict.wrong)
    assert (found["early"], found["concurrent"], found["stale"]) == (1, 1, 0)
    assert found["lost"] >= 1
    assert "early 1" in verdict.summary()


def test_a_database_that_is_set_back_makes_nobody_early(sound: Sound, tmp_path: Path) -> None:
    """An attempt that failed was written with a time that the database has left: only the right clock can tell."""
    spoiled = "UPDATE attempts SET finished_ms = finished_ms + 4000 WHERE outcome = 'failed'"
    right = [{**line, "right_ms": line["at_ms"]} for line in sound.lines]
    hasty = [{**line, "right_ms": 0 if line["say"] == "start" else line["at_ms"]} for line in sound.lines]
    early = [judged(sound, tmp_path, spoiled, lines).violations()["early"] for lines in (sound.lines, right, hasty)]
    assert early[0] == early[2] > 0 == early[1]
