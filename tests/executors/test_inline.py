"""Python functions in the worker's own process: the same words, a weaker promise."""

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from fleetcron.clock import SystemClock
from fleetcron.config import ExecutorConfig
from fleetcron.executors.context import Context, Retry
from fleetcron.executors.handlers import Handlers
from fleetcron.executors.inline import Inline
from fleetcron.executors.performer import ThreadStopped
from fleetcron.model.outcome import Cancelled, Failed, Fault, Lost, Succeeded, TimedOut
from fleetcron.model.target import CommandTarget, PythonTarget
from tests.executors.stage import PATIENCE_S, Heard, assignment, module_that_hangs


@asynccontextmanager
async def inline(
    *functions: Callable[..., Any], allowed: tuple[str, ...] = (), grace_s: float = 0.1, slots: int = 20
) -> AsyncIterator[tuple[Inline, Heard]]:
    heard = Heard()
    handlers = Handlers(allowed)
    for function in functions:
        handlers.add(f"here:{function.__name__}", function)
    executor = Inline(handlers, ExecutorConfig(grace_s=grace_s), slots, SystemClock(), heard.tell)
    try:
        yield executor, heard
    finally:
        await executor.close(0)


def here(function: Callable[..., Any]) -> PythonTarget:
    return PythonTarget(f"here:{function.__name__}")


async def noop(ctx: Context) -> None:
    pass


def plain(ctx: Context, payload: dict[str, Any]) -> object:
    ctx.log("in", ctx.job)
    return payload["answer"]


async def sleeps(ctx: Context) -> None:
    await asyncio.sleep(3600)


def spins(ctx: Context) -> None:
    while True:
        time.sleep(0.001)


def breaks(ctx: Context) -> None:
    raise ValueError("no")


def test_functions_of_this_process_run_and_tell() -> None:
    async def scenario() -> None:
        async with inline(noop, plain, breaks) as (executor, heard):
            assert executor.knows(here(noop))
            assert executor.why_not(here(noop)) is None
            functions: list[Callable[..., Any]] = [noop, plain, breaks]
            executor.start([assignment(here(each), at, payload={"answer": 42}) for at, each in enumerate(functions)])
            assert executor.running() == {(0, 1), (1, 1), (2, 1)}
            ends = await heard.ends(3)
            assert ends[0, 1].outcome == Succeeded()
            assert (ends[1, 1].result_json, ends[1, 1].log_tail) == ("42", "in nightly-report\n")
            outcome = ends[2, 1].outcome
            assert isinstance(outcome, Failed)
            assert (outcome.error.code, outcome.error.text) == ("ValueError", "no")
            assert executor.running() == set()

    asyncio.run(scenario())


def test_what_is_not_there_is_declined() -> None:
    """S1-24."""

    async def scenario() -> None:
        async with inline(allowed=("tests.executors.subjects_that_fail",)) as (executor, heard):
            failing = PythonTarget("tests.executors.subjects_that_fail:f")
            assert "not looked for yet" in (executor.why_not(failing) or "")
            await executor.learn([failing, PythonTarget("os:getpid"), CommandTarget(("true",))])
            assert "the database is away" in (executor.why_not(failing) or "")
            assert "add it to executor.handlers" in (executor.why_not(PythonTarget("os:getpid")) or "")
            assert not executor.knows(CommandTarget(("true",)))
            executor.start([assignment(failing)])
            assert "is not loaded here" in await heard.declined(1)
            assert executor.running() == set()

    asyncio.run(scenario())


@pytest.mark.usefixtures("turns_are_short")
def test_an_import_that_hangs_keeps_nobody_else_waiting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor the end of the worker."""
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "inline_z.py").write_text("def work(): pass\n")
    hangs, beside = PythonTarget("inline_that_hangs:work"), PythonTarget("inline_z:work")

    async def scenario() -> None:
        async with inline(allowed=("inline_that_hangs", "inline_z")) as (executor, heard):
            learning = asyncio.create_task(executor.learn([hangs, beside]))
            async with asyncio.timeout(PATIENCE_S):
                while not executor.knows(beside):
                    await asyncio.sleep(0.01)
            executor.start([assignment(beside)])
            assert (await heard.end_of(1)).outcome == Succeeded()
            assert not learning.done()
            await executor.close(0)
            await learning
            assert not executor.knows(hangs)

    with module_that_hangs(tmp_path, "inline_that_hangs"):
        asyncio.run(scenario())


def test_timeouts_and_cancels() -> None:
    """S1-26: a coroutine is cancelled; a thread that runs Python is thrown out."""

    async def scenario() -> None:
        async with inline(sleeps, spins) as (executor, heard):
            executor.start([assignment(here(sleeps), 1, timeout_s=0.1), assignment(here(spins), 2, timeout_s=0.1)])
            executor.start([assignment(here(sleeps), 3), assignment(here(sleeps), 4)])
            executor.cancel(3, 1, "before its first step")
            ends = await heard.ends(3)
            assert ends[3, 1].outcome == Cancelled("before its first step")
            for number in (1, 2):
                outcome = ends[number, 1].outcome
                assert isinstance(outcome, TimedOut)
                assert outcome.error.text == "Job timed out after 0.1s"
            await executor.close(0)
            lost = heard.done[4, 1].outcome
            assert isinstance(lost, Lost)
            assert lost.error.code == "worker_stopped"

    asyncio.run(scenario())


@pytest.mark.usefixtures("force_is_short")
def test_what_cannot_be_stopped_is_given_up_and_that_is_the_weaker_promise() -> None:
    free = threading.Event()

    def stubborn(ctx: Context) -> None:
        free.wait(60)

    async def scenario() -> None:
        async with inline(stubborn, noop) as (executor, heard):
            executor.start([assignment(here(stubborn), 1, timeout_s=0.1)])
            assert (await heard.end_of(1)).outcome == TimedOut(Fault("timeout", "Job timed out after 0.1s"))
            assert any(thread.name == "handler" for thread in threading.enumerate())  # it still runs
            free.set()
            executor.start([assignment(here(noop), 2)])
            await heard.end_of(2)
            assert len(heard.done) == 2  # its late end is not told

    asyncio.run(scenario())


@pytest.mark.usefixtures("force_is_short")
def test_who_was_given_up_is_not_missing_to_others() -> None:
    """A thread for each slot, whatever was left behind in others."""
    free = threading.Event()

    def stubborn(ctx: Context) -> None:
        free.wait(60)

    async def scenario() -> None:
        async with inline(stubborn, plain, slots=2) as (executor, heard):
            executor.start([assignment(here(stubborn), at, timeout_s=0.1) for at in (1, 2)])
            await heard.ends(2)
            executor.start([assignment(here(plain), at, payload={"answer": at}) for at in (3, 4)])
            assert [(await heard.end_of(at)).result_json for at in (3, 4)] == ["3", "4"]
            free.set()

    asyncio.run(scenario())


class TooLate(Exception):
    """What was thrown into its thread arrives when it is looked at."""

    @property
    def __notes__(self) -> list[str]:
        raise ThreadStopped


def stops_too_late(ctx: Context) -> None:
    ctx.cancelled.wait(60)
    raise TooLate


def test_who_was_cancelled_is_cancelled_however_it_ends() -> None:
    async def scenario() -> None:
        async with inline(stops_too_late, grace_s=60) as (executor, heard):
            executor.start([assignment(here(stops_too_late), 1)])
            executor.cancel(1, 1, "not needed")
            assert (await heard.end_of(1)).outcome == Cancelled("not needed")

    asyncio.run(scenario())


class Late(Retry):
    """As somebody may write it."""

    def __init__(self) -> None:
        super().__init__("not yet")
        self.after = timedelta(minutes=5)  # type: ignore[assignment]


class Odd(dict[str, int]):
    def items(self) -> Any:
        raise LookupError("no")


def late(ctx: Context) -> None:
    raise Late


async def late_too(ctx: Context) -> None:
    raise Late


def odd(ctx: Context) -> object:
    return Odd(a=1)


@pytest.mark.parametrize(("function", "code"), [(late, "TypeError"), (late_too, "TypeError"), (odd, "LookupError")])
def test_an_end_is_told_whatever_it_is_made_of(function: Callable[..., Any], code: str) -> None:
    async def scenario() -> None:
        async with inline(function, plain, slots=1) as (executor, heard):
            executor.start([assignment(here(function), 1), assignment(here(plain), 2, payload={"answer": 2})])
            outcome = (await heard.end_of(1)).outcome
            assert isinstance(outcome, Failed)
            assert (outcome.error.code, outcome.error.text) == (code, "what it returned or raised cannot be looked at")
            assert (await heard.end_of(2)).outcome == Succeeded()

    asyncio.run(scenario())


def test_ten_thousand_inline() -> None:
    """Printed, not judged."""
    count = 10_000

    async def scenario() -> None:
        async with inline(noop) as (executor, heard):
            work = [assignment(here(noop), at) for at in range(count)]
            cpu = time.process_time()
            for at in range(0, count, 500):
                executor.start(work[at : at + 500])
                await heard.until(lambda: not executor.running())
            cpu = time.process_time() - cpu
            assert set(heard.done) == {(at, 1) for at in range(count)}
            print(f"inline: {cpu / count * 1e6:.1f} µs")

    asyncio.run(scenario())
