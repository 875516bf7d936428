"""One pool of a worker: its slots, the runs that wait for their instant, and the attempts that run."""

import heapq
from collections.abc import Iterator
from dataclasses import dataclass, field

from fleetcron.executors.assignment import Key
from fleetcron.executors.executor import Executor
from fleetcron.model.errand import Errand
from fleetcron.model.pool import lendable
from fleetcron.store.claims import Claimed


class Turns:
    """Whose turn it is in the pools with one slot of many workers that this process answers, live or catch-up. It
    remembers `most` of them; who is forgotten begins with live work, as everybody does."""

    def __init__(self, most: int = 10_000) -> None:
        self._most = most
        self._last: dict[tuple[str, str], str] = {}  # the lane, by worker and pool; whoever claimed last is last

    def is_of_catchup(self, worker: str, pool: str) -> bool:
        return self._last.get((worker, pool), "catchup") == "live"

    def note(self, worker: str, pool: str, lane: str) -> None:
        self._last.pop((worker, pool), None)
        self._last[worker, pool] = lane
        if len(self._last) > self._most:
            del self._last[next(iter(self._last))]


@dataclass(slots=True)
class Attempt:
    """An attempt that this worker holds."""

    run: Claimed
    errand: Errand

    @property
    def key(self) -> Key:
        return self.run.run_id, self.run.attempt


@dataclass(slots=True)
class Pool:
    name: str
    slots: int
    executor: Executor
    running: dict[Key, Attempt] = field(default_factory=dict)
    held: dict[Key, Attempt] = field(default_factory=dict)  # claimed a moment early
    lacks: dict[str, str] = field(default_factory=dict)  # handlers that it has not, and why
    learning: set[str] = field(default_factory=set)  # handlers that are being looked for
    hungry: bool = True  # there may be something to claim
    ends: int = 0  # of attempts: each makes room
    last_was_catchup: bool = True
    _order: list[tuple[int, Key]] = field(default_factory=list)  # of the held ones, by instant

    @property
    def room(self) -> int:
        """Free slots. What is held for later does not take one: if none is free at its instant, it goes back."""
        return max(0, self.slots - len(self.running))

    @property
    def early_room(self) -> int:
        return max(0, self.room - len(self.held))

    @property
    def catchup_room(self) -> int:
        lent = sum(each.run.lane == "catchup" for each in (*self.running.values(), *self.held.values()))
        return lendable(self.slots, self.room, lent)

    @property
    def catchup_first(self) -> bool:
        return self.slots == 1 and self.catchup_turn

    @property
    def catchup_turn(self) -> bool:
        return not self.last_was_catchup

    def hold(self, attempt: Attempt) -> None:
        self.held[attempt.key] = attempt
        heapq.heappush(self._order, (attempt.run.due_ms, attempt.key))

    def next_due_ms(self) -> int | None:
        while self._order and self._order[0][1] not in self.held:
            heapq.heappop(self._order)
        return self._order[0][0] if self._order else None

    def due(self, now_ms: float) -> Iterator[Attempt]:
        """Those whose instant has come; they are no longer held back."""
        while (due_ms := self.next_due_ms()) is not None and due_ms <= now_ms:
            yield self.held.pop(heapq.heappop(self._order)[1])

    def take_held(self) -> list[Attempt]:
        found = list(self.held.values())
        self.held.clear()
        self._order.clear()
        return found
