"""An event loop whose time is not the machine's: when nothing can run, it jumps to the next timer.

Everything runs in one thread. Each simulated process is a context: what it does first comes first, as in a loop of its
own, and chance decides between processes. So the same chance gives the same story, whatever the machine does.
"""

import asyncio
import heapq
from asyncio.events import Handle, TimerHandle
from collections import deque
from collections.abc import Callable, Coroutine
from contextvars import Context, ContextVar, copy_context
from typing import Any, Final

# What was killed stays as it was: a coroutine that Python finds unused is closed, and would clean up after all.
_GRAVES: Final[list["asyncio.Task[Any]"]] = []
_HERE: ContextVar["Process | None"] = ContextVar("fleetcron_simulated_process", default=None)


class Process:
    """Something that can be killed or stopped by itself."""

    def __init__(self, name: str, loop: "VirtualLoop") -> None:
        self.name = name
        self.is_dead = False
        self.is_stopped = False
        self._loop = loop
        self._context = copy_context()
        self._context.run(_HERE.set, self)
        self.ready: deque[Handle] = deque()
        self._tasks: list[asyncio.Task[Any]] = []  # kept: a task that nobody knows would be closed, and clean up
        self._most = 64

    def spawn(self, work: Coroutine[Any, Any, Any]) -> "asyncio.Task[Any]":
        return self._loop.create_task(work, context=self._context.copy())

    def call(self, what: Callable[..., object], *arguments: Any) -> None:
        """In its next turn."""
        self._loop.call_soon(what, *arguments, context=self._context)

    def keep(self, task: "asyncio.Task[Any]") -> None:
        self._tasks.append(task)
        if len(self._tasks) > self._most:
            self._tasks = [each for each in self._tasks if not each.done()]
            self._most = 64 + 2 * len(self._tasks)

    def kill(self) -> None:
        """As kill -9: nothing of it runs any more, not even what cleans up."""
        self.is_dead = True
        self.ready.clear()
        for task in self._tasks:
            task._log_destroy_pending = False  # type: ignore[attr-defined]
        _GRAVES.extend(task for task in self._tasks if not task.done())
        self._tasks.clear()

    def stop(self) -> None:
        """As SIGSTOP: time goes on without it."""
        self.is_stopped = True

    def go_on(self) -> None:
        self.is_stopped = False


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
        self._outside = Process("outside", self)
        self._processes: list[Process] = [self._outside]
        self.turns = 0
        self.set_task_factory(_task)

    def process(self, name: str) -> Process:
        made = Process(name, self)
        self._processes.append(made)
        return made

    def time(self) -> float:
        return self._now_s

    def forget(self, process: Process) -> None:
        """It is dead, and nothing of it can come any more."""
        self._processes.remove(process)

    def close(self) -> None:
        """Whatever still runs is killed."""
        for process in self._processes:
            process.kill()
        super().close()

    def _run_once(self) -> None:
        self._sort_out()
        runnable = [each for each in self._processes if each.ready and not each.is_stopped]
        if not runnable:
            self._jump()
            return
        handle = runnable[self._choose(len(runnable)) if len(runnable) > 1 else 0].ready.popleft()
        if not handle.cancelled():
            self._now_s += self._cost()
            self.turns += 1
            handle._run()

    def _sort_out(self) -> None:
        """Give everybody his callbacks."""
        ready: deque[Handle] = self._ready  # type: ignore[attr-defined]
        while ready:
            self._give(ready.popleft())
        timers: list[TimerHandle] = self._scheduled  # type: ignore[attr-defined]
        while timers and (timers[0].cancelled() or timers[0].when() <= self._now_s):
            timer = heapq.heappop(timers)
            timer._scheduled = False  # type: ignore[attr-defined]
            self._give(timer)

    def _give(self, handle: Handle) -> None:
        context: Context = handle._context  # type: ignore[attr-defined]
        process = context.get(_HERE) or self._outside
        if not process.is_dead and not handle.cancelled():
            process.ready.append(handle)

    def _jump(self) -> None:
        timers: list[TimerHandle] = self._scheduled  # type: ignore[attr-defined]
        if not timers:
            if self._stopping:  # type: ignore[attr-defined]
                return
            raise Deadlock("nothing can run, and nothing is to come")
        self._now_s = max(self._now_s, timers[0].when())

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
