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

    def call_later(self, delay_s: float, what: Callable[..., object], *arguments: Any) -> None:
        self._loop.call_later(delay_s, what, *arguments, context=self._context)

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
        self._timers: list[tuple[float, int, TimerHandle]] = []  # what comes at one instant comes in order
        self._timed = 0
        self.set_task_factory(_task)

    def process(self, name: str) -> Process:
        made = Process(name, self)
        self._processes.append(made)
        return made

    def time(self) -> float:
        return self._now_s

    def forget(self, process: Process) -> None:
        """It is dead, and nothing of it can come any more."""
        if process in self._processes:
            self._processes.remove(process)

    def close(self) -> None:
        """Whatever still runs is killed."""
        for process in self._processes:
            process.kill()
        super().close()

    # asyncio's own, without what only debugging needs

    def call_soon(  # type: ignore[override]
        self, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> Handle:
        handle = Handle(callback, args, self, context)
        self._give(handle)
        return handle

    def call_at(  # type: ignore[override]
        self, when: float, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> TimerHandle:
        timer = TimerHandle(when, callback, args, self, context)
        self._timed += 1
        heapq.heappush(self._timers, (when, self._timed, timer))
        return timer

    def call_later(  # type: ignore[override]
        self, delay: float, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> TimerHandle:
        return self.call_at(self._now_s + delay, callback, *args, context=context)

    def _run_once(self) -> None:
        timers = self._timers
        while not self._stopping:  # type: ignore[attr-defined]
            while timers and timers[0][0] <= self._now_s:
                self._give(heapq.heappop(timers)[2])
            runnable = [each for each in self._processes if each.ready and not each.is_stopped]
            if not runnable:
                self._jump()
                continue
            handle = runnable[self._choose(len(runnable)) if len(runnable) > 1 else 0].ready.popleft()
            if not handle._cancelled:
                self._now_s += self._cost()
                self.turns += 1
                handle._run()

    def _give(self, handle: Handle) -> None:
        """To the process whose it is. The dead do nothing any more."""
        if handle._cancelled:
            return
        context: Context = handle._context  # type: ignore[attr-defined]
        process = context.get(_HERE) or self._outside
        if not process.is_dead:
            process.ready.append(handle)

    def _jump(self) -> None:
        """To the next timer that somebody still waits for."""
        timers = self._timers
        while timers and timers[0][2]._cancelled:
            heapq.heappop(timers)
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
