"""What came of a rehearsal, in figures: how many ticks ran, were skipped, merged, missed; how late; how full. Pure."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from fleetcron.times.instants import from_ms, iso


class Work(NamedTuple):
    """One attempt. No end: it still ran when the rehearsal ended."""

    from_ms: int
    to_ms: int | None
    outcome: str


@dataclass(frozen=True, slots=True)
class RunFact:
    job: str
    scheduled_for_ms: int
    run_after_ms: int
    state: str
    lane: str
    covers: int
    finished_ms: int | None
    works: Sequence[Work]

    @property
    def late_ms(self) -> int | None:
        """How long after the instant at which it might it began."""
        return max(0, self.works[0].from_ms - self.run_after_ms) if self.works else None


class Stretch(NamedTuple):
    """Ticks without a run, from the first to the last of them."""

    job: str
    from_ms: int
    to_ms: int
    ticks: int
    answer: str
    reason: str


@dataclass(frozen=True, slots=True)
class Facts:
    jobs: Sequence[str]
    from_ms: int
    to_ms: int
    runs: Sequence[RunFact]
    ledger: Sequence[Stretch]
    outages: Sequence[tuple[int, int]]
    pools: Mapping[str, str]  # by job
    ticks: Mapping[str, int]  # by job: what the schedules say, answered or not
    undecided_ms: Sequence[int] = ()  # ticks of an outage that nobody has decided by the end


ANSWERS: Final = (
    "succeeded", "dead", "skipped", "merged", "missed", "expired", "cancelled", "unfinished",
)  # fmt: skip
_OPEN: Final = ("planned", "waiting", "running", "retrying", "dispatched")


@dataclass(frozen=True, slots=True)
class Figures:
    """Of one job, or of all. Each tick is counted once in `answers`: a run that stands for others is one tick, and
    those it stands for are merged."""

    answers: Mapping[str, int]
    attempts: int
    late_ms: Sequence[int]  # sorted, of those that began

    @property
    def ticks(self) -> int:
        return sum(self.answers.values())

    def as_json(self) -> dict[str, Any]:
        return {
            "ticks": self.ticks,
            **self.answers,
            "attempts": self.attempts,
            "late_ms": {"p50": self.late(50), "p95": self.late(95), "max": self.late(100)},
        }

    def late(self, percent: int) -> int | None:
        """The nearest rank; None if nothing began."""
        if not self.late_ms:
            return None
        return self.late_ms[max(0, -(-len(self.late_ms) * percent // 100) - 1)]


class Peak(NamedTuple):
    most: int
    at_ms: int | None

    def as_json(self) -> dict[str, Any]:
        return {"most": self.most, "at": None if self.at_ms is None else iso(from_ms(self.at_ms))}


@dataclass(frozen=True, slots=True)
class Outlook:
    total: Figures
    by_job: Mapping[str, Figures]
    running: Peak
    waiting: Peak
    running_by_pool: Mapping[str, Peak] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        return {
            "total": self.total.as_json(),
            "peaks": {
                "running": self.running.as_json(),
                "waiting": self.waiting.as_json(),
                "pools": {pool: peak.as_json() for pool, peak in self.running_by_pool.items()},
            },
            "jobs": [{"job": job, **figures.as_json()} for job, figures in self.by_job.items()],
        }


def outlook(facts: Facts) -> Outlook:
    runs: dict[str, list[RunFact]] = {job: [] for job in facts.jobs}
    for run in facts.runs:
        runs[run.job].append(run)
    ledger: dict[str, list[Stretch]] = {job: [] for job in facts.jobs}
    for stretch in facts.ledger:
        ledger[stretch.job].append(stretch)
    in_pool: dict[str, list[RunFact]] = {}
    for run in facts.runs:
        in_pool.setdefault(facts.pools[run.job], []).append(run)
    unanswered = {job: _unanswered(facts.ticks.get(job, 0), runs[job], ledger[job]) for job in facts.jobs}
    return Outlook(
        total=_figures(facts.runs, facts.ledger, sum(unanswered.values())),
        by_job={job: _figures(runs[job], ledger[job], unanswered[job]) for job in facts.jobs},
        running=peak(running(facts.runs, facts.to_ms)),
        waiting=peak(waiting(facts)),
        running_by_pool={pool: peak(running(some, facts.to_ms)) for pool, some in sorted(in_pool.items())},
    )


def running(runs: Iterable[RunFact], end_ms: int) -> list[tuple[int, int]]:
    """When attempts were worked on. Whoever takes the slot of another may be written down as if it had begun a moment
    before that one's end: they were not there together."""
    spans = [(work.from_ms, work.to_ms or end_ms) for run in runs for work in run.works]
    return [(begin, max(end - _BLUR_MS, min(begin + 1, end))) for begin, end in spans]


def waiting(facts: Facts) -> list[tuple[int, int]]:
    """When runs could have begun and had not; and ticks, as long as nobody is there to decide about them."""
    found = [(tick_ms, facts.to_ms) for tick_ms in facts.undecided_ms]
    for run in facts.runs:
        until_ms = run.works[0].from_ms if run.works else run.finished_ms or facts.to_ms
        if until_ms > run.run_after_ms + _NOTICED_MS:
            found.append((run.run_after_ms, until_ms))
    return found


_BLUR_MS: Final = 10
_NOTICED_MS: Final = 100  # below this nobody would call it waiting


def peak(stretches: Iterable[tuple[int, int]]) -> Peak:
    most, at_ms = 0, None
    for when_ms, number in levels(stretches):
        if number > most:
            most, at_ms = number, when_ms
    return Peak(most, at_ms)


def levels(stretches: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """How many there are from each instant on, where that changes."""
    steps: Counter[int] = Counter()
    for start_ms, end_ms in stretches:
        if end_ms > start_ms:
            steps[start_ms] += 1
            steps[end_ms] -= 1
    found, number = [], 0
    for when_ms in sorted(steps):
        number += steps[when_ms]
        found.append((when_ms, number))
    return found


def _unanswered(ticks: int, runs: Sequence[RunFact], ledger: Sequence[Stretch]) -> int:
    """Ticks that nobody has planned or decided yet: the fleet was down until the end, or the job was paused."""
    return max(0, ticks - len(runs) - sum(stretch.ticks for stretch in ledger))


def _figures(runs: Sequence[RunFact], ledger: Sequence[Stretch], unanswered: int) -> Figures:
    counted: Counter[str] = Counter({"unfinished": unanswered})
    for run in runs:
        counted["unfinished" if run.state in _OPEN else run.state] += 1
    for stretch in ledger:
        counted["merged" if stretch.reason == "covered" else stretch.answer] += stretch.ticks
    late = sorted(run.late_ms for run in runs if run.late_ms is not None)
    attempts = sum(len(run.works) for run in runs)
    return Figures({answer: counted[answer] for answer in ANSWERS}, attempts, late)
