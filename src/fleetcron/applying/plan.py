"""The work behind `fleetcron plan`: beside a rehearsal of `apply`, what becomes of each job's fire times."""

import asyncio
from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from fleetcron.applying.apply import CalendarDone, JobDone, Report
from fleetcron.applying.firing import Bounded, Firing, Side, compared, firing
from fleetcron.model.almanac import Part
from fleetcron.model.job import Job
from fleetcron.model.standing import Position, Standing
from fleetcron.model.timing import Timing
from fleetcron.policy.amend import leave
from fleetcron.policy.bounds import last_allowed
from fleetcron.scheduler.desk import BATCH
from fleetcron.scheduler.tables import Never, Tables
from fleetcron.store.almanac import AlmanacTables
from fleetcron.store.jobs import Found
from fleetcron.store.store import Store
from fleetcron.times import zones
from fleetcron.times.notes import zone_of as zone_of_schedule
from fleetcron.times.timetable import Timetable
from fleetcron.views.instants import as_json, zone_of
from fleetcron.views.schedules import short

MARKS: Final = {"created": "+", "resumed": "+", "changed": "~", "paused": "-", "deleted": "-", "refused": "!"}
_YEAR_MS: Final = 367 * 86_400_000
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
        self._made: dict[Hashable, Firing] = {}  # of 10,000 jobs that change, most change like another one

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
        alike = (old and old.alike, new and new.alike, begun(old, new, found.now_ms), zone.name)
        made = self._made.get(alike)
        if made is None:
            made = self._made[alike] = await asyncio.to_thread(  # it may be long
                firing, old, new, found.now_ms, self._days, zone, limit
            )
        return made or None

    async def _before(self, standing: Standing, found: Found) -> Side | None:
        if standing.job.state != "active":
            return None
        timetable = await self._old.built(standing.timing, found.epoch)
        return _side(standing.timing, timetable, standing.at, standing.job)

    async def _after(self, job: Job, before: Standing | None, found: Found) -> Side | None:
        if job.state != "active":
            return None
        timing = job.definition.timing(job.created_ms)
        timetable = await self._new.built(timing, found.epoch)
        at = Position(found.now_ms)
        if before is not None and timing.max_ticks is not None and before.timing.max_ticks is not None:
            old = await self._old.built(before.timing, found.epoch)
            at = leave(before.timing, old, before.at, found.now_ms).at
        return _side(timing, timetable, at, job)

    async def _moved(self, calendar: CalendarDone, now_ms: int) -> list[tuple[int, Firing]]:
        facts = await self._store.almanac.affected([Part("calendar", calendar.tenant, calendar.name)])
        jobs: Counter[int] = Counter()
        for each in facts.standpoints:
            jobs[each.timing_id] += each.jobs if each.state == "active" else 0
        found: list[tuple[int, Firing]] = []
        for timing_id, number in jobs.most_common(_MOST_TIMINGS):
            try:
                timing = Timing.from_body(facts.timings[timing_id])
            except ValueError:
                continue  # whoever puts the calendar is told which job a newer release has written
            old = await self._old.built(timing, facts.epoch)
            new = await self._new.built(timing, facts.epoch)
            zone = zones.zone("UTC") if isinstance(old, Never) else zone_of_schedule(old)
            sides = Side(old, old, 0), Side(new, new, 0)
            made = firing(*sides, now_ms, self._days, zone, compared(len(jobs)))
            if number and made:
                found.append((number, replace(made, clock_changes=(), switch=None)))
        return found


def _side(timing: Timing, timetable: Timetable, at: Position, job: Job) -> Side:
    last_ms = last_allowed(timing, timetable, at)
    return Side(Bounded(timetable, last_ms), timetable, job.created_ms, (timing, last_ms))


def begun(old: Side | None, new: Side | None, now_ms: int) -> int | None:
    """All that matters of when a job was created: the last tick up to then, within the year of the change."""
    if old is None or new is None:
        return None
    since_ms = max(old.since_ms, now_ms - _YEAR_MS)
    ticks = [side.ticks.prev_ms(since_ms + 1) for side in (old, new)]
    return max((tick for tick in ticks if tick is not None), default=None)
