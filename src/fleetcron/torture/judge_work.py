"""What must be true of runs and attempts, whatever happened to the workers that held them."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, Final

from fleetcron.model.outcome import WORKER_STOPPED
from fleetcron.torture.case import Case, Stretch, name_of
from fleetcron.torture.evidence import Line, Row
from fleetcron.torture.jobs import AGAIN_MS
from fleetcron.torture.judge_ticks import shown
from fleetcron.torture.verdict import Key

_FINAL: Final = {"succeeded", "dead", "cancelled", "skipped", "expired", "merged"}
_ROUNDING_MS: Final = 2  # the store keeps whole milliseconds, at both ends


def judge_work(case: Case) -> None:
    for line in case.evidence.lines:
        if line["say"] == "beside":
            promise: Key = "alone" if line["what"].startswith("run-") else "overlap"
            case.wrong(promise, f"attempt {line['attempt']} found {line['what']} taken", run_id=line["run"])
    for run_id, run in case.runs.items():
        attempts, starts = case.attempts[run_id], case.starts[run_id]
        _alone(case, run_id, starts)
        _punctual(case, run_id, run, attempts, starts)
        _fenced(case, run_id, run, attempts, starts)
        _bounded(case, run_id, run, attempts)
        _settled(case, run_id, run)
    _overlap(case)
    _kept(case)
    _rest(case)


def _alone(case: Case, run_id: int, starts: Sequence[Line]) -> None:
    case.checked["alone"] += len(starts)
    for attempt, times in Counter(line["attempt"] for line in starts).items():
        if times > 1:
            case.wrong("alone", f"attempt {attempt} began {times} times", run_id=run_id)
    ordered = sorted(starts, key=lambda line: line["at_us"])
    for before, after in pairwise(ordered):
        ends = case.ends[run_id, before["attempt"]]
        if before["attempt"] != after["attempt"] and ends and ends[0]["at_us"] > after["at_us"]:
            text = f"attempt {after['attempt']} began {_ms(ends[0]['at_us'] - after['at_us'])} before"
            case.wrong("alone", f"{text} attempt {before['attempt']} had ended", run_id=run_id)


def _punctual(case: Case, run_id: int, run: Row, attempts: Sequence[Row], starts: Sequence[Line]) -> None:
    """By the clock of the database: a handler's own instant is taken as late as the two clocks allow."""
    case.checked["punctual"] += len(starts)
    due_us = max(int(run["run_after_ms"]), int(run["scheduled_for_ms"])) * 1000
    latest = {line["attempt"]: case.latest_us(line["at_us"]) for line in starts}
    for attempt, begun_us in latest.items():
        if begun_us < due_us:
            case.wrong("punctual", f"attempt {attempt} began {_ms(due_us - begun_us)} early", run_id=run_id)
    for before, after in pairwise(attempts):
        wait_ms = AGAIN_MS if before["outcome"] == "failed" else 0
        allowed_us = (int(before["finished_ms"]) + wait_ms - _ROUNDING_MS) * 1000
        begun = latest.get(after["attempt"])
        if begun is not None and begun < allowed_us:
            text = f"attempt {after['attempt']} began {_ms(allowed_us - begun)} before it might"
            case.wrong("punctual", f"{text} after attempt {before['attempt']}", run_id=run_id)


def _fenced(case: Case, run_id: int, run: Row, attempts: Sequence[Row], starts: Sequence[Line]) -> None:
    case.checked["fenced"] += len(attempts)
    for what in _stale(case, run_id, run, attempts, starts):
        case.wrong("fenced", what, run_id=run_id)


def _stale(case: Case, run_id: int, run: Row, attempts: Sequence[Row], starts: Sequence[Line]) -> Iterator[str]:
    """What the rows say of an attempt is what its handler says, and it is the same worker; one end was accepted."""
    numbers = [row["attempt"] for row in attempts]
    if numbers != list(range(1, run["attempt"] + 1)):
        yield f"its attempts are {numbers}, and it says {run['attempt']}"
    begun = [line["attempt"] for line in starts]
    if begun != sorted(begun):
        yield f"a lower attempt began after a higher one: {begun}"
    node_of = {line["attempt"]: line["node"] for line in starts}
    for attempt in sorted(node_of.keys() - set(numbers)):
        yield f"attempt {attempt} was worked on, and no row tells of it"
    for row in attempts:
        attempt, node = row["attempt"], node_of.get(row["attempt"])
        said = [end["how"] for end in case.ends[run_id, attempt]]
        if node is not None and name_of(row["node_id"]) != node:
            yield f"attempt {attempt} ran on {node}, and {name_of(row['node_id'])} wrote its end"
        for outcome, how in (("succeeded", "done"), ("failed", "failed")):
            if row["outcome"] == outcome and said != [how]:
                yield f"attempt {attempt} is written as {outcome}, and its handler says {said or 'nothing'}"
    done = [row["attempt"] for row in attempts if row["outcome"] in ("succeeded", "cancelled")]
    if len(done) > 1 or (done and done[0] != numbers[-1]):
        yield f"it went on after its end: {[row['outcome'] for row in attempts]}"
    if run["state"] == "succeeded" and (not attempts or attempts[-1]["outcome"] != "succeeded"):
        yield "it has succeeded, and none of its attempts has"


def _bounded(case: Case, run_id: int, run: Row, attempts: Sequence[Row]) -> None:
    """One more attempt for each time that a worker which held it was killed, frozen or cut off."""
    case.checked["bounded"] += len(attempts)
    torn = (row for row in attempts if row["outcome"] == "lost" and row["error_code"] != WORKER_STOPPED)
    lost = Counter(name_of(row["node_id"]) for row in torn)
    for node, times in lost.items():
        if times > case.cuts[node]:
            text = f"it was lost {times} times by {node}, which suffered {case.cuts[node]} faults"
            case.wrong("bounded", text, run_id=run_id)
    if run["losses"] != lost.total():
        case.wrong("bounded", f"it counts {run['losses']} losses, there were {lost.total()}", run_id=run_id)


def _settled(case: Case, run_id: int, run: Row) -> None:
    case.checked["settled"] += 1
    if run["state"] not in _FINAL or run["finished_ms"] is None:
        case.wrong("settled", f"it is still {run['state']}", run_id=run_id)


def _overlap(case: Case) -> None:
    groups: dict[str, list[Stretch]] = defaultdict(list)
    most_of: dict[str, int] = {}
    for stretch in case.stretches:
        bound = _bound(stretch.job, case.documents.get(stretch.job))
        if bound is not None:
            group, most_of[group] = bound[0], bound[1]
            groups[group].append(stretch)
    for group, stretches in groups.items():
        case.checked["overlap"] += len(stretches)
        for stretch, beside in _beside(stretches, most_of[group]):
            others = ", ".join(f"run {each.run_id}" for each in beside)
            case.wrong("overlap", f"attempt {stretch.attempt} ran beside {others}", run_id=stretch.run_id)


def _bound(job: str, document: Mapping[str, Any] | None) -> tuple[str, int] | None:
    """Who shares a bound with this job, and how many of them may run at a time."""
    if document is None:
        return None
    rule = document["overlap"]
    if rule["concurrency_key"] is not None:
        return f"key {rule['concurrency_key']}", rule["max_running"] or 1
    if rule["policy"] == "allow":
        return None if rule["max_running"] is None else (job, rule["max_running"])
    return job, 1


def _beside(stretches: Iterable[Stretch], most: int) -> Iterator[tuple[Stretch, list[Stretch]]]:
    """Attempts of different runs that were too many at once. Of one that was killed nobody knows when: the lock that it
    held has told."""
    running: list[Stretch] = []
    for stretch in stretches:
        running = [each for each in running if each.ended_us is not None and each.ended_us > stretch.begun_us]
        beside = [each for each in running if each.run_id != stretch.run_id]
        if len(beside) >= most:
            yield stretch, beside
        running.append(stretch)


def _kept(case: Case) -> None:
    revisions = {(case.names[row["job_id"]], row["revision"]) for row in case.evidence.tables["job_revisions"]}
    for act in case.evidence.acts:
        case.checked["kept"] += 1
        if act.revision is not None and (act.job, act.revision) not in revisions:
            text = f"{act.action} at {shown(act.at_ms)} was confirmed as revision {act.revision}, which is not there"
            case.wrong("kept", text, job=act.job)
        if act.run_id is not None and act.run_id not in case.runs:
            case.wrong("kept", f"run {act.run_id} was confirmed and is not there", job=act.job, run_id=act.run_id)
    for run_id, lines in case.starts.items():
        case.checked["kept"] += 1
        if run_id not in case.runs:
            case.wrong("kept", "it was worked on and is not there", job=lines[0]["job"], run_id=run_id)


def _rest(case: Case) -> None:
    for table in ("leases", "queue", "upcoming"):
        if rows := case.evidence.tables[table]:
            runs = ", ".join(str(row["run_id"]) for row in rows[:5])
            case.wrong("settled", f"{len(rows)} rows are left in the table {table}: runs {runs}")
    for what in case.evidence.unsettled:
        case.wrong("settled", what)


def _ms(microseconds: int) -> str:
    return f"{microseconds / 1000:.1f} ms"
