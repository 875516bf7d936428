"""What a simulation takes from a living fleet: its jobs, calendars, limits and slots, and how long its work takes."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from fleetcron.model.calendar import CalendarDocument
from fleetcron.model.definition import Definition
from fleetcron.model.rules import EveryEntry
from fleetcron.model.run import RunLine
from fleetcron.simulate.durations import Lasting, Tick
from fleetcron.simulate.scenario import Name
from fleetcron.store.history import Span
from fleetcron.store.job_pages import JobFilter
from fleetcron.store.jobs import JobLine
from fleetcron.store.store import Store
from fleetcron.views.calendars import stored_calendars

DELETED: Final = "deleted"
_PAGE: Final = 500
_SEEN: Final = 200  # runs of a job that its durations are learned from


@dataclass(slots=True)
class Fleet:
    """`idle` jobs are paused, cancelled or finished; or others depend on them, and they are deleted. `slots` by pool
    are those of all the workers that live."""

    definitions: list[Definition] = field(default_factory=list)
    calendars: Sequence[CalendarDocument] = ()
    idle: dict[Name, str] = field(default_factory=dict)  # and their states
    workers: int = 0
    slots: Counter[str] = field(default_factory=Counter)
    tenants: dict[str, dict[str, Any]] = field(default_factory=dict)
    pools: dict[str, dict[str, Any]] = field(default_factory=dict)
    seen: dict[str, list[int]] = field(default_factory=dict)
    past: dict[Tick, list[Lasting]] = field(default_factory=dict)


async def jobs_of(store: Store) -> Fleet:
    fleet = Fleet(calendars=await stored_calendars(store))
    after: Name | None = None
    while page := await store.jobs.list(JobFilter(after=after), _PAGE):
        active = [line for line in page if line.job.state == "active"]
        fleet.idle |= {_name(each.job.definition): each.job.state for each in page if each.job.state != "active"}
        found = await store.jobs.find([_name(each.job.definition) for each in active])
        used = {standing.job.job_id: standing.at.ticks_used for standing in found.standings.values()}
        fleet.definitions += [_as_it_stands(line, used.get(line.job.job_id, 0)) for line in active]
        after = _name(page[-1].job.definition)
    known = {*map(_name, fleet.definitions), *fleet.idle}
    needed = {(each.tenant, need) for each in fleet.definitions for need in each.depends_on}
    fleet.idle |= dict.fromkeys(needed - known, DELETED)
    for tenant in await store.limits.tenants():
        if tenant.updated_ms is not None:
            fleet.tenants[tenant.tenant.name] = tenant.tenant.as_document()
    for pool in await store.limits.pools():
        if pool.updated_ms is not None:
            fleet.pools[pool.pool.name] = pool.pool.as_document()
    await _capacity(store, fleet)
    return fleet


async def _capacity(store: Store, fleet: Fleet) -> None:
    seen = await store.workers.list()
    living = [each.pools for each in seen.workers if each.expires_ms > seen.now_ms and each.pools]
    fleet.workers = len(living)
    for pools in living:
        fleet.slots.update(pools)


async def learn(store: Store, fleet: Fleet, definitions: Sequence[Definition]) -> int:
    """How long their last runs took. The number of attempts that were looked at."""
    looked = 0
    for each in definitions:
        lines = await store.history.runs(Span(each.tenant, each.name), state="succeeded", limit=_SEEN)
        lasted = [ms for line in lines for ms in await _lasted(store, line)]
        looked += len(lasted)
        if lasted:
            fleet.seen[each.seed] = sorted(lasted)
    return looked


async def _lasted(store: Store, line: RunLine) -> list[int]:
    """Of its attempts that succeeded: one, and most runs have no other."""
    run = line.run
    if run.attempt == 1 and run.started_ms is not None and run.finished_ms is not None:
        return [max(0, run.finished_ms - run.started_ms)]
    attempts = await store.past_attempts.of_run(run.run_id)
    return [each.lasted_ms for each in attempts if each.outcome == "succeeded" and each.lasted_ms is not None]


def _name(definition: Definition) -> Name:
    return definition.tenant, definition.name


def _as_it_stands(line: JobLine, used: int) -> Definition:
    """The ticks that it has: an interval counts from the job's creation, and used ticks are used."""
    job = line.job
    entries = tuple(
        replace(entry, anchor_ms=job.created_ms - job.created_ms % 1000)
        if isinstance(entry, EveryEntry) and entry.anchor_ms is None
        else entry
        for entry in job.definition.schedule
    )
    most = job.definition.max_ticks
    left = None if most is None else max(1, most - used)
    return replace(job.definition, schedule=entries, max_ticks=left)
