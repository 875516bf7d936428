"""What a simulation takes from a living fleet: its jobs, calendars, limits and slots, and how long its work takes."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from fleetcron.model.calendar import CalendarDocument
from fleetcron.model.definition import Definition
from fleetcron.model.rules import EveryEntry
from fleetcron.model.run import RunLine
from fleetcron.model.standing import Standing
from fleetcron.policy.bounds import used
from fleetcron.scheduler.tables import Tables
from fleetcron.simulate.durations import BY_OVERLAP, Lasting, Tick
from fleetcron.simulate.scenario import Name
from fleetcron.store.attempts import PastAttempt
from fleetcron.store.history import Span
from fleetcron.store.job_pages import JobFilter
from fleetcron.store.store import Store
from fleetcron.views.calendars import stored_calendars

DELETED: Final = "deleted"
_PAGE: Final = 500
_SEEN: Final = 200  # runs of a job that its durations are learned from


@dataclass(frozen=True, slots=True)
class Known:
    """A job of the database as a period finds it: so many of its `max_ticks` are used. With `starts_ms` it has no
    earlier tick."""

    standing: Standing
    used: int
    starts_ms: int | None


@dataclass(slots=True)
class Fleet:
    """`known` are all its jobs, as they are. `idle` jobs are paused, cancelled or finished; or others depend on them,
    and they are deleted. `slots` by pool are those of all the workers that live."""

    definitions: list[Definition] = field(default_factory=list)
    calendars: Sequence[CalendarDocument] = ()
    known: dict[Name, Known] = field(default_factory=dict)
    idle: dict[Name, str] = field(default_factory=dict)  # and their states
    workers: int = 0
    slots: Counter[str] = field(default_factory=Counter)
    tenants: dict[str, dict[str, Any]] = field(default_factory=dict)
    pools: dict[str, dict[str, Any]] = field(default_factory=dict)
    seen: dict[str, list[int]] = field(default_factory=dict)
    cut: dict[str, list[int]] = field(default_factory=dict)
    past: dict[Tick, list[Lasting]] = field(default_factory=dict)


async def jobs_of(store: Store, from_ms: int, *, past: bool) -> Fleet:
    """As a period finds them that begins at `from_ms`. One of the past has no ticks from before its jobs were made."""
    fleet = Fleet(calendars=await stored_calendars(store))
    tables = Tables(store.almanac)
    after: Name | None = None
    while page := await store.jobs.list(JobFilter(after=after), _PAGE):
        names = [_name(each.job.definition) for each in page]
        found = await store.jobs.find(names)
        for name in names:
            if (standing := found.standings.get(name)) is None:
                continue  # it was deleted just now
            starts_ms = standing.job.created_ms + 1 if past else None
            fleet.known[name] = Known(standing, await _used(standing, tables, found.epoch, from_ms), starts_ms)
        after = _name(page[-1].job.definition)
    jobs = [each.standing.job.definition for each in fleet.known.values()]
    fleet.definitions, fleet.idle = as_they_stand(fleet, jobs)
    needed = {(each.tenant, need) for each in fleet.definitions for need in each.depends_on}
    fleet.idle |= dict.fromkeys(needed - fleet.known.keys(), DELETED)
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
    """How long their last runs took, and after how long the next tick put an end to some of them. The number of
    attempts that were looked at."""
    looked = 0
    for each in definitions:
        latest = await _latest(store, Span(each.tenant, each.name))
        lasted = [ms for line in latest if not _was_replaced(line) for ms in await _lasted(store, line)]
        cut = [ms for line in latest if _was_replaced(line) for ms in await _cut(store, line)]
        looked += len(lasted) + len(cut)
        if lasted:
            fleet.seen[each.seed] = sorted(lasted)
        if cut:
            fleet.cut[each.seed] = sorted(cut)
    return looked


async def _latest(store: Store, span: Span) -> Sequence[RunLine]:
    """The last runs that succeeded or gave way to the next tick: of both together, so that each has its share."""
    ended = [*await store.history.runs(span, state="succeeded", limit=_SEEN)]
    if len(ended) == _SEEN:  # a job with a long history may have no other runs: not all of it is looked through
        span = replace(span, from_ms=min(line.run.scheduled_for_ms for line in ended))
    ended += filter(_was_replaced, await store.history.runs(span, state="cancelled", limit=_SEEN))
    return sorted(ended, key=lambda line: line.run.run_id, reverse=True)[:_SEEN]


def _was_replaced(line: RunLine) -> bool:
    """By the next tick, after it had begun."""
    return line.run.started_ms is not None and BY_OVERLAP in (line.run.reason or "")


async def _lasted(store: Store, line: RunLine) -> list[int]:
    """Of its attempts that succeeded: one, and most runs have no other."""
    run = line.run
    if run.attempt == 1 and run.started_ms is not None and run.finished_ms is not None:
        return [max(0, run.finished_ms - run.started_ms)]
    attempts = await store.past_attempts.of_run(run.run_id)
    return [each.lasted_ms for each in attempts if each.outcome == "succeeded" and each.lasted_ms is not None]


async def _cut(store: Store, line: RunLine) -> list[int]:
    """Of the attempt that was stopped. None if its run rested between two attempts."""
    attempts = await store.past_attempts.of_run(line.run.run_id)
    return [each.lasted_ms for each in attempts if was_cut(each) and each.lasted_ms is not None]


def was_cut(attempt: PastAttempt) -> bool:
    """The next tick put an end to it."""
    return attempt.outcome == "cancelled" and attempt.error is not None and attempt.error.text.startswith(BY_OVERLAP)


def _name(definition: Definition) -> Name:
    return definition.tenant, definition.name


async def _used(standing: Standing, tables: Tables, epoch: int, from_ms: int) -> int:
    """How many of its ticks it has used when a period begins. The cursor tells it for the instant where it stands, and
    the ticks between the two are counted, whatever became of them."""
    timing, at = standing.timing, standing.at
    if timing.max_ticks is None:
        return 0
    timetable = await tables.built(timing, epoch)
    if from_ms > at.cursor_ms:
        return at.ticks_used + used(timing, timetable, at.cursor_ms, from_ms - 1)
    after_ms = max(from_ms - 1, standing.job.created_ms)
    return max(0, at.ticks_used - used(timing, timetable, after_ms, at.cursor_ms))


def as_they_stand(fleet: Fleet, jobs: Sequence[Definition]) -> tuple[list[Definition], dict[Name, str]]:
    """Jobs, of the database or of a file that is to be applied to it, with the ticks that they have then: those that
    have some, and the states of the others."""
    found: list[Definition] = []
    idle: dict[Name, str] = {}
    for each in jobs:
        known = fleet.known.get(_name(each))
        if known is None:
            found.append(each)
        elif (state := _state(each, known)) == "active":
            found.append(_as_it_stands(each, known))
        else:
            idle[_name(each)] = state
    return found, idle


def _state(definition: Definition, known: Known) -> str:
    """A change lets a paused job be paused, and a finished one go on if it has ticks again."""
    job = known.standing.job
    if job.state in ("paused", "cancelled"):
        return job.state
    if definition.max_ticks is not None and known.used >= definition.max_ticks:
        return "finished"
    is_same = definition.timing(job.created_ms) == known.standing.timing
    return job.state if is_same else "active"


def _as_it_stands(definition: Definition, known: Known) -> Definition:
    """An interval counts from the job's creation, and used ticks are used."""
    created_ms = known.standing.job.created_ms
    entries = tuple(
        replace(entry, anchor_ms=created_ms - created_ms % 1000)
        if isinstance(entry, EveryEntry) and entry.anchor_ms is None
        else entry
        for entry in definition.schedule
    )
    left = None if definition.max_ticks is None else definition.max_ticks - known.used
    starts_ms = _later(definition.starts_ms, known.starts_ms)
    if definition.ends_ms is not None and starts_ms is not None and definition.ends_ms <= starts_ms:
        starts_ms = definition.starts_ms  # nothing is left of it, and such a pair is refused
    return replace(definition, schedule=entries, max_ticks=left, starts_ms=starts_ms)


def _later(one_ms: int | None, other_ms: int | None) -> int | None:
    known = [each for each in (one_ms, other_ms) if each is not None]
    return max(known) if known else None
