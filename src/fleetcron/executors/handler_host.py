"""One handler host, seen from the worker: a process that runs Python functions.

The worker keeps the time, because a function can hold the host's interpreter for as long as it likes. Who does not stop
in time is asked (a coroutine is cancelled, a plain function sees a flag), then forced (an exception is thrown into its
thread). If that does not help either, or if the host does not answer at all, the host is retired: it gets nothing new,
the other functions in it may finish, and then it is killed. An attempt is told as ended only when it is really over, so
that its retry never runs beside it.
"""

import asyncio
import os
import socket
import sys
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final, Protocol

from fleetcron.clock import Clock
from fleetcron.executors.alarm import Alarm
from fleetcron.executors.allowed import module_of
from fleetcron.executors.assignment import Assignment, Key
from fleetcron.executors.flights import Flight, Flights, Phase
from fleetcron.executors.frames import BrokenFrames
from fleetcron.executors.host_talk import AT_ONCE, reports_of, row_of
from fleetcron.executors.programs import Programs
from fleetcron.executors.reports import Declined, Done, Report
from fleetcron.executors.supervisor import End, Order
from fleetcron.executors.turns import Turns
from fleetcron.executors.verdicts import OVERDUE, Why, limited, signal_name, stopped
from fleetcron.executors.wire import Wire
from fleetcron.model.outcome import Failed, Fault, Lost, Outcome

_PING_MS: Final = 500
_BYE_S: Final = 2.0  # for a host that has nothing to do and is asked to leave
_LAST_WORDS: Final = 8_000
_NONSENSE: Final = "it spoke nonsense; does a function write to descriptors that are not its own?"
Found = dict[str, str | None]  # a reason for each name that is not there


@dataclass(frozen=True, slots=True)
class HostSettings:
    allowed: tuple[str, ...]
    slots: int
    environment: Mapping[str, str]
    grace_ms: int
    patience_ms: int
    silence_ms: int
    store_url: str | None = field(default=None, repr=False)
    start_ms: int = 60_000  # for its start, and for each import


class Landlord(Protocol):
    """Who is told what becomes of a host."""

    def host_told(self, host: "HandlerHost", reports: Sequence[Report], ended: Sequence[Flight]) -> None:
        """`ended`: those that have come back. Who was declined has not: it never went."""

    def host_is_ready(self) -> None: ...

    def host_has_looked(self) -> None:
        """It has looked for functions: `HandlerHost.found` has changed."""

    def host_is_retired(self) -> None: ...

    def host_does_not_stop(self, function: str) -> None:
        """This one has to be killed, and its host with it."""

    def host_ended(self, host: "HandlerHost", reason: str, suspects: Set[str], doubted: Set[str]) -> None:
        """`suspects`: the functions of which one has crashed it, if nobody knows which. `doubted`: those that may have
        kept it from answering, although it was killed because of others."""


class HandlerHost:
    """A retired host is still to be listened to, until it has ended."""

    def __init__(
        self, programs: Programs, settings: HostSettings, names: Sequence[str], clock: Clock, landlord: Landlord
    ) -> None:
        self.slots = settings.slots
        self.found: Found = {}  # what it was asked for and has answered
        self.sought: set[str] = set()  # what it was asked for
        self.seeks: set[str] = set()  # and has not answered, so far
        self.hangs: set[str] = set()  # those of them that take too long
        self.misses: frozenset[str] = frozenset()  # what another host has, and this one has not: not to be given to it
        self.flights = Flights(settings.grace_ms)
        self.is_ready = False
        self.is_retired = False
        self.has_ended = False
        self.was_at_work = False  # something ran in it when it ended
        self.died_of: frozenset[str] = frozenset()  # what it was about to import when it ended by itself
        self.retired_because = ""
        self._loop = asyncio.get_running_loop()
        self._settings = settings
        self._clock = clock
        self._landlord = landlord
        self._patience_ms = settings.patience_ms
        self._was_killed = False
        self._stuck_ms: int | None = None  # since when one of them is beyond help
        self._pings = 0
        self._pinged_ms: int | None = None  # when the oldest ping was sent that has no answer
        self._searches: dict[str, asyncio.Future[None]] = {}
        self._importing: set[str] = set()  # those of `seeks` that had or have their turn
        self._turns = Turns()
        self._taking: set[asyncio.Task[None]] = set()
        self._is_up: asyncio.Future[None] = self._loop.create_future()
        self._is_open: asyncio.Future[None] = self._loop.create_future()
        self._has_news = False
        self._alarm = Alarm(clock, self._look)
        ours, theirs = socket.socketpair()
        self._wire = Wire(ours, self._heard, self._is_silent)
        try:
            self._program = programs.start(_order(settings), lambda _: None, self._died, hand_down=theirs)
        except OSError:
            self._wire.close()
            theirs.close()
            raise
        hello = {"allowed": settings.allowed, "slots": settings.slots, "store": settings.store_url}
        self._wire.send(["hello", hello])
        for name in names:
            self.search(name)
        self._in_turn("", self._open)  # when each of them had its turn
        self._start_timer = self._loop.call_later(settings.start_ms / 1000, self._is_too_slow)

    @property
    def room(self) -> int:
        return 0 if self.is_retired else self.slots - len(self.flights.by_key)

    def feed(self, assignments: Sequence[Assignment]) -> None:
        now_ms = self._clock.monotonic_ms()
        for at in range(0, len(assignments), AT_ONCE):
            self._wire.send(["start", list(map(row_of, assignments[at : at + AT_ONCE]))])
        self._alarm.at(min(self.flights.board(assignments, now_ms), now_ms + _PING_MS))

    def ask(self, key: Key, why: Why, reason: str, grace_ms: int | None = None) -> None:
        now_ms = self._clock.monotonic_ms()
        if self.flights.ask(key, why, reason, now_ms, grace_ms):
            self._wire.send(["ask", *key, why, reason])
        self._alarm.at(self.flights.next_ms())

    def has(self, name: str) -> bool:
        return name in self.found and self.found[name] is None

    def search(self, name: str) -> "asyncio.Future[None]":
        """Import it. It is over when `found` has it, or when this host is of no use any more. Many may wait for it."""
        if name in self._searches:
            return self._searches[name]
        over: asyncio.Future[None] = self._loop.create_future()
        if self.is_retired or name in self.hangs:
            _answer(over)
            return over
        self._searches[name] = over
        self.sought.add(name)
        self.seeks.add(name)
        self._in_turn(module_of(name), partial(self._import, name, over))
        return over

    def retire(self, because: str) -> None:
        """Nothing new; when it is empty, it goes."""
        if not self.is_retired:
            self.is_retired = True
            self.retired_because = because
            self._end_searches()
            self._landlord.host_is_retired()
        if not self.flights.by_key:
            self._wire.send(["bye"])
            self._loop.call_later(_BYE_S, self.kill)

    def _end_searches(self) -> None:
        """Whoever asks again gets a better host."""
        for search in self._searches.values():
            _answer(search)
        self._searches.clear()
        _answer(self._is_up)
        _answer(self._is_open)

    def hurry(self) -> None:
        """No patience with anybody any more."""
        self._patience_ms = 0

    def kill(self) -> None:
        self.is_retired = True
        self._was_killed = True
        self._program.kill()

    # -- what it says

    def _heard(self, word: list[Any]) -> None:
        self._pinged_ms = None  # whatever it says, it lives
        match word:
            case ["told", list(plain), list(others)]:
                self._told(reports_of(plain, others))
            case ["pong", _]:
                pass
            case ["found", str(name), why, bool(is_outdated)]:
                self._has_found(name, why, is_outdated)
            case ["up"]:
                _answer(self._is_up)
            case ["ready"]:
                self._start_timer.cancel()
                self.is_ready = True
                _answer(self._is_open)
                self._landlord.host_is_ready()
            case _:
                raise BrokenFrames("a word from a handler host that makes no sense")

    def _has_found(self, name: str, why: str | None, is_outdated: bool) -> None:
        self.found[name] = why
        for names in (self.seeks, self._importing, self.hangs):
            names.discard(name)
        if is_outdated:
            self.retire("files of its code have changed since it imported them")
        else:
            self._tell_soon()
        if name in self._searches:
            _answer(self._searches.pop(name))

    def _tell_soon(self) -> None:
        """Once for many answers, and before whoever waits for one of them goes on."""
        if not self._has_news:
            self._has_news = True
            self._loop.call_soon(self._tell)

    def _tell(self) -> None:
        self._has_news = False
        self._landlord.host_has_looked()

    def _told(self, reports: list[Report]) -> None:
        by_key = self.flights.by_key
        known: list[Report] = []
        ended: list[Flight] = []
        has_declined = False
        for report in reports:
            key = report[:2]
            if key in by_key:
                known.append(report)
                if isinstance(report, Done):
                    ended.append(by_key.pop(key))
                elif isinstance(report, Declined):
                    has_declined = True
                    name = function_of(by_key.pop(key))
                    if name not in self.hangs:  # which says more
                        self.found[name] = report.reason
        if has_declined:
            self._landlord.host_has_looked()
        if known:
            self._landlord.host_told(self, known, ended)
        if self.is_retired and not by_key:
            self.retire(self.retired_because)

    # -- time

    def _look(self) -> None:
        if not self.flights.by_key:
            return
        now_ms = self._clock.monotonic_ms()
        for flight in self.flights.step(now_ms):
            self._moved(flight, now_ms)
        self._ping(now_ms)
        if self._stuck_ms is not None:
            is_over = now_ms >= self._stuck_ms + self._patience_ms
            if is_over or self.flights.are_all_stuck:
                self.kill()
        self._alarm.at(min(now_ms + _PING_MS, self.flights.next_ms()))

    def _moved(self, flight: Flight, now_ms: int) -> None:
        key = flight.assignment.key
        match flight.phase:
            case Phase.ASKED:
                self._wire.send(["ask", *key, flight.why, flight.reason])
            case Phase.FORCED:
                self._wire.send(["force", *key])
            case Phase.STUCK:
                if self._stuck_ms is None:
                    self._stuck_ms = now_ms
                self._landlord.host_does_not_stop(function_of(flight))
                self.retire(f"{flight.assignment.job} (run {flight.assignment.run_id}) does not stop")

    def _ping(self, now_ms: int) -> None:
        if self._pinged_ms is None:
            self._pings += 1
            self._pinged_ms = now_ms
            self._wire.send(["ping", self._pings])
        elif self._is_mute(now_ms):
            self.retire("it does not answer: a function keeps the interpreter or the event loop to itself")

    def _is_mute(self, now_ms: int) -> bool:
        return self._pinged_ms is not None and now_ms - self._pinged_ms >= self._settings.silence_ms

    def _is_too_slow(self) -> None:
        self.retired_because = f"it was not ready within {self._settings.start_ms / 1000:g} s: what do its imports do?"
        self.kill()

    def _looks_too_long(self, name: str) -> None:
        """An import may hang for ever. If it ends after all, what it found counts from then on."""
        if name in self._searches:
            self.hangs.add(name)
            self.found[name] = f"its import was not over within {self._settings.start_ms / 1000:g} s"
            self._tell_soon()
            _answer(self._searches.pop(name))

    # -- turns

    def _in_turn(self, module: str, begin: Callable[[], "asyncio.Future[None]"]) -> None:
        async def take() -> None:
            await self._is_up
            await self._turns.take(module, begin)

        task = self._loop.create_task(take())
        self._taking.add(task)
        task.add_done_callback(self._taking.discard)

    def _import(self, name: str, over: "asyncio.Future[None]") -> "asyncio.Future[None]":
        if not over.done():  # as when it was retired meanwhile
            self._importing.add(name)
            self._wire.send(["find", name])
            timer = self._loop.call_later(self._settings.start_ms / 1000, self._looks_too_long, name)
            over.add_done_callback(lambda _: timer.cancel())
        return over

    def _open(self) -> "asyncio.Future[None]":
        self._wire.send(["open"])
        return self._is_open

    # -- its end

    def _is_silent(self) -> None:
        """It has closed its socket and is ending, or should be. How it ended is told by its supervisor."""
        self.is_retired = True
        self._loop.call_later(_BYE_S, self._program.kill)

    def _died(self, end: End | None) -> None:
        self._start_timer.cancel()
        self._alarm.cancel()
        self._wire.close()
        self.is_retired = self.has_ended = True
        self.died_of = frozenset() if self._was_killed or self.retired_because else self._imported_now()
        now_ms = self._clock.monotonic_ms()
        reason = self.retired_because if self._was_killed else _NONSENSE if self._wire.is_broken else _how(end)
        flights, self.flights.by_key = self.flights.by_key, {}
        self.was_at_work = bool(flights)
        is_alone, is_overdue = len(flights) == 1 and not self.died_of, end is not None and end["overdue"]
        # what the process printed may be anybody's, also another tenant's: only one that was alone is shown it
        is_told = end is not None and is_alone and not self._was_killed
        last_words = limited(end["tail"], _LAST_WORDS, keep_end=True) if end is not None and is_told else None
        reports = [
            Done(
                *key,
                OVERDUE if is_overdue else self._outcome(flight, reason, last_words or None, is_alone),
                flight.started_ms,
                now_ms,
            )
            for key, flight in flights.items()
        ]
        if reports:
            self._landlord.host_told(self, reports, ())
        self._end_searches()
        functions = frozenset() if is_alone or is_overdue else frozenset(map(function_of, flights.values()))
        crashed = frozenset() if self._was_killed else functions
        self._landlord.host_ended(self, reason, crashed, functions if self._is_mute(now_ms) else frozenset())

    def _imported_now(self) -> frozenset[str]:
        """Also those that had no turn yet, if they are of the same modules: they would end the next one."""
        there = set(map(module_of, filter(self.has, self.found)))  # a look into what is imported ends nobody
        modules = set(map(module_of, self._importing)) - there
        return frozenset(name for name in self.seeks if module_of(name) in modules)

    def _outcome(self, flight: Flight, reason: str, last_words: str | None, is_alone: bool) -> Outcome:
        if flight.why is not None:
            return stopped(flight.why, flight.assignment.timeout_ms, flight.reason)
        if self._was_killed:
            return Lost(Fault("host_replaced", f"its handler host was replaced: {reason}"))
        fault = Fault("host_died", f"its handler host ended: {reason}", last_words)
        # Alone, it did this itself. Among others or beside an import nobody knows who it was: the innocent do not pay.
        return Failed(fault) if is_alone else Lost(fault)


def _order(settings: HostSettings) -> Order:
    return {
        "id": 0,
        "argv": [sys.executable, "-m", "fleetcron.executors.host_process"],
        "env": dict(settings.environment),
        "cwd": os.getcwd(),
        "stdin": None,
        "timeout_ms": None,
        "grace_ms": 0,
    }


def function_of(flight: Flight) -> str:
    return flight.assignment.target.function  # type: ignore[union-attr]


def _answer(search: "asyncio.Future[None]") -> None:
    if not search.done():  # who asked may have gone
        search.set_result(None)


def _how(end: End | None) -> str:
    if end is None:
        return "its supervisor was killed, or there was no room for it"
    if end["error"] is not None:
        return end["error"][1]
    code = end["code"] or 0
    return f"killed by {signal_name(-code)}" if code < 0 else f"exit code {code}"
