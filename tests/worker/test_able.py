"""Who could run a job: what workers say before anybody asks them, and what lists and the hand-over make of it."""

from collections.abc import Mapping
from typing import Any

import pytest

from fleetcron.config import ExecutorConfig
from fleetcron.errors import RefusedError
from fleetcron.executors.refusals import NO_SHELL, refusals, why_lacking
from fleetcron.model.ping import Told
from fleetcron.model.target import CommandTarget, PublishTarget, PythonTarget
from fleetcron.store.jobs import JobFilter, JobLine
from fleetcron.times.instants import LAST_MS
from fleetcron.views.able import living
from fleetcron.views.health import health
from fleetcron.views.shadow import hand_over, reports, warned, words
from tests.store.floor import MINUTE, NOW, Floor, ok, on_a_floor

SHELL = CommandTarget(("a | b",), shell=True)
REPORT = PythonTarget("shop.jobs:report")


async def line_of(f: Floor, name: str) -> JobLine:
    [line] = await f.store.jobs.list(JobFilter(name=name), 1)
    return line


async def health_of(f: Floor, name: str) -> str:
    return health(await line_of(f, name), None, f.now, await living(f.store))


async def lacks(f: Floor) -> dict[str, Mapping[str, str]]:
    return {each.node_id: each.lacks for each in (await f.store.workers.list()).workers}


@pytest.mark.parametrize(
    ("config", "functions", "can"),
    [
        ({}, (), []),
        ({"shell": "allowed"}, (), ["shell"]),
        ({"handlers": ("shop.jobs",)}, (), ["python:shop.jobs:report"]),
        ({"handlers": ("shop.*", "mail:send")}, (), ["python:shop.jobs:report", "python:mail:send"]),
        ({"handlers": ("mail:send",)}, ("shop.jobs:report",), ["python:mail:send"]),
        ({"isolation": "inline"}, ("shop.jobs:report",), ["python:shop.jobs:report"]),
        ({"handlers": tuple(f"m{at:03}" for at in range(300))}, (), ["python:shop.jobs:report", "python:mail:send"]),
    ],
)
def test_settings_say_what_a_worker_will_never_run(config: Any, functions: Any, can: list[str]) -> None:
    said = refusals(ExecutorConfig(**config), functions)
    asked = ["shell", "command", "http", "python:shop.jobs:report", "python:mail:send"]
    assert [handler for handler in asked if why_lacking(said, handler) is None] == [
        handler for handler in asked if handler in ("command", "http", *can)
    ]


def test_it_is_said_when_a_worker_joins_and_each_time_it_was_forgotten() -> None:
    async def story(f: Floor) -> None:
        refused = {"shell": NO_SHELL}
        workers = f.store.workers
        ok(await workers.join("me", "", {"default": 1}, MINUTE, refused))
        await f.join("another")
        assert await lacks(f) == {"me": refused, "another": {}}
        ok(await workers.lack("me", {**refused, "python:a:b": "no"}))
        ok(await workers.lack("another", {"python:a:b": "no"}))
        ok(await workers.look_again("me", refused))
        ok(await workers.look_again("another"))
        assert await lacks(f) == {"me": refused, "another": {}}

    on_a_floor(story)


def test_nobody_who_lives_could_run_it() -> None:
    async def story(f: Floor) -> None:
        jobs = {"shell": SHELL, "report": REPORT, "plain": CommandTarget(("true",)), "sent": PublishTarget("nats", "x")}
        for name, run in jobs.items():
            await f.define(name, run=run)
        written = {name: (await line_of(f, name)).job for name in jobs}

        async def told() -> dict[str, str | None]:
            crew = await living(f.store)
            return {name: crew.warning(job) for name, job in written.items()}

        nobody = await living(f.store)
        assert all("no worker" in (nobody.why_not(job.definition) or "") for job in written.values())
        assert set((await told()).values()) == {None}, "while nobody works at all, no job is wrong"
        await f.join("w1")
        ok(await f.store.workers.lack("w1", refusals(ExecutorConfig())))
        found = await told()
        assert found["plain"] is None
        assert found["shell"] == f"no worker of the pool default can run a text for the shell (w1: {NO_SHELL})"
        assert "shop.jobs:report is not among the handlers" in (found["report"] or "")
        assert "can publish" in (found["sent"] or "")
        await f.join("w2", "other")
        assert (await told())["shell"] is not None, "another pool is no help"
        await f.join("w3")
        found = await told()
        assert (found["shell"], found["report"]) == (None, None)
        ok(await f.store.workers.close_pools("w3"))
        assert (await told())["shell"] is not None, "who is about to end takes nothing more"

    on_a_floor(story)


def test_a_job_whose_run_waits_for_nobody_is_stuck() -> None:
    async def story(f: Floor) -> None:
        await f.define("shell", run=SHELL)
        await f.define("plain")
        assert await health_of(f, "shell") == "new"
        await f.next_minute()
        assert [await health_of(f, name) for name in ("shell", "plain")] == ["stuck", "stuck"]
        await f.join("w1")
        ok(await f.store.workers.lack("w1", {"shell": NO_SHELL}))
        assert [await health_of(f, name) for name in ("shell", "plain")] == ["stuck", "ok"]
        await f.claim("w1", lacks=["shell"])
        assert (await line_of(f, "shell")).last_state == "waiting"
        assert await health_of(f, "shell") == "stuck"
        await f.join("w2")
        assert await health_of(f, "shell") == "ok"

    on_a_floor(story)


def test_a_hand_over_to_nobody_is_refused_unless_it_is_meant() -> None:
    async def story(f: Floor) -> None:
        await f.define("old", run=SHELL, shadow_ms=LAST_MS)
        first, later = NOW + 10 * MINUTE, NOW + 20 * MINUTE

        async def hand(at_ms: int | None, **more: bool) -> str:
            return (await hand_over(f.store, f.desk, await line_of(f, "old"), at_ms, **more)).applied.done

        async def report() -> Any:
            [found] = await reports(f.store, [await line_of(f, "old")])
            return found

        with pytest.raises(RefusedError, match=r"no worker serves the pool default .*--anyway"):
            await hand(first)
        with pytest.raises(RefusedError, match="has passed"):
            await hand(NOW - MINUTE)
        await f.join("w1")
        ok(await f.store.workers.lack("w1", refusals(ExecutorConfig())))
        with pytest.raises(RefusedError, match=r"would not run: .*runs no shell"):
            await hand(first)
        assert "runs no shell" in (await report()).unable
        assert await hand(first, anyway=True) == "handed_over"
        assert await hand(first) == "unchanged", "who asks again is told the same"
        with pytest.raises(RefusedError, match="runs no shell"):
            await hand(later)
        await f.clock.set(first + MINUTE)
        noted = ok(await f.store.pings.note("default", "old", Told("start", host="web1")))
        await f.plan()
        told = await warned(f.store, "default", "old", noted)
        assert told is not None
        assert "our runs wait: no worker of the pool default can run a text for the shell" in told
        assert "--back old" in told
        assert "twice" not in told
        assert "and ours waits: no worker" in words(await report())
        await f.join("w2")
        assert (await report()).unable is None
        assert "so do we" in words(await report())
        assert "runs twice now" in (await warned(f.store, "default", "old", noted) or "")
        await f.desk.pause("default", "old")
        assert "it is paused here" in (await warned(f.store, "default", "old", noted) or "")
        assert await hand(None) == "shadowed", "the way back needs nobody"

    on_a_floor(story)
