"""Who of the living workers could run a job: for whoever is about to give it to them, and for whoever wonders why it
does not run. One read tells it of all jobs.

What is known is what workers have said: the pools that they serve, and what they lack (`executors/refusals.py`). That
nothing speaks against a worker does not mean that it can: a function that nobody has looked for may not be there.
"""

from collections.abc import Collection, Sequence
from typing import Final

from fleetcron.executors.refusals import why_lacking
from fleetcron.model.definition import Definition
from fleetcron.model.job import Job
from fleetcron.model.shard import ANYWHERE
from fleetcron.model.target import handler_key, unserved
from fleetcron.store.store import Store
from fleetcron.store.workers import Worker
from fleetcron.times.instants import LAST_MS

_SHOWN: Final = 3  # workers, or reasons


class Crew:
    """The workers that live. Jobs that are alike are thought about once: there may be 10,000 of them. `planned`: the
    regions in which somebody plans, if that was asked."""

    def __init__(self, workers: Sequence[Worker], now_ms: int, planned: Collection[str] | None = None) -> None:
        self.workers = workers
        self.planned = planned
        self.now_ms = now_ms  # when that was
        self.pools = {pool for worker in workers for pool in worker.pools}
        self._known: dict[tuple[str, str], str | None] = {}

    def why_not(self, definition: Definition) -> str | None:
        """Why none of them can run it; None if nothing is known that speaks against one of them."""
        if self.planned is not None and (definition.region or ANYWHERE) not in self.planned:
            where = "" if definition.region is None else f" in the region {definition.region}"
            return f"no scheduler is at work{where}, so nobody plans its ticks (fleetcron serve)"
        pool, handler = definition.pool, handler_key(definition.run)
        if (pool, handler) not in self._known:
            self._known[pool, handler] = unserved(definition.run) or self._why_not(pool, handler)
        return self._known[pool, handler]

    def warning(self, job: Job) -> str | None:
        """For whoever writes a job or looks at one. While nobody works at all, it is not this job that is wrong."""
        is_ours = job.state == "active" and job.definition.shadow_ms != LAST_MS
        return self.why_not(job.definition) if self.workers and is_ours else None

    def _why_not(self, pool: str, handler: str) -> str | None:
        there = [worker for worker in self.workers if pool in worker.pools]
        if not there:
            return f"no worker serves the pool {pool} (fleetcron worker --pool {pool}=2)"
        by_reason: dict[str, list[str]] = {}
        for worker in there:
            reason = why_lacking(worker.lacks, handler)
            if reason is None:
                return None
            by_reason.setdefault(reason, []).append(worker.node_id)
        told = [f"{_some(names)}: {reason}" for reason, names in by_reason.items()]
        what = "a text for the shell" if handler == "shell" else handler
        return f"no worker of the pool {pool} can run {what} ({'; '.join(told[:_SHOWN])})"


async def living(store: Store, *coming: Worker) -> Crew:
    """With those that are about to join, if some are."""
    seen = await store.workers.list()
    return Crew([*(worker for worker in seen.workers if worker.expires_ms > seen.now_ms), *coming], seen.now_ms)


async def fleet(store: Store) -> Crew:
    """For whoever gives jobs to the fleet: runs must be planned too."""
    crew, view = await living(store), await store.shards.view()
    return Crew(crew.workers, crew.now_ms, {each.held.region for each in view.leases if each.expires_ms > view.now_ms})


def _some(names: Sequence[str]) -> str:
    more = len(names) - _SHOWN
    return ", ".join(names[:_SHOWN]) + (f" and {more} more" if more > 0 else "")
