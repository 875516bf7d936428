"""Limits that four workers share are never exceeded, are reached, and leave nobody behind.

The handlers write down themselves who is at work with them. First all of them wait inside: as many come in as the
limits allow, and that number is exact. Then everybody may go, and the rest follows.
"""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

import pytest

from fleetcron.model.definition import Definition
from fleetcron.model.rules import OverlapRule
from fleetcron.model.states import RunState
from fleetcron.store.written import Ok
from tests.worker.crew import PATIENCE_S, Crew, crew, job

ENGINES = pytest.mark.parametrize("engine", ["sqlite_memory", "postgres18"])
WORKERS = [f"w{number}" for number in range(4)]
POOLS = ("p1=4", "p2=4")  # of each worker

Place = tuple[str, ...]


@dataclass(frozen=True)
class Kind:
    """Of runs: what a handler knows of its job."""

    tenant: str
    pool: str = "p1"
    type: str = "report"

    @property
    def name(self) -> str:
        return f"{self.tenant}.{self.pool}.{self.type}"

    @property
    def definition(self) -> Definition:
        overlap = OverlapRule("allow")
        return job(self.name, tenant=self.tenant, pool=self.pool, type=self.type, overlap=overlap)

    @property
    def places(self) -> list[Place]:
        """Everything that a limit may count it under."""
        return [
            ("tenant", self.tenant),
            ("pool", self.pool),
            ("pool and tenant", self.pool, self.tenant),
            ("pool and type", self.pool, self.type),
        ]


class Log:
    """Who is at work, who was at most, and how many have been."""

    def __init__(self, kinds: list[Kind]) -> None:
        self._kinds = {kind.name: kind for kind in kinds}
        self.now: Counter[Place] = Counter()
        self.most: Counter[Place] = Counter()
        self.begun = 0
        self.may_go = asyncio.Event()
        self._changed = asyncio.Condition()

    async def handler(self, ctx: Any) -> None:
        places = self._kinds[ctx.job].places
        async with self._changed:
            self.begun += 1
            self.now.update(places)
            self.most |= self.now
            self._changed.notify_all()
        await self.may_go.wait()
        async with self._changed:
            self.now.subtract(places)
            self._changed.notify_all()

    async def until(self, is_so: Callable[[], bool]) -> None:
        async with asyncio.timeout(PATIENCE_S), self._changed:
            await self._changed.wait_for(is_so)


def played(
    request: pytest.FixtureRequest,
    engine: str,
    kinds: list[Kind],
    limit: Callable[[Crew], Awaitable[None]],
    runs: int,
    caps: Mapping[Place, int],
) -> None:
    """`runs` of each kind. `caps` are reached while nobody may go, and never exceeded, also while all come and go."""
    url = request.getfixturevalue(f"{engine}_url")

    async def play() -> None:
        log = Log(kinds)
        async with crew(url, {"t:f": log.handler}, pools=POOLS) as made:
            await made.define(*(kind.definition for kind in kinds))
            await limit(made)
            ids = [await made.trigger(kind.name, tenant=kind.tenant) for _ in range(runs) for kind in kinds]
            for name in WORKERS:
                made.join(name)
            await log.until(lambda: all(log.now[place] >= cap for place, cap in caps.items()))
            log.may_go.set()
            lines = await made.ended(*ids)
            assert {line.run.state for line in lines} == {RunState.SUCCEEDED}
            assert log.begun == len(ids)  # nobody twice
            assert {place: log.most[place] for place in caps} == caps

    asyncio.run(play())


@ENGINES
def test_a_tenant_in_flight_across_two_pools(engine: str, request: pytest.FixtureRequest) -> None:
    """S3-55: five at most, wherever they run; another tenant has what is left."""
    kinds = [Kind("acme", "p1"), Kind("acme", "p2"), Kind("other", "p2")]

    async def limit(made: Crew) -> None:
        assert isinstance(await made.store.limits.put_tenant("acme", {"max_in_flight": 5}, actor="me"), Ok)

    played(request, engine, kinds, limit, 10, {("tenant", "acme"): 5, ("tenant", "other"): 10})


@ENGINES
def test_quotas_of_a_pool(engine: str, request: pytest.FixtureRequest) -> None:
    """S3-57, S3-61: three of each tenant and four exports at most in one pool; the other pool has no quota."""
    kinds = [
        Kind("acme"), Kind("acme", type="export"), Kind("bolt", type="export"), Kind("cove", type="export"),
        Kind("acme", "p2", "export"),
    ]  # fmt: skip

    async def limit(made: Crew) -> None:
        fields = {"per_tenant": 3, "per_type": {"export": 4}}
        assert isinstance(await made.store.limits.put_pool("p1", fields, actor="me"), Ok)

    caps: dict[Place, int] = {
        ("pool and tenant", "p1", "acme"): 3,
        ("pool and type", "p1", "export"): 4,
        ("pool and type", "p2", "export"): 8,
    }
    played(request, engine, kinds, limit, 8, caps)


@ENGINES
def test_slots_of_a_pool(engine: str, request: pytest.FixtureRequest) -> None:
    """S3-57, S3-61: six in the whole fleet, although its workers have sixteen places."""
    kinds = [Kind("acme"), Kind("bolt"), Kind("acme", "p2")]

    async def limit(made: Crew) -> None:
        assert isinstance(await made.store.limits.put_pool("p1", {"slots": 6}, actor="me"), Ok)

    played(request, engine, kinds, limit, 12, {("pool", "p1"): 6, ("pool", "p2"): 12})


@ENGINES
def test_a_rate_in_every_window(engine: str, request: pytest.FixtureRequest) -> None:
    """S3-56: in any t seconds at most burst + rate × t starts; a start is counted when its run is claimed."""
    rate, burst, runs = 40, 4, 30
    url = request.getfixturevalue(f"{engine}_url")
    kinds = [Kind("brisk", "p1"), Kind("brisk", "p2"), Kind("other")]

    async def play() -> None:
        log = Log(kinds)
        log.may_go.set()
        async with crew(url, {"t:f": log.handler}, pools=POOLS) as made:
            await made.define(*(kind.definition for kind in kinds))
            fields = {"rate": f"{rate}/s", "burst": burst}
            assert isinstance(await made.store.limits.put_tenant("brisk", fields, actor="me"), Ok)
            ids = [await made.trigger(kind.name, tenant=kind.tenant) for _ in range(runs // 2) for kind in kinds]
            for name in WORKERS:
                made.join(name)
            lines = await made.ended(*ids)
            assert {line.run.state for line in lines} == {RunState.SUCCEEDED}
            claimed, started = [], []
            for line in lines:
                if line.tenant == "brisk":
                    claimed.append(made.claimed_ms(line.run.run_id) or 0)
                    started.append((await made.attempts(line.run.run_id))[0].started_ms)
        assert len(claimed) == runs
        assert most_over(claimed, rate) <= burst
        late_ms = max(after - before for before, after in zip(claimed, started, strict=True))
        assert most_over(started, rate) <= burst + rate * late_ms / 1000

    asyncio.run(play())


def most_over(instants_ms: list[int], rate: float) -> float:
    """By how many starts any window has more than its rate gives."""
    ordered = sorted(instants_ms)
    return max(
        last - first + 1 - rate * (ordered[last] - ordered[first]) / 1000
        for first in range(len(ordered))
        for last in range(first, len(ordered))
    )
