"""Nodes: who lives, and who stopped without a word."""

import asyncio

from fleetcron.store.nodes import Nodes
from fleetcron.store.written import Refused
from tests.coordination.fleet import NOON_MS, TTL_MS, events, node, value
from tests.store.engines import hand_cranked


def test_a_node_comes_lives_and_goes(store_url: str) -> None:
    """S0-33: every instance has an id."""

    async def scenario() -> None:
        async with hand_cranked(store_url, NOON_MS) as (engine, clock):
            nodes = Nodes(engine)
            assert value(await nodes.announce(node("a", "eu", ("scheduler", "api")), TTL_MS)) == NOON_MS
            await clock.advance(5000)
            assert value(await nodes.heartbeat("a", TTL_MS, -37)) == NOON_MS + 5000
            [seen] = await nodes.list()
            assert seen.node == node("a", "eu", ("scheduler", "api"))
            assert (seen.started_ms, seen.seen_ms, seen.expires_ms) == (
                NOON_MS,
                NOON_MS + 5000,
                NOON_MS + 5000 + TTL_MS,
            )
            assert (seen.clock_offset_ms, seen.alive) == (-37, True)
            value(await nodes.leave("a"))
            assert await nodes.list() == []
            assert isinstance(await nodes.heartbeat("a", TTL_MS, 0), Refused)
            assert [event[:2] for event in await events(engine)] == [("node_joined", "a"), ("node_left", "a")]

    asyncio.run(scenario())


def test_a_silent_node_is_noted_once_by_whoever_sees_it(store_url: str) -> None:
    async def scenario() -> None:
        async with hand_cranked(store_url, NOON_MS) as (engine, clock):
            nodes = Nodes(engine)
            for name in "abc":
                value(await nodes.announce(node(name), TTL_MS))
            await clock.advance(TTL_MS - 1)
            value(await nodes.heartbeat("c", TTL_MS, 0))
            assert value(await nodes.give_up_silent()) == []
            await clock.advance(1)
            assert [seen.alive for seen in await nodes.list()] == [False, False, True]
            value(await nodes.heartbeat("b", TTL_MS, 0))  # just in time: nobody had looked
            both = await asyncio.gather(nodes.give_up_silent(), nodes.give_up_silent())
            assert sorted(map(value, both)) == [[], ["a"]]
            refused = await nodes.heartbeat("a", TTL_MS, 0)
            assert refused == Refused("the node a was silent and was given up")
            [(kind, who, _, detail)] = await events(engine, "node_vanished")
            assert (kind, who, detail["last_seen_ms"], detail["pid"]) == ("node_vanished", "a", NOON_MS, 7)

    asyncio.run(scenario())


def test_an_id_belongs_to_one_process(store_url: str) -> None:
    async def scenario() -> None:
        async with hand_cranked(store_url, NOON_MS) as (engine, clock):
            nodes, twin = Nodes(engine), node("a")
            value(await nodes.announce(twin, TTL_MS))
            other = type(twin)("a", "elsewhere", 7, ("scheduler",))
            refused = await nodes.announce(other, TTL_MS)
            assert refused == Refused("another process lives under the id a; every process needs an id of its own")
            await clock.advance(TTL_MS)  # the first one is gone
            assert value(await nodes.announce(other, TTL_MS)) == NOON_MS + TTL_MS
            assert [event[0] for event in await events(engine)] == ["node_joined", "node_vanished", "node_joined"]

    asyncio.run(scenario())
