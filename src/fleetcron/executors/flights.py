"""What runs somewhere, and when it has to be asked, forced and given up. Pure: time is an argument.

There are as many flights as slots, so looking at all of them is cheaper than a timer for each (0.05 µs against 3).
"""

from collections.abc import Iterable, Sequence
from enum import IntEnum
from typing import Final

from fleetcron.executors.assignment import Assignment, Key
from fleetcron.executors.verdicts import Why

NEVER_MS: Final = 1 << 62
FORCED_MS: Final = 500  # what an exception thrown into a thread may take


class Phase(IntEnum):
    RUNNING = 0
    ASKED = 1  # to stop
    FORCED = 2  # it did not within the grace
    STUCK = 3  # nothing helps


class Flight:
    __slots__ = ("assignment", "due_ms", "phase", "reason", "started_ms", "why")

    def __init__(self, assignment: Assignment, now_ms: int, due_ms: int) -> None:
        self.assignment = assignment
        self.started_ms = now_ms
        self.due_ms = due_ms  # when it goes to the next phase
        self.phase = Phase.RUNNING
        self.why: Why | None = None
        self.reason = ""


class Flights:
    """By run and attempt."""

    def __init__(self, grace_ms: int) -> None:
        self.by_key: dict[Key, Flight] = {}
        self._grace_ms = grace_ms

    def board(self, assignments: Iterable[Assignment], now_ms: int) -> int:
        """The moment at which the first of these is due."""
        first_ms = NEVER_MS
        by_key = self.by_key
        for assignment in assignments:
            due_ms = now_ms + assignment.timeout_ms
            by_key[assignment[:2]] = Flight(assignment, now_ms, due_ms)
            if due_ms < first_ms:
                first_ms = due_ms
        return first_ms

    def ask(self, key: Key, why: Why, reason: str, now_ms: int, grace_ms: int | None = None) -> bool:
        """Whether it is to be asked now. Asking again can only make the grace shorter."""
        flight = self.by_key.get(key)
        if flight is None:
            return False
        due_ms = now_ms + (self._grace_ms if grace_ms is None else grace_ms)
        is_new = flight.phase is Phase.RUNNING
        if is_new:
            flight.phase, flight.why, flight.reason = Phase.ASKED, why, reason
            flight.due_ms = due_ms
        elif flight.phase is Phase.ASKED:
            flight.due_ms = min(flight.due_ms, due_ms)
        return is_new

    def step(self, now_ms: int) -> Sequence[Flight]:
        """Those that have come into their next phase."""
        moved = [flight for flight in self.by_key.values() if flight.due_ms <= now_ms]
        for flight in moved:
            match flight.phase:
                case Phase.RUNNING:
                    flight.phase, flight.why = Phase.ASKED, "timeout"
                    flight.reason = f"Job timed out after {flight.assignment.timeout_ms / 1000:g}s"
                    flight.due_ms = now_ms + self._grace_ms
                case Phase.ASKED:
                    flight.phase = Phase.FORCED
                    flight.due_ms = now_ms + FORCED_MS
                case Phase.FORCED | Phase.STUCK:
                    flight.phase = Phase.STUCK
                    flight.due_ms = NEVER_MS
        return moved

    def next_ms(self) -> int:
        return min((flight.due_ms for flight in self.by_key.values()), default=NEVER_MS)

    @property
    def are_all_stuck(self) -> bool:
        return all(flight.phase is Phase.STUCK for flight in self.by_key.values())
