"""Incidents, through a real worker: what is slowed down is tried less, what is held waits, and what is let go on goes
on by and by. And a pool of one slot, where old and new work take turns."""

import asyncio
from typing import Any

import pytest

from fleetcron.model.control import Wish
from fleetcron.model.rules import OverlapRule, RetryRule
from fleetcron.store.written import Ok
from tests.worker.crew import PATIENCE_S, WHENEVER, Crew, job
from tests.worker.plays import DEAD, ENGINES, SUCCEEDED, played

ALLOW = OverlapRule("allow")
FIXED = RetryRule(max_attempts=4, backoff="fixed", delays_ms=(40,), jitter=0)


async def switched(made: Crew, wish: Wish) -> None:
    assert isinstance(await made.store.controls.switch(wish, actor="ann"), Ok)


@ENGINES
def test_retries_are_capped_and_slowed_down(engine: str, request: pytest.FixtureRequest) -> None:
    """S3-85, S3-105: for a type and for a tenant; the others go on as before, and so does everybody afterwards."""

    async def handler() -> None:
        raise ValueError

    async def scenario(made: Crew) -> None:
        await made.define(job("export", type="export", retry=FIXED), job("mail", type="mail", retry=FIXED))
        made.join()
        await switched(made, Wish("type", "export", attempts=2, backoff=5.0, reason="its API is down"))
        runs = [await made.trigger(name) for name in ("export", "mail")]
        lines = await made.ended(*runs)
        assert [(line.run.state, line.run.attempt) for line in lines] == [(DEAD, 2), (DEAD, 4)]
        first, second = await made.attempts(runs[0])
        # both are the worker's reading of the database's clock, which is off by a few milliseconds at most
        assert second.started_ms - (first.finished_ms or 0) >= 195
        await switched(made, Wish("tenant", "default", attempts=1, reason="all of it"))
        [line] = await made.ended(await made.trigger("mail"))
        assert line.run.attempt == 1
        for scope, name in (("type", "export"), ("tenant", "default")):
            assert isinstance(await made.store.controls.release(scope, name, actor="ann"), Ok)  # type: ignore[arg-type]
        [line] = await made.ended(await made.trigger("export"))
        assert (line.run.state, line.run.attempt) == (DEAD, 4)

    played(request.getfixturevalue(f"{engine}_url"), scenario, {"t:f": handler})


@ENGINES
@pytest.mark.parametrize(("scope", "name"), [("pool", "default"), ("tenant", "default"), ("type", "x")])
def test_what_was_held_goes_on_by_and_by(engine: str, scope: Any, name: str, request: pytest.FixtureRequest) -> None:
    """S3-105: nothing at 0 %, some of them at 40 %, those and more at 80 %, all when it is released."""

    async def handler() -> None:
        pass

    async def scenario(made: Crew) -> None:
        await made.define(job(type="x", overlap=ALLOW), job("probe", pool="other", tenant="other", type="y"))
        await switched(made, Wish(scope, name, percent=0, reason="it floods"))
        made.join()
        runs = [await made.trigger() for _ in range(40)]
        await made.ended(await made.trigger("probe", tenant="other"))
        gone: set[int] = set()
        for percent in (0, 40, 80):
            await switched(made, Wish(scope, name, percent=percent, keeps_end=True))
            lines = await made.until(lambda lines: all(is_decided(line) for line in lines), *runs)
            went = {line.run.run_id for line in lines if line.run.state is SUCCEEDED}
            assert gone <= went
            assert abs(len(went) - len(runs) * percent / 100) <= 8
            assert {line.waiting.gate for line in lines if line.waiting is not None} == {"paused"}
            gone = went
        assert isinstance(await made.store.controls.release(scope, name, actor="ann"), Ok)
        assert {line.run.state for line in await made.ended(*runs)} == {SUCCEEDED}

    def is_decided(line: Any) -> bool:
        return line.run.state is SUCCEEDED or line.waiting is not None

    played(request.getfixturevalue(f"{engine}_url"), scenario, {"t:f": handler}, pools={"default": 8, "other": 1})


@ENGINES
def test_old_and_new_work_take_turns_in_one_slot(engine: str, request: pytest.FixtureRequest) -> None:
    """S2-20, S2-43: a pool of one slot cannot leave one free for live ticks, so it alternates."""
    order: list[str] = []
    more = asyncio.Condition()

    async def handler(ctx: Any) -> None:
        async with more:
            order.append(ctx.job)
            more.notify_all()

    async def scenario(made: Crew) -> None:
        await made.define(*(job(name, overlap=ALLOW, misfire=WHENEVER) for name in ("live", "old")))
        now_ms = await made.now_ms()
        for number in range(1, 6):
            await made.tick("old", now_ms - number * 1000, lane="catchup")
            await made.tick("live", now_ms - number * 1000)
        made.join()
        async with asyncio.timeout(PATIENCE_S), more:
            await more.wait_for(lambda: len(order) == 10)
        assert order in (["live", "old"] * 5, ["old", "live"] * 5)

    played(request.getfixturevalue(f"{engine}_url"), scenario, {"t:f": handler}, pools={"default": 1})
