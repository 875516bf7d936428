"""From planned to due: runs enter the queue of their pool a moment before they may start."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from fleetcron.steps import step
from fleetcron.store.dbclock import Reading, read_clock
from fleetcron.store.engine import Engine, Row, Script
from fleetcron.store.rows import rows, texts
from fleetcron.store.written import Refused, Written

Place: TypeAlias = tuple[str, str, int, str]
Shares: TypeAlias = Mapping[Place, int]


@dataclass(frozen=True, slots=True)
class Coming:
    """A run that is to be queued: where, and for whom."""

    pool: str
    lane: str
    priority: int
    tenant: str
    weight: int


@dataclass(frozen=True, slots=True)
class Promoted:
    """`more`: there was more than fits into one transaction. `busy`: somebody else is at it."""

    runs: int = 0
    more: bool = False
    busy: bool = False


Ranking: TypeAlias = Callable[[Sequence[Coming], Shares], tuple[list[int], dict[Place, int]]]


@dataclass(frozen=True, slots=True)
class NextLook:
    clock: Reading
    upcoming_ms: int | None  # when the next planned run may start
    look_ms: int | None  # when a parked run is to be looked at

    @property
    def now_ms(self) -> int:
        return self.clock.now_us // 1000


class Queue:
    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    async def promote(self, ahead_ms: int, most: int, rank: Ranking) -> Written[Promoted]:
        """Queue what may start within `ahead_ms`. `rank` is pure: it is given where tenants stand, and says where the
        runs and the tenants stand then."""

        def script() -> Script[Promoted | Refused]:
            step("promote.lock")
            [lock] = yield "work_try_lock", {"name": "promote"}
            if not lock["got"]:
                return Promoted(busy=True)
            [facts] = yield "fleet_now", {}
            taken = yield "upcoming_take", {"until_ms": facts["now_ms"] + ahead_ms, "most": most}
            if not taken:
                return Promoted()
            coming = [Coming(r["pool"], r["lane"], r["priority"], r["tenant"], r["weight"]) for r in taken]
            shares = yield from _shares(coming)
            ranks, moved = rank(coming, shares)
            yield "queue_insert", {"rows": rows(map(_queue_row, taken, ranks))}
            yield "shares_write", {"rows": _share_rows(moved)}
            yield "notify", {"topic": "work"}
            step("promote.written")
            return Promoted(len(taken), len(taken) == most)

        return await self._engine.write(script)

    async def next_look(self, pools: Sequence[str]) -> NextLook:
        """When somebody has to look again."""
        text = texts(pools)
        loop_s = asyncio.get_running_loop().time

        def script() -> Script[NextLook]:
            [row] = yield "queue_next", {"pools": text}
            reading = yield from read_clock(loop_s)
            return NextLook(reading, row["upcoming_ms"], row["look_ms"])

        return await self._engine.read(script)


def _shares(coming: Sequence[Coming]) -> Script[dict[Place, int]]:
    places = {(c.pool, c.lane, c.priority, c.tenant) for c in coming}
    places |= {(pool, lane, priority, "") for pool, lane, priority, _ in places}
    asked = rows({"pool": p[0], "lane": p[1], "priority": p[2], "tenant": p[3]} for p in sorted(places))
    found = yield "shares_read", {"rows": asked}
    return {(row["pool"], row["lane"], row["priority"], row["tenant"]): row["rank"] for row in found}


def _share_rows(shares: Shares) -> str:
    return rows(
        {"pool": pool, "lane": lane, "priority": priority, "tenant": tenant, "rank": rank}
        for (pool, lane, priority, tenant), rank in sorted(shares.items())
    )


def _queue_row(row: Row, rank: int) -> dict[str, Any]:
    return {
        "run_id": row["run_id"],
        "pool": row["pool"],
        "priority": row["priority"],
        "rank": rank,
        "due_ms": row["due_ms"],
    }
