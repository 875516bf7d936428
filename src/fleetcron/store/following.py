"""Let the queue follow its jobs: what an edit changes holds for the runs that stand in it, too.

A row of the queue says what its job said when it was queued: pool, priority, handler, keys. After an edit the rows that
nobody holds are written anew, a page at a time, under the locks of the pools that they leave: a claim of such a run
comes before or after. In transactions of their own, for the one of the edit has locked its jobs and cursors, and nobody
waits for the lock of a pool with something locked (store/claims).

What is left behind is found by upkeep: the node died after the edit, or somebody gave a run back who had read the job
before it.
"""

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from fleetcron.errors import StoreUnavailable
from fleetcron.store.closing import release
from fleetcron.store.engine import Engine, Row, Script
from fleetcron.store.rows import ids, rows, texts
from fleetcron.store.written import Ok, Refused, Written

PAGE: Final = 2_000
_STRETCH: Final = 5_000  # rows of the queue that upkeep looks at each time
_FOR_EVER: Final = 1 << 62


@dataclass(frozen=True, slots=True)
class Followed:
    runs: int
    next_id: int  # where the next page begins; 0: that was all


class Following:
    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    async def sweep(self, after_id: int) -> Written[Followed]:
        """The next stretch of the queue, whatever its jobs. `after_id` is what the last one said; 0 at first."""

        def script() -> Script[Followed | Refused]:
            [stretch] = yield "queue_stretch", {"after_id": after_id, "most": _STRETCH}
            if not stretch["runs"]:
                return Followed(0, 0)
            until_id = stretch["last_id"]
            done = yield from _page(None, after_id, until_id)
            if done.next_id:
                return done
            return Followed(done.runs, until_id if stretch["runs"] == _STRETCH else 0)

        return await self._engine.write(script)


async def follow(engine: Engine, job_ids: Sequence[str]) -> None:
    """After an edit of these jobs. The edit is written: what cannot be done now is left to upkeep."""

    def wait() -> Script[Refused | None]:
        # Whoever queues runs just now may have read the jobs before the edit. Alone: behind the lock of a pool
        # somebody may stand still, and nobody must keep the fleet from queueing meanwhile.
        yield "work_lock", {"name": "promote"}
        return None

    with suppress(StoreUnavailable):
        await engine.write(wait)
        after_id: int | None = 0
        while after_id is not None:

            def page(after_id: int = after_id) -> Script[Followed | Refused]:
                return (yield from _page(texts(job_ids), after_id, _FOR_EVER))

            done = await engine.write(page)
            after_id = done.value.next_id or None if isinstance(done, Ok) else None


def _page(jobs: str | None, after_id: int, until_id: int) -> Script[Followed]:
    wanted = {"jobs": jobs, "after_id": after_id, "until_id": until_id, "most": PAGE}
    found = yield "queue_outdated", wanted
    if not found:
        return Followed(0, 0)
    pools = sorted({row["pool"] for row in found})
    for pool in pools:
        yield "work_lock", {"name": f"pool:{pool}"}
    found = yield "queue_outdated", wanted  # some may have been claimed while we waited
    mine = [row for row in found if row["pool"] in pools]
    moved = yield "queue_follow", {"ids": ids(row["run_id"] for row in mine), "pools": texts(pools)}
    # Somebody may have been let go on because a key was free, and wants another one now: it is the turn of the next.
    keys = {row["claim_key"] for row in mine if row["claim_key"] is not None and not row["leased"]}
    yield from release((("key", key) for key in sorted(keys)), most=1)
    if moved:
        yield "shares_write", {"rows": _shares(moved)}
        yield "notify", {"topic": "work"}
    return Followed(len(moved), found[-1]["run_id"] if len(found) == PAGE else 0)


def _shares(moved: Iterable[Row]) -> str:
    """The queues that they stand in now, which may be new; and their tenants are as far as their last run."""
    reached: dict[tuple[str, str, int, str], int] = {}
    for row in moved:
        queue = row["pool"], row["lane"], row["priority"]
        reached.setdefault((*queue, ""), 0)
        mine = (*queue, row["tenant"])
        reached[mine] = max(row["rank"], reached.get(mine, 0))
    return rows(
        {"pool": pool, "lane": lane, "priority": priority, "tenant": tenant, "rank": rank}
        for (pool, lane, priority, tenant), rank in sorted(reached.items())
    )
