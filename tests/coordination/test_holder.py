"""Holders, several in one process, on a real database whose clock we move by hand."""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest

from fleetcron.clock import HandClock
from fleetcron.coordination.holder import Holder
from fleetcron.coordination.skew import Offset
from fleetcron.errors import RefusedError, StoreUnavailable
from fleetcron.model.shard import Held
from fleetcron.steps import on_step
from fleetcron.store.migrations import Altering
from fleetcron.store.nodes import Nodes
from fleetcron.store.shards import Shards
from tests.coordination.fleet import DEFAULTS, NOON_MS, TTL_MS, Weak, events, holder, node, value
from tests.store.engines import DatabaseClock, hand_cranked

BEAT_MS = 5000


@pytest.fixture(params=["sqlite-memory", "postgres18"])
def url(request: pytest.FixtureRequest) -> str:
    return str(request.getfixturevalue(f"{request.param.replace('-', '_')}_url"))


@asynccontextmanager
async def fleet(url: str, *names: str, **options: Any) -> AsyncIterator[tuple[Altering, DatabaseClock, list[Holder]]]:
    async with hand_cranked(url, NOON_MS) as (engine, clock):
        yield engine, clock, [holder(engine, name, clock.hand, **options) for name in names]


async def beats(holders: list[Holder], rounds: int = 1) -> list[int]:
    """How many shards each one has after everybody has beaten."""
    for _ in range(rounds):
        for one in holders:
            await one.beat()
    return sorted((len(one.held()) for one in holders), reverse=True)


def shards_of(one: Holder) -> list[int]:
    return [held.shard for held in one.held()]


def test_sixteen_shards_on_three_nodes(url: str) -> None:
    """S0-15, S4-13: the work is spread evenly, every shard has one owner, and nothing moves once it is."""

    async def scenario() -> None:
        async with fleet(url, "a", "b", "c") as (engine, clock, holders):
            assert await beats(holders[:1]) == [16]
            assert await beats(holders, rounds=2) == [6, 5, 5]
            assert sorted(shard for one in holders for shard in shards_of(one)) == list(range(16))
            held = [one.held() for one in holders]
            noted = len(await events(engine))
            for _ in range(5):
                await clock.advance(BEAT_MS)
                await beats(holders)
            assert [one.held() for one in holders] == held
            assert len(await events(engine)) == noted
            assert sum(one.churn.gained for one in holders) == 16 + 10
            assert sum(one.churn.given_back for one in holders) == 10

    asyncio.run(scenario())


def test_the_shards_of_a_crashed_node_are_taken_over_when_their_lease_ends(url: str) -> None:
    """S0-30: not before; and at once then, although the node itself may still count as alive."""

    async def scenario() -> None:
        slow = replace(DEFAULTS, node_ttl_s=60)
        async with fleet(url, "a", "b", config=slow) as (engine, clock, [a, b]):
            await beats([a, b], rounds=2)
            await clock.advance(2000)
            old = await a.beat()  # its last one
            await clock.advance(BEAT_MS - 2000)
            for _ in range(2):
                assert len(await b.beat()) == 8
                await clock.advance(BEAT_MS)
            await clock.advance(1500)
            assert len(await b.beat()) == 8
            assert b.rest_ms() == 500 + 1  # it wakes when the lease of a ends, not at its next heartbeat
            await clock.advance(499)
            assert len(await b.settle()) == 8
            await clock.advance(1)
            assert len(await b.settle()) == 16
            terms = {held.shard: held.term for held in b.held()}
            assert all(terms[held.shard] == held.term + 1 for held in old)
            assert [event[1:3] for event in await events(engine, "shard_taken_over")] == [("b", 8)]

    asyncio.run(scenario())


def test_a_holder_steps_down_before_its_lease_can_have_ended(url: str) -> None:
    """The deadline counts from the moment the renewal was sent, and leaves a margin."""

    async def scenario() -> None:
        async with hand_cranked(url, NOON_MS) as (engine, clock):
            weak, own = Weak(engine), HandClock(NOON_MS)
            a = holder(weak, "a", own)
            await a.beat()
            assert len(a.held()) == 16
            weak.cut = True
            own.advance(BEAT_MS)
            with pytest.raises(StoreUnavailable):
                await a.beat()
            own.advance(TTL_MS - 2000 - BEAT_MS - 1)
            assert len(a.held()) == 16
            own.advance(1)
            assert a.held() == []
            await clock.advance(TTL_MS - 2000)
            assert all(lease.expires_ms > clock.now_ms() for lease in await Shards(engine).owners())
            # nobody took them meanwhile: under the same terms it goes on
            weak.cut = False
            assert [held.term for held in await a.beat()] == [1] * 16
            assert a.churn.stepped_down == 16
            assert a.churn.lost == 0

    asyncio.run(scenario())


def test_a_look_that_is_answered_does_not_end_the_trouble(url: str) -> None:
    """A store that can be read and not written loses hints, too, so it is looked at all the time: only a beat tells."""

    async def scenario() -> None:
        async with fleet(url) as (engine, clock, _):
            weak = Weak(engine)
            a = holder(weak, "a", clock.hand)
            await a._turn()
            for spoil in ("lose", "cut"):
                await clock.advance(BEAT_MS)
                setattr(weak, spoil, True)
                await a._turn()
                assert a.trouble
                setattr(weak, spoil, False)
                await a._turn()
                assert a.trouble, spoil
                await clock.advance(BEAT_MS)
                await a._turn()
                assert a.trouble is None

    asyncio.run(scenario())


def test_a_reply_that_comes_late_does_not_prolong_the_belief(url: str) -> None:
    async def scenario() -> None:
        async with hand_cranked(url, NOON_MS) as (engine, _):
            own = HandClock(NOON_MS)
            a = holder(engine, "a", own, shards=1)
            await a.beat()
            own.advance(BEAT_MS)
            on_step(lambda name: own.advance(4000) if name == "shards.renewing" else None)
            try:
                await a.beat()
            finally:
                on_step(None)
            own.advance(TTL_MS - 2000 - 4000 - 1)
            assert len(a.held()) == 1
            own.advance(1)
            assert a.held() == []

    asyncio.run(scenario())


def test_a_zombie_finds_that_it_holds_nothing(url: str) -> None:
    """S0-32: a holder that slept past its lease returns nothing, loses what was taken over, and joins again."""

    async def scenario() -> None:
        async with fleet(url, "a", "b") as (engine, clock, [a, b]):
            await beats([a, b], rounds=2)
            stale = a.held()
            await clock.advance(TTL_MS)  # everybody slept; b wakes first
            assert (a.held(), b.held()) == ([], [])
            assert len(await b.beat()) == 16
            assert a.held() == []
            assert value(await Shards(engine).renew("a", stale, TTL_MS)) == []
            await beats([a, b], rounds=2)
            assert (len(a.held()), len(b.held())) == (8, 8)
            assert (a.churn.stepped_down, a.churn.lost) == (8, 8)
            assert [event[:2] for event in await events(engine, "node_vanished", "node_joined")] == [
                ("node_joined", "a"),
                ("node_joined", "b"),
                ("node_vanished", "a"),
                ("node_joined", "a"),
            ]

    asyncio.run(scenario())


def test_a_clean_stop_frees_everything_at_once(url: str) -> None:
    async def scenario() -> None:
        async with fleet(url, "a", "b") as (engine, _, [a, b]):
            await beats([a, b], rounds=2)
            await a.release()
            assert a.held() == []
            assert len(await b.settle()) == 16  # no time has passed
            assert [seen.node.node_id for seen in await Nodes(engine).list()] == ["b"]
            await a.release()  # again: nothing happens
            assert [event[:3] for event in await events(engine, "node_left", "shard_released")][-2:] == [
                ("shard_released", "a", 8),
                ("node_left", "a", 1),
            ]

    asyncio.run(scenario())


def test_an_unknown_outcome_is_not_believed(url: str) -> None:
    """A reply was lost after the commit: not held, until asking again says so; the term is the same."""

    async def scenario() -> None:
        async with hand_cranked(url, NOON_MS) as (engine, clock):
            weak = Weak(engine)
            a = holder(weak, "a", clock.hand)
            weak.lose = True
            assert await a.beat() == []
            assert len(await Shards(engine).owners()) == 16
            weak.lose = False
            assert [held.term for held in await a.settle()] == [1] * 16
            weak.lose = True  # a renewal with an unknown outcome did not happen
            await clock.advance(TTL_MS - 2001)
            await a.beat()
            await clock.advance(1)
            assert a.held() == []
            weak.lose = False
            assert len(await a.beat()) == 16
            # a release whose reply was lost, too
            b = holder(engine, "b", clock.hand)
            await b.beat()
            weak.lose = True
            assert len(await a.settle()) == 8
            weak.lose = False
            assert await beats([a, b], rounds=2) == [8, 8]
            assert a.churn.unknown == 5
            assert a.churn.lost == 0

    asyncio.run(scenario())


def test_one_leader_and_hot_standby(url: str) -> None:
    """S0-15, S0-32: with one shard there is one leader; the next one leads under a higher term."""

    async def scenario() -> None:
        async with fleet(url, "a", "b", "c", shards=1) as (_, clock, holders):
            await beats(holders, rounds=3)
            [leader] = [one for one in holders if one.held()]
            others = [one for one in holders if one is not leader]
            await clock.advance(BEAT_MS)
            await beats(others)
            await clock.advance(TTL_MS - BEAT_MS)
            await beats(others)
            assert leader.held() == []
            assert [held for one in others for held in one.held()] == [Held("*", 0, 2)]
            assert await beats(holders, rounds=2) == [1, 0, 0]  # the old leader is a standby now
            assert leader.held() == []

    asyncio.run(scenario())


def test_regions_have_their_own_shards(url: str) -> None:
    async def scenario() -> None:
        async with hand_cranked(url, NOON_MS) as (engine, clock):
            eu, us, anywhere = (
                holder(engine, name, clock.hand, shards=4, region=region)
                for name, region in (("e", "eu"), ("u", "us"), ("n", "*"))
            )
            await beats([eu, us, anywhere], rounds=3)
            homes = [sorted({held.region for held in one.held()}) for one in (eu, us, anywhere)]
            assert homes == [["*", "eu"], ["*", "us"], ["*"]]
            everything = [held.key for one in (eu, us, anywhere) for held in one.held()]
            assert len(everything) == len(set(everything)) == 12
            await eu.release()
            await beats([us, anywhere], rounds=2)
            assert not [held for one in (us, anywhere) for held in one.held() if held.region == "eu"]

    asyncio.run(scenario())


def test_a_node_with_a_wrong_clock_leaves_the_shards_to_others(url: str, caplog: pytest.LogCaptureFixture) -> None:
    """S2-41, S0-10: it warns and says so; far off, it steps aside while somebody with a good clock lives."""

    async def scenario() -> None:
        async with hand_cranked(url, NOON_MS) as (engine, clock):
            wrong = HandClock(NOON_MS - 2000)
            a, b = holder(engine, "a", wrong), holder(engine, "b", clock.hand)
            await beats([a, b], rounds=2)
            assert a.offset == Offset(2000, 0)
            assert "the clock is 2.000 s behind the database's" in caplog.text
            assert (len(a.held()), len(b.held())) == (8, 8)
            offsets = {seen.node.node_id: seen.clock_offset_ms for seen in await Nodes(engine).list()}
            assert offsets == {"a": 2000, "b": 0}
            wrong.set(NOON_MS - 400_000)
            await beats([a, b], rounds=3)
            assert (len(a.held()), len(b.held())) == (0, 16)
            assert "shards go to nodes with better clocks" in caplog.text
            await b.release()
            assert len(await a.beat()) == 16  # better than nobody
            wrong.set(NOON_MS)
            await beats([a, b], rounds=3)
            assert (len(a.held()), len(b.held())) == (8, 8)
            assert "the clock is right again" in caplog.text

    with caplog.at_level(logging.INFO):
        asyncio.run(scenario())


def test_another_number_of_shards_is_refused(url: str) -> None:
    async def scenario() -> None:
        async with fleet(url, "a") as (engine, clock, [a]):
            await a.beat()
            with pytest.raises(RefusedError, match="this fleet has 16 shards and this node is set to 8"):
                await holder(engine, "b", clock.hand, shards=8).beat()
            with pytest.raises(RefusedError):
                await holder(engine, "b", clock.hand, shards=8).run(asyncio.Event())

    asyncio.run(scenario())


def test_somebody_else_may_declare_a_node_gone(url: str) -> None:
    """If it lives after all its terms are stale; it notices at its next look and joins again."""

    async def scenario() -> None:
        async with fleet(url, "a", "b") as (engine, _, [a, b]):
            await a.beat()
            await b.beat()
            value(await Nodes(engine).leave("a"))
            assert len(await b.beat()) == 16
            await a.settle()
            assert a.rest_ms() == 1  # it has to beat now
            await a.beat()
            assert a.held() == []
            assert a.churn.lost == 16
            assert await beats([b, a], rounds=2) == [8, 8]

    asyncio.run(scenario())


def test_shards_that_a_live_but_idle_node_does_not_take_go_to_others(url: str) -> None:
    async def scenario() -> None:
        async with fleet(url, "a", "b") as (engine, clock, [a, b]):
            await b.beat()
            await b.release()
            value(await Nodes(engine).announce(b.node, 3_600_000, shards=16))  # it lives for an hour and does nothing
            assert len(await a.beat()) == 8
            await clock.advance(BEAT_MS)
            assert len(await a.beat()) == 8
            await clock.advance(BEAT_MS)
            assert len(await a.beat()) == 16

    asyncio.run(scenario())


def test_gaining_and_losing_is_logged_and_told(url: str, caplog: pytest.LogCaptureFixture) -> None:
    """S0-32: on gaining: log, and the planner is woken; on losing the same."""

    async def scenario() -> None:
        async with fleet(url, "a", shards=1) as (engine, clock, [a]):
            await a.beat()
            assert a.changed.is_set()
            assert "a took */0 (term 1)" in caplog.text
            a.changed.clear()
            await clock.advance(BEAT_MS)
            await a.beat()
            assert not a.changed.is_set()
            await clock.advance(TTL_MS)
            value(await Shards(engine).take("*", [0], "x", TTL_MS))
            await a.beat()
            assert a.changed.is_set()
            assert "a lost */0 (term 1)" in caplog.text

    with caplog.at_level(logging.INFO):
        asyncio.run(scenario())


def test_the_loop_takes_over_on_a_hint_and_survives_an_outage(url: str) -> None:
    """Two loops in one process. Nothing waits for time: a hint moves the shards, the default heartbeat is 5 s."""

    async def scenario() -> None:
        async with hand_cranked(url, NOON_MS) as (engine, clock):
            weak = Weak(engine)
            a, b = holder(weak, "a", clock.hand), holder(engine, "b", clock.hand)
            stops = [asyncio.Event(), asyncio.Event()]
            loops = [asyncio.create_task(one.run(stop)) for one, stop in zip((a, b), stops, strict=True)]
            async with asyncio.timeout(4):
                while (len(a.held()), len(b.held())) != (8, 8):
                    await asyncio.sleep(0)
                weak.cut = True
                await b._shards.release("b", b.held()[:1])  # a hint; a cannot look
                while not a.churn.failures:
                    await asyncio.sleep(0)
                weak.cut = False
                stops[0].set()
                await loops[0]
                while len(b.held()) != 16:
                    await asyncio.sleep(0)
                stops[1].set()
                await loops[1]
            assert await Shards(engine).owners() == []

    asyncio.run(scenario())


def test_who_resigns_gives_everything_back_and_lives_on(url: str) -> None:
    """S0-15, S3-18: a node that drains keeps no shard that another one could plan, also if a reply is lost."""

    async def scenario() -> None:
        async with hand_cranked(url, NOON_MS) as (engine, clock):
            weak = Weak(engine)
            a = Holder(weak, node("a", roles=("scheduler", "worker")), DEFAULTS, shards=16, clock=clock.hand)
            b = holder(engine, "b", clock.hand)
            await beats([a, b], rounds=2)
            assert (len(a.held()), len(b.held())) == (8, 8)
            a.resign()
            weak.lose = True
            await a._turn()
            assert a.held() == []
            assert a.trouble is not None
            assert a.rest_ms() < BEAT_MS // 2  # it does not know, and says it again soon
            weak.lose = False
            await a._turn()
            assert len(await b.settle()) == 16  # at once: the share of who resigned is not left to it
            assert [each.node for each in await Nodes(engine).list()] == [node("a", roles=("worker",)), node("b")]
            await clock.advance(round(DEFAULTS.node_ttl_s * 1000))  # both were silent, and are given up
            await beats([b, a], rounds=2)
            assert (a.held(), len(b.held())) == ([], 16)
            assert [each.node.roles for each in await Nodes(engine).list()] == [("worker",), ("scheduler",)]
            await a.release()
            assert [each.node.node_id for each in await Nodes(engine).list()] == ["b"]
            assert [event[1] for event in await events(engine, "shard_released")][-1:] == ["a"]

    asyncio.run(scenario())


def test_who_resigns_before_it_has_joined_never_plans(url: str) -> None:
    async def scenario() -> None:
        async with hand_cranked(url, NOON_MS) as (engine, clock):
            a = Holder(engine, node("a", roles=("scheduler", "worker")), DEFAULTS, shards=16, clock=clock.hand)
            a.resign()
            await a._turn()
            assert a.held() == []
            assert [each.node for each in await Nodes(engine).list()] == [node("a", roles=("worker",))]

    asyncio.run(scenario())


def test_every_boundary_has_a_step(sqlite_memory_url: str) -> None:
    """A test can kill the process at each of them."""
    seen: dict[str, None] = {}

    async def scenario() -> None:
        async with fleet(sqlite_memory_url, "a", "b") as (_, _, [a, b]):
            await beats([a, b], rounds=2)
            b.node = replace(b.node, roles=("scheduler", "worker"))
            b.resign()
            await b.settle()
            await a.release()

    on_step(lambda name: seen.setdefault(name))
    try:
        asyncio.run(scenario())
    finally:
        on_step(None)
    assert [name for name in seen if name.startswith(("shards.", "node."))] == [
        "node.joining",
        "node.joined",
        "shards.viewed",
        "shards.taking",
        "shards.locked",
        "shards.written",
        "shards.taken",
        "shards.renewing",
        "shards.renewed",
        "node.heartbeat",
        "shards.releasing",
        "shards.released",
        "shards.resigning",
        "shards.resigned",
        "shards.leaving",
        "shards.left",
    ]
