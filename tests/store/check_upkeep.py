"""Checks of the conformance suite about upkeep: jobs that fail again and again, the sweep, workers that begin anew."""

from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING

from fleetcron.model.outcome import Failed, Fault, Outcome
from fleetcron.model.queued import Control
from fleetcron.model.rules import RetryRule
from fleetcron.model.states import RunState
from fleetcron.model.transition import Transition
from fleetcron.policy.settle import settle
from fleetcron.scheduler.failing import FailureWatch
from fleetcron.store import ends
from fleetcron.store.claims import Claimed
from fleetcron.store.history import Span
from fleetcron.store.job_pages import JobFilter
from fleetcron.store.written import Ok, Refused
from tests.store.engines import change
from tests.store.floor import MINUTE, Floor, ok

if TYPE_CHECKING:
    from tests.store.test_conformance import World

Check = Callable[["World"], Awaitable[None]]
CHECKS: dict[str, Check] = {}
BROKEN = Failed(Fault("broken", "no"))
ONCE = RetryRule(max_attempts=1)


def check(function: Callable[[Floor], Awaitable[None]]) -> Check:
    async def on_a_floor(w: "World") -> None:
        await function(Floor(w.store, w.clock, w.desk, w.held))

    CHECKS[function.__name__] = on_a_floor
    return on_a_floor


async def _fail(floor: Floor) -> None:
    """The tick of the next minute becomes a dead letter."""
    await floor.next_minute()
    [run] = await floor.claim("n1")
    await floor.clock.advance(2_000)
    now_ms = floor.clock.now_ms()
    ended = ends.Ended(run.run_id, run.attempt, BROKEN, now_ms, now_ms)
    assert ok(await floor.store.attempts.finish("n1", [ended], _settling(ONCE))).late == ()


def _settling(rule: RetryRule) -> ends.Settle:
    def decide(held: ends.Held, outcome: Outcome, _controls: Sequence[Control], now_ms: int) -> Transition:
        return settle(outcome, held.budget, rule, scheduled_for_ms=held.scheduled_for_ms, now_ms=now_ms, chance=0)

    return decide


async def _state(floor: Floor) -> str:
    [line] = await floor.store.jobs.list(JobFilter(), 10)
    return line.job.state


@check
async def a_job_is_paused_after_so_many_dead_runs(floor: Floor) -> None:
    """pause_after_failures counts dead runs in a row, since the job was last changed: S1-44."""
    await floor.define("a", pause_after_failures=2)
    await floor.join("n1")
    watch = FailureWatch(floor.store, floor.desk)
    await _fail(floor)
    assert await watch.step(0) == []
    await _fail(floor)
    assert await watch.step(0) == ["a"]
    assert await _state(floor) == "paused"
    await floor.clock.advance(1_000)
    await floor.desk.resume("default", "a")
    assert await FailureWatch(floor.store, floor.desk).step(0) == []  # its past does not count
    await _fail(floor)
    assert await watch.step(0) == []
    await floor.next_minute()
    [run] = await floor.claim("n1")
    await floor.clock.advance(2_000)
    await floor.succeed("n1", run)
    await _fail(floor)
    assert await watch.step(0) == []
    assert await _state(floor) == "active"


@check
async def runs_that_were_asked_for_count_among_the_dead(floor: Floor) -> None:
    """A job on demand has no others; and one that works again when somebody tries it is not failing."""
    await floor.define("a", pause_after_failures=2)
    await floor.join("n1")
    watch = FailureWatch(floor.store, floor.desk)

    async def ask(key: str) -> Claimed:
        ok(await floor.store.steering.trigger(("default", "a"), None, actor="ann", key=key))
        await floor.queue()
        [run] = await floor.claim("n1")
        await floor.clock.advance(2_000)
        return run

    async def fail(key: str) -> list[str]:
        run, now_ms = await ask(key), floor.clock.now_ms()
        ended = ends.Ended(run.run_id, run.attempt, BROKEN, now_ms, now_ms)
        assert ok(await floor.store.attempts.finish("n1", [ended], _settling(ONCE))).late == ()
        return await watch.step(0)

    assert await fail("1") == []
    await floor.succeed("n1", await ask("2"))
    assert await fail("3") == []
    assert await fail("4") == ["a"]
    assert await _state(floor) == "paused"


@check
async def the_sweep_finds_what_stands_nowhere(floor: Floor) -> None:
    """S2-9: a run without an answer that stands nowhere is put on its way again, and somebody is told."""
    await floor.define("a")
    await floor.next_minute()
    assert ok(await floor.store.sweeping.sweep(0)).adrift == 0
    await change(floor.store.engine, "DELETE FROM queue; DELETE FROM upcoming;")
    await floor.clock.advance(2 * MINUTE)
    done = ok(await floor.store.sweeping.sweep(0))
    assert (done.adrift >= 1, done.stuck) == (True, 0)
    await floor.queue()
    await floor.join("n1")
    assert len(await floor.claim("n1")) >= 1
    assert (await floor.store.events.counts(0))["sweep_found"] >= 1


@check
async def the_sweep_lets_nobody_wait_for_a_key_that_is_free(floor: Floor) -> None:
    await floor.define("a")
    await floor.next_minute()
    await change(
        floor.store.engine,
        f"UPDATE queue SET gate = 'key', key = claim_key, since_ms = {floor.clock.now_ms()}",
    )
    await floor.join("n1")
    assert await floor.claim("n1") == []
    await floor.clock.advance(31_000)
    assert ok(await floor.store.sweeping.sweep(0)).stuck == 1
    assert len(await floor.claim("n1")) == 1


@check
async def the_sweep_closes_what_cannot_start_in_time(floor: Floor) -> None:
    """S2-15: nobody serves the pool, and the run is expired all the same."""
    await floor.define("a", start_deadline_ms=30_000)
    await floor.next_minute()
    await floor.clock.advance(30_000)
    assert ok(await floor.store.sweeping.sweep(0)).expired == 0
    await floor.clock.advance(1)
    assert ok(await floor.store.sweeping.sweep(0)).expired == 1
    states = {line.run.state for line in await floor.store.history.runs(Span())}
    assert RunState.EXPIRED in states


@check
async def a_worker_that_begins_anew_gives_everything_up(floor: Floor) -> None:
    """What it held is settled as lost, and its row is gone: it can join again."""
    await floor.define("a")
    await floor.join("n1")
    await floor.next_minute()
    [run] = await floor.claim("n1")
    assert await floor.store.workers.held("n1") == [(run.run_id, 1, run.batch)]

    assert await floor.store.workers.forsake("n1", _settling(RetryRule())) == Ok(1)
    assert await floor.store.workers.held("n1") == []
    assert isinstance(await floor.store.workers.renew("n1", 1000), Refused)
    await floor.queue()
    await floor.join("n1")
    [again] = await floor.claim("n1")
    assert (again.run_id, again.attempt, again.losses) == (run.run_id, 2, 1)
