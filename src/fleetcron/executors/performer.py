"""Runs handlers in this process: coroutines on its event loop, plain functions in threads.

The handler host is this behind a pipe, `isolation: inline` is this in the worker itself. It starts what it is given,
asks to stop what it is told to stop, and collects reports until the loop has a moment, so that they leave in batches.
It enforces nothing: deadlines belong to whoever cannot be blocked by a handler.
"""

import asyncio
import contextvars
import ctypes
import inspect
import threading
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, Final

from fleetcron.clock import Clock
from fleetcron.executors.assignment import Assignment, Key
from fleetcron.executors.context import Context, Stop
from fleetcron.executors.handlers import Handler, Handlers
from fleetcron.executors.home import NOWHERE, Home, of_process
from fleetcron.executors.reports import Declined, Done, LogChunk, Outbox, Progress, Tell
from fleetcron.executors.spoken import Spoken
from fleetcron.executors.threads import Threads
from fleetcron.executors.verdicts import Why, limited, name_of, raised, stopped, trace_of, written
from fleetcron.model.outcome import Failed, Fault, Outcome, Succeeded

SUCCEEDED: Final = Succeeded()
_SOON_S: Final = 0.2  # how long a line of a log or a word of progress may wait for company

CURRENT: contextvars.ContextVar["Playing | None"] = contextvars.ContextVar("fleetcron_attempt", default=None)


def at_home() -> Home:
    """Of the handler that asks."""
    playing = CURRENT.get()
    return of_process() if playing is None else playing.home


class ThreadStopped(BaseException):
    """Raised inside a plain function that did not stop when it was asked to."""


class Playing:
    """One attempt that runs in this process; what its handler says is heard here."""

    __slots__ = (
        "_performer",
        "assignment",
        "condemned",
        "is_noted",
        "latest",
        "spoken",
        "started_ms",
        "stop",
        "thread",
        "why",
        "work",
    )

    def __init__(self, assignment: Assignment, performer: "Performer") -> None:
        self.assignment = assignment
        self.stop = Stop()
        self.why: Why | None = None
        self.started_ms = 0
        self.work: asyncio.Task[None] | None = None
        self.thread: int | None = None  # that runs it
        self.condemned = False  # that thread was thrown an exception, and is not to be used again
        self.latest: tuple[float, str] | None = None
        self.is_noted = False  # that it said something
        self.spoken = Spoken()
        self._performer = performer

    @property
    def home(self) -> Home:
        return self._performer.home

    def wrote(self, data: bytes) -> None:
        self.spoken.write(data)
        self._performer.said(self)

    def progressed(self, share: float, note: str) -> None:
        self.latest = (share, limited(note))
        self._performer.said(self)


class Performer:
    def __init__(self, handlers: Handlers, threads: int, clock: Clock, tell: Tell, home: Home = NOWHERE) -> None:
        self.home = home
        self.playing: dict[Key, Playing] = {}
        self._loop = asyncio.get_running_loop()
        self._handlers = handlers
        self._clock = clock
        self._outbox = Outbox(tell)
        self._threads = Threads(threads, self._work)
        self._finished: deque[tuple[Playing, Outcome, str | None, int]] = deque()  # in threads
        self._is_woken = False
        self._noted: deque[Playing] = deque()
        self._is_noting = False

    def start(self, assignments: Sequence[Assignment]) -> None:
        get, create_task = self._handlers.get, self._loop.create_task
        for assignment in assignments:
            name: str = assignment.target.function  # type: ignore[union-attr]
            handler = get(name)
            if handler is None:
                self._outbox.put(Declined(assignment.run_id, assignment.attempt, f"{name} is not loaded here"))
                continue
            playing = Playing(assignment, self)
            self.playing[assignment[:2]] = playing
            if handler.is_coroutine:
                playing.work = create_task(self._play(playing, handler))
            else:
                self._threads.put((playing, handler))

    def ask(self, key: Key, why: Why, reason: str) -> None:
        """A coroutine is cancelled; a plain function sees `ctx.cancelled`."""
        playing = self.playing.get(key)
        if playing is None or playing.why is not None:
            return
        playing.why = why
        playing.stop.ask(reason)
        if playing.work is not None and playing.started_ms:  # cancelled before its first step it would never tell
            playing.work.cancel()

    def force(self, key: Key) -> None:
        """Throw an exception into the thread of a plain function. It arrives when the thread runs Python again."""
        playing = self.playing.get(key)
        if playing is None:
            return
        playing.condemned = (
            True  # first: a thread that ends just now must not take the next function, which is innocent
        )
        thread = playing.thread
        if thread is not None:
            ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), ctypes.py_object(ThreadStopped))

    def give_up(self, key: Key) -> None:
        """It goes on in its thread, and that must not be missing to others."""
        playing = self.playing.get(key)
        if playing is not None and playing.thread is not None:
            self._threads.let_go(playing.thread)

    def said(self, playing: Playing) -> None:
        """From any thread: this one has printed something, or moved on."""
        if not playing.is_noted:
            playing.is_noted = True
            self._noted.append(playing)
        if not self._is_noting:
            self._is_noting = True
            self._wake(self._loop.call_later, _SOON_S, self._pass_on)

    def close(self) -> None:
        self._threads.close()

    async def _play(self, playing: Playing, handler: Handler) -> None:
        value: Any = None
        error: BaseException | None = None
        CURRENT.set(playing)
        playing.started_ms = self._clock.monotonic_ms()
        if playing.why is None:
            try:
                value = await _call(playing, handler)
            except BaseException as caught:  # also SystemExit: a handler does not end its host
                error = caught
        outcome, result = _verdict(playing, value, error)
        self._end(playing, outcome, result, self._clock.monotonic_ms())

    def _work(self, item: tuple[Playing, Handler]) -> bool:
        """In a thread of its own."""
        playing, handler = item
        value: Any = None
        error: BaseException | None = None
        CURRENT.set(playing)
        playing.started_ms = self._clock.monotonic_ms()
        if playing.why is None:
            playing.thread = threading.get_ident()
            try:
                value = _call(playing, handler)
            except BaseException as caught:
                error = caught
            playing.thread = None
        outcome, result = _verdict(playing, value, error)
        self._finished.append((playing, outcome, result, self._clock.monotonic_ms()))
        if not self._is_woken:
            self._is_woken = True
            self._wake(self._collect)
        return not playing.condemned

    def _wake(self, callback: Callable[..., object], *given: object) -> None:
        with suppress(RuntimeError):  # the loop is closed: nobody listens to a function that was given up
            self._loop.call_soon_threadsafe(callback, *given)

    def _collect(self) -> None:
        self._is_woken = False
        finished = self._finished
        while finished:
            self._end(*finished.popleft())

    def _end(self, playing: Playing, outcome: Outcome, result: str | None, finished_ms: int) -> None:
        run_id, attempt = key = playing.assignment[:2]
        del self.playing[key]
        tail, total = "", 0
        if not playing.spoken.is_empty:
            self._take_chunks(playing, ended=True)
            tail, total = playing.spoken.end()
        self._outbox.put(Done(run_id, attempt, outcome, playing.started_ms, finished_ms, result, tail, total))

    def _pass_on(self) -> None:
        self._is_noting = False
        while self._noted:
            playing = self._noted.popleft()
            playing.is_noted = False
            if playing.assignment.key not in self.playing:
                continue  # what it said went with its end
            if playing.latest is not None:
                self._outbox.put(Progress(*playing.assignment[:2], *playing.latest))
                playing.latest = None
            if not playing.spoken.is_empty:
                self._take_chunks(playing)

    def _take_chunks(self, playing: Playing, *, ended: bool = False) -> None:
        run_id, attempt = playing.assignment[:2]
        for seq, text, truncated in playing.spoken.chunks(ended=ended):
            self._outbox.put(LogChunk(run_id, attempt, seq, text, truncated))


def _call(playing: Playing, handler: Handler) -> Any:
    return handler.function(*handler.given(Context(playing.assignment, playing, playing.stop, playing.home)))


def _verdict(playing: Playing, value: object, error: BaseException | None) -> tuple[Outcome, str | None]:
    """Never raises, whatever the objects of a handler do when they are looked at: its end must be told."""
    try:
        return _judged(playing, value, error)
    except BaseException as beyond:
        if playing.why is not None:  # what was thrown into its thread may arrive as late as here
            return stopped(playing.why, playing.assignment.timeout_ms, playing.stop.reason or ""), None
        said = "what it returned or raised cannot be looked at"
        return Failed(Fault(name_of(type(beyond)), said, trace_of(beyond))), None


def _judged(playing: Playing, value: object, error: BaseException | None) -> tuple[Outcome, str | None]:
    if playing.why is not None:  # half of its work is no success, whatever it returned
        return stopped(playing.why, playing.assignment.timeout_ms, playing.stop.reason or "", error), None
    if error is not None:
        return raised(error), None
    if value is None:
        return SUCCEEDED, None
    if inspect.iscoroutine(value):
        value.close()
        hint = "write async def, so that it is awaited"
        return Failed(Fault("result_not_json", f"the function returned a coroutine; {hint}")), None
    result = written(value)
    return (SUCCEEDED, result) if isinstance(result, str) else (result, None)
