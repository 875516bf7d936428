"""A worker at work: what it starts, when, and what becomes of it. On SQLite and on PostgreSQL."""

import asyncio
import json
import threading
import time
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fleetcron.config import ExecutorConfig
from fleetcron.errors import StoreError
from fleetcron.model.rules import OverlapRule, RetryRule
from fleetcron.model.states import RunState
from fleetcron.model.target import CommandTarget
from fleetcron.policy.why import why
from fleetcron.store.written import Ok
from tests.executors.stage import module_that_hangs
from tests.store.engines import change
from tests.worker.crew import PATIENCE_S, Crew, crew, every_second, job

ENGINES = pytest.mark.parametrize("engine", ["sqlite_memory", "postgres18"])
AGAIN_AT_ONCE = RetryRule(max_attempts=3, delays_ms=(0,), jitter=0)


def played(
    request: pytest.FixtureRequest,
    engine: str,
    scenario: Callable[[Crew], Awaitable[None]],
    functions: dict[str, Callable[..., Any]] | None = None,
    **settings: Any,
) -> None:
    url = request.getfixturevalue(f"{engine}_url")

    async def play() -> None:
        async with crew(url, functions, **settings) as made:
            await scenario(made)

    asyncio.run(play())


def work_until_cancelled(ctx: Any) -> None:
    """A handler that works until somebody asks it to stop."""
    assert ctx.cancelled.wait(PATIENCE_S)


@ENGINES
def test_a_function_gets_its_identity_and_its_result_is_stored(engine: str, request: pytest.FixtureRequest) -> None:
    """S1-13, S1-25, S1-27, S3-30, S3-41: who ran it, when, which attempt, what it returned; the idempotency key."""
    seen: list[Any] = []

    def handler(ctx: Any, payload: dict[str, Any]) -> dict[str, Any]:
        seen.append((ctx.job, ctx.tenant, ctx.attempt, ctx.fence, ctx.idempotency_key, payload))
        ctx.log("half way")
        ctx.progress(0.5, "half")
        return {"rows": 3}

    async def scenario(made: Crew) -> None:
        await made.define(job(payload={"kind": "full", "at": "{{ job.name }}"}))
        made.join()
        run_id = await made.trigger()
        [line] = await made.ended(run_id)
        assert line.run.state is RunState.SUCCEEDED
        assert line.run.attempt == 1
        assert seen == [
            ("a", "default", 1, 1, line.run.idempotency_key, {"kind": "full", "at": "a"}),
        ]
        [attempt] = await made.attempts(run_id)
        assert (attempt.node_id, attempt.outcome) == ("w1", "succeeded")
        assert json.loads(attempt.result or "") == {"rows": 3}
        page = await made.store.past_attempts.log(run_id)
        assert page is not None
        assert "".join(piece.text for piece in page.pieces) == "half way\n"
        other = await made.trigger(payload={"kind": "small"})
        await made.ended(other)
        assert seen[1][5] == {"kind": "small"}

    played(request, engine, scenario, {"t:f": handler})


@ENGINES
def test_progress_is_seen_while_it_works(engine: str, request: pytest.FixtureRequest) -> None:
    """S3-7: how far it is, told by the handler and read from the store."""
    may_end = threading.Event()

    def handler(ctx: Any) -> None:
        ctx.progress(0.25, "page 1 of 4")
        assert may_end.wait(PATIENCE_S)

    async def scenario(made: Crew) -> None:
        await made.define(job())
        made.join()
        run_id = await made.trigger()
        [line] = await made.until(lambda lines: lines[0].progress is not None, run_id)
        assert (line.run.state, line.progress, line.note) == (RunState.RUNNING, 0.25, "page 1 of 4")
        may_end.set()
        await made.ended(run_id)

    played(request, engine, scenario, {"t:f": handler})


@ENGINES
def test_ticks_start_at_their_instant_and_never_before(engine: str, request: pytest.FixtureRequest) -> None:
    """S3-5, S4-17, promise 4: claimed a moment early, held until the instant."""
    delays: list[float] = []
    enough = threading.Event()

    def handler(ctx: Any) -> None:
        delays.append(time.time() - ctx.scheduled_for.timestamp())
        if len(delays) == 3:
            enough.set()

    async def scenario(made: Crew) -> None:
        await made.define(every_second())
        await made.plan()
        made.join()
        await asyncio.wait_for(asyncio.to_thread(enough.wait, PATIENCE_S), PATIENCE_S)
        assert min(delays) >= 0

    played(request, engine, scenario, {"t:f": handler})


@ENGINES
def test_a_failure_is_tried_again_and_ends_as_a_dead_letter(engine: str, request: pytest.FixtureRequest) -> None:
    """S0-11, S1-3, S1-28, S3-6, S3-39: known, tried again, and dead when no attempt is left."""
    tried: list[int] = []

    def handler(ctx: Any) -> None:
        tried.append(ctx.attempt)
        raise ValueError(f"broken {ctx.attempt}")

    async def scenario(made: Crew) -> None:
        await made.define(job(retry=AGAIN_AT_ONCE))
        made.join()
        run_id = await made.trigger()
        [line] = await made.ended(run_id)
        assert (line.run.state, line.run.failures, tried) == (RunState.DEAD, 3, [1, 2, 3])
        attempts = await made.attempts(run_id)
        assert [each.outcome for each in attempts] == ["failed"] * 3
        assert [each.error.text for each in attempts if each.error] == ["broken 1", "broken 2", "broken 3"]
        assert (await made.store.events.counts(0))["run_dead"] == 1

    played(request, engine, scenario, {"t:f": handler})


@ENGINES
def test_a_lost_lease_stops_the_work_and_the_worker_begins_anew(engine: str, request: pytest.FixtureRequest) -> None:
    """S3-35: a worker that cannot renew stops its work; what it held is tried again, and nobody needs a human."""
    starts: list[int] = []
    started, cancelled = threading.Event(), threading.Event()

    def handler(ctx: Any) -> None:
        starts.append(ctx.attempt)
        started.set()
        if ctx.attempt == 1:
            work_until_cancelled(ctx)
            cancelled.set()

    async def scenario(made: Crew) -> None:
        await made.define(job())
        worker = made.join()
        run_id = await made.trigger()
        assert await asyncio.to_thread(started.wait, PATIENCE_S)
        await change(made.store.engine, "DELETE FROM workers")  # somebody declares it lost
        worker.lease.ask()
        assert await asyncio.to_thread(cancelled.wait, PATIENCE_S)
        [line] = await made.ended(run_id)
        assert (line.run.state, line.run.losses, starts) == (RunState.SUCCEEDED, 1, [1, 2])
        assert [each.outcome for each in await made.attempts(run_id)] == ["lost", "succeeded"]

    played(request, engine, scenario, {"t:f": handler})


@ENGINES
def test_a_drain_waits_for_what_runs_and_gives_the_rest_back(engine: str, request: pytest.FixtureRequest) -> None:
    """S3-18, S0-9: a deploy loses nothing and repeats nothing."""
    started, go_on = threading.Event(), threading.Event()
    who: list[tuple[str, int]] = []

    def slow(ctx: Any) -> None:
        who.append((ctx.job, ctx.attempt))
        started.set()
        go_on.wait(PATIENCE_S)

    async def scenario(made: Crew) -> None:
        await made.define(job(), job("b"))
        made.join("w1", replace(made.config, pools=("default=1",)))
        first = await made.trigger()
        assert await asyncio.to_thread(started.wait, PATIENCE_S)
        second = await made.trigger("b")
        leaving = asyncio.create_task(made.leave("w1"))
        async with asyncio.timeout(PATIENCE_S):
            while (known := await made.store.situations.of_run(second)) is None or known.workers:
                await asyncio.sleep(0)
        assert why(known).startswith("no worker serves the pool default")  # it works, but takes nothing new
        made.join("w2")
        go_on.set()
        await leaving
        lines = await made.ended(first, second)
        assert [line.run.state for line in lines] == [RunState.SUCCEEDED] * 2
        assert sorted(who) == [("a", 1), ("b", 1)]
        assert [(await made.attempts(run))[0].node_id for run in (first, second)] == ["w1", "w2"]
        seen = await made.store.workers.list()
        assert [each.node_id for each in seen.workers] == ["w2"]

    played(request, engine, scenario, {"t:f": slow})


@ENGINES
def test_what_outlasts_the_drain_is_ended_and_tried_elsewhere(engine: str, request: pytest.FixtureRequest) -> None:
    """S3-18: the drain time is a bound, and a deploy costs nothing."""
    started = threading.Event()

    def stubborn(ctx: Any) -> None:
        started.set()
        if ctx.attempt == 1:
            work_until_cancelled(ctx)

    async def scenario(made: Crew) -> None:
        await made.define(job())
        made.join("w1")
        run_id = await made.trigger()
        assert await asyncio.to_thread(started.wait, PATIENCE_S)
        await made.leave("w1")
        made.join("w2")
        [line] = await made.ended(run_id)
        assert (line.run.state, line.run.attempt, line.run.losses) == (RunState.SUCCEEDED, 2, 0)

    played(request, engine, scenario, {"t:f": stubborn}, drain_s=0.1)


@ENGINES
def test_a_running_run_is_cancelled(engine: str, request: pytest.FixtureRequest) -> None:
    """S3-4: whoever asks it to stop is heard at once, not at the next renewal."""
    started = threading.Event()
    reasons: list[str] = []

    def handler(ctx: Any) -> None:
        started.set()
        work_until_cancelled(ctx)

    async def scenario(made: Crew) -> None:
        await made.define(job(retry=AGAIN_AT_ONCE))
        made.join(config=replace(made.config, lease_ttl_s=30, renew_s=7.5))
        run_id = await made.trigger()
        assert await asyncio.to_thread(started.wait, PATIENCE_S)
        written = await made.store.steering.cancel([run_id], "wrong data", actor="me")
        assert isinstance(written, Ok)
        [line] = await made.ended(run_id)
        assert line.run.state is RunState.CANCELLED
        assert "wrong data" in (line.run.reason or "")
        assert reasons == []

    played(request, engine, scenario, {"t:f": handler})


@ENGINES
def test_an_unknown_handler_waits_visibly_and_others_go_on(engine: str, request: pytest.FixtureRequest) -> None:
    """S1-24: no attempt is used; whoever brings the handler gets the run."""

    async def scenario(made: Crew) -> None:
        await made.define(job("a", "t:nobody"), job("b"))
        made.join("w1")
        waits, works = await made.trigger("a"), await made.trigger("b")
        await made.ended(works)
        [line] = await made.until(lambda lines: lines[0].waiting is not None, waits)
        assert line.waiting is not None
        assert (line.waiting.gate, line.waiting.key, line.run.attempt) == ("handler", "python:t:nobody", 0)
        known = await made.store.situations.of_run(waits)
        assert known is not None
        assert why(known) == (
            "no worker of the pool default has python:t:nobody; w1: t:nobody is not among the handlers of this worker; "
            "add it to executor.handlers"
        )
        [worker] = (await made.store.workers.list()).workers
        assert {"shell", "python:t:nobody"} < set(worker.lacks)  # what it refuses, and what it was asked for
        made.join("w2", functions={"t:nobody": lambda: None})
        [line] = await made.ended(waits)
        assert (line.run.state, line.run.attempt) == (RunState.SUCCEEDED, 1)
        assert (await made.attempts(waits))[0].node_id == "w2"

    played(request, engine, scenario, {"t:f": lambda: None})


@ENGINES
def test_a_function_that_is_renamed_while_a_run_is_open(engine: str, request: pytest.FixtureRequest) -> None:
    """The next attempt asks for the new one. A worker that has only the old one declines once, and the run waits."""

    def broken() -> None:
        raise ValueError("no")

    async def scenario(made: Crew) -> None:
        await made.define(job("a", "t:reprot"))
        made.join("w1")
        run = await made.trigger("a")
        await made.until(lambda lines: lines[0].run.state is RunState.RETRYING, run)
        await made.define(job("a", "t:report"))
        await made.set_clock(await made.now_ms() + 3_600_000)
        [line] = await made.until(lambda lines: lines[0].waiting is not None, run)
        assert line.waiting is not None
        assert (line.waiting.gate, line.waiting.key) == ("handler", "python:t:report")
        assert made.workers["w1"].health.counts["handed_back"] == 1
        made.join("w2", functions={"t:report": lambda: None})
        [line] = await made.ended(run)
        assert (line.run.state, line.run.attempt, line.run.revision) == (RunState.SUCCEEDED, 2, 1)

    played(request, engine, scenario, {"t:reprot": broken})


def test_an_import_that_hangs_holds_up_nobody_else(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """S1-24: claimed together; the healthy one runs, and each of the others has a reason of its own."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "shop_z.py").write_text("def work(): pass\n")
    handlers = ("shop_that_hangs", "shop_z", "shop_nobody_has")

    async def scenario(made: Crew) -> None:
        await made.define(*(job(name, f"{name}:work") for name in handlers))
        hangs, works, waits = [await made.trigger(name) for name in handlers]
        made.join()
        [line] = await made.ended(works)
        assert line.run.state is RunState.SUCCEEDED
        await made.until(lambda lines: lines[0].waiting is not None, waits)
        known = await made.store.situations.of_run(waits)
        assert known is not None
        assert "No module named 'shop_nobody_has'" in why(known)
        [line] = await made.lines(hangs)
        assert not line.run.state.is_final
        go_on()
        [line] = await made.ended(hangs)
        assert (line.run.state, line.run.attempt) == (RunState.SUCCEEDED, 1)

    with module_that_hangs(tmp_path) as go_on:
        played(request, "sqlite_memory", scenario, executor=ExecutorConfig(handlers=handlers, grace_s=1))


@ENGINES
def test_two_workers_share_the_work_and_nothing_runs_twice(engine: str, request: pytest.FixtureRequest) -> None:
    """S0-2, S0-8, S1-2, S3-14, S4-38: many workers, each run once."""
    lock = threading.Lock()
    ran: list[int] = []

    def handler(ctx: Any) -> None:
        with lock:
            ran.append(ctx.run_id)

    async def scenario(made: Crew) -> None:
        await made.define(job(overlap=OverlapRule("allow")))
        made.join("w1")
        made.join("w2")
        runs = [await made.trigger() for _ in range(60)]
        lines = await made.ended(*runs)
        assert {line.run.state for line in lines} == {RunState.SUCCEEDED}
        assert sorted(ran) == sorted(runs)
        await made.leave("w1")
        await made.leave("w2")

    played(request, engine, scenario, {"t:f": handler})


@ENGINES
def test_a_timeout_really_stops_the_work(engine: str, request: pytest.FixtureRequest) -> None:
    """S1-6, S1-26: the command is gone, and the attempt says timed out."""

    async def scenario(made: Crew) -> None:
        slow = CommandTarget(("sleep", "60"))
        await made.define(job("a", slow, timeout_ms=200, retry=RetryRule(max_attempts=1)))
        made.join()
        run_id = await made.trigger()
        [line] = await made.ended(run_id)
        [attempt] = await made.attempts(run_id)
        assert (line.run.state, attempt.outcome) == (RunState.DEAD, "timed_out")
        assert attempt.lasted_ms is not None
        assert attempt.lasted_ms < 20_000

    played(request, engine, scenario)


@ENGINES
def test_an_end_that_cannot_be_stored_does_not_hold_up_the_others(engine: str, request: pytest.FixtureRequest) -> None:
    """One attempt whose end the database refuses for good is a failure of that attempt; the others are written."""

    async def scenario(made: Crew) -> None:
        await made.define(job(retry=RetryRule(max_attempts=1)), job("b"))
        worker = made.join()
        whole = worker._acks._attempts.finish

        async def finish(node_id: str, ended: Any, *rest: Any, **more: Any) -> Any:
            if any(each.result_json == '"poison"' for each in ended):
                raise StoreError("a number is out of range")
            return await whole(node_id, ended, *rest, **more)

        worker._acks._attempts.finish = finish  # type: ignore[method-assign]
        runs = [await made.trigger("a"), await made.trigger("b")]
        bad, good = await made.ended(*runs)
        assert (bad.run.state, good.run.state) == (RunState.DEAD, RunState.SUCCEEDED)
        assert (bad.run.reason or "").startswith("unwritable: ")

    def handler(ctx: Any) -> str:
        return "poison" if ctx.job == "a" else "fine"

    played(request, engine, scenario, {"t:f": handler})
