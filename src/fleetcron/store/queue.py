"""From planned to due: runs enter the queue of their pool a moment before they may start."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, TypeAlias

from fleetcron.steps import step
from fleetcron.store.dbclock import Reading, read_clock
from fleetcron.store.engine import Engine, Row, Script
from fleetcron.store.rows import rows, texts
from fleetcron.store.unqueued import LATE_MOST, Lateness, answer_late
from fleetcron.store.written import Ok, Refused, Written

_FIRST: Final = 500  # runs, while no burst is known: those that stand behind one wait for this transaction
_LOOK_ROUND: Final = 20
_SEEN: Final = 250_000  # of a burst; a look takes about 2.5 us for each

_PASSED_MS: Final = 1_000  # so long; then they are tried again, since somebody may have edited them

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
class Passed:
    """Jobs that are passed over, since an instant: only a newer release can say what becomes of their late ticks."""

    jobs: frozenset[str] = frozenset()
    since_ms: int = 0


@dataclass(frozen=True, slots=True)
class Promoted:
    """`more`: there was more than fits into one transaction. `in_turn`: there was before, too, and all of it was looked
    at. `busy`: somebody else is at it."""

    runs: int = 0
    more: bool = False
    in_turn: bool = False
    busy: bool = False
    passed: Passed = field(default=Passed(), compare=False)


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
        self._full = 0  # transactions in a row that were not enough: a burst
        self._passed = Passed()

    async def promote(
        self, ahead_ms: int, most: int, rank: Ranking, late: Lateness | None = None, late_most: int = LATE_MOST
    ) -> Written[Promoted]:
        """Queue what may start within `ahead_ms`. `rank` is pure: it is given where tenants stand, and says where the
        runs and the tenants stand then. So is `late`, which says what becomes of ticks that nobody queued in time
        (None: they are queued like the others); about `late_most` of these in one transaction, the others in the next.

        While a burst goes on runs are taken from every tenant in turn: whoever has a few at the hour does not wait
        until 100,000 of somebody else's, planned before them, are queued. What became due first is looked at, and what
        became due last; all of it when the burst is noticed, and now and then.

        Jobs whose late ticks only a newer release can answer are left out for a while when they have been met: they
        stay the oldest, and would leave room for nobody else."""
        full, is_wide = self._full, self._full % _LOOK_ROUND == 1
        most = most if full else min(most, _FIRST)
        seen = _SEEN if is_wide else most
        last = most if full else 0
        self._full += is_wide  # should that take too long, it is not tried again at once: the next one sees less

        def script() -> Script[Promoted | Refused]:
            step("promote.lock")
            [lock] = yield "work_try_lock", {"name": "promote"}
            if not lock["got"]:
                return Promoted(busy=True)
            [facts] = yield "fleet_now", {}
            now_ms = facts["now_ms"]
            passed = self._passed if 0 <= now_ms - self._passed.since_ms < _PASSED_MS else Passed(since_ms=now_ms)
            limits = {"most": most, "first": seen, "last": last}
            call = {"until_ms": now_ms + ahead_ms, "without": texts(sorted(passed.jobs))}
            taken = yield "upcoming_take", {**call, **limits}
            if not taken:
                return Promoted(passed=passed)
            said = yield from answer_late(taken, late, now_ms, late_most)
            left_out = said.closed | said.put_back
            queued = [row for row in taken if row["run_id"] not in left_out]
            coming = [
                Coming(r["pool"], "catchup" if r["run_id"] in said.caught_up else r["lane"], r["priority"], r["tenant"],
                       r["weight"])
                for r in queued
            ]  # fmt: skip
            shares = yield from _shares(coming)
            ranks, moved = rank(coming, shares)
            yield "queue_insert", {"rows": rows(map(_queue_row, queued, ranks))}
            yield "shares_write", {"rows": _share_rows(moved)}
            yield "notify", {"topic": "work"}
            step("promote.written")
            passed = replace(passed, jobs=passed.jobs | said.unreadable)
            back = [row for row in taken if row["run_id"] in said.put_back and str(row["job_id"]) not in passed.jobs]
            more = len(taken) == most or bool(back)
            return Promoted(len(taken) - len(said.put_back), more, in_turn=more and full > 0, passed=passed)

        done = await self._engine.write(script)
        if isinstance(done, Ok):
            self._passed = self._passed if done.value.busy else done.value.passed
            self._full = full if done.value.busy else full + 1 if done.value.more else 0
        return done

    async def has_work(self, pool: str) -> bool:
        """Whether a claim may find something: a run that only waits for a slot, or one that is to be looked at."""

        def script() -> Script[bool]:
            [facts] = yield "fleet_now", {}
            [ready] = yield "queue_ready_count", {"pool": pool, "most": 1}
            [row] = yield "queue_next", {"pools": texts([pool]), "without": "[]"}
            return bool(ready["runs"]) or (row["look_ms"] is not None and row["look_ms"] <= facts["now_ms"])

        return await self._engine.read(script)

    async def next_look(self, pools: Sequence[str]) -> NextLook:
        """When somebody has to look again."""
        call = {"pools": texts(pools), "without": texts(sorted(self._passed.jobs))}
        loop_s = asyncio.get_running_loop().time

        def script() -> Script[NextLook]:
            [row] = yield "queue_next", call
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
