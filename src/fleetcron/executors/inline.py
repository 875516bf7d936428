"""Python functions in the worker's own process: the lowest overhead, and a weaker promise.

What a handler can do to this process it does to the worker: a crash ends it, and a function that keeps the interpreter
to itself stops the renewal of leases. A function that does not stop when it is asked cannot be killed: it is told as
timed out and goes on in its thread. Only what goes through `ctx.log` is kept; what is printed goes to the worker's
output.
"""

import asyncio
from collections.abc import Sequence
from functools import partial
from typing import Any, Final

from fleetcron.clock import Clock
from fleetcron.config import ExecutorConfig
from fleetcron.executors.alarm import Alarm
from fleetcron.executors.allowed import module_of
from fleetcron.executors.assignment import Assignment, Key
from fleetcron.executors.flights import Flight, Flights, Phase
from fleetcron.executors.handlers import Handlers
from fleetcron.executors.home import Home
from fleetcron.executors.performer import Performer
from fleetcron.executors.reports import Declined, Done, Outbox, Report, Tell
from fleetcron.executors.threads import in_a_thread
from fleetcron.executors.turns import Turns
from fleetcron.executors.verdicts import stopped
from fleetcron.model.target import PythonTarget, Target

_LONGEST_IMPORT_S: Final = 60.0


class Inline:
    """`handlers` may hold functions that this process has already."""

    def __init__(
        self,
        handlers: Handlers,
        config: ExecutorConfig,
        slots: int,
        clock: Clock,
        tell: Tell,
        store_url: str | None = None,
    ) -> None:
        self._handlers = handlers
        self._clock = clock
        self._tell = tell
        self._outbox = Outbox(tell)
        self._performer = Performer(handlers, slots, clock, self._told, Home(store_url, config.handlers))
        self._flights = Flights(round(config.grace_s * 1000))
        self._alarm = Alarm(clock, self._look)
        self._reasons: dict[str, str] = {}
        self._empty = asyncio.Event()
        self._turns = Turns()
        self._imports: dict[str, asyncio.Future[str | None]] = {}
        self._closed: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def learn(self, targets: Sequence[Target]) -> None:
        names = {target.function for target in targets if isinstance(target, PythonTarget) and not self.knows(target)}
        await asyncio.gather(*map(self._look_for, sorted(names)))

    def knows(self, target: Target) -> bool:
        return isinstance(target, PythonTarget) and self._handlers.get(target.function) is not None

    def why_not(self, target: Target) -> str | None:
        if not isinstance(target, PythonTarget):
            return "it is not a Python function"
        if self.knows(target):
            return None
        return self._reasons.get(target.function, f"{target.function} was not looked for yet")

    def start(self, assignments: Sequence[Assignment]) -> None:
        self._alarm.at(self._flights.board(assignments, self._clock.monotonic_ms()))
        self._performer.start(assignments)

    def cancel(self, run_id: int, attempt: int, reason: str, grace_s: float | None = None) -> None:
        grace_ms = None if grace_s is None else round(grace_s * 1000)
        if self._flights.ask((run_id, attempt), "cancel", reason, self._clock.monotonic_ms(), grace_ms):
            self._performer.ask((run_id, attempt), "cancel", reason)
        self._alarm.at(self._flights.next_ms())

    def running(self) -> set[Key]:
        return set(self._flights.by_key) | self._outbox.ending()

    async def close(self, grace_s: float) -> None:
        reason = "the worker was stopped"
        if not self._closed.done():
            self._closed.set_result(None)
        now_ms = self._clock.monotonic_ms()
        for key in list(self._flights.by_key):
            if self._flights.ask(key, "closing", reason, now_ms, round(grace_s * 1000)):
                self._performer.ask(key, "closing", reason)
        self._alarm.at(self._flights.next_ms())
        if self._flights.by_key:
            self._empty.clear()
            await self._empty.wait()
        self._outbox.flush()
        self._performer.close()

    async def _look_for(self, name: str) -> None:
        await self._turns.take(module_of(name), partial(self._import, name))
        over = self._imports[name]
        either: list[asyncio.Future[Any]] = [over, self._closed]
        await asyncio.wait(either, timeout=_LONGEST_IMPORT_S, return_when=asyncio.FIRST_COMPLETED)
        late = f"its import was not over within {_LONGEST_IMPORT_S:g} s"
        self._reasons[name] = (over.result() or "") if over.done() else late

    def _import(self, name: str) -> "asyncio.Future[str | None]":
        """One that hangs is not begun again."""
        over = self._imports.get(name)
        if over is None or over.done():
            over = self._imports[name] = in_a_thread(partial(self._handlers.find, name))
        return over

    def _told(self, reports: Sequence[Report]) -> None:
        by_key = self._flights.by_key
        known = [report for report in reports if report[:2] in by_key]  # not those that were given up
        for report in known:
            if isinstance(report, Done | Declined):
                by_key.pop(report[:2], None)
        if known:
            self._tell(known)
        if not by_key:
            self._empty.set()

    def _look(self) -> None:
        for flight in self._flights.step(self._clock.monotonic_ms()):
            self._moved(flight)
        self._alarm.at(self._flights.next_ms())

    def _moved(self, flight: Flight) -> None:
        key, why = flight.assignment.key, flight.why
        assert why is not None
        match flight.phase:
            case Phase.ASKED:
                self._performer.ask(key, why, flight.reason)
            case Phase.FORCED:
                self._performer.force(key)
            case Phase.STUCK:
                del self._flights.by_key[key]
                outcome = stopped(why, flight.assignment.timeout_ms, flight.reason)
                self._outbox.put(Done(*key, outcome, flight.started_ms, self._clock.monotonic_ms()))
                if not self._flights.by_key:
                    self._empty.set()
                self._performer.give_up(key)
