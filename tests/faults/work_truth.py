"""What must be true of runs and attempts, whatever happened to the workers.

Judged by the lines that the handlers wrote themselves, the log of the faults, and the final rows, read with SQL of our
own. Nothing of src/ is used here.
"""

import json
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from tests.faults import truth
from tests.faults.truth import Row, Tables

TABLES = ("attempts", "leases", "queue", "workers")
FINAL = {"succeeded", "dead", "cancelled", "skipped", "expired", "merged"}
ROUNDING_MS = 2  # a worker knows the database's time to a millisecond
Line = Mapping[str, Any]


@dataclass
class Verdict:
    wrong: list[str] = field(default_factory=list)
    ticks: int = 0
    runs: Counter[str] = field(default_factory=Counter)  # by state
    attempts: Counter[str] = field(default_factory=Counter)  # by outcome
    events: Counter[str] = field(default_factory=Counter)

    @property
    def counted(self) -> dict[str, int]:
        return {"ticks": self.ticks, "runs": self.runs.total(), "attempts": self.attempts.total()}

    def violations(self) -> Counter[str]:
        return truth.by_kind(self.wrong)

    def summary(self) -> str:
        found = self.violations()
        counted = ", ".join(f"{kind} {found[kind]}" for kind in (*truth.KINDS, "other"))
        return f"{self.runs.total()} runs, {self.attempts.total()} attempts; violations: {counted}"

    def __str__(self) -> str:
        return f"runs {dict(self.runs)}, attempts {dict(self.attempts)}, events {dict(self.events)}"


class Case:
    """The facts, by run."""

    def __init__(self, tables: Tables, lines: Sequence[Line], cuts: Mapping[str, int], again_ms: int) -> None:
        self.tables = tables
        self.cuts = cuts
        self.again_ms = again_ms
        self.beside = [line for line in lines if line["say"] == "beside"]
        self.starts: dict[int, list[Line]] = defaultdict(list)
        self.ends: dict[tuple[int, int], list[Line]] = defaultdict(list)
        for line in lines:
            if line["say"] == "start":
                self.starts[line["run"]].append(line)
            elif line["say"] == "end":
                self.ends[line["run"], line["attempt"]].append(line)
        self.attempts: dict[int, list[Row]] = defaultdict(list)
        for row in sorted(tables["attempts"], key=lambda row: (row["run_id"], row["attempt"])):
            self.attempts[row["run_id"]].append(row)


def judge(tables: Tables, lines: Sequence[Line], cuts: Mapping[str, int], again_ms: int = 0) -> Verdict:
    """After the faults, when everything has healed and everybody has left. `cuts` says by node how often it was killed
    or cut off from the store; `again_ms` is how long a failed attempt has to wait for the next."""
    case, verdict = Case(tables, lines, cuts, again_ms), Verdict()
    for event in tables["events"]:
        verdict.events[event["kind"]] += event["count"]
    verdict.runs = Counter(run["state"] for run in tables["runs"])
    verdict.attempts = Counter(row["outcome"] for row in tables["attempts"])
    answered = _ticks(tables)
    verdict.ticks, verdict.wrong = answered.ticks, answered.wrong
    verdict.wrong += _left_over(tables)
    verdict.wrong += [f"{line['what']}: attempt {line['attempt']} ran beside another (I3)" for line in case.beside]
    known = {run["run_id"] for run in tables["runs"]}
    verdict.wrong += [f"run {run} was worked on and is not there" for run in case.starts if run not in known]
    for run in tables["runs"]:
        verdict.wrong += [f"run {run['run_id']}: {what}" for what in _run(case, run)]
    return verdict


def _ticks(tables: Tables) -> truth.Verdict:
    """I1 and I2: every tick has one answer, says the enumerator."""
    ticks = Tables({**tables.rows, "runs": [run for run in tables["runs"] if run["kind"] != "manual"]}, tables.now_ms)
    found = truth.judge(ticks)
    # that one expects that nobody works
    found.wrong = [what for what in found.wrong if not what.startswith("runs and upcoming differ")]
    return found


def _left_over(tables: Tables) -> Iterator[str]:
    """I11: everything is final, so nothing is held, waits or is on its way."""
    for table in ("leases", "queue", "upcoming", "workers"):
        if tables[table]:
            yield f"{table}: {[dict(row) for row in tables[table]][:3]} ({len(tables[table])})"


def _run(case: Case, run: Row) -> Iterator[str]:
    attempts, starts = case.attempts[run["run_id"]], case.starts[run["run_id"]]
    if run["state"] not in FINAL or run["finished_ms"] is None:
        yield f"is {run['state']} (I1)"
    numbers = [row["attempt"] for row in attempts]
    if numbers != list(range(1, run["attempt"] + 1)):
        yield f"has the attempts {numbers}, and says {run['attempt']} (I8)"
    yield from _finishes(run, attempts)
    yield from _stories(case, run, attempts, starts)
    yield from _lost(case, attempts)
    yield from _instants(case, run, attempts, starts)


def _finishes(run: Row, attempts: Sequence[Row]) -> Iterator[str]:
    """I7: one accepted finish."""
    done = [row["attempt"] for row in attempts if row["outcome"] in ("succeeded", "cancelled")]
    if len(done) > 1 or (done and done[0] != attempts[-1]["attempt"]):
        yield f"went on after it had ended: {[row['outcome'] for row in attempts]} (I7)"
    if run["state"] == "succeeded" and (not attempts or attempts[-1]["outcome"] != "succeeded"):
        yield "succeeded without an attempt that did (I7)"
    if done and run["state"] not in ("succeeded", "cancelled"):
        yield f"is {run['state']} although an attempt was {attempts[-1]['outcome']} (I7)"
    if run["failures"] != sum(row["outcome"] in ("failed", "timed_out") for row in attempts):
        yield f"counts {run['failures']} failures (I12)"
    if run["losses"] != sum(row["outcome"] == "lost" and row["error_code"] != "worker_stopped" for row in attempts):
        yield f"counts {run['losses']} losses (I12)"


def _stories(case: Case, run: Row, attempts: Sequence[Row], starts: Sequence[Line]) -> Iterator[str]:
    """I9 and I12: what the rows say of an attempt is what its handler says, and it is the same worker."""
    began = {line["attempt"]: line for line in starts}
    if len(began) != len(starts):
        yield f"one attempt began twice: {[line['attempt'] for line in starts]} (I3)"
    if [line["attempt"] for line in starts] != sorted(began):
        yield "a lower fence began after a higher one (I9)"
    rows = {row["attempt"]: row for row in attempts}
    for attempt in began.keys() - rows.keys():
        yield f"attempt {attempt} was worked on and is not there (I12)"
    for attempt, row in rows.items():
        line, ends = began.get(attempt), case.ends[run["run_id"], attempt]
        hows = [end["how"] for end in ends]
        if line is not None and name_of(row) != line["node"]:
            yield f"attempt {attempt} ran on {line['node']}, and {row['node_id']} wrote its end (I9)"
        if row["outcome"] == "succeeded" and hows != ["done"]:
            yield f"attempt {attempt} succeeded, and its handler says {hows} (I9)"
        if row["outcome"] == "failed" and hows != ["failed"]:
            yield f"attempt {attempt} failed, and its handler says {hows} (I9)"


def _lost(case: Case, attempts: Sequence[Row]) -> Iterator[str]:
    """I6: one extra attempt for each time that a worker which held it was killed or cut off."""
    lost = Counter(name_of(row) for row in attempts if row["outcome"] == "lost")
    for name, times in lost.items():
        if times > case.cuts.get(name, 0):
            yield f"was lost {times} times by {name}, to which {case.cuts.get(name, 0)} faults were done (I6)"


def _instants(case: Case, run: Row, attempts: Sequence[Row], starts: Sequence[Line]) -> Iterator[str]:
    """I4: never early, by the clock of the machine, which is the database's."""
    for line in starts:
        if line["attempt"] == 1 and line["at_ms"] < run["run_after_ms"]:
            yield f"began {run['run_after_ms'] - line['at_ms']} ms early (I4)"
    began = {line["attempt"]: line for line in starts}
    for before, after in pairwise(attempts):
        wait_ms = case.again_ms if before["outcome"] == "failed" else 0
        line = began.get(after["attempt"])
        if line is None or _has_waited(line, case.ends[run["run_id"], before["attempt"]], wait_ms):
            continue
        begun_ms = line["at_ms"]
        if begun_ms < before["finished_ms"] + wait_ms - ROUNDING_MS:
            early_ms = before["finished_ms"] + wait_ms - begun_ms
            story = f"{before['outcome']} at {before['finished_ms']}, began at {begun_ms}"
            yield f"attempt {after['attempt']} began {early_ms} ms early (I4): {story}"


def _has_waited(line: Line, ends: Sequence[Line], wait_ms: int) -> bool:
    """By a clock that is right, where the database's is set back and ahead (`right_ms`): a worker that has not heard of
    it yet writes an end that is later than the database's now, and the next attempt counts from the latter."""
    return "right_ms" in line and bool(ends) and line["right_ms"] >= ends[-1]["right_ms"] + wait_ms - ROUNDING_MS


def name_of(row: Row) -> str:
    """As the test calls it: a node adds something to its name."""
    return str(row["node_id"]).rpartition("-")[0]


def details(row: Row) -> str:
    return json.dumps({key: row[key] for key in row.keys()}, default=str)  # noqa: SIM118
