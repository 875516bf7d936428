"""An event loop whose time is not the machine's: when nothing can run, it jumps to the next timer.

Everything runs in one thread. Each simulated process is a context: what it does first comes first, as in a loop of its
own, and chance decides between processes. So the same chance gives the same story, whatever the machine does.

A world of twenty minutes takes a hundred thousand turns, so a turn is kept cheap: handles without what only debugging
needs, and a list of those who have something to do in place of a look at everybody.
"""

import asyncio
from asyncio.events import TimerHandle
from bisect import insort
from collections import deque
from collections.abc import Callable, Coroutine
from contextvars import Context, ContextVar, copy_context
from heapq import heappop, heappush
from operator import attrgetter
from typing import Any, Final

# What was killed stays as it was: a coroutine that Python finds unused is closed, and would clean up after all.
_GRAVES: Final[list["asyncio.Task[Any]"]] = []
_HERE: ContextVar["Process | None"] = ContextVar("fleetcron_simulated_process", default=None)
_NUMBER: Final = attrgetter("number")


class _Handle(TimerHandle):
    """asyncio's own, made and cancelled in a quarter of the time."""

    __slots__ = ()

    def __init__(
        self, when: float, callback: Callable[..., object], args: Any, loop: "VirtualLoop", context: Context | None
    ) -> None:
        self._when = when
        self._callback = callback
        self._args = args
        self._loop = loop
        self._context = copy_context() if context is None else context
        self._cancelled = False
        self._repr = self._source_traceback = None

    def cancel(self) -> None:
        self._cancelled = True
        self._callback = self._args = None  # type: ignore[assignment]


class Process:
    """Something that can be killed or stopped by itself."""

    def __init__(self, name: str, number: int, loop: "VirtualLoop") -> None:
        self.name = name
        self.number = number  # in the order in which they were made
        self.is_dead = False
        self.is_stopped = False
        self._loop = loop
        self._context = copy_context()
        self._context.run(_HERE.set, self)
        self.ready: deque[_Handle] = deque()
        self._tasks: list[asyncio.Task[Any]] = []  # kept: a task that nobody knows would be closed, and clean up
        self._most = 64

    def spawn(self, work: Coroutine[Any, Any, Any]) -> "asyncio.Task[Any]":
        return self._loop.create_task(work, context=self._context.copy())

    def call(self, what: Callable[..., object], *arguments: Any) -> None:
        """In its next turn."""
        self._loop.call_soon(what, *arguments, context=self._context)

    def call_later(self, delay_s: float, what: Callable[..., object], *arguments: Any) -> None:
        self._loop.call_at(self._loop.time() + delay_s, what, *arguments, context=self._context)

    def keep(self, task: "asyncio.Task[Any]") -> None:
        self._tasks.append(task)
        if len(self._tasks) > self._most:
            self._tasks = [each for each in self._tasks if not each.done()]
            self._most = 64 + 2 * len(self._tasks)

    def kill(self) -> None:
        """As kill -9: nothing of it runs any more, not even what cleans up."""
        self.is_dead = True
        self.ready.clear()
        self._loop.has_nothing_to_do(self)
        for task in self._tasks:
            task._log_destroy_pending = False  # type: ignore[attr-defined]
        _GRAVES.extend(task for task in self._tasks if not task.done())
        self._tasks.clear()

    def stop(self) -> None:
        """As SIGSTOP: time goes on without it."""
        self.is_stopped = True
        self._loop.has_nothing_to_do(self)

    def go_on(self) -> None:
        self.is_stopped = False
        if self.ready:
            self._loop.has_something_to_do(self)


def here() -> Process | None:
    """The process that runs now."""
    return _HERE.get()


class VirtualLoop(asyncio.BaseEventLoop):
    """`choose(n)` is a number below n; `cost()` the seconds that one callback takes."""

    def __init__(self, choose: Callable[[int], int] = lambda _: 0, cost: Callable[[], float] = lambda: 20e-6) -> None:
        super().__init__()
        self._now_s = 0.0
        self._choose = choose
        self._cost = cost
        self._outside = Process("outside", 0, self)
        self._processes: list[Process] = [self._outside]
        self._made = 0
        self._busy: list[Process] = []  # those that could do something now, in the order in which they were made
        self.turns = 0
        self._timers: list[tuple[float, int, _Handle]] = []  # what comes at one instant comes in order
        self._timed = 0
        self.set_task_factory(_task)

    def process(self, name: str) -> Process:
        self._made += 1
        made = Process(name, self._made, self)
        self._processes.append(made)
        return made

    def time(self) -> float:
        return self._now_s

    def forget(self, process: Process) -> None:
        """It is dead, and nothing of it can come any more."""
        if process in self._processes:
            self._processes.remove(process)
        self.has_nothing_to_do(process)

    def close(self) -> None:
        """Whatever still runs is killed."""
        for process in self._processes:
            process.kill()
        super().close()

    # asyncio's own, without what only debugging needs

    def call_soon(  # type: ignore[override]
        self, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> _Handle:
        handle = _Handle(0.0, callback, args, self, context)
        self._give(handle)
        return handle

    def call_at(  # type: ignore[override]
        self, when: float, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> _Handle:
        timer = _Handle(when, callback, args, self, context)
        self._timed += 1
        heappush(self._timers, (when, self._timed, timer))
        return timer

    def call_later(  # type: ignore[override]
        self, delay: float, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> _Handle:
        return self.call_at(self._now_s + delay, callback, *args, context=context)

    def _run_once(self) -> None:
        timers, busy = self._timers, self._busy
        while not self._stopping:  # type: ignore[attr-defined]
            while timers and timers[0][0] <= self._now_s:
                self._give(heappop(timers)[2])
            if not busy:
                self._jump()
                continue
            process = busy[self._choose(len(busy)) if len(busy) > 1 else 0]
            handle = process.ready.popleft()
            if not process.ready:
                busy.remove(process)
            if handle._cancelled:
                continue
            self._now_s += self._cost()
            self.turns += 1
            try:
                handle._context.run(handle._callback, *handle._args)
            except (SystemExit, KeyboardInterrupt):
                raise
            except BaseException as error:
                self.call_exception_handler({"message": f"a fault in {handle!r}", "exception": error})

    def _give(self, handle: _Handle) -> None:
        """To the process whose it is. The dead do nothing any more."""
        if handle._cancelled:
            return
        context = handle._context
        process = context.get(_HERE) or self._outside
        if not process.is_dead:
            if not process.ready and not process.is_stopped:
                self.has_something_to_do(process)
            process.ready.append(handle)

    def has_something_to_do(self, process: Process) -> None:
        if not self._busy:
            self._busy.append(process)
        elif process not in self._busy:
            insort(self._busy, process, key=_NUMBER)

    def has_nothing_to_do(self, process: Process) -> None:
        if process in self._busy:
            self._busy.remove(process)

    def _jump(self) -> None:
        """To the next timer that somebody still waits for."""
        timers = self._timers
        while timers and timers[0][2]._cancelled:
            heappop(timers)
        if not timers:
            raise Deadlock("nothing can run, and nothing is to come")
        self._now_s = max(self._now_s, timers[0][0])

    def _process_events(self, event_list: list[Any]) -> None:
        assert not event_list

    def _write_to_self(self) -> None:
        raise Deadlock("a simulated process has a thread of its own")


class Deadlock(RuntimeError):
    """The simulated world stands still for ever."""


def _task(loop: asyncio.AbstractEventLoop, work: Any, **options: Any) -> "asyncio.Task[Any]":
    task = asyncio.Task(work, loop=loop, **options)
    context: Context = options.get("context") or copy_context()
    process = context.get(_HERE)
    if process is not None:
        process.keep(task)
    return task
