"""What became of ticks, in a form that a test can compare with what it expects.

A run is equal to its tick, written as a text (`"03:00"`, `"2027-03-14 03:00"`, with its offset or without) or given as
a datetime; a text may name the state too: `"03:00 succeeded"`. So `w.runs("report") == ["02:00", "03:00 dead"]`.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from fleetcron.model.run import RunLine
from fleetcron.store.attempts import PastAttempt
from fleetcron.store.history import LedgerLine
from fleetcron.testing.instants import shown, texts_of, written
from fleetcron.times.preview import local_time
from fleetcron.times.zone import Zone


@dataclass(frozen=True, slots=True)
class Try:
    """One attempt. `outcome` is succeeded, failed, timed_out, lost, cancelled or snoozed; None while it runs."""

    started: datetime
    finished: datetime | None
    outcome: str | None
    error: str | None
    result: Any


@dataclass(frozen=True, slots=True, eq=False)
class Ran:
    """A run. Instants are in the zone of its job, in the world's if it has none."""

    job: str
    run_id: int
    scheduled_for: datetime
    state: str
    attempts: int
    covers: int
    kind: str
    lane: str
    started: datetime | None
    finished: datetime | None
    reason: str | None
    tries: Sequence[Try]

    __hash__ = None  # type: ignore[assignment]  # it is equal to texts that are not equal to each other

    @property
    def result(self) -> Any:
        """What its handler returned at last."""
        return self.tries[-1].result if self.tries else None

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Ran):
            return (other.job, other.run_id) == (self.job, self.run_id)
        if isinstance(other, datetime):
            return other == self.scheduled_for
        if isinstance(other, str):
            wanted = " ".join(other.replace("T", " ").split())
            return wanted.removesuffix(f" {self.state}") in texts_of(self.scheduled_for)
        return NotImplemented

    def __repr__(self) -> str:
        return f"<{self}>"

    def __str__(self) -> str:
        tick = written(self.scheduled_for)
        tries = "" if self.attempts <= 1 else f" after {self.attempts} attempts"
        covers = "" if self.covers <= 1 else f" for {self.covers} ticks"
        return f"{self.job} {tick} {self.state}{tries}{covers}"


@dataclass(frozen=True, slots=True, eq=False)
class Answered:
    """A stretch of ticks without a run: skipped, missed or cancelled. Equal to `"02:15 missed"`, or `"02:15 to 03:45"`,
    or `"02:15 to 03:45 skipped"`."""

    job: str
    first: datetime
    last: datetime
    ticks: int
    answer: str
    reason: str

    __hash__ = None  # type: ignore[assignment]

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Answered):
            return (other.job, other.first, other.last, other.reason) == (self.job, self.first, self.last, self.reason)
        if isinstance(other, datetime):
            return self.ticks == 1 and other == self.first
        if isinstance(other, str):
            wanted = " ".join(other.replace("T", " ").split()).removesuffix(f" {self.answer}")
            first, to, last = wanted.partition(" to ")
            ends = last in texts_of(self.last) if to else self.first == self.last
            return first in texts_of(self.first) and ends
        return NotImplemented

    def __repr__(self) -> str:
        first = written(self.first)
        last = f" to {written(self.last)}" if self.last != self.first else ""
        ticks = "" if self.ticks == 1 else f", {self.ticks} ticks"
        return f"<{self.job} {first}{last} {self.answer} ({self.reason}{ticks})>"


def ran(line: RunLine, tries: Sequence[PastAttempt], zone: Zone, name: str) -> Ran:
    run = line.run
    return Ran(
        job=name,
        run_id=run.run_id,
        scheduled_for=local_time(zone, run.scheduled_for_ms),
        state=run.state.value,
        attempts=run.attempt,
        covers=run.covers,
        kind=run.kind,
        lane=run.lane,
        started=_moment(run.started_ms, zone),
        finished=_moment(run.finished_ms, zone),
        reason=run.reason,
        tries=[_try(each, zone) for each in tries],
    )


def answered(line: LedgerLine, zone: Zone, name: str) -> Answered:
    answer = line.answer
    return Answered(
        job=name,
        first=local_time(zone, answer.from_ms),
        last=local_time(zone, answer.to_ms),
        ticks=answer.ticks,
        answer=answer.answer,
        reason=answer.reason,
    )


def _try(past: PastAttempt, zone: Zone) -> Try:
    error = None if past.error is None else f"{past.error.code}: {past.error.text}".removesuffix(": ")
    result = None if past.result is None else json.loads(past.result)
    return Try(local_time(zone, past.started_ms), _moment(past.finished_ms, zone), past.outcome, error, result)


def _moment(ms: int | None, zone: Zone) -> datetime | None:
    return None if ms is None else local_time(zone, ms)


__all__ = ["Answered", "Ran", "Try", "answered", "ran", "shown"]
