"""Checks of the conformance suite about what people do to runs: trigger, cancel, replay, discard, backfill."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from itertools import count
from typing import TYPE_CHECKING, Any

import pytest

from fleetcron.errors import DefinitionError, StoreError
from fleetcron.model.answer import Answer, Forecast, Gap
from fleetcron.model.definition import Definition
from fleetcron.model.outcome import Failed, Fault, Outcome, Succeeded
from fleetcron.model.past import Filling, Past, Superseded
from fleetcron.model.queued import Choice, Control, Facts
from fleetcron.model.rules import CronEntry, OverlapRule, RetryRule
from fleetcron.model.run import Run
from fleetcron.model.standing import Position
from fleetcron.model.target import CommandTarget
from fleetcron.model.transition import Transition
from fleetcron.policy.choose import choose
from fleetcron.policy.settle import settle
from fleetcron.store.claims import Claim, Claimed
from fleetcron.store.cursors import Move
from fleetcron.store.ends import Ended, Held
from fleetcron.store.history import Span
from fleetcron.store.queue import Coming, Place, Shares
from fleetcron.store.steering import DeadCount, DeadFilter, Steered, Triggered
from fleetcron.store.store import Store
from fleetcron.store.sweeping import Sweeping
from fleetcron.store.written import Ok, Refused, Written
from tests.store.engines import change

if TYPE_CHECKING:
    from tests.store.test_conformance import World

NOW = 1_800_000_000_000
MINUTE, HOUR = 60_000, 3_600_000
MINUTELY = CronEntry("* * * * *", "UTC", "skip", "both")
NO_SUCH = "there is no such run"

Check = Callable[["World"], Awaitable[None]]
CHECKS: dict[str, Check] = {}
_batches = count(1)


def check(function: Check) -> Check:
    CHECKS[function.__name__] = function
    return function


def job(name: str = "a", **fields: Any) -> Definition:
    """Its runs may overlap, unless a test says otherwise."""
    return Definition(name, (MINUTELY,), CommandTarget(("true",)), **{"overlap": OverlapRule("allow"), **fields})


def ok(written: Written[Any]) -> Any:
    assert isinstance(written, Ok), written
    return written.value


def in_turn(coming: Sequence[Coming], _shares: Shares) -> tuple[list[int], dict[Place, int]]:
    """One after the other: fairness has its own tests."""
    return list(range(len(coming))), {(c.pool, c.lane, c.priority, ""): 0 for c in coming}


class Hands:
    """A worker, moved by hand."""

    def __init__(self, store: Store, now_ms: Callable[[], int], node_id: str = "w1", pool: str = "default") -> None:
        self.store = store
        self.pool = pool
        self.now_ms = now_ms
        self.node_id = node_id

    async def join(self) -> "Hands":
        ok(await self.store.workers.join(self.node_id, "test", {self.pool: 9}, HOUR))
        return self

    async def queue(self) -> int:
        return int(ok(await self.store.queue.promote(0, 100, in_turn)).runs)

    async def claim(self, pick: Callable[[Facts], Choice] = choose) -> dict[int, Claimed]:
        wish = Claim(self.node_id, f"b{next(_batches)}", self.pool, 9, 9)
        return {run.run_id: run for run in ok(await self.store.claims.claim(wish, pick)).runs}

    async def take(self) -> dict[int, Claimed]:
        await self.queue()
        return await self.claim()

    async def end(self, run: Claimed | tuple[int, int], outcome: Outcome, tries: int = 1) -> Transition:
        run_id, attempt = run[0], run[1]
        rule = RetryRule(max_attempts=tries)

        def decide(held: Held, found: Outcome, _controls: Sequence[Control], now_ms: int) -> Transition:
            due_ms, cancel = held.scheduled_for_ms, held.cancel
            return settle(found, held.budget, rule, scheduled_for_ms=due_ms, now_ms=now_ms, chance=0, cancel=cancel)

        now_ms = self.now_ms()
        ended = Ended(run_id, attempt, outcome, now_ms, now_ms)
        ends = ok(await self.store.attempts.finish(self.node_id, [ended], decide))
        return ends.transitions[run_id]  # type: ignore[no-any-return]


FAILED = Failed(Fault("boom", "it broke"))


async def trigger(w: "World", name: str = "a", key: str | None = None, **payload: Any) -> int:
    key = key or f"k{next(_batches)}"
    made = ok(await w.store.steering.trigger(("default", name), payload or None, actor="ann", key=key))
    return int(made.run_id)


async def told(w: "World", *run_ids: int) -> list[Run]:
    known = {line.run.run_id: line.run for line in await w.store.history.runs(Span(), limit=1000)}
    return [known[run_id] for run_id in run_ids if run_id in known]


async def states(w: "World", *run_ids: int) -> list[str]:
    return [run.state.value for run in await told(w, *run_ids)]


async def die(w: "World", hands: Hands, fault: Fault, name: str = "a") -> int:
    run_id = await trigger(w, name)
    await hands.end((await hands.take())[run_id], Failed(fault))
    return run_id


# --- trigger


@check
async def trigger_makes_one_run_for_a_key(w: "World") -> None:
    """S0-61, S1-37, S4-27, S3-8: at once, outside the schedule, with its own identity and payload; asking again with
    the same key gives the same run."""
    created = await w.desk.create(job())
    assert created.job is not None
    job_id = created.job.job_id
    await w.clock.set(NOW + 7)
    verb = w.store.steering.trigger
    made = ok(await verb(("default", "a"), {"kind": "full"}, actor="bob", key="k"))
    assert made == Triggered(made.run_id, job_id, "default", "a", NOW + 7, True)
    await w.clock.set(NOW + 9)
    assert ok(await verb(job_id, {"kind": "full"}, actor="bob", key="k")) == replace(made, created=False)
    assert await verb(job_id, {"kind": "half"}, actor="bob", key="k") == Refused(
        "the key 'k' was used before, with another payload"
    )
    other = ok(await verb(job_id, None, actor="bob", key="other"))
    assert other.run_id != made.run_id
    [row, _] = await told(w, made.run_id, other.run_id)
    assert (row.kind, row.lane, row.state, row.asked_by) == ("manual", "live", "planned", "bob")
    assert (row.scheduled_for_ms, row.run_after_ms, row.created_ms) == (NOW + 7, NOW + 7, NOW + 7)
    assert (row.revision, row.almanac, row.covers) == (1, 1, 1)
    [line] = [line for line in await w.store.history.runs(Span()) if line.run.run_id == made.run_id]
    assert line.run.idempotency_key == f"job:{job_id}:manual:{made.run_id}"
    [_, event] = await w.store.events.list(kind="run_triggered")
    assert (event.event.job_id, event.event.actor, event.event.detail) == (job_id, "bob", {"run": made.run_id})
    hands = await Hands(w.store, w.clock.now_ms).join()
    claimed = await hands.take()
    assert claimed[made.run_id].payload == '{"kind":"full"}'


@check
async def trigger_says_what_is_wrong_with_a_key(w: "World") -> None:
    for key, words in (
        ("", "1 to 200"),
        ("k" * 201, "1 to 200"),
        ("a\0b", "NUL"),
        ("a\ud800", "half a surrogate pair"),
    ):
        with pytest.raises(DefinitionError, match=words):
            await w.store.steering.trigger(("default", "a"), None, actor="bob", key=key)


@check
async def trigger_asks_the_state_of_the_job(w: "World") -> None:
    """Paused and finished jobs can be triggered; cancelled and deleted ones never run again."""
    verb = w.store.steering.trigger
    for name in ("paused", "cancelled", "deleted"):
        await w.desk.create(job(name))
    await w.desk.pause("default", "paused")
    await w.desk.cancel("default", "cancelled")
    job_id = (await w.store.jobs.named("default", "deleted"))[0].job_id
    before = ok(await verb(job_id, None, actor="ann", key="before"))
    await w.desk.delete("default", "deleted")
    assert ok(await verb(("default", "paused"), None, actor="ann", key="k")).created
    assert await verb(("default", "cancelled"), None, actor="ann", key="k") == Refused(
        "default/cancelled is cancelled: it never runs again"
    )
    assert await verb(job_id, None, actor="ann", key="k") == Refused("default/deleted is deleted: it never runs again")
    assert ok(await verb(job_id, None, actor="ann", key="before")) == replace(before, created=False)
    assert await verb(("default", "deleted"), None, actor="ann", key="k") == Refused(
        "there is no job deleted of tenant default"
    )


@check
async def trigger_refuses_a_payload_that_cannot_be(w: "World") -> None:
    """S3-54: the tenant's own limit holds for a manual payload too."""
    await w.desk.create(job())
    ok(await w.store.limits.put_tenant("default", {"max_payload": 20}, actor="ann"))
    verb = w.store.steering.trigger
    with pytest.raises(DefinitionError, match="/payload: larger than"):
        await verb(("default", "a"), {"text": "x" * 20}, actor="ann", key="k")
    with pytest.raises(DefinitionError, match=r"/payload/a/b: .* is not a template"):
        await verb(("default", "a"), {"a": {"b": "{{ me }}"}}, actor="ann", key="k")
    with pytest.raises(DefinitionError, match="/key"):
        await verb(("default", "a"), None, actor="ann", key="")
    assert await w.store.history.runs(Span()) == []
    assert await trigger(w, "a", n=1)


# --- cancel


@check
async def cancel_ends_at_once_what_does_not_run(w: "World") -> None:
    """S3-4: planned, queued, waiting and between two attempts. Each says who did it and why."""
    for each in (job("a"), job("b", overlap=OverlapRule("queue"))):
        await w.desk.create(each)
    hands = await Hands(w.store, w.clock.now_ms).join()
    held = await trigger(w, "b")
    running = (await hands.take())[held]
    waiting = await trigger(w, "b")  # for the key that the first one has
    resting = await trigger(w, "a")
    await hands.end((await hands.take())[resting], FAILED, tries=9)
    queued = await trigger(w, "a")
    await hands.queue()
    planned = await trigger(w, "a")
    wanted = [planned, resting, waiting, queued, 999_999]
    done = ok(await w.store.steering.cancel(wanted, "not needed", actor="bob"))
    assert done == [
        Steered(planned, "cancelled", "default/a"),
        Steered(resting, "cancelled", "default/a"),
        Steered(waiting, "cancelled", "default/b"),
        Steered(queued, "cancelled", "default/a"),
        Steered(999_999, "refused", reason=NO_SUCH),
    ]
    rows = await told(w, planned, resting, waiting, queued)
    assert {(row.state, row.reason) for row in rows} == {("cancelled", "cancelled: not needed (by bob)")}
    assert {row.finished_ms for row in rows} == {NOW}
    assert await hands.take() == {}
    events = await w.store.events.list(kind="run_cancelled")
    assert sorted(each.event.detail["run"] for each in events) == sorted(wanted[:4])
    assert events[0].event.actor == "bob"
    again = ok(await w.store.steering.cancel(wanted, "not needed", actor="bob"))
    assert [(each.done, each.reason) for each in again] == [("unchanged", "it is cancelled")] * 4 + [
        ("refused", NO_SUCH)
    ]
    assert len(await w.store.events.list(kind="run_cancelled")) == 4
    await hands.end(running, Succeeded())
    [late] = ok(await w.store.steering.cancel([held], None, actor="bob"))
    assert late == Steered(held, "refused", "default/b", "it is succeeded")


@check
async def cancel_frees_the_key_of_a_resting_run(w: "World") -> None:
    """A run between two attempts keeps its job occupied; without it the next one starts."""
    for where in ("upcoming", "queue"):
        await w.desk.create(job(where, overlap=OverlapRule("queue")))
        hands = await Hands(w.store, w.clock.now_ms, where).join()
        first = await trigger(w, where)
        await hands.end((await hands.take())[first], FAILED, tries=9)
        second = await trigger(w, where)
        assert await hands.take() == {}, "the first one has the key"
        if where == "queue":
            await w.clock.advance(HOUR)
            await hands.queue()
        ok(await w.store.steering.cancel([first], None, actor="bob"))
        assert list(await hands.take()) == [second]


@check
async def cancel_asks_an_attempt_to_stop(w: "World") -> None:
    """A running attempt ends with its worker's word; whatever it says, the run is cancelled unless it succeeded."""
    await w.desk.create(job())
    hands = await Hands(w.store, w.clock.now_ms).join()
    run_id = await trigger(w)
    run = (await hands.take())[run_id]
    cancel = w.store.steering.cancel
    assert ok(await cancel([run_id], "stop it", actor="bob")) == [Steered(run_id, "stopping", "default/a")]
    again = ok(await cancel([run_id], "again", actor="eve"))
    assert again == [Steered(run_id, "unchanged", "default/a", "it was asked to stop before")]
    renewed = ok(await w.store.workers.renew("w1", HOUR))
    assert renewed.cancels == {(run_id, run.attempt): "stop it (by bob)"}
    assert await states(w, run_id) == ["running"]
    [event] = await w.store.events.list(kind="run_cancelled")
    assert event.event.detail == {"run": run_id, "reason": "stop it", "was": "running"}
    await hands.end(run, FAILED, tries=9)
    [row] = await told(w, run_id)
    assert (row.state, row.reason, row.failures) == ("cancelled", "cancelled: stop it (by bob)", 1)
    # one that was never started and is handed back has stopped, too
    run_id = await trigger(w)
    run = (await hands.take())[run_id]
    ok(await cancel([run_id], "stop it", actor="bob"))
    assert ok(await w.store.attempts.hand_back("w1", [(run_id, run.attempt, run.batch)])) == 1
    [row] = await told(w, run_id)
    assert (row.state, row.reason) == ("cancelled", "cancelled: stop it (by bob)")
    assert await hands.take() == {}


@check
async def cancel_of_a_forecast_is_its_answer(w: "World") -> None:
    """A planned tick that is cancelled stays so: an edit takes back the other forecasts, and begins at once."""
    await w.desk.create(job())
    runs = [Forecast(NOW + n * MINUTE, NOW + n * MINUTE) for n in (1, 2)]
    await w.advance(Move(await w.group(), Position(NOW + 2 * MINUTE), NOW + 3 * MINUTE, runs))
    second, first = [line.run.run_id for line in await w.store.history.runs(Span())]
    ok(await w.store.steering.cancel([first], None, actor="bob"))
    await w.desk.edit(job(description="other"))
    assert [line.run.run_id for line in await w.store.history.runs(Span())] == [first]
    assert await states(w, first, second) == ["cancelled"]
    assert (await w.group()).at == Position(NOW)
    # opened again before its tick it does not start early
    ok(await w.store.steering.replay([first], actor="bob"))
    hands = await Hands(w.store, w.clock.now_ms).join()
    assert await hands.queue() == 0
    await w.clock.set(NOW + MINUTE)
    assert list(await hands.take()) == [first]


# --- replay


@check
async def replay_opens_dead_and_cancelled_runs(w: "World") -> None:
    """S3-8: the same run in its next round; attempt numbers go on rising, the budget is new."""
    await w.desk.create(job())
    hands = await Hands(w.store, w.clock.now_ms).join()
    dead = await trigger(w)
    run = (await hands.take())[dead]
    await hands.end(run, FAILED, tries=2)
    await w.clock.advance(HOUR)
    await hands.end((await hands.take())[dead], FAILED, tries=2)
    cancelled = await trigger(w)
    ok(await w.store.steering.cancel([cancelled], None, actor="bob"))
    fine = await trigger(w)
    await hands.end((await hands.take())[fine], Succeeded())
    done = ok(await w.store.steering.replay([dead, cancelled, fine, 999_999], actor="eve"))
    assert [(each.run_id, each.done) for each in done] == [
        (dead, "replayed"), (cancelled, "replayed"), (fine, "refused"), (999_999, "refused"),
    ]  # fmt: skip
    assert done[2].reason == "it has succeeded; for another run: fleetcron jobs trigger default/a"
    assert done[3].reason == NO_SUCH
    for row, attempt in zip(await told(w, dead, cancelled), (2, 0), strict=True):
        assert (row.state, row.round, row.lane, row.asked_by) == ("planned", 1, "catchup", "eve")
        assert (row.finished_ms, row.started_ms, row.failures, row.losses) == (None, None, 0, 0)
        assert (row.attempt, row.reason) == (attempt, None)
    again = ok(await w.store.steering.replay([dead], actor="eve"))
    assert [(each.done, each.reason) for each in again] == [("unchanged", "it has not ended: nothing to replay")]
    claimed = await hands.take()
    assert {run_id: (each.attempt, each.failures) for run_id, each in claimed.items()} == {
        dead: (3, 0), cancelled: (1, 0),
    }  # fmt: skip
    [event] = await w.store.events.list(kind="run_replayed")
    assert (event.event.count, event.event.actor, event.event.detail) == (2, "eve", {"runs": [dead, cancelled]})


@check
async def what_was_replayed_or_backfilled_is_on_its_way_once(w: "World") -> None:
    """Its instant on the way is not the one of its tick: the safety net must not take it for lost."""
    created = await w.desk.create(job())
    hands = await Hands(w.store, w.clock.now_ms).join()
    dead = await die(w, hands, Fault("boom", "x"))
    await w.clock.advance(HOUR)
    ok(await w.store.steering.replay([dead], actor="eve"))
    filled = Filling([Forecast(NOW - HOUR, NOW - HOUR, "catchup")], [], 0, 0)
    assert created.job is not None
    call = {"epoch": 1, "revision": 1, "actor": "eve"}
    ok(await w.store.backfills.write(created.job.job_id, NOW - HOUR, NOW, lambda _: filled, **call))  # type: ignore[arg-type]
    await w.clock.advance(10 * MINUTE)
    assert ok(await Sweeping(w.store.engine).sweep(0)).adrift == 0
    assert await hands.queue() == 2
    assert len(await hands.claim()) == 2
    assert await hands.queue() == 0


@check
async def replay_refuses_what_was_left_out(w: "World") -> None:
    await w.desk.create(job())
    run_ids = [await trigger(w) for _ in range(3)]
    dead = await trigger(w)
    for run_id, state in zip([*run_ids, dead], ("skipped", "expired", "merged", "dead"), strict=True):
        await change(w.store.engine, f"UPDATE runs SET state = '{state}', finished_ms = {NOW} WHERE run_id = {run_id}")
    done = ok(await w.store.steering.replay(run_ids, actor="eve"))
    assert [(each.done, each.reason) for each in done] == [
        ("refused", f"it is {state}: only dead and cancelled runs can be replayed")
        for state in ("skipped", "expired", "merged")
    ]
    await w.desk.cancel("default", "a")
    [one] = ok(await w.store.steering.replay([dead], actor="eve"))
    assert (one.done, one.reason) == ("refused", "its job is cancelled")
    await w.desk.delete("default", "a")
    [one] = ok(await w.store.steering.replay([dead], actor="eve"))
    assert (one.done, one.reason) == ("refused", "its job is deleted")


@check
async def replay_many_goes_by_batches(w: "World") -> None:
    """Each dead letter once, also if it dies again meanwhile."""
    await w.desk.create(job())
    await w.desk.create(job("gone"))
    hands = await Hands(w.store, w.clock.now_ms).join()
    run_ids = [await die(w, hands, Fault("boom", "x")) for _ in range(5)]
    gone = await die(w, hands, Fault("boom", "x"), "gone")
    await w.desk.delete("default", "gone")
    steering = w.store.steering
    assert await steering.count_dead(DeadFilter()) == DeadCount(6, 5)
    assert ok(await steering.replay_many(DeadFilter(error="other"), actor="eve")).runs == 0
    first = ok(await steering.replay_many(DeadFilter(error="boom"), actor="eve", limit=2))
    assert (first.runs, first.after_id) == (2, run_ids[1])
    again = await hands.take()
    await hands.end(again[run_ids[0]], FAILED)
    done = first
    while done.after_id is not None:
        done = ok(await steering.replay_many(DeadFilter(error="boom"), actor="eve", after_id=done.after_id, limit=2))
    assert await states(w, *run_ids) == ["dead", "running", *["planned"] * 3]
    assert await states(w, gone) == ["dead"]
    assert [row.round for row in await told(w, *run_ids)] == [1] * 5


@check
async def a_replay_whose_reply_was_lost_is_not_done_twice(w: "World") -> None:
    """The run has died again meanwhile: whoever repeats what he asked means the round that he saw."""
    await w.desk.create(job())
    hands = await Hands(w.store, w.clock.now_ms).join()
    run_ids = [await die(w, hands, Fault("boom", "x")) for _ in range(2)]
    dead, other = run_ids
    steering = w.store.steering
    rounds = await steering.rounds([*run_ids, 999_999])
    assert rounds == dict.fromkeys(run_ids, 0)
    asked = {"actor": "eve", "rounds": rounds}
    assert [each.done for each in ok(await steering.replay([dead], **asked))] == ["replayed"]
    await w.clock.advance(MINUTE)
    await hands.end((await hands.take())[dead], FAILED)
    again = ok(await steering.replay([other, dead, 999_999], **asked))
    assert [(each.done, each.reason) for each in again] == [
        ("replayed", None), ("unchanged", "it was replayed meanwhile, and is dead since"), ("refused", NO_SUCH),
    ]  # fmt: skip
    assert [row.round for row in await told(w, *run_ids)] == [1, 1]
    [one] = ok(await steering.replay([dead], actor="eve", rounds=await steering.rounds([dead])))
    assert one.done == "replayed"


@check
async def a_batch_of_replays_whose_reply_was_lost_is_not_done_twice(w: "World") -> None:
    await w.desk.create(job())
    hands = await Hands(w.store, w.clock.now_ms).join()
    dead = await die(w, hands, Fault("boom", "x"))
    steering = w.store.steering
    wanted = DeadFilter(error="boom").until((await steering.count_dead(DeadFilter())).now_ms)
    assert ok(await steering.replay_many(wanted, actor="eve")).runs == 1
    await w.clock.advance(MINUTE)
    await hands.end((await hands.take())[dead], FAILED)
    assert ok(await steering.replay_many(wanted, actor="eve")).runs == 0
    assert [(row.state, row.round) for row in await told(w, dead)] == [("dead", 1)]
    assert wanted.until(NOW - 1).to_ms == NOW
    assert wanted.until(NOW + HOUR).to_ms == wanted.to_ms


# --- dead letters


@check
async def dead_letters_are_listed_and_discarded(w: "World") -> None:
    """S3-8: what died and why, by filter and page, the newest first. A discarded one is dead, and not on the list."""
    await w.desk.create(job(type="report"))
    await w.desk.create(replace(job("b"), tenant="default"))
    hands = await Hands(w.store, w.clock.now_ms).join()
    first = await die(w, hands, Fault("boom", "it broke"))
    await w.clock.advance(MINUTE)
    second = await die(w, hands, Fault("timeout", "too slow"))
    third = await die(w, hands, Fault("boom", "again"), "b")

    async def found(limit: int = 9, before_id: int | None = None, **wanted: Any) -> list[int]:
        return [
            each.run_id for each in await w.store.steering.dead(DeadFilter(**wanted), limit=limit, before_id=before_id)
        ]

    assert await found() == [third, second, first]
    assert await found(error="boom") == [third, first]
    assert await found(name="a", tenant="default") == await found(type="report") == [second, first]
    assert await found(from_ms=NOW + 1) == [third, second]
    assert await found(to_ms=NOW + 1) == [first]
    assert await found(limit=2) == [third, second]
    assert await found(before_id=second) == [first]
    assert await found(tenant="x") == []
    letter = (await w.store.steering.dead(DeadFilter(), limit=9))[-1]
    assert (letter.error_code, letter.error_text, letter.outcome) == ("boom", "it broke", "failed")
    assert (letter.tenant, letter.name, letter.type, letter.kind) == ("default", "a", "report", "manual")
    assert (letter.finished_ms, letter.attempt, letter.failures, letter.round) == (NOW, 1, 1, 0)
    open_run = await trigger(w)
    done = ok(await w.store.steering.discard([first, third, open_run, 999_999], "known bug", actor="eve"))
    assert [each.done for each in done] == ["discarded", "discarded", "refused", "refused"]
    assert done[2].reason == "it is not over: only dead runs can be discarded"
    assert await found() == [second]
    assert await w.store.steering.count_dead(DeadFilter()) == DeadCount(1, 1)
    assert await states(w, first) == ["dead"]
    [again] = ok(await w.store.steering.discard([first], "known bug", actor="eve"))
    assert (again.done, again.reason) == ("unchanged", "it was discarded before")
    events = await w.store.events.list(kind="run_discarded")
    assert [(each.event.detail["reason"], each.event.count) for each in events] == [("known bug", 1)] * 2
    ok(await w.store.steering.replay([first], actor="eve"))  # takes it back
    await hands.end((await hands.take())[first], FAILED)
    assert await found() == [second, first]


# --- backfill; tests/scheduler/test_backfill.py has what it decides


@check
async def backfill_writes_runs_and_splits_the_ledger(w: "World") -> None:
    """Only the rows of its stretch; the old line is kept in an event."""
    await w.desk.create(job())
    group = await w.group()
    old = Answer(NOW - 9 * MINUTE, NOW - 5 * MINUTE, 5, "missed", "too_old")
    later = Answer(NOW - 3 * MINUTE, NOW - 3 * MINUTE, 1, "skipped", "covered", NOW)
    gap = Gap(NOW - 3 * MINUTE, NOW - 2 * MINUTE, "outage")
    await w.advance(Move(group, Position(NOW), NOW + MINUTE, [Forecast(NOW, NOW)], [old, later], gap))
    found = (await w.store.jobs.find([("default", "a")])).standings["default", "a"]
    job_id, revision = found.job.job_id, found.job.revision
    verb = w.store.backfills
    past = await verb.look(job_id, NOW - 6 * MINUTE, NOW)
    assert past is not None
    assert (past.now_ms, past.cursor_ms, list(past.gaps)) == (NOW, NOW, [(NOW - 3 * MINUTE, NOW - 2 * MINUTE)])
    assert [(each.answer, each.revision, each.almanac) for each in past.entries] == [(old, 1, 1), (later, 1, 1)]
    assert {each.timing_id for each in past.entries} == {found.timing.timing_id}
    assert past.runs == {NOW}
    near = await verb.look(job_id, NOW - 2 * MINUTE, NOW - 2 * MINUTE)
    assert near is not None
    assert ([each.answer for each in near.entries], near.runs) == ([], frozenset())

    def decide(now: Past) -> Filling:
        [entry, _] = now.entries
        rest = (replace(old, to_ms=NOW - 7 * MINUTE, ticks=3), replace(old, from_ms=NOW - 5 * MINUTE, ticks=1))
        tick = NOW - 6 * MINUTE
        return Filling([Forecast(tick, tick + 5, "catchup")], [Superseded(entry, (tick,), rest)], 1, 1)

    call = {"epoch": 1, "revision": revision, "actor": "bob"}
    made = ok(await verb.write(job_id, NOW - 6 * MINUTE, NOW, decide, **call))  # type: ignore[arg-type]
    assert (len(made.runs), made.taken) == (1, 1)
    lines = {line.answer.from_ms: line for line in await w.store.history.ledger(Span())}
    assert {ms - NOW: line.answer.ticks for ms, line in lines.items()} == {
        -9 * MINUTE: 3, -5 * MINUTE: 1, -3 * MINUTE: 1,
    }  # fmt: skip
    assert {(line.noted_ms, line.revision, line.answer.reason) for line in lines.values()} == {
        (NOW, 1, "too_old"), (NOW, 1, "covered"),
    }  # fmt: skip
    [run] = [line.run for line in await w.store.history.runs(Span()) if line.run.kind == "backfill"]
    assert (run.scheduled_for_ms, run.run_after_ms, run.lane) == (NOW - 6 * MINUTE, NOW - 6 * MINUTE + 5, "catchup")
    [row] = await told(w, run.run_id)
    assert row.asked_by == "bob"
    [event] = await w.store.events.list(kind="ledger_superseded")
    assert (event.event.count, event.event.actor) == (1, "bob")
    assert {key: event.event.detail[key] for key in ("from_ms", "to_ms", "ticks", "answer", "reason")} == {
        "from_ms": old.from_ms, "to_ms": old.to_ms, "ticks": 5, "answer": "missed", "reason": "too_old",
    }  # fmt: skip
    [event] = await w.store.events.list(kind="runs_backfilled")
    assert (event.event.count, event.event.job_id) == (1, job_id)
    claimed = await (await Hands(w.store, w.clock.now_ms).join()).take()
    assert claimed[run.run_id].due_ms == NOW  # nobody was late: it was asked for now
    stale = await verb.write(job_id, 0, NOW, decide, epoch=2, revision=revision, actor="bob")
    assert stale == Refused("the zone tables or calendars have changed")
    stale = await verb.write(job_id, 0, NOW, decide, epoch=1, revision=9, actor="bob")
    assert stale == Refused("the job was changed meanwhile")
    with pytest.raises(StoreError, match="no"):
        await verb.write(job_id, 0, NOW, _no, epoch=1, revision=revision, actor="bob")
    await w.desk.delete("default", "a")
    assert await verb.look(job_id, NOW, NOW) is None


def _no(_past: Past) -> Filling:
    raise StoreError("no")
