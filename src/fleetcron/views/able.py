"""Who of the living workers could run a job, and whether a scheduler plans it: for whoever is about to give it to them,
and for whoever wonders why it does not run. One read tells it of all jobs.

What is known is what workers have said: the pools that they serve, and what they lack (`executors/refusals.py`). That
nothing speaks against a worker does not mean that it can: a function that nobody has looked for may not be there.
"""

from collections.abc import Collection, Iterable, Sequence
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
        """Why it will not run; None if nothing is known that speaks against it."""
        return self._unplanned(definition) or self.unable(definition)

    def unable(self, definition: Definition) -> str | None:
        """Why none of the workers can run it, whoever plans it."""
        pool, handler = definition.pool, handler_key(definition.run)
        if (pool, handler) not in self._known:
            self._known[pool, handler] = unserved(definition.run) or self._why_not(pool, handler)
        return self._known[pool, handler]

    def warning(self, job: Job) -> str | None:
        """For whoever writes a job or looks at one."""
        is_ours = job.state == "active" and job.definition.shadow_ms != LAST_MS
        return self.doubt(job.definition) if is_ours else None

    def doubt(self, definition: Definition) -> str | None:
        """While nobody plans at all, or nobody works, it is not this job that is wrong."""
        unplanned = self._unplanned(definition) if self.planned else None
        unable = self.unable(definition) if self.workers else None
        return "; ".join(each for each in (unplanned, unable) if each) or None

    def _unplanned(self, definition: Definition) -> str | None:
        if self.planned is None or (definition.region or ANYWHERE) in self.planned:
            return None
        region = definition.region
        where, option = ("", "") if region is None else (f" in the region {region}", f" --region {region}")
        return f"no scheduler is at work{where}, so nobody plans its ticks (fleetcron serve{option})"

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


async def fleet(store: Store, *coming: Worker, planning: Iterable[str] = ()) -> Crew:
    """For whoever gives jobs to the fleet: runs must be planned too. `planning`: the regions of a scheduler that is
    about to join."""
    crew, view = await living(store, *coming), await store.shards.view()
    planned = {each.held.region for each in view.leases if each.expires_ms > view.now_ms}
    return Crew(crew.workers, crew.now_ms, planned.union(planning))


def _some(names: Sequence[str]) -> str:
    more = len(names) - _SHOWN
    return ", ".join(names[:_SHOWN]) + (f" and {more} more" if more > 0 else "")
