"""What a simulation takes from a living fleet: its jobs, calendars, limits and slots, and how long its work takes."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from fleetcron.model.calendar import CalendarDocument
from fleetcron.model.definition import Definition
from fleetcron.model.rules import EveryEntry
from fleetcron.model.run import RunLine
from fleetcron.simulate.durations import Lasting, Tick
from fleetcron.store.history import Span
from fleetcron.store.job_pages import JobFilter
from fleetcron.store.jobs import JobLine
from fleetcron.store.store import Store
from fleetcron.views.calendars import stored_calendars

_PAGE: Final = 500
_SEEN: Final = 200  # runs of a job that its durations are learned from
_FAILED: Final = ("failed", "timed_out")


@dataclass(slots=True)
class Fleet:
    """`left_out` jobs are paused, cancelled or finished."""

    definitions: list[Definition] = field(default_factory=list)
    calendars: Sequence[CalendarDocument] = ()
    left_out: int = 0
    slots: dict[str, int] = field(default_factory=dict)
    tenants: dict[str, dict[str, Any]] = field(default_factory=dict)
    pools: dict[str, dict[str, Any]] = field(default_factory=dict)
    seen: dict[str, list[int]] = field(default_factory=dict)
    past: dict[Tick, list[Lasting]] = field(default_factory=dict)


async def jobs_of(store: Store) -> Fleet:
    fleet = Fleet(calendars=await stored_calendars(store))
    after: tuple[str, str] | None = None
    while page := await store.jobs.list(JobFilter(after=after), _PAGE):
        active = [line for line in page if line.job.state == "active"]
        fleet.left_out += len(page) - len(active)
        found = await store.jobs.find([(each.job.definition.tenant, each.job.definition.name) for each in active])
        used = {standing.job.job_id: standing.at.ticks_used for standing in found.standings.values()}
        fleet.definitions += [_as_it_stands(line, used.get(line.job.job_id, 0)) for line in active]
        last = page[-1].job.definition
        after = last.tenant, last.name
    for tenant in await store.limits.tenants():
        if tenant.updated_ms is not None:
            fleet.tenants[tenant.tenant.name] = tenant.tenant.as_document()
    for pool in await store.limits.pools():
        if pool.updated_ms is not None:
            fleet.pools[pool.pool.name] = pool.pool.as_document()
        if pool.worker_slots:
            fleet.slots[pool.pool.name] = pool.worker_slots
    return fleet


async def learn(store: Store, fleet: Fleet, definitions: Sequence[Definition]) -> int:
    """How long their last runs took. The number of attempts that were looked at."""
    looked = 0
    for each in definitions:
        lines = await store.history.runs(Span(each.tenant, each.name), state="succeeded", limit=_SEEN)
        lasted = [lasting.ms for line in lines for lasting in await _attempts(store, line) if lasting.error is None]
        looked += len(lasted)
        if lasted:
            fleet.seen[each.seed] = sorted(lasted)
    return looked


async def remember(store: Store, fleet: Fleet, from_ms: int, to_ms: int) -> int:
    """How long every run of a period took, and how it ended. The number of attempts."""
    looked, before = 0, None
    while True:
        span = Span(from_ms=from_ms, to_ms=to_ms, before_id=before)
        page = await store.history.runs(span, limit=_PAGE, later=False)
        for line in page:
            attempts = await _attempts(store, line)
            looked += len(attempts)
            if attempts:
                fleet.past[line.job, line.run.scheduled_for_ms] = attempts
        if len(page) < _PAGE:
            return looked
        before = page[-1].run.run_id


async def _attempts(store: Store, line: RunLine) -> list[Lasting]:
    run = line.run
    if run.attempt == 0 or run.started_ms is None:
        return []
    if run.attempt == 1 and run.state == "succeeded" and run.finished_ms is not None:
        return [Lasting(max(0, run.finished_ms - run.started_ms))]
    found = []
    for each in await store.past_attempts.of_run(run.run_id):
        if each.lasted_ms is not None and each.outcome in ("succeeded", *_FAILED):
            why = None if each.outcome == "succeeded" else each.error.code if each.error else "failed"
            found.append(Lasting(each.lasted_ms, why))
    return found


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
