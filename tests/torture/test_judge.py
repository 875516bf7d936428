"""The judge is judged: what went well passes, and every broken promise is found."""

import copy
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from fleetcron.torture.evidence import Evidence, Sample, keep, kept
from fleetcron.torture.handlers import LOG
from fleetcron.torture.judge import judge
from fleetcron.torture.story import story
from fleetcron.torture.verdict import PROMISES, Key
from tests.torture.invented import invented

Rows: TypeAlias = dict[str, list[dict[str, Any]]]
Lines: TypeAlias = list[dict[str, Any]]


@pytest.fixture
def sound() -> Evidence:
    return invented()


def test_an_orderly_stop_is_no_loss(sound: Evidence) -> None:
    """Whoever is asked to leave ends what takes longer than its drain, and that costs nothing."""
    lost = [row for row in sound.tables["attempts"] if row["outcome"] == "lost"]
    for row in lost:
        row["error_code"] = "worker_stopped"
    assert len(judge(sound).violations) == len(lost)
    for run in sound.tables["runs"]:
        run["losses"] = 0
    assert judge(sound).violations == []


def test_what_went_well_passes(sound: Evidence) -> None:
    verdict = judge(sound)
    assert verdict.violations == []
    assert verdict.checked.keys() == PROMISES.keys()
    assert all(verdict.checked[promise] > 100 for promise in PROMISES)
    assert verdict.runs.keys() == {"succeeded", "dead", "cancelled"}
    assert verdict.attempts["lost"] == 2
    assert verdict.attempts["failed"] > 10


def won(rows: Rows) -> dict[str, Any]:
    """A run that succeeded at its first attempt, by its schedule."""
    return next(
        run for run in rows["runs"] if run["state"] == "succeeded" and run["attempt"] == 1 and run["kind"] == "tick"
    )


def attempt_of(rows: Rows, run: dict[str, Any]) -> dict[str, Any]:
    return next(row for row in rows["attempts"] if row["run_id"] == run["run_id"])


def line_of(lines: Lines, run: dict[str, Any], say: str) -> dict[str, Any]:
    return next(line for line in lines if line["run"] == run["run_id"] and line["say"] == say)


def job_named(rows: Rows, name: str) -> str:
    return str(next(job["job_id"] for job in rows["jobs"] if job["name"] == name))


def forget(run: dict[str, Any], rows: Rows, lines: Lines) -> None:
    rows["runs"].remove(run)
    rows["attempts"] = [row for row in rows["attempts"] if row["run_id"] != run["run_id"]]
    lines[:] = [line for line in lines if line["run"] != run["run_id"]]


def a_run_is_missing(rows: Rows, lines: Lines) -> None:
    forget(won(rows), rows, lines)


def a_ledger_line_is_missing(rows: Rows, _: Lines) -> None:
    rows["ledger"].clear()


def a_line_leaves_a_tick_out(rows: Rows, _: Lines) -> None:
    line = rows["ledger"][0]
    line["to_ms"] -= 2000
    line["ticks"] -= 1


def a_tick_after_an_edit_is_forgotten(rows: Rows, lines: Lines) -> None:
    """Under the definition that held then it is one."""
    key = job_named(rows, "edited-1")
    run = max((run for run in rows["runs"] if run["job_id"] == key), key=lambda run: run["scheduled_for_ms"])
    forget(run, rows, lines)


def a_tick_is_answered_twice(rows: Rows, _: Lines) -> None:
    run = won(rows)
    tick = run["scheduled_for_ms"]
    rows["ledger"].append({"job_id": run["job_id"], "from_ms": tick, "to_ms": tick, "ticks": 1})


def a_tick_is_answered_and_undecided(rows: Rows, _: Lines) -> None:
    run = won(rows)
    tick = run["scheduled_for_ms"]
    rows["gaps"].append({"job_id": run["job_id"], "from_ms": tick - 1, "to_ms": tick})


def a_run_is_doubled(rows: Rows, _: Lines) -> None:
    rows["runs"].append({**won(rows), "run_id": 10**9, "attempt": 0, "state": "skipped", "failures": 0, "losses": 0})


def a_run_that_is_no_tick(rows: Rows, _: Lines) -> None:
    run = won(rows)
    run["scheduled_for_ms"] += 1
    run["run_after_ms"] += 1


def a_ledger_line_that_counts_wrong(rows: Rows, _: Lines) -> None:
    rows["ledger"][0]["ticks"] += 1


def a_line_is_doubled(rows: Rows, lines: Lines) -> None:
    lines.append(dict(line_of(lines, won(rows), "start")))


def an_attempt_runs_beside_another(rows: Rows, lines: Lines) -> None:
    lines.append({**line_of(lines, won(rows), "start"), "say": "beside", "what": "run-1"})


def an_attempt_begins_before_the_last_has_ended(rows: Rows, lines: Lines) -> None:
    first = line_of(lines, won(rows), "end")
    lines.append({**first, "say": "start", "attempt": 2, "at_us": first["at_us"] - 10_000})


def a_start_is_early(rows: Rows, lines: Lines) -> None:
    run = won(rows)
    line_of(lines, run, "start")["at_us"] = run["run_after_ms"] * 1000 - 1500


def a_retry_is_early(rows: Rows, _: Lines) -> None:
    failed = next(row for row in rows["attempts"] if row["outcome"] == "failed" and row["attempt"] == 1)
    failed["finished_ms"] += 250


def a_stale_end_is_accepted(rows: Rows, _: Lines) -> None:
    attempt_of(rows, won(rows))["node_id"] = "node-9.9-abcdef"


def a_success_that_no_handler_knows(rows: Rows, lines: Lines) -> None:
    lines.remove(line_of(lines, won(rows), "end"))


def a_run_goes_on_after_its_end(rows: Rows, _: Lines) -> None:
    run = won(rows)
    rows["attempts"].append({**attempt_of(rows, run), "attempt": 2, "outcome": "lost"})
    run["attempt"], run["losses"] = 2, 1


def a_lower_attempt_begins_after_a_higher(rows: Rows, lines: Lines) -> None:
    lines.append({**line_of(lines, won(rows), "start"), "attempt": 0})


def work_that_no_row_tells_of(rows: Rows, lines: Lines) -> None:
    last = line_of(lines, won(rows), "end")
    lines.append({**last, "say": "start", "attempt": 2, "at_us": last["at_us"] + 10_000})


def a_loss_without_a_fault(rows: Rows, lines: Lines) -> None:
    run = won(rows)
    attempt = attempt_of(rows, run)
    rows["attempts"].append({**attempt, "attempt": 2})
    attempt["outcome"] = "lost"
    attempt["node_id"] = "node-9.9-abcdef"
    run["attempt"], run["losses"] = 2, 1
    for line in (line_of(lines, run, "start"), line_of(lines, run, "end")):
        line["attempt"] = 2


def a_loss_that_never_was(rows: Rows, _: Lines) -> None:
    won(rows)["losses"] = 1


def a_lost_attempt_is_not_counted(rows: Rows, _: Lines) -> None:
    """Also if the run was asked to stop meanwhile."""
    next(run for run in rows["runs"] if run["state"] == "cancelled")["losses"] = 0


def beginnings(lines: Lines, *jobs: str) -> list[dict[str, Any]]:
    """Of these jobs, in order."""
    return [line for line in lines if line["say"] == "start" and line["job"] in jobs]


def goes_on_until(lines: Lines, start: dict[str, Any], at_us: int) -> None:
    """The end of an attempt comes later."""
    end = next(line for line in lines if line["say"] == "end" and line["run"] == start["run"])
    end["at_us"] = at_us


def two_runs_of_a_job_at_once(_: Rows, lines: Lines) -> None:
    first, second = beginnings(lines, "second")[:2]
    goes_on_until(lines, first, second["at_us"] + 1000)


def three_runs_of_a_pair(_: Rows, lines: Lines) -> None:
    first, second, third = beginnings(lines, "pair")[:3]
    goes_on_until(lines, first, third["at_us"] + 1000)
    goes_on_until(lines, second, third["at_us"] + 1000)


def two_jobs_of_a_key_at_once(_: Rows, lines: Lines) -> None:
    first, second = beginnings(lines, "till-1", "till-2")[:2]
    assert first["job"] != second["job"]
    goes_on_until(lines, first, second["at_us"] + 1000)


def a_lock_is_taken(rows: Rows, lines: Lines) -> None:
    lines.append({**line_of(lines, won(rows), "start"), "say": "beside", "what": "alone-till"})


def a_revision_is_lost(rows: Rows, _: Lines) -> None:
    last = max(rows["job_revisions"], key=lambda row: row["at_ms"])
    rows["job_revisions"].remove(last)


def work_on_a_run_that_is_not_there(rows: Rows, lines: Lines) -> None:
    for line in (line_of(lines, won(rows), "start"), line_of(lines, won(rows), "end")):
        lines.append({**line, "run": 10**9})


def a_run_does_not_end(rows: Rows, _: Lines) -> None:
    run = won(rows)
    run["state"], run["finished_ms"] = "running", None


def a_lease_is_left(rows: Rows, _: Lines) -> None:
    rows["leases"].append({"run_id": won(rows)["run_id"]})


Damage: TypeAlias = Callable[[Rows, Lines], None]
DAMAGE: dict[Key, list[Damage]] = {
    "answered": [
        a_run_is_missing, a_ledger_line_is_missing, a_line_leaves_a_tick_out, a_tick_after_an_edit_is_forgotten,
    ],
    "once": [
        a_tick_is_answered_twice, a_tick_is_answered_and_undecided, a_run_is_doubled, a_run_that_is_no_tick,
        a_ledger_line_that_counts_wrong,
    ],
    "alone": [a_line_is_doubled, an_attempt_runs_beside_another, an_attempt_begins_before_the_last_has_ended],
    "punctual": [a_start_is_early, a_retry_is_early],
    "fenced": [
        a_stale_end_is_accepted, a_success_that_no_handler_knows, a_run_goes_on_after_its_end,
        a_lower_attempt_begins_after_a_higher, work_that_no_row_tells_of,
    ],
    "bounded": [a_loss_without_a_fault, a_loss_that_never_was, a_lost_attempt_is_not_counted],
    "overlap": [two_runs_of_a_job_at_once, three_runs_of_a_pair, two_jobs_of_a_key_at_once, a_lock_is_taken],
    "kept": [a_revision_is_lost, work_on_a_run_that_is_not_there],
    "settled": [a_run_does_not_end, a_lease_is_left],
}  # fmt: skip


def test_every_promise_can_be_broken() -> None:
    assert DAMAGE.keys() == PROMISES.keys()


@pytest.mark.parametrize(
    ("promise", "damage"),
    [(promise, damage) for promise, found in DAMAGE.items() for damage in found],
    ids=lambda each: each if isinstance(each, str) else each.__name__,
)
def test_a_broken_promise_is_found(sound: Evidence, promise: Key, damage: Damage) -> None:
    rows: Any = copy.deepcopy(dict(sound.tables))
    lines: Any = copy.deepcopy(list(sound.lines))
    damage(rows, lines)
    verdict = judge(replace(sound, tables=rows, lines=lines))
    assert not verdict.holds
    assert verdict.broken(promise)


def test_what_did_not_come_to_rest_is_told(sound: Evidence) -> None:
    verdict = judge(replace(sound, unsettled=["after 90 s 3 runs have not ended"]))
    assert [each.what for each in verdict.broken("settled")] == ["after 90 s 3 runs have not ended"]


def test_a_trigger_that_was_confirmed_and_vanished(sound: Evidence) -> None:
    acts = [replace(sound.acts[0], action="trigger", revision=None, run_id=10**9)]
    assert judge(replace(sound, acts=acts)).broken("kept")


def test_early_is_judged_by_the_clock_of_the_database(sound: Evidence) -> None:
    """If the database's clock is behind this machine's, what began here in time began there too early."""

    def clock(ahead_us: int) -> Evidence:
        samples = [Sample(line["at_us"], ahead_us - 1000, ahead_us + 1000) for line in sound.lines]
        return replace(sound, clock=sorted(samples, key=lambda sample: sample.at_us))

    assert judge(clock(0)).holds
    assert judge(clock(60_000_000)).broken("punctual") == []
    assert len(judge(clock(-60_000_000)).broken("punctual")) > 10


def test_the_story_of_a_run(sound: Evidence) -> None:
    """Who did what when."""
    run = next(run for run in sound.tables["runs"] if run["state"] == "succeeded" and run["losses"])
    told = [line.split("  ", 1)[1] for line in story(sound, run["run_id"])]
    assert told == [
        "planned for 2027-01-15T08:00:12Z, not before 2027-01-15T08:00:12Z",
        "node-1.1: its handler begins",
        "node-1.1: kill, kill -9",
        "node-1.1: attempt 1 is written as lost",
        "node-2.1: its handler begins",
        "succeeded",
        "node-2.1: its handler ends: done",
        "node-2.1: attempt 2 is written as succeeded",
    ]


def test_evidence_can_be_kept(sound: Evidence, tmp_path: Path) -> None:
    whole = replace(sound, clock=[Sample(1, -2, 3)], anew={"node-1.1": 2}, unsettled=["something"])
    (tmp_path / LOG).write_text("".join(json.dumps(line) + "\n" for line in sound.lines), "utf-8")
    keep(whole, tmp_path)
    assert kept(tmp_path) == whole
