"""The safety net: what the normal path should have done and did not, because somebody vanished in the middle.

Every verb of the normal path is one transaction, so there should be nothing to find. What is found is put right, and
counted in an event: a number above zero is a fault to look for. On the way it forgets sessions that have ended, answers
to requests that are a day old and pings that nobody looks at any more, some of them each time.
"""

from dataclasses import dataclass
from typing import Final

from fleetcron.events import Event
from fleetcron.model.queued import too_late
from fleetcron.steps import step
from fleetcron.store.closing import close_runs
from fleetcron.store.engine import Engine, Script
from fleetcron.store.events import note_all
from fleetcron.store.forgotten import let_go
from fleetcron.store.idempotency import forget_old
from fleetcron.store.looking import Place
from fleetcron.store.pings import forget_old_pings
from fleetcron.store.rows import rows
from fleetcron.store.sessions import forget_ended
from fleetcron.store.written import Refused, Written

_MOST: Final = 500
_STRETCH: Final = 5_000  # runs that one sweep looks at
_REACH: Final = 200_000  # how far back it goes before it begins anew
_AFTER_MS: Final = 30_000  # the normal path has had its time


@dataclass(frozen=True, slots=True)
class Swept:
    expired: int = 0  # could not start in time
    stuck: int = 0  # waited for a key that nobody held
    adrift: int = 0  # had no answer and stood nowhere
    let_go: int = 0  # waited for something that does not hold them back any more; whoever changed it may be at it
    next_id: int = 0  # where the next sweep goes on
    next_place: Place | None = None  # and there, among those that are parked
    more: bool = False  # more of them are to be let go
    busy: bool = False  # somebody else sweeps


class Sweeping:
    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    async def sweep(self, after_id: int, after: Place | None = None) -> Written[Swept]:
        """`after_id` and `after` are what the last sweep said (`next_id`, `next_place`); 0 and None at first."""

        def script() -> Script[Swept | Refused]:
            step("sweep.begin")
            [lock] = yield "work_try_lock", {"name": "sweep"}
            if not lock["got"]:
                return Swept(next_id=after_id, next_place=after, busy=True)
            yield from forget_ended()  # before any pool is locked: claims need not wait for these three
            yield from forget_old()
            yield from forget_old_pings()
            [facts] = yield "fleet_now", {}
            now_ms = facts["now_ms"]
            expired = yield from _expire(now_ms)
            stuck = yield "queue_release_stuck", {"before_ms": now_ms - _AFTER_MS, "most": _MOST}
            adrift, next_id = yield from _adrift(after_id, now_ms)
            yield "shares_forget", {}
            if stuck or adrift:
                detail = {"stuck": len(stuck), "adrift": adrift}
                yield from note_all([Event("sweep_found", count=len(stuck) + adrift, detail=detail)])
                yield "notify", {"topic": "work"}
            # last: while it has these rows it waits for nobody. A claim that has its pool may wait for them.
            parked = yield from let_go(after, now_ms)
            step("sweep.written")
            return Swept(len(expired), len(stuck), adrift, parked.runs, next_id, parked.after, parked.more)

        return await self._engine.write(script)


def _expire(now_ms: int) -> Script[list[int]]:
    """Under the locks of their pools, and read again there: a claim may have taken one of them meanwhile."""
    found = yield "queue_expired", {"now_ms": now_ms, "most": _MOST}
    pools = sorted({row["pool"] for row in found})
    for pool in pools:
        yield "work_lock", {"name": f"pool:{pool}"}
    late = (yield "queue_expired", {"now_ms": now_ms, "most": _MOST}) if pools else []
    closes = [too_late(row["run_id"], row["deadline_ms"] + 1) for row in late if row["pool"] in pools]
    return (yield from close_runs(closes, now_ms))


def _adrift(after_id: int, now_ms: int) -> Script[tuple[int, int]]:
    [last] = yield "runs_last", {}
    start = max(after_id, last["run_id"] - _REACH, 0)
    until = min(start + _STRETCH, last["run_id"])
    call = {"after_id": start, "until_id": until, "before_ms": now_ms - 2 * _AFTER_MS}
    found = yield "runs_adrift", call
    if found:
        coming = [
            {"run_after_ms": row["run_after_ms"], "run_id": row["run_id"], "job_id": str(row["job_id"]),
             "lane": row["lane"]}
            for row in found
        ]  # fmt: skip
        yield "upcoming_insert", {"rows": rows(coming)}
    return len(found), 0 if until >= last["run_id"] else until
