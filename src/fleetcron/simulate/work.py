"""Handlers of a simulated world: how long each takes and how it ends is decided by a play, and a log tells what ran.

They live in a process of their own beside the worker, as handler hosts do: a worker that is stopped does not stop them,
one that is killed does, and when nobody allows them to go on any more they are ended (the dead man's switch).
"""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, Protocol, TypeAlias

from fleetcron.executors.assignment import Assignment, Key
from fleetcron.executors.reports import Done, Report, Tell
from fleetcron.model.outcome import WORKER_STOPPED, Cancelled, Fault, Lost, Outcome, Succeeded, TimedOut
from fleetcron.model.target import PythonTarget, Target
from fleetcron.simulate.clocks import SimulatedClock
from fleetcron.simulate.virtual import Process, VirtualLoop

_SUCCEEDED: Final = Succeeded()


@dataclass(frozen=True, slots=True)
class Act:
    """What a handler does. `stops_s`: so long it takes to stop when it is asked to; None: it does not listen."""

    seconds: float = 0.0
    outcome: Outcome = _SUCCEEDED
    stops_s: float | None = 0.0

    def stops_within_s(self, patience_s: float) -> float:
        return patience_s if self.stops_s is None else min(self.stops_s, patience_s)


class Play(Protocol):
    def act(self, assignment: Assignment, node: str) -> Act: ...

    def knows(self, function: str) -> bool: ...


@dataclass(frozen=True, slots=True)
class Stay:
    """One attempt, as whoever stood beside it saw it. Seconds of the loop."""

    node: str
    run_id: int
    attempt: int
    job: str
    tenant: str
    scheduled_for_ms: int
    run_after_ms: int
    covers: int
    begun_s: float


Log: TypeAlias = Callable[[Stay, float, str], None]  # who, when it ended, and how


@dataclass(slots=True)
class _Running:
    stay: Stay
    act: Act
    ends: asyncio.TimerHandle
    tell: Tell
    begun_ms: int  # on the steady clock


class SimulatedHands:
    """All handlers of one worker."""

    def __init__(
        self,
        node: str,
        loop: VirtualLoop,
        worker: Process,
        play: Play,
        *,
        clock: SimulatedClock,
        began: Callable[[Stay], None],
        ended: Log,
        grace_s: float,
    ) -> None:
        self.process = loop.process(f"{node} handlers")
        self._node, self._loop, self._worker, self._play = node, loop, worker, play
        self._clock = clock
        self._began, self._ended, self._grace_s = began, ended, grace_s
        self.running: dict[Key, _Running] = {}
        self._allowed_ms = 0

    def executor(self, pool: str, slots: int, tell: Tell) -> "SimulatedExecutor":
        del pool, slots
        return SimulatedExecutor(self, tell)

    def allow(self, until_ms: int) -> None:
        """On the steady clock of the machine."""
        self._allowed_ms = until_ms
        self.process.call(self._loop.call_at, self._clock.loop_s(until_ms), self._check, until_ms)

    def _check(self, until_ms: int) -> None:
        if until_ms == self._allowed_ms:
            for key, each in list(self.running.items()):
                self.end(key, Lost(Fault("lost", "nobody allowed it to go on")), each.tell)

    def kill(self) -> None:
        """Whatever runs ends now, and nobody is told."""
        for each in self.running.values():
            self._finish(each, "killed")
        self.running.clear()
        self.process.kill()

    def _finish(self, each: _Running, how: str) -> None:
        each.ends.cancel()
        self._ended(each.stay, self._loop.time(), how)

    def start(self, assignment: Assignment, tell: Tell) -> None:
        act = self._play.act(assignment, self._node)
        stay = Stay(
            self._node, assignment.run_id, assignment.attempt, assignment.job, assignment.tenant,
            assignment.scheduled_for_ms, assignment.run_after_ms, assignment.covers, self._loop.time(),
        )  # fmt: skip
        limit_s = assignment.timeout_ms / 1000
        outcome, lasts_s = act.outcome, act.seconds
        if lasts_s > limit_s:  # it is asked to stop then, and killed if it does not
            outcome, lasts_s = TimedOut(Fault("timeout")), min(lasts_s, limit_s + act.stops_within_s(self._grace_s))
        timer = self._loop.call_later(lasts_s, self.end, assignment.key, outcome, tell)
        begun_ms = self._clock.monotonic_ms()
        self.running[assignment.key] = _Running(stay, act, timer, tell, begun_ms)
        self._began(stay)

    def end(self, key: Key, outcome: Outcome, tell: Tell) -> None:
        each = self.running.pop(key, None)
        if each is None:
            return
        self._finish(each, type(outcome).__name__.lower())
        report: Report = Done(*key, outcome, each.begun_ms, self._clock.monotonic_ms())
        if not self._worker.is_dead:
            self._worker.call(tell, [report])

    def ask(self, key: Key, reason: str, grace_s: float | None, tell: Tell) -> None:
        each = self.running.get(key)
        if each is None:
            return
        patience_s = self._grace_s if grace_s is None else grace_s
        self._loop.call_later(each.act.stops_within_s(patience_s), self.end, key, Cancelled(reason), tell)


class SimulatedExecutor:
    def __init__(self, hands: SimulatedHands, tell: Tell) -> None:
        self._hands = hands
        self._tell = tell
        self._mine: set[Key] = set()
        self._none = asyncio.Event()

    async def learn(self, targets: Sequence[Target]) -> None:
        del targets

    def knows(self, target: Target) -> bool:
        return isinstance(target, PythonTarget) and self._hands._play.knows(target.function)

    def why_not(self, target: Target) -> str | None:
        return None if self.knows(target) else "it is not here"

    def start(self, assignments: Sequence[Assignment]) -> None:
        for assignment in assignments:
            self._mine.add(assignment.key)
            self._hands.process.call(self._hands.start, assignment, self._told)

    def cancel(self, run_id: int, attempt: int, reason: str, grace_s: float | None = None) -> None:
        if (run_id, attempt) in self._mine:
            self._hands.process.call(self._hands.ask, (run_id, attempt), reason, grace_s, self._told)

    def running(self) -> set[Key]:
        return set(self._mine)

    async def close(self, grace_s: float) -> None:
        for key in sorted(self._mine):
            self._hands.process.call(self._hands.ask, key, "the worker was stopped", grace_s, self._lost)
        while self._mine:
            self._none.clear()
            await self._none.wait()

    def _told(self, reports: Sequence[Report]) -> None:
        self._mine -= {(each.run_id, each.attempt) for each in reports if isinstance(each, Done)}
        if not self._mine:
            self._none.set()
        self._tell(reports)

    def _lost(self, reports: Sequence[Report]) -> None:
        why = Lost(Fault(WORKER_STOPPED, "the worker was stopped"))
        self._told([each._replace(outcome=why) if isinstance(each, Done) else each for each in reports])
