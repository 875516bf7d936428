"""The network swallows everything: whichever verb of the store is under way, its caller hears so in time."""

import asyncio
from collections.abc import Awaitable, Callable
from time import monotonic
from typing import Any, Final

import pytest

from fleetcron.errors import StoreUnavailable
from fleetcron.model.control import Wish
from fleetcron.model.outcome import Succeeded
from fleetcron.model.ping import Told
from fleetcron.policy.choose import choose
from fleetcron.store.claims import Claim
from fleetcron.store.ends import Ended
from fleetcron.store.history import Span
from fleetcron.store.steering import DeadFilter
from fleetcron.store.store import Store
from fleetcron.store.workers import Worker
from fleetcron.store.written import Ok, Unknown
from tests.faults.test_repeat import verbs_that_write
from tests.proof.twin import Mark, Piece
from tests.services.proxy import Fault, Proxy, proxy_to
from tests.store.engines import bare
from tests.worker.shop import QUICK, rank, settling

DEADLINE_S = 0.5  # of these engines; the default is 5
MERCY_S = 4.0  # the roll back after a failure (2 s), and a slow machine
GHOST = Worker("n1", "process", {"p1": 1}, {}, 1, 0, 0)

# Verbs of scheduling and of access are the same calls of the same engine; those that workers wait for are all here.
VERBS: Final[dict[str, Callable[[Store], Awaitable[Any]]]] = {
    "Workers.join": lambda s: s.workers.join("n1", "process", {"p1": 2}, 1000),
    "Workers.renew": lambda s: s.workers.renew("n1", 1000),
    "Workers.forsake": lambda s: s.workers.forsake("n1", settling(QUICK)),
    "Workers.lack": lambda s: s.workers.lack("n1", {"m:f": "no"}),
    "Workers.look_again": lambda s: s.workers.look_again("n1"),
    "Workers.close_pools": lambda s: s.workers.close_pools("n1"),
    "Workers.leave": lambda s: s.workers.leave("n1"),
    "Workers.bury": lambda s: s.workers.bury(GHOST, settling(QUICK), gone=True, by="n2"),
    "Queue.promote": lambda s: s.queue.promote(1000, 100, rank),
    "Claims.claim": lambda s: s.claims.claim(Claim("n1", "b", "p1", 2, 2), choose),
    "Attempts.finish": lambda s: s.attempts.finish("n1", [Ended(1, 1, Succeeded(), 1, 1)], settling(QUICK)),
    "Attempts.hand_back": lambda s: s.attempts.hand_back("n1", [(1, 1, "b")]),
    "AttemptOutput.append": lambda s: s.output.append("n1", [Piece(1, 1, 0, "x")], [Mark(1, 1, 0.5, "half")]),
    "Sweeping.sweep": lambda s: s.sweeping.sweep(0),
    "Following.sweep": lambda s: s.following.sweep(0),
    "Steering.trigger": lambda s: s.steering.trigger(("t1", "a"), None, actor="ann", key="k"),
    "Steering.enqueue": lambda s: s.steering.enqueue(("t1", "a"), None, actor="app", key="k"),
    "Steering.cancel": lambda s: s.steering.cancel([1], None, actor="ann"),
    "Steering.replay": lambda s: s.steering.replay([1], actor="ann"),
    "Steering.replay_many": lambda s: s.steering.replay_many(DeadFilter(), actor="ann"),
    "Steering.discard": lambda s: s.steering.discard([1], "old", actor="ann"),
    "ControlRecords.switch": lambda s: s.controls.switch(Wish("tenant", "t1", 0, reason="test"), actor="ann"),
    "ControlRecords.release": lambda s: s.controls.release("tenant", "t1", actor="ann"),
    "Pings.note": lambda s: s.pings.note("t1", "a", Told("end", 0, ping_id="p")),
    "LimitRecords.put_tenant": lambda s: s.limits.put_tenant("t1", {"weight": 2}, actor="ann"),
    "LimitRecords.delete_tenant": lambda s: s.limits.delete_tenant("t1", actor="ann"),
    "LimitRecords.put_pool": lambda s: s.limits.put_pool("p1", {"slots": 2}, actor="ann"),
    "LimitRecords.delete_pool": lambda s: s.limits.delete_pool("p1", actor="ann"),
}
OTHERS: Final = (
    "almanac", "backfills", "cursors", "gaps", "idempotency", "jobs", "keys", "looking", "migrations", "nodes",
    "sessions", "shards",
)  # fmt: skip
READS: Final[dict[str, Callable[[Store], Awaitable[Any]]]] = {
    "what is held": lambda s: s.workers.held("n1"),
    "the workers": lambda s: s.workers.list(),
    "errands": lambda s: s.definitions.held_by("n1"),
    "when to look again": lambda s: s.queue.next_look(["p1"]),
    "the clock": lambda s: s.clock.read(),
    "runs": lambda s: s.history.runs(Span()),
}


def test_no_verb_is_left_out() -> None:
    # follow comes after an edit, and leaves to Following.sweep what the store does not answer
    assert set(VERBS) == verbs_that_write(OTHERS) - {"follow"}


@pytest.mark.parametrize("fails", [Proxy.hole, Proxy.cut], ids=["hole", "cut"])
def test_every_call_of_a_worker_ends_in_time(postgres18_url: str, fails: Callable[[Proxy], None]) -> None:
    """Black hole and reset: no call waits for ever, more calls than connections included; then all of them work."""

    async def scenario() -> None:
        async with proxy_to(postgres18_url) as proxy, bare(proxy.url, deadline_s=DEADLINE_S, connections=4) as engine:
            store = Store(engine)
            await asyncio.gather(*(store.workers.list() for _ in range(4)))  # idle connections
            fails(proxy)
            for _ in range(2):  # on connections that lead nowhere, and by connecting anew
                took = await asyncio.gather(*(seconds(call(store)) for call in (*VERBS.values(), *READS.values())))
                print(f"\nthe longest took {max(took):.2f} s")
                assert max(took) < DEADLINE_S + MERCY_S
            proxy.heal()
            for call in VERBS.values():
                assert not isinstance(await call(store), Unknown)

    asyncio.run(scenario())


async def seconds(call: Awaitable[Any]) -> float:
    began = monotonic()
    with pytest.raises(StoreUnavailable):
        await call
    return monotonic() - began


@pytest.mark.parametrize("fault", [Fault.HOLE_REPLY, Fault.HOLE_REQUEST], ids=["reply", "request"])
def test_a_commit_that_is_swallowed_is_unknown_in_time(postgres18_url: str, fault: Fault) -> None:
    """The worst moment: the caller is told that nobody knows, and asking again gives the answer."""
    verbs = ("Workers.join", "Workers.renew", "Claims.claim", "Attempts.finish", "LimitRecords.put_tenant")

    async def scenario() -> None:
        async with proxy_to(postgres18_url) as proxy, bare(proxy.url, deadline_s=DEADLINE_S, connections=4) as engine:
            store = Store(engine)
            assert isinstance(await VERBS["Workers.join"](store), Ok)
            for verb in verbs:
                proxy.at(b"COMMIT", fault)
                began = monotonic()
                assert isinstance(await VERBS[verb](store), Unknown), verb
                assert monotonic() - began < DEADLINE_S + MERCY_S, verb
                assert isinstance(await again(lambda verb=verb: VERBS[verb](store)), Ok), verb  # type: ignore[misc]

    asyncio.run(scenario())


async def again(call: Callable[[], Awaitable[Any]]) -> Any:
    """Until somebody answers: the half of it that the server still has keeps its locks for a moment."""
    async with asyncio.timeout(30):
        while True:
            try:
                return await call()
            except StoreUnavailable:
                await asyncio.sleep(0.01)
