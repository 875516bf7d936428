"""What a Python handler gets: who it is called for, a way to say something, and three ways to end early."""

import math
import threading
from collections.abc import Mapping
from datetime import datetime
from typing import Any, NoReturn, Protocol

from fleetcron.executors.assignment import Assignment
from fleetcron.executors.home import NOWHERE, Home
from fleetcron.times.instants import from_ms


class GiveUp(Exception):
    """Raise it when trying again is no use: the run is dead at once."""


class BadPayload(GiveUp):
    """The payload does not fit what the function says it takes; the text has a JSON pointer for each mistake."""


class Retry(Exception):
    """Raise it to be tried again; `after` exactly so many seconds, from a second to seven days, if you know better
    than the job's retry rule. It is a failure like others, and the job's `max_attempts` bounds how often."""

    def __init__(self, text: str = "", *, after: float | None = None) -> None:
        self.after = None if after is None else _seconds(after)
        super().__init__(text)


def _seconds(after: float) -> float:
    try:
        seconds = float(after)
    except (TypeError, ValueError, OverflowError):
        seconds = math.nan
    if not 0 < seconds < math.inf:
        raise ValueError(f"Retry(after={after!r}): it takes a number of seconds above 0, such as after=60")
    return min(seconds, 1e9)  # what is longer than a week is a week


class Snooze(Exception):
    """What `snooze` raises. It costs no failure."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        super().__init__(f"call again in {seconds:g} s")


class Stop:
    """Has somebody asked this attempt to stop? True and false like a flag, and something to wait for."""

    __slots__ = ("_event", "reason")

    def __init__(self) -> None:
        self.reason: str | None = None
        self._event: threading.Event | None = None  # most handlers never wait for it

    def __bool__(self) -> bool:
        return self.reason is not None

    def wait(self, seconds: float | None = None) -> bool:
        """Sleep so long, or until asked to stop; the answer is whether that was it. For plain functions."""
        if self._event is None:
            self._event = threading.Event()
        if self.reason is not None:
            return True
        return self._event.wait(seconds)

    def ask(self, reason: str) -> None:
        self.reason = reason
        if self._event is not None:
            self._event.set()


class Ear(Protocol):
    """Who hears what a handler says."""

    def wrote(self, data: bytes) -> None: ...

    def progressed(self, share: float, note: str) -> None: ...


class Context:
    """`def handler(ctx)`: one attempt, seen by the function that does the work."""

    __slots__ = ("_assignment", "_ear", "cancelled", "home")

    def __init__(self, assignment: Assignment, ear: Ear, cancelled: Stop, home: Home = NOWHERE) -> None:
        self._assignment = assignment
        self._ear = ear
        self.cancelled = cancelled
        self.home = home

    @property
    def tenant(self) -> str:
        return self._assignment.tenant

    @property
    def job(self) -> str:
        return self._assignment.job

    @property
    def job_id(self) -> str:
        return self._assignment.job_id

    @property
    def run_id(self) -> int:
        return self._assignment.run_id

    @property
    def payload(self) -> Mapping[str, Any]:
        return self._assignment.payload

    @property
    def scheduled_for(self) -> datetime:
        """The tick, in UTC: never the time it happens to be now."""
        return from_ms(self._assignment.scheduled_for_ms)

    @property
    def window(self) -> tuple[datetime, datetime] | None:
        """From when to when (exclusive) the ticks lie that this run stands for, if it stands for several."""
        window = self._assignment.window_ms
        return (from_ms(window[0]), from_ms(window[1])) if window else None

    @property
    def covers(self) -> int:
        """How many ticks this run stands for."""
        return self._assignment.covers

    @property
    def attempt(self) -> int:
        """1 for the first try."""
        return self._assignment.attempt

    @property
    def fence(self) -> int:
        """Higher for every attempt of this run: store it beside what you write, and refuse a lower one."""
        return self._assignment.fence

    @property
    def idempotency_key(self) -> str:
        """The same for every attempt of this run, and for no other run."""
        return self._assignment.idempotency_key

    @property
    def deadline(self) -> datetime | None:
        """When the timeout will stop this attempt."""
        ms = self._assignment.deadline_ms
        return None if ms is None else from_ms(ms)

    def log(self, *values: object) -> None:
        """A line in the log of this attempt; also from threads that the handler started itself."""
        self._ear.wrote((" ".join(map(str, values)) + "\n").encode("utf-8", "replace"))

    def progress(self, share: float, note: str = "") -> None:
        """How far it is, from 0 to 1."""
        self._ear.progressed(min(1.0, max(0.0, float(share))), str(note)[:200])

    def snooze(self, seconds: float) -> NoReturn:
        """End this attempt and be called again after this time, from a second to seven days. It costs no failure."""
        after = float(seconds)
        if not after > 0:  # a deadline that has passed would be a loop without an end
            raise ValueError(f"snooze({seconds!r}): it takes a number of seconds above 0, such as snooze(60)")
        raise Snooze(after)
