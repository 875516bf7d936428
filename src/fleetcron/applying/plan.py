"""The work behind `fleetcron plan`: beside a rehearsal of `apply`, what becomes of each job's fire times."""

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from fleetcron.applying.apply import CalendarDone, JobDone, Report
from fleetcron.applying.firing import Bounded, Firing, Side, compared, firing
from fleetcron.model.almanac import Almanac, Part
from fleetcron.model.job import Job
from fleetcron.model.standing import Position, Standing
from fleetcron.model.timing import Timing
from fleetcron.policy.amend import leave
from fleetcron.policy.bounds import last_allowed
from fleetcron.scheduler.desk import BATCH
from fleetcron.scheduler.tables import Never, Tables, build
from fleetcron.store.almanac import AlmanacTables
from fleetcron.store.jobs import Found
from fleetcron.store.store import Store
from fleetcron.times import zones
from fleetcron.times.notes import zone_of as zone_of_schedule
from fleetcron.views.instants import as_json, zone_of
from fleetcron.views.schedules import short

MARKS: Final = {"created": "+", "resumed": "+", "changed": "~", "paused": "-", "deleted": "-", "refused": "!"}
_MOST_TIMINGS: Final = 20  # of the jobs that a calendar moves


@dataclass(frozen=True, slots=True)
class JobPlan:
    """`firing` is None where nothing about its ticks changes."""

    done: JobDone
    firing: Firing | None = None

    @property
    def mark(self) -> str:
        return MARKS[self.done.applied.done]

    @property
    def warnings(self) -> list[str]:
        told = [] if self.firing is None else [self.firing.warning]
        return [each for each in (*told, self.done.warning) if each is not None]

    def as_json(self) -> dict[str, Any]:
        applied = self.done.applied
        return {
            "tenant": applied.tenant,
            "name": applied.name,
            "change": self.mark,
            "done": applied.done,
            "state": None if applied.job is None else applied.job.state,
            "changes": [{"field": each.field, "old": each.old, "new": each.new} for each in self.done.changed],
            "ticks": None if self.firing is None else self.firing.as_json(),
            "warnings": self.warnings,
            "reason": applied.reason,
            "schedule": None if applied.job is None else short(applied.job.definition),
        }


@dataclass(frozen=True, slots=True)
class CalendarPlan:
    """What a calendar does to jobs as they stand: for each of their timings, and how many jobs have it."""

    done: CalendarDone
    moved: Sequence[tuple[int, Firing]] = ()

    def as_json(self) -> dict[str, Any]:
        ticks = [{"jobs": jobs, **each.as_json()} for jobs, each in self.moved]
        return {**self.done.as_json(), "ticks": ticks}


@dataclass(frozen=True, slots=True)
class Plan:
    now_ms: int
    days: int
    counts: Mapping[str, int]
    calendars: Sequence[CalendarPlan]
    jobs: Sequence[JobPlan]

    def as_json(self) -> dict[str, Any]:
        return {
            "at": as_json(self.now_ms),
            "days": self.days,
            "counts": dict(self.counts),
            "calendars": [each.as_json() for each in self.calendars],
            "jobs": [each.as_json() for each in self.jobs],
        }


async def planned(store: Store, report: Report, days: int, progress: Callable[[int], None] = lambda _: None) -> Plan:
    """`store` has rehearsed what the report says. `progress` hears of each job whose ticks were compared."""
    return await _Planner(store, days).plan(report, progress)


class _Planner:
    """`old` are the zone tables and calendars that hold now, `new` those that would hold."""

    def __init__(self, store: Store, days: int) -> None:
        self._store = store
        self._days = days
        self._old = Tables(AlmanacTables(store.engine))
        self._new = Tables(store.almanac)

    async def plan(self, report: Report, progress: Callable[[int], None]) -> Plan:
        changing = [job for job in report.jobs if job.applied.done != "unchanged"]
        limit = compared(len(changing))
        jobs: list[JobPlan] = []
        now_ms = (await self._store.jobs.find(())).now_ms
        for start in range(0, len(changing), BATCH):
            batch = changing[start : start + BATCH]
            found = replace(await self._find(batch), now_ms=now_ms)  # one instant for all
            jobs += [JobPlan(job, await self._firing(job, found, limit)) for job in batch]
            progress(len(batch))
        calendars = [each for each in report.calendars if each.done != "unchanged"]
        moved = [CalendarPlan(each, await self._moved(each, now_ms)) for each in calendars]
        counts = Counter(job.applied.done for job in report.jobs)
        return Plan(now_ms, self._days, dict(sorted(counts.items())), moved, jobs)

    async def _find(self, batch: Sequence[JobDone]) -> Found:
        """Where they stand now: nothing of the rehearsal was kept. (What it created is not there.)"""
        return await self._store.jobs.find(
            [(each.applied.tenant, each.applied.name) for each in batch if each.applied.done != "created"]
        )

    async def _firing(self, done: JobDone, found: Found, limit: int) -> Firing | None:
        applied = done.applied
        if applied.done == "refused" or applied.job is None:
            return None
        before = found.standings.get((applied.tenant, applied.name))
        old = None if before is None else await self._before(before, found)
        new = None if applied.done in ("paused", "deleted") else await self._after(applied.job, before, found)
        if old is None and new is None:
            return None
        zone = zone_of(applied.job.definition)
        made = await asyncio.to_thread(firing, old, new, found.now_ms, self._days, zone, limit)  # it may be long
        return made or None

    async def _before(self, standing: Standing, found: Found) -> Side | None:
        if standing.job.state != "active":
            return None
        almanac = (await self._old.known(standing.timing.parts(), found.epoch)).almanac
        return _side(standing.timing, almanac, standing.at, standing.job)

    async def _after(self, job: Job, before: Standing | None, found: Found) -> Side | None:
        if job.state != "active":
            return None
        timing = job.definition.timing(job.created_ms)
        almanac = (await self._new.known(timing.parts(), found.epoch)).almanac
        at = Position(found.now_ms)
        if before is not None and timing.max_ticks is not None and before.timing.max_ticks is not None:
            old = build(before.timing, (await self._old.known(before.timing.parts(), found.epoch)).almanac)
            at = leave(before.timing, old, before.at, found.now_ms).at
        return _side(timing, almanac, at, job)

    async def _moved(self, calendar: CalendarDone, now_ms: int) -> list[tuple[int, Firing]]:
        facts = await self._store.almanac.affected([Part("calendar", calendar.tenant, calendar.name)])
        jobs: Counter[int] = Counter()
        for each in facts.standpoints:
            jobs[each.timing_id] += each.jobs if each.state == "active" else 0
        found: list[tuple[int, Firing]] = []
        for timing_id, number in jobs.most_common(_MOST_TIMINGS):
            timing = Timing.from_body(facts.timings[timing_id])
            old = build(timing, (await self._old.known(timing.parts(), facts.epoch)).almanac)
            new = build(timing, (await self._new.known(timing.parts(), facts.epoch)).almanac)
            zone = zones.zone("UTC") if isinstance(old, Never) else zone_of_schedule(old)
            sides = Side(old, old, 0), Side(new, new, 0)
            made = firing(*sides, now_ms, self._days, zone, compared(len(jobs)))
            if number and made:
                found.append((number, replace(made, clock_changes=(), switch=None)))
        return found


def _side(timing: Timing, almanac: Almanac, at: Position, job: Job) -> Side:
    timetable = build(timing, almanac)
    return Side(Bounded(timetable, last_allowed(timing, timetable, at)), timetable, job.created_ms)
