"""The verbs of shard leases, on every engine, with the database's clock in our hand."""

import asyncio
from typing import Any

import asyncpg  # type: ignore[import-untyped]
import pytest

from fleetcron.model.shard import Held, shard_of
from fleetcron.store.events import Events
from fleetcron.store.nodes import Nodes
from fleetcron.store.shards import Shards, set_shards
from fleetcron.store.statements import Statements
from fleetcron.store.written import Ok, Refused
from tests.coordination.fleet import NOON_MS, TTL_MS, events, holds, node, value
from tests.store.engines import change, hand_cranked, opened


def held(*pairs: tuple[int, int], region: str = "*") -> list[Held]:
    return [Held(region, shard, term) for shard, term in pairs]


def test_a_shard_has_one_owner_until_its_lease_runs_out(store_url: str) -> None:
    """S0-15, S0-30, S4-13: nobody takes over before the end of the lease; at its end anybody may, under a new term."""

    async def scenario() -> None:
        async with hand_cranked(store_url, NOON_MS) as (engine, clock):
            shards = Shards(engine)
            assert value(await shards.take("*", [0, 1, 2], "a", TTL_MS)) == held((0, 1), (1, 1), (2, 1))
            assert value(await shards.take("*", [2, 3], "b", TTL_MS)) == held((3, 1))
            await clock.advance(TTL_MS - 1)
            assert value(await shards.take("*", [0, 1, 2], "b", TTL_MS)) == []
            assert value(await shards.renew("a", held((1, 1)), TTL_MS)) == held((1, 1))
            await clock.advance(1)
            assert value(await shards.take("*", [0, 1, 2], "b", TTL_MS)) == held((0, 2), (2, 2))
            owners = {(lease.held.shard, lease.held.owner, lease.held.term) for lease in await shards.owners()}
            assert owners == {(0, "b", 2), (1, "a", 1), (2, "b", 2), (3, "b", 1)}
            assert await events(engine) == [
                ("shard_taken", "a", 3, {"shards": [["*", 0, 1], ["*", 1, 1], ["*", 2, 1]]}),
                ("shard_taken", "b", 1, {"shards": [["*", 3, 1]]}),
                ("shard_taken_over", "b", 2, {"from": ["a"], "shards": [["*", 0, 2], ["*", 2, 2]]}),
            ]
            # S0-67, S2-39: how often shards changed hands
            lately = await Events(engine).counts(NOON_MS)
            assert (lately["shard_taken"], lately["shard_taken_over"]) == (4, 2)
            assert "shard_taken" not in await Events(engine).counts(clock.now_ms())

    asyncio.run(scenario())


def test_only_the_holder_renews(store_url: str) -> None:
    """S0-31: compare and renew in one statement; who is no longer the holder changes nothing and is told."""

    async def scenario() -> None:
        async with hand_cranked(store_url, NOON_MS) as (engine, clock):
            shards = Shards(engine)
            value(await shards.take("*", [0, 1], "a", TTL_MS))
            await clock.advance(TTL_MS + 5000)
            # it ran out, but nobody took it: the holder may go on under the same term
            assert value(await shards.renew("a", held((0, 1)), TTL_MS)) == held((0, 1))
            assert value(await shards.take("*", [0, 1], "b", TTL_MS)) == held((1, 2))
            before = await shards.owners()
            await clock.advance(1000)
            assert value(await shards.renew("a", held((1, 1)), TTL_MS)) == []  # the term is old
            assert value(await shards.renew("a", held((1, 2)), TTL_MS)) == []  # the term is right, the node is not
            assert value(await shards.renew("b", held((0, 1)), TTL_MS)) == []
            assert value(await shards.release("a", held((1, 1), (1, 2)))) == []
            assert await shards.owners() == before
            assert [event[:3] for event in await events(engine, "shard_lost")] == [
                ("shard_lost", "a", 1),
                ("shard_lost", "a", 1),
                ("shard_lost", "b", 1),
            ]

    asyncio.run(scenario())


def test_an_old_term_of_the_same_node_is_old(store_url: str) -> None:
    async def scenario() -> None:
        async with hand_cranked(store_url, NOON_MS) as (engine, _):
            shards = Shards(engine)
            old = value(await shards.take("*", [0], "a", TTL_MS))
            value(await shards.release("a", old))
            new = value(await shards.take("*", [0], "a", TTL_MS))
            assert value(await shards.renew("a", old, TTL_MS)) == []
            assert value(await shards.release("a", old)) == []
            assert [lease.held for lease in await shards.owners()] == new

    asyncio.run(scenario())


def test_terms_never_go_back(store_url: str) -> None:
    """S4-21: a write under an old term can be told for ever, also after releases."""

    async def scenario() -> None:
        async with hand_cranked(store_url, NOON_MS) as (engine, clock):
            shards = Shards(engine)
            terms = []
            for round_ in range(4):
                name = "ab"[round_ % 2]
                [one] = value(await shards.take("*", [5], name, TTL_MS))
                terms.append(one.term)
                if round_ == 1:
                    await clock.advance(TTL_MS)
                else:
                    assert value(await shards.release(name, [one])) == [one]
            assert terms == [1, 2, 3, 4]
            assert [event[0] for event in await events(engine)] == [
                "shard_taken",
                "shard_released",
                "shard_taken",
                "shard_taken_over",
                "shard_released",
                "shard_taken",
                "shard_released",
            ]
            # the same number in another region is another shard
            assert value(await shards.take("eu", [5], "a", TTL_MS)) == held((5, 1), region="eu")

    asyncio.run(scenario())


def test_every_verb_may_be_repeated(store_url: str) -> None:
    """A reply can be lost after a commit: asking again gives the same and changes nothing more."""

    async def scenario() -> None:
        async with hand_cranked(store_url, NOON_MS) as (engine, clock):
            shards, nodes = Shards(engine), Nodes(engine)
            for _ in range(2):
                assert value(await nodes.announce(node("a"), TTL_MS, shards=16)) == NOON_MS
            first = value(await shards.take("*", [0, 1], "a", TTL_MS))
            await clock.advance(1000)
            assert value(await shards.take("*", [0, 1, 2], "a", TTL_MS)) == [*first, *held((2, 1))]
            # the repeated take counts from its own moment, or the taker would believe in more than it has
            assert {lease.expires_ms for lease in await shards.owners()} == {NOON_MS + 1000 + TTL_MS}
            for _ in range(2):
                assert value(await shards.renew("a", first, TTL_MS)) == first
            assert value(await shards.release("a", first)) == first
            assert value(await shards.release("a", first)) == []
            assert value(await nodes.leave("a")) == 1
            assert value(await nodes.leave("a")) == 0
            assert [event[:3] for event in await events(engine)] == [
                ("node_joined", "a", 1),
                ("shard_taken", "a", 2),
                ("shard_taken", "a", 1),
                ("shard_released", "a", 2),
                ("shard_released", "a", 1),
                ("node_left", "a", 1),
            ]

    asyncio.run(scenario())


def test_the_fleet_has_one_number_of_shards(store_url: str) -> None:
    async def scenario() -> None:
        async with hand_cranked(store_url, NOON_MS) as (engine, _):
            shards, nodes = Shards(engine), Nodes(engine)
            assert await shards.number() is None
            assert value(await shards.fix(8)) == 8
            assert value(await shards.fix(16)) == 8
            assert await shards.number() == 8
            assert isinstance(await nodes.announce(node("a"), TTL_MS, shards=8), Ok)
            refused = await nodes.announce(node("b"), TTL_MS, shards=16)
            assert refused == Refused(
                "this fleet has 8 shards and this node is set to 16; set scheduler.shards to 8, "
                "or stop every scheduler and change the number of the fleet"
            )
            assert [seen.node.node_id for seen in await nodes.list()] == ["a"]

    asyncio.run(scenario())


def test_shards_are_divided_anew_only_while_nobody_schedules(store_url: str) -> None:
    async def scenario() -> None:
        async with hand_cranked(store_url, NOON_MS) as (engine, clock):
            ids = [f"01900000-0000-7000-8000-{number:012}" for number in range(40)]
            await change(engine, "".join(map(a_job, ids)) + a_gap(ids[7]))
            shards, nodes = Shards(engine), Nodes(engine)
            value(await nodes.announce(node("a"), TTL_MS, shards=16))
            value(await shards.take("*", [3], "a", TTL_MS))
            at_work = "schedulers are at work: a; stop them, or wait until they count as gone"
            assert await set_shards(engine, 4) == Refused(at_work)
            value(await nodes.leave("a"))
            [taken] = value(await shards.take("*", [3], "a", TTL_MS))  # no node, but a lease
            assert await set_shards(engine, 4) == Refused(at_work)
            await clock.advance(TTL_MS)
            value(await nodes.announce(node("w", roles=("worker", "api")), TTL_MS))  # others may stay
            assert value(await set_shards(engine, 4)) == 40
            for one in ids:
                await holds(engine, f"(SELECT shard FROM cursors WHERE job_id = '{one}') = {shard_of(one, 4)}")
            await holds(engine, f"(SELECT shard FROM gaps WHERE job_id = '{ids[7]}') = {shard_of(ids[7], 4)}")
            assert await shards.number() == 4
            assert await shards.owners() == []
            [again] = value(await shards.take("*", [3], "a", TTL_MS))
            assert again.term > taken.term + 1  # what was planned for the old shard 3 is fenced
            assert isinstance(await set_shards(engine, 0), Refused)

    asyncio.run(scenario())


def test_the_regions_of_planned_jobs(store_url: str) -> None:
    async def scenario() -> None:
        async with hand_cranked(store_url, NOON_MS) as (engine, _):
            assert (await Shards(engine).view()).job_regions == []
            regions = ["us", "*", "eu", "eu", "*"]
            ids = [f"01900000-0000-7000-8000-{number:012}" for number in range(5)]
            await change(engine, "".join(a_job(one, region) for one, region in zip(ids, regions, strict=True)))
            assert (await Shards(engine).view()).job_regions == ["*", "eu", "us"]

    asyncio.run(scenario())


def test_the_shard_of_a_job_is_the_same_for_ever() -> None:
    ids = [f"01900000-0000-7000-8000-{number:012}" for number in range(16_000)]
    assert [shard_of(one, 16) for one in ids[:8]] == [11, 15, 13, 7, 2, 3, 10, 7]
    assert shard_of("0190A000-0000-7000-8000-00000000000F", 16) == shard_of("0190a000-0000-7000-8000-00000000000f", 16)
    sizes = [sum(shard_of(one, 16) == shard for one in ids) for shard in range(16)]
    assert 900 < min(sizes) <= max(sizes) < 1100
    assert {shard_of(one, 1) for one in ids} == {0}


# Two sessions in every order: SQLite puts them in line, PostgreSQL does not.


async def begun(url: str, name: str, **parameters: Any) -> tuple[asyncpg.Connection, list[Any]]:
    """A transaction of somebody else that has run one of our statements and is still open."""
    connection = await asyncpg.connect(url, server_settings={"search_path": "fleetcron"})
    await connection.execute("BEGIN")
    statement = Statements.for_engine("postgres")[name]
    return connection, await connection.fetch(statement.sql, *(parameters[key] for key in statement.parameters))


async def commit(connection: asyncpg.Connection) -> None:
    await connection.execute("COMMIT")
    await connection.close()


async def waits_for_a_lock(connection: asyncpg.Connection) -> None:
    """Return when some session waits for what this one has."""
    sql = "SELECT count(*) FROM pg_stat_activity WHERE pg_backend_pid() = ANY (pg_blocking_pids(pid))"
    while not await connection.fetchval(sql):
        await asyncio.sleep(0)


ROWS = '[{"region":"*","shard":0,"term":1}]'


def test_a_plan_in_flight_delays_the_take_over_of_its_shard_only(postgres_url: str) -> None:
    async def scenario() -> None:
        async with hand_cranked(postgres_url, NOON_MS) as (engine, clock):
            shards = Shards(engine)
            value(await shards.take("*", [0, 1], "a", TTL_MS))
            await clock.advance(TTL_MS)
            planner, fenced = await begun(postgres_url, "shards_fence", held=ROWS)
            assert len(fenced) == 1
            assert value(await shards.take("*", [0, 1], "b", TTL_MS)) == held((1, 2))
            await commit(planner)
            assert value(await shards.take("*", [0, 1], "b", TTL_MS)) == held((0, 2), (1, 2))
            late, fenced = await begun(postgres_url, "shards_fence", held=ROWS)
            assert fenced == []  # the old term is refused from now on
            await commit(late)

    asyncio.run(scenario())


@pytest.mark.parametrize("renewed", [True, False])
def test_a_renewal_and_a_take_over_at_once_have_one_winner(postgres_url: str, renewed: bool) -> None:
    """S4-21: whoever commits first has the shard, the other one gets nothing."""

    async def scenario() -> None:
        async with hand_cranked(postgres_url, NOON_MS) as (engine, clock):
            shards = Shards(engine)
            value(await shards.take("*", [0], "a", TTL_MS))
            await clock.advance(TTL_MS)
            if renewed:
                first, found = await begun(postgres_url, "shards_renew_if_mine", node_id="a", held=ROWS, ttl_ms=TTL_MS)
                second = asyncio.create_task(shards.take("*", [0], "b", TTL_MS))
            else:
                theirs = ROWS.replace('"term":1', '"term":2')
                first, found = await begun(postgres_url, "shards_take_if_free", node_id="b", held=theirs, ttl_ms=TTL_MS)
                second = asyncio.create_task(shards.renew("a", held((0, 1)), TTL_MS))
            assert len(found) == 1
            await waits_for_a_lock(first)
            await commit(first)
            assert value(await second) == []
            assert [lease.held.owner for lease in await shards.owners()] == ["a" if renewed else "b"]

    asyncio.run(scenario())


def test_two_takers_at_once_share_what_is_free(postgres_url: str) -> None:
    async def scenario() -> None:
        async with hand_cranked(postgres_url, NOON_MS) as (engine, _), opened(postgres_url) as other:
            shards = Shards(engine)
            taken_once = value(await shards.take("*", [0, 1], "a", TTL_MS))
            value(await shards.release("a", taken_once))
            first, found = await begun(postgres_url, "shards_lock_terms", region="*", shards="[0]")
            assert len(found) == 1
            assert value(await Shards(other).take("*", [0, 1], "b", TTL_MS)) == held((1, 2))  # it does not wait
            await commit(first)
            both = await asyncio.gather(
                *(
                    Shards(one).take("*", list(range(2, 40)), name, TTL_MS)
                    for one, name in ((engine, "a"), (other, "b"))
                )
            )
            taken = [one.shard for answer in both for one in value(answer)]
            assert len(taken) == len(set(taken))

    asyncio.run(scenario())


def a_job(job_id: str, region: str = "*") -> str:
    return (
        "INSERT INTO jobs (job_id, tenant, name, type, pool, region, state, revision, definition, created_by,"
        f" created_ms, updated_ms) VALUES ('{job_id}', 't', '{job_id}', 'x', 'p', '{region}', 'active', 1, '{{}}',"
        " 'me', 0, 0);\nINSERT INTO cursors (job_id, region, shard, state, timing_id, revision, cursor_ms, ticks_used,"
        f" next_due_ms) VALUES ('{job_id}', '{region}', {shard_of(job_id, 16)}, 'active', 1, 1, 0, 0, 5);\n"
    )


def a_gap(job_id: str) -> str:
    return (
        "INSERT INTO gaps (job_id, region, shard, from_ms, to_ms, cause, revision, timing_id, almanac, trimmed)"
        f" VALUES ('{job_id}', '*', {shard_of(job_id, 16)}, 0, 9, 'outage', 1, 1, 1, 0);"
    )
