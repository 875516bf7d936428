"""Programs that cannot even begin: their file lies on a share that does not answer.

Here a lease on the file stands for the share. Whoever opens it, exec included, waits until the lease is given up (or 45
seconds have passed), and its holder gets SIGIO.
"""

import asyncio
import fcntl
import os
import shutil
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from fleetcron.clock import SystemClock
from fleetcron.executors import programs
from fleetcron.executors.process_tree import children_of, descendants
from fleetcron.executors.programs import _Supervisor
from fleetcron.executors.reports import Done
from fleetcron.executors.verdicts import OVERDUE
from fleetcron.model.outcome import Cancelled, Fault, Lost, Succeeded, TimedOut
from fleetcron.model.target import CommandTarget
from tests.executors.processes import keepers, ours, still_alive
from tests.executors.stage import PATIENCE_S, assignment, commands, shell


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """A supervisor that does not answer is late after half a second, and not after two: each of these tests waits for
    it."""
    monkeypatch.setattr(programs, "_LATE_S", 0.5)


class Blocked:
    """A program whose start waits."""

    def __init__(self, path: Path, file: int) -> None:
        self.target = CommandTarget((str(path),))
        self.tried = asyncio.Event()
        self._file = file

    async def until_tried(self) -> None:
        async with asyncio.timeout(PATIENCE_S):
            await self.tried.wait()

    def give_way(self) -> None:
        fcntl.fcntl(self._file, fcntl.F_SETLEASE, fcntl.F_UNLCK)


@asynccontextmanager
async def blocked(folder: Path) -> AsyncIterator[Blocked]:
    path = folder / "program"
    shutil.copy("/bin/true", path)
    file = os.open(path, os.O_RDONLY)
    program = Blocked(path, file)
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGIO, program.tried.set)
    try:
        fcntl.fcntl(file, fcntl.F_SETLEASE, fcntl.F_WRLCK)
        yield program
    finally:
        os.close(file)
        loop.remove_signal_handler(signal.SIGIO)


def is_soon(end: Done) -> bool:
    """Not because the kernel has ended the lease."""
    return end.finished_ms - end.started_ms < 20_000


def test_a_program_that_cannot_begin_hears_of_its_timeout(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with blocked(tmp_path) as program, commands(grace_s=0.3) as (executor, heard):
            executor.start([assignment(program.target, 1, timeout_s=0.5)])
            end = await heard.end_of(1)
            assert end.outcome == TimedOut(Fault("timeout", "Job timed out after 0.5s"))
            assert is_soon(end)
            executor.start([assignment(shell("echo on we go"), 2)])
            assert (await heard.end_of(2)).log_tail == "on we go\n"

    asyncio.run(scenario())


def test_a_program_that_cannot_begin_can_be_cancelled(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with blocked(tmp_path) as program, commands(grace_s=600) as (executor, heard):
            executor.start([assignment(program.target, 1)])
            await program.until_tried()
            below = {pid for keeper in keepers() for one in children_of(keeper) for pid in descendants(one)}
            executor.cancel(1, 1, "enough")  # what has not begun has no use for a grace
            end = await heard.end_of(1)
            assert end.outcome == Cancelled("enough")
            assert is_soon(end)
            assert len(below) == 1
            assert still_alive(sorted(below), 0) == []

    asyncio.run(scenario())


def test_the_switch_of_a_dead_man_reaches_a_program_that_cannot_begin(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with blocked(tmp_path) as program, commands(grace_s=600) as (executor, heard):
            executor.start([assignment(program.target, 1)])
            await program.until_tried()
            executor._programs.allow_until(SystemClock().monotonic_ms())
            end = await heard.end_of(1)
            assert end.outcome == OVERDUE
            assert is_soon(end)

    asyncio.run(scenario())


def test_a_supervisor_that_cannot_be_freed_is_ended_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where no signal reaches what it waits for. Here it is not sent: nobody can be made deaf to SIGKILL."""
    monkeypatch.setattr(_Supervisor, "free", lambda _: None)

    async def scenario() -> None:
        async with blocked(tmp_path) as program, commands(grace_s=0.3) as (executor, heard):
            executor.start([assignment(program.target, 1, timeout_s=0.5)])
            await program.until_tried()
            executor.start([assignment(program.target, 2)])
            executor.cancel(2, 1, "enough")
            ends = await heard.ends(2)
            assert ends[1, 1].outcome == TimedOut(Fault("timeout", "Job timed out after 0.5s"))
            assert ends[2, 1].outcome == Cancelled("enough")
            assert all(map(is_soon, ends.values()))
            [keeper] = keepers()
            assert still_alive(descendants(keeper), 2) == []

    asyncio.run(scenario())


def test_what_has_begun_keeps_its_grace(monkeypatch: pytest.MonkeyPatch) -> None:
    """It takes longer to clean up than a beginning may take, and the keeper is not asked for."""
    late: list[str] = []
    monkeypatch.setattr(_Supervisor, "free", lambda _: late.append("killed"))
    slow = f"trap 'sleep {programs._LATE_S + 0.5}; exit 0' TERM; echo ready; while :; do sleep 0.01; done"

    async def scenario() -> None:
        async with commands(grace_s=600) as (executor, heard):
            executor.start([assignment(shell(slow), 1)])
            await heard.log_has(1, "ready")
            executor.cancel(1, 1, "enough")
            assert (await heard.end_of(1)).outcome == Cancelled("enough")

    asyncio.run(scenario())
    assert late == []


def test_a_worker_is_closed_although_a_program_cannot_begin(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with blocked(tmp_path) as program, commands(grace_s=600) as (executor, heard):
            executor.start([assignment(program.target, 1)])
            await program.until_tried()
            await executor.close(0)
            assert heard.done[1, 1].outcome == Lost(Fault("worker_stopped", "the worker was stopped"))
            assert is_soon(heard.done[1, 1])

    asyncio.run(scenario())
    assert ours() == []


def test_a_program_that_begins_late_is_none_the_worse_for_it(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with blocked(tmp_path) as program, commands() as (executor, heard):
            executor.start([assignment(program.target, 1)])
            await program.until_tried()
            program.give_way()
            assert (await heard.end_of(1)).outcome == Succeeded()

    asyncio.run(scenario())
