"""Old and new nodes side by side: what a newer release has written, met by a worker of this one."""

import pytest

from fleetcron.clock import SystemClock
from fleetcron.errors import SchemaError
from fleetcron.model.states import RunState
from fleetcron.policy.choose import choose
from fleetcron.policy.late import late
from fleetcron.policy.why import why
from fleetcron.scheduler.failing import FailureWatch
from fleetcron.store.claims import Claim
from fleetcron.store.written import Ok
from fleetcron.upkeep.lost import Watch, bury_lost
from fleetcron.worker.loop import ranked
from fleetcron.worker.settling import settling
from tests.store.engines import change
from tests.worker.crew import Crew, job
from tests.worker.plays import ENGINES, MINUTELY, played

NEWER = {
    "target": ("run", '{"teleport": {"to": "the moon"}}'),
    "field": ("run", '{"http": {"url": "https://a.example", "proxy": "b"}}'),
    "rule": ("retry", '{"max_attempts": 3, "backoff": {"linear": "5s"}}'),
}
SET = {
    "sqlite": "json_set(after, '$.{}', json('{}'))",
    "postgres": "jsonb_set(after, '{{{}}}', CAST('{}' AS jsonb))",
}


async def write_newer(made: Crew, field: str, document: str) -> None:
    value = SET[made.store.engine.name].format(field, document)
    whose = "job_id = (SELECT job_id FROM jobs WHERE name = 'newer')"
    await change(made.store.engine, f"UPDATE job_revisions SET after = {value} WHERE {whose}")
    await change(
        made.store.engine, f"UPDATE jobs SET definition = {value.replace('after', 'definition')} WHERE name = 'newer'"
    )


@ENGINES
@pytest.mark.parametrize("what", NEWER)
def test_a_job_of_a_newer_release_ends_no_worker(engine: str, what: str, request: pytest.FixtureRequest) -> None:
    """Its attempt fails and says why; a worker that can read it may have the next one. All others go on."""

    async def scenario(made: Crew) -> None:
        await made.define(job("newer"), job("other"))
        await write_newer(made, *NEWER[what])
        newer, other = await made.trigger("newer"), await made.trigger("other")
        made.join()
        [line] = await made.ended(other)
        assert line.run.state is RunState.SUCCEEDED
        await made.until(lambda lines: lines[0].run.state is RunState.RETRYING, newer)
        [attempt] = await made.attempts(newer)
        assert attempt.error is not None
        assert attempt.error.code == "no_definition"

    played(request.getfixturevalue(f"{engine}_url"), scenario, {"t:f": lambda: None})


def test_nor_whoever_buries_one_that_held_it(sqlite_memory_url: str) -> None:
    async def scenario(made: Crew) -> None:
        await made.define(job("newer"))
        run_id = await made.trigger("newer")
        await write_newer(made, *NEWER["target"])
        assert isinstance(await made.store.workers.join("dead", "", {"default": 1}, 1), Ok)
        assert isinstance(await made.store.queue.promote(0, 10, ranked, late), Ok)
        taken = await made.store.claims.claim(Claim("dead", "1", "default", 1, 1), choose)
        assert isinstance(taken, Ok)
        assert [run.run_id for run in taken.value.runs] == [run_id]
        watch, clock = Watch(0), SystemClock()
        await made.set_clock(await made.now_ms() + 1000)
        buried = await bury_lost(
            made.store, watch, lambda errands: settling(errands, lambda: 0.0), clock=clock, by="me"
        )
        assert buried == ["dead"]
        [line] = await made.lines(run_id)
        assert (line.run.state, line.run.losses) == (RunState.RETRYING, 1)

    played(sqlite_memory_url, scenario)


def test_nor_whoever_looks_how_often_it_fails(sqlite_memory_url: str) -> None:
    """It is for the newer release to pause; whoever wants to see it here is told why not."""

    async def scenario(made: Crew) -> None:
        await made.define(job("newer", pause_after_failures=1))
        await write_newer(made, *NEWER["target"])
        run_id = await made.trigger("newer")
        made.join()
        for attempt in (1, 2, 3):
            await made.until(lambda lines, done=attempt: lines[0].run.failures == done, run_id)  # type: ignore[misc]
            await made.set_clock(await made.now_ms() + 3_600_000)
        [line] = await made.ended(run_id)
        assert line.run.state is RunState.DEAD
        watch = FailureWatch(made.store, made.desk)
        assert await watch.step(0) == []
        assert watch._after_id > 0
        with pytest.raises(SchemaError, match="the job newer of default was written by a newer release"):
            await made.desk.pause("default", "newer")

    played(sqlite_memory_url, scenario, {"t:f": lambda: None})


UNKNOWN = '{"policy": "newest_two", "window": "24h", "limit": 3, "grace": "60s", "lane": "catchup"}'


@ENGINES
def test_nor_whoever_queues_its_late_ticks(engine: str, request: pytest.FixtureRequest) -> None:
    """What is to become of them only a newer release knows: they are left to it."""

    async def scenario(made: Crew) -> None:
        await made.define(job("newer", schedule=MINUTELY), job("other"))
        await write_newer(made, "misfire", UNKNOWN)
        now_ms = await made.now_ms()
        now_ms -= now_ms % 60_000
        late_ones = [await made.tick("newer", now_ms + 60_000 * n) for n in range(5)]
        await made.set_clock(now_ms + 3_600_000)
        made.join()
        for _ in range(2):
            [line] = await made.ended(await made.trigger("other"))
            assert line.run.state is RunState.SUCCEEDED
        assert {line.run.state for line in await made.lines(*late_ones)} == {RunState.PLANNED}
        await write_newer(made, "misfire", UNKNOWN.replace("newest_two", "latest"))  # somebody edits it
        await made.set_clock(now_ms + 3_610_000)
        *covered, newest = await made.ended(*late_ones)
        assert {line.run.state for line in covered} == {RunState.MERGED}
        assert newest.run.state is RunState.SUCCEEDED

    played(request.getfixturevalue(f"{engine}_url"), scenario, {"t:f": lambda: None})


def test_they_fill_no_page_of_those_who_queue(sqlite_memory_url: str) -> None:
    async def scenario(made: Crew) -> None:
        await made.define(job("newer", schedule=MINUTELY), job("other"))
        await write_newer(made, "misfire", UNKNOWN)
        now_ms = await made.now_ms()
        now_ms -= now_ms % 60_000
        for n in range(10):
            await made.tick("newer", now_ms + 60_000 * n)
        await made.set_clock(now_ms + 3_600_000)
        other = await made.trigger("other")
        queue = made.store.queue
        first = await queue.promote(0, 5, ranked, late)
        assert isinstance(first, Ok)
        assert (first.value.runs, first.value.more) == (0, True)  # a full page
        second = await queue.promote(0, 5, ranked, late)
        assert isinstance(second, Ok)
        assert (second.value.runs, second.value.more) == (1, False)
        assert (await made.lines(other))[0].run.state is RunState.PLANNED
        assert (await queue.next_look(["default"])).upcoming_ms is None  # nothing to be done at once

    played(sqlite_memory_url, scenario)


@ENGINES
def test_nor_does_a_rule_of_overlap_that_is_not_known_hold_up_others(
    engine: str, request: pytest.FixtureRequest
) -> None:
    """The row of the queue says what the job says. Whoever cannot decide about it looks at the next one."""

    async def scenario(made: Crew) -> None:
        names = [f"newer-{n}" for n in range(30)]
        await made.define(*map(job, names), job("other"))
        await change(made.store.engine, "UPDATE jobs SET overlap = 'newest_two' WHERE name <> 'other'")
        newer = [await made.trigger(name) for name in names]
        other = await made.trigger("other")
        made.join()
        [line] = await made.ended(other)
        assert line.run.state is RunState.SUCCEEDED
        lines = await made.until(lambda lines: all(line.waiting for line in lines), *newer)
        assert {line.run.state for line in lines} == {RunState.WAITING}
        known = await made.store.situations.of_run(newer[0])
        assert known is not None
        assert "newer release" in why(known)
        await change(made.store.engine, "UPDATE jobs SET overlap = 'skip'; UPDATE queue SET overlap = 'skip'")
        await made.set_clock(await made.now_ms() + 60_000)
        assert {line.run.state for line in await made.ended(*newer)} == {RunState.SUCCEEDED}

    played(request.getfixturevalue(f"{engine}_url"), scenario, {"t:f": lambda: None})
