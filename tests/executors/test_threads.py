"""Threads for plain functions: nothing that was put is lost, and nothing of them is left."""

import asyncio
import os
import sys
import threading
import weakref
from collections.abc import Callable, Iterator
from itertools import count
from queue import SimpleQueue

import pytest

from fleetcron.executors.threads import Threads

_RINGS_IN_A_PIPE = 65_536
Begun = Callable[[], set[threading.Thread]]


@pytest.fixture
def begun() -> Begun:
    """The threads that live and did not when the test began."""
    before = set(threading.enumerate())
    return lambda: set(threading.enumerate()) - before


def _join(begun: Begun) -> None:
    for thread in begun():
        thread.join(60)
    assert not begun()


def test_nothing_is_lost_when_more_is_put_than_a_pipe_can_tell(begun: Begun) -> None:
    """All threads are busy meanwhile, so nobody takes a ring out of it."""
    many, gate, over = _RINGS_IN_A_PIPE + 5_000, threading.Event(), threading.Event()
    seen: list[int] = []

    def work(number: int) -> bool:
        gate.wait(60)
        seen.append(number)
        if len(seen) == many:
            over.set()
        return True

    async def main() -> None:
        threads = Threads(2, work)
        for number in range(many):
            threads.put(number)
        gate.set()
        assert over.wait(60)
        threads.close()

    asyncio.run(main())
    _join(begun)
    assert sorted(seen) == list(range(many))


def test_every_item_wakes_an_idle_thread_of_its_own(begun: Begun) -> None:
    """Two that wait for each other can only end if both of them run."""
    meeting, over = threading.Barrier(2), threading.Semaphore(0)

    def work(_: int) -> bool:
        meeting.wait(60)
        over.release()
        return True

    async def main() -> None:
        threads = Threads(2, work)
        for number in range(400):
            threads.put(number)
            if number % 2:
                for _ in range(2):
                    assert await asyncio.to_thread(over.acquire, timeout=60)
        threads.close()

    asyncio.run(main())
    _join(begun)


def test_none_starts_for_what_ends_the_others(begun: Begun) -> None:
    """The look that comes a moment after `put` sees the ends that `close` has put, as long as nobody has taken them."""
    gate = threading.Event()

    def work(_: int) -> bool:
        return gate.wait(60)

    async def main() -> None:
        threads = Threads(3, work)
        threads.put(1)
        threads.close()
        await asyncio.sleep(0.01)  # longer than that moment, on the same loop
        assert len(begun()) == 1
        gate.set()

    asyncio.run(main())
    _join(begun)


def test_what_comes_when_the_last_one_is_about_to_leave_is_not_left_lying(begun: Begun) -> None:
    """It still counts as a thread that would take it."""
    over = threading.Event()

    async def main() -> None:
        loop = asyncio.get_running_loop()

        def work(number: int) -> bool:
            if number == 1:
                looked = threading.Event()
                loop.call_soon_threadsafe(threads.put, 2)
                loop.call_soon_threadsafe(loop.call_later, 0.01, looked.set)  # later than the look for the other
                return not looked.wait(60)
            over.set()
            return True

        threads = Threads(1, work)
        threads.put(1)
        assert await asyncio.to_thread(over.wait, 60)
        threads.close()

    asyncio.run(main())
    _join(begun)


def test_no_room_for_a_thread_is_no_end(begun: Begun, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither for what was put nor for what comes later."""
    start, refused = threading.Thread.start, count()
    done = threading.Semaphore(0)

    def crowded(thread: threading.Thread) -> None:
        if next(refused) < 3:
            raise RuntimeError("can't start new thread")
        start(thread)

    def work(_: int) -> bool:
        done.release()
        return True

    async def main() -> None:
        threads = Threads(2, work)
        with monkeypatch.context() as patched:
            patched.setattr(threading.Thread, "start", crowded)
            for number in range(3):
                threads.put(number)
            while not done.acquire(blocking=False):
                await asyncio.sleep(0.001)
        for _ in range(2):
            assert await asyncio.to_thread(done.acquire, timeout=60)
        threads.close()

    asyncio.run(main())
    _join(begun)


def test_a_fork_that_comes_back_takes_nothing(begun: Begun) -> None:
    """It has the same pipe and a copy of the queue, and must not work for its parent."""
    ended: SimpleQueue[int] = SimpleQueue()
    seen: list[int] = []

    def work(number: int) -> bool:
        if number:
            seen.append(number)
        elif child := os.fork():
            ended.put(os.waitpid(child, 0)[1])
        return True

    async def main() -> None:
        threads = Threads(1, work)
        for number in range(10):
            threads.put(number)
        assert await asyncio.to_thread(ended.get, timeout=60) == 0
        threads.close()

    asyncio.run(main())
    _join(begun)
    assert seen == list(range(1, 10))


@pytest.fixture
def restless() -> Iterator[None]:
    """Threads take turns as often as they can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


@pytest.mark.usefixtures("restless")
def test_one_is_let_go_while_others_leave(begun: Begun) -> None:
    gate = threading.Event()

    async def main() -> None:
        for _ in range(10):
            gate.clear()
            many = 40
            meeting = threading.Barrier(many + 1)

            def work(_: int, meeting: threading.Barrier = meeting) -> bool:
                meeting.wait(60)
                gate.wait(60)
                return False

            threads = Threads(many, work)
            for number in range(many):
                threads.put(number)
            await asyncio.to_thread(meeting.wait, 60)
            mine = [thread.ident for thread in begun() if thread.name == "handler"]
            gate.set()
            for ident in mine:
                threads.let_go(ident or 0)
            _join_handlers(begun)

    asyncio.run(main())
    _join(begun)


def _join_handlers(begun: Begun) -> None:
    for thread in begun():
        if thread.name == "handler":
            thread.join(60)


def test_no_thread_and_no_descriptor_is_left_when_they_are_closed(begun: Begun) -> None:
    def work(done: threading.Event) -> bool:
        done.set()
        return True

    async def main() -> None:
        threads = Threads(3, work)
        for done in (events := [threading.Event() for _ in range(10)]):
            threads.put(done)
        assert all(done.wait(60) for done in events)
        threads.close()
        _join(begun)
        kept = weakref.ref(threads)
        del threads
        while kept() is not None:  # the look that is still to come has it
            await asyncio.sleep(0.001)

    asyncio.run(main())  # what a loop opens once is open
    before = set(os.listdir("/proc/self/fd"))
    asyncio.run(main())
    assert set(os.listdir("/proc/self/fd")) <= before  # others of this process may have been let go
