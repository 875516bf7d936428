"""The evidence, put in order for the judge: by job, by run, by attempt."""

from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, Final, NamedTuple

from fleetcron.torture.evidence import Evidence, Line, Row, Sample
from fleetcron.torture.verdict import Key, Violation

_NEAR_US: Final = 3_000_000  # clocks are compared about once a second


class Stretch(NamedTuple):
    """One attempt by the word of its handler. Without an end it was killed."""

    run_id: int
    attempt: int
    job: str
    begun_us: int
    ended_us: int | None


class Case:
    """The facts, and what was found."""

    def __init__(self, evidence: Evidence) -> None:
        self.evidence = evidence
        self.checked: Counter[Key] = Counter()
        self.violations: list[Violation] = []
        self.runs = {int(run["run_id"]): run for run in evidence.tables["runs"]}
        self.names = {str(job["job_id"]): str(job["name"]) for job in evidence.tables["jobs"]}
        self.starts: dict[int, list[Line]] = defaultdict(list)
        self.ends: dict[tuple[int, int], list[Line]] = defaultdict(list)
        for line in evidence.lines:
            if line["say"] == "start":
                self.starts[line["run"]].append(line)
            elif line["say"] == "end":
                self.ends[line["run"], line["attempt"]].append(line)
        self.attempts: dict[int, list[Row]] = defaultdict(list)
        for row in sorted(evidence.tables["attempts"], key=lambda row: (row["run_id"], row["attempt"])):
            self.attempts[row["run_id"]].append(row)

    def wrong(self, promise: Key, what: str, *, job: str | None = None, run_id: int | None = None) -> None:
        if job is None and run_id in self.runs:
            job = self.names[str(self.runs[run_id]["job_id"])]
        self.violations.append(Violation(promise, what, job, run_id))

    def of_job(self, table: str) -> dict[str, list[Row]]:
        found: dict[str, list[Row]] = defaultdict(list)
        for row in self.evidence.tables[table]:
            found[str(row["job_id"])].append(row)
        return found

    @cached_property
    def documents(self) -> Mapping[str, Mapping[str, Any]]:
        """The last definition of each job, by its name."""
        latest: dict[str, Row] = {}
        for row in self.evidence.tables["job_revisions"]:
            if row["revision"] >= latest.get(row["job_id"], row)["revision"]:
                latest[row["job_id"]] = row
        return {self.names[job_id]: row["after"] for job_id, row in latest.items()}

    @cached_property
    def stretches(self) -> list[Stretch]:
        found = []
        for run_id, lines in self.starts.items():
            for line in lines:
                ends = self.ends[run_id, line["attempt"]]
                ended_us = ends[0]["at_us"] if ends else None
                found.append(Stretch(run_id, line["attempt"], line["job"], line["at_us"], ended_us))
        return sorted(found, key=lambda one: one.begun_us)

    @cached_property
    def cuts(self) -> Counter[str]:
        """By life of a node: how often it may have lost what it held."""
        killed = Counter(fault.node for fault in self.evidence.faults if fault.kind == "kill" and fault.node)
        hurt = Counter(fault.node for fault in self.evidence.faults if fault.kind in ("stop", "network") and fault.node)
        names = {*killed, *hurt, *self.evidence.anew}
        return Counter({name: killed[name] + max(hurt[name], self.evidence.anew.get(name, 0)) for name in names})

    def latest_us(self, at_us: int) -> int:
        """What the database's clock showed at most when this machine's showed `at_us`."""
        samples = self.evidence.clock
        if not samples:  # SQLite: it is the same clock
            return at_us
        return at_us + max(sample.high_us for sample in _around(samples, at_us))


def name_of(node_id: str) -> str:
    """As the torture calls it: a node adds something to its name."""
    return node_id.rpartition("-")[0]


def _around(samples: Sequence[Sample], at_us: int) -> Sequence[Sample]:
    """Those of a few seconds before and after; at least one on each side, if there is one."""
    low = bisect_left(samples, at_us - _NEAR_US, key=lambda sample: sample.at_us)
    high = bisect_right(samples, at_us + _NEAR_US, key=lambda sample: sample.at_us)
    return samples[max(0, low - 1) : high + 1]
