"""Who gets the slots when everybody wants them: counted by the handlers themselves, never timed."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from fleetcron.model.rules import OverlapRule
from fleetcron.store.engine import Script
from fleetcron.store.rows import rows
from fleetcron.store.written import Ok
from tests.worker.crew import PATIENCE_S, WHENEVER, Crew, crew, job

ENGINES = pytest.mark.parametrize("engine", ["sqlite_memory", "postgres18"])
SLOTS = 4
SMALL = [f"small-{number:02}" for number in range(20)]


class Order:
    """A handler that writes down for whom it was called."""

    def __init__(self) -> None:
        self.tenants: list[str] = []
        self._changed = asyncio.Condition()

    async def handler(self, ctx: Any) -> None:
        async with self._changed:
            self.tenants.append(ctx.tenant)
            self._changed.notify_all()

    async def until(self, is_so: Callable[[list[str]], bool]) -> None:
        async with asyncio.timeout(PATIENCE_S), self._changed:
            await self._changed.wait_for(lambda: is_so(self.tenants))


def played(request: pytest.FixtureRequest, engine: str, scenario: Callable[[Crew, Order], Awaitable[None]]) -> None:
    url = request.getfixturevalue(f"{engine}_url")

    async def play() -> None:
        order = Order()
        async with crew(url, {"t:f": order.handler}, pools=(f"default={SLOTS}",)) as made:
            await scenario(made, order)

    asyncio.run(play())


async def plan(made: Crew, **runs: int) -> None:
    """So many runs for each tenant, all due: one transaction, in this order."""
    names = {tenant.replace("_", "-"): number for tenant, number in runs.items()}
    await made.define(*(job(name, tenant=name, overlap=OverlapRule("allow"), misfire=WHENEVER) for name in names))
    now_ms = await made.now_ms()
    planned = [
        {
            "job_id": made.jobs[tenant], "scheduled_for_ms": now_ms - 10_000 + number, "run_after_ms": now_ms - 5_000,
            "created_ms": now_ms, "window_from_ms": None, "window_to_ms": None, "almanac": 1, "covers": 1,
            "revision": 1, "kind": "tick", "lane": "live", "asked_by": None,
        }
        for tenant, most in names.items()
        for number in range(most)
    ]  # fmt: skip

    def script() -> Script[int]:
        [done] = yield "runs_insert_if_absent", {"rows": rows(planned)}
        yield "notify", {"topic": "work"}
        return int(done["runs"])

    assert await made.store.engine.write(script) == Ok(len(planned))


def small_are_served(tenants: list[str]) -> bool:
    return Counter(tenants).total() - tenants.count("noisy") == 5 * len(SMALL)


@ENGINES
def test_newcomers_are_served_in_their_first_rounds(engine: str, request: pytest.FixtureRequest) -> None:
    """S3-16: a tenant with 2,000 runs is at work, then 20 tenants with five each want something."""

    async def scenario(made: Crew, order: Order) -> None:
        await plan(made, noisy=2_000)
        made.join()
        await order.until(lambda tenants: len(tenants) >= 5 * SLOTS)
        await plan(made, **{name.replace("-", "_"): 5 for name in SMALL})
        await order.until(small_are_served)
        first = next(at for at, tenant in enumerate(order.tenants) if tenant != "noisy")
        last = max(at for at, tenant in enumerate(order.tenants) if tenant != "noisy")
        served = Counter(order.tenants[first : last + 1])
        assert [served[name] for name in SMALL] == [5] * len(SMALL)
        assert served["noisy"] <= 5 + 2 * SLOTS  # its own turn in each round, and what was claimed together
        # nobody is a round ahead: each has begun its n-th before anybody has begun the one after the next
        small = [tenant for tenant in order.tenants[first : last + 1] if tenant != "noisy"]
        for at in range(len(small)):
            begun = Counter(small[: at + 1])
            assert max(begun.values()) - min(begun[name] for name in SMALL) <= 2

    played(request, engine, scenario)


@ENGINES
def test_a_backlog_of_the_same_instant_is_not_in_the_way(engine: str, request: pytest.FixtureRequest) -> None:
    """S3-16: all are due at once, and the runs of the noisy one were planned first."""

    async def scenario(made: Crew, order: Order) -> None:
        await plan(made, noisy=2_000)
        await plan(made, **{name.replace("-", "_"): 5 for name in SMALL})
        made.join()
        await order.until(small_are_served)
        assert order.tenants.count("noisy") <= 5 + 4 * SLOTS

    played(request, engine, scenario)


@ENGINES
def test_weights_are_shares(engine: str, request: pytest.FixtureRequest) -> None:
    """S3-16: 1, 1, 2 and 4 of eight, in every stretch of the work; whoever has the slots to himself gets all."""
    weights = {"a": 1, "b": 1, "c": 2, "d": 4}
    rounds = 40

    async def scenario(made: Crew, order: Order) -> None:
        for tenant, weight in weights.items():
            assert isinstance(await made.store.limits.put_tenant(tenant, {"weight": weight}, actor="me"), Ok)
        await plan(made, **{tenant: rounds * weight + 20 for tenant, weight in weights.items()})
        made.join()
        await order.until(lambda tenants: len(tenants) >= rounds * 8)
        for begin in range(0, (rounds - 10) * 8, 8):
            served = Counter(order.tenants[begin : begin + 80])
            for tenant, weight in weights.items():
                assert abs(served[tenant] - 10 * weight) <= SLOTS, (begin, served)
        await order.until(lambda tenants: len(tenants) == sum(weights.values()) * rounds + 80)
        left = Counter(order.tenants)
        assert left == {tenant: rounds * weight + 20 for tenant, weight in weights.items()}

    played(request, engine, scenario)
