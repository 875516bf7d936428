"""Documents into the store, and what became of each: the work behind `apply`, `serve -f` and POST /apply."""

import shlex
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from fleetcron.applying.rehearsal import RehearsalStore
from fleetcron.model.almanac import Part
from fleetcron.model.definition import Definition
from fleetcron.model.job import Change, Job, changes
from fleetcron.model.reading import Documents
from fleetcron.model.standing import Standing
from fleetcron.scheduler.dependencies import upstream_first
from fleetcron.scheduler.desk import BATCH, Applied, Desk, Refusal
from fleetcron.scheduler.sync import Prune, awaken, not_ours, put_to_rest, signature, vanished, written
from fleetcron.store.store import Store
from fleetcron.store.workers import Worker
from fleetcron.views.able import Crew, fleet
from fleetcron.views.calendars import stored_calendars
from fleetcron.views.instants import as_json
from fleetcron.views.schedules import short


@dataclass(frozen=True, slots=True)
class CalendarDone:
    tenant: str
    name: str
    done: str
    jobs: int = 0  # whose ticks it moves
    stuck: int = 0  # that have no tick left

    def as_json(self) -> dict[str, Any]:
        return {
            "tenant": self.tenant,
            "name": self.name,
            "done": self.done,
            "jobs_moved": self.jobs,
            "jobs_stuck": self.stuck,
        }


@dataclass(frozen=True, slots=True)
class JobDone:
    """`unable`: why nobody who lives can plan it, or run it."""

    applied: Applied
    changed: Sequence[Change] = ()
    unable: str | None = None

    @property
    def full_name(self) -> str:
        return f"{self.applied.tenant}/{self.applied.name}"

    @property
    def warning(self) -> str | None:
        """What was accepted and will not work."""
        return self.applied.warning or self.unable

    def as_json(self) -> dict[str, Any]:
        applied = self.applied
        return {
            "tenant": applied.tenant,
            "name": applied.name,
            "done": applied.done,
            "state": None if applied.job is None else applied.job.state,
            "revision": None if applied.job is None else applied.job.revision,
            "next": as_json(applied.next_due_ms),
            "changes": [{"field": each.field, "old": each.old, "new": each.new} for each in self.changed],
            "reason": applied.reason,
            "warning": self.warning,
            "schedule": None if applied.job is None else short(applied.job.definition),
            "managed_by": None if applied.job is None else applied.job.definition.managed_by,
        }


@dataclass(slots=True)
class Report:
    calendars: list[CalendarDone] = field(default_factory=list)
    jobs: list[JobDone] = field(default_factory=list)

    @property
    def counts(self) -> Mapping[str, int]:
        return counted(job.applied.done for job in self.jobs)

    def as_json(self, *, dry_run: bool) -> dict[str, Any]:
        calendars = [each.as_json() for each in self.calendars]
        jobs = [job.as_json() for job in self.jobs]
        return {"dry_run": dry_run, "counts": dict(self.counts), "calendars": calendars, "jobs": jobs}

    @property
    def warnings(self) -> Mapping[str, list[str]]:
        """What was accepted and will not work, with the jobs."""
        found: dict[str, list[str]] = {}
        for job in self.jobs:
            if (warning := job.warning) is not None:
                found.setdefault(warning, []).append(job.full_name)
        return found

    @property
    def refused(self) -> list[JobDone]:
        return [job for job in self.jobs if job.applied.done == "refused"]


def counted(done: Iterable[str]) -> Mapping[str, int]:
    """How many of which answer: the usual ones always, the others if there are some."""
    found = Counter(done)
    always = {each: found[each] for each in ("created", "changed", "unchanged", "refused")}
    return always | {each: found[each] for each in ("resumed", "paused", "deleted") if found[each]}


async def apply(
    store: Store,
    documents: Documents,
    *,
    actor: str,
    shards: int,
    progress: Callable[[int], None] = lambda _: None,
    managed_by: str | None = None,
    gone: Sequence[Job] = (),
    prune: Prune = "keep",
    refuse: Refusal | None = None,
) -> Report:
    """Calendars first, since jobs ask them; then the jobs, some at a time. `progress` hears how many are done.

    With a manager, jobs of other managers are refused, and those that are `gone` from the files are put to rest. Files
    take over what belongs to nobody; apps do not. Without one, a job that has a manager is refused to documents that
    name none. Who `refuse`s says by itself which jobs are left alone.
    """
    if managed_by is not None:
        refuse = not_ours(managed_by, adopting=not managed_by.startswith("app:"))
    elif refuse is None:
        refuse = _managed(documents.jobs)
    desk = Desk(store, actor=actor if managed_by is None else signature(managed_by, actor), shards=shards)
    report = Report()
    known = {(each.tenant, each.name) for each in await stored_calendars(store)}
    for calendar in documents.calendars:
        adopted = await desk.put_calendar(calendar)
        if isinstance(store, RehearsalStore):
            store.rehearsed.add(adopted.tables)
        moved = Part("calendar", calendar.tenant, calendar.name) in {table.part for table in adopted.tables}
        what = ("changed" if (calendar.tenant, calendar.name) in known else "created") if moved else "unchanged"
        report.calendars.append(CalendarDone(calendar.tenant, calendar.name, what, adopted.jobs, adopted.stuck))
    ordered = upstream_first(documents.jobs)
    answers: dict[tuple[str, str], JobDone] = {}
    beside: list[Definition] = []
    for start in range(0, len(ordered), BATCH):
        batch = ordered[start : start + BATCH]
        done = await _apply(store, desk, batch, beside, managed_by, refuse)
        answers |= {(each.applied.tenant, each.applied.name): each for each in done}
        if isinstance(store, RehearsalStore):  # nothing of this batch is there when the next one depends on it
            beside += [each for each in batch if answers[each.tenant, each.name].applied.done != "refused"]
        progress(len(batch))
    report.jobs += [answers[each.tenant, each.name] for each in documents.jobs]
    if prune != "keep":
        beside = written(documents.jobs, [each.applied for each in report.jobs])
        report.jobs += map(JobDone, await put_to_rest(store, desk, gone, prune, beside))
    return report


async def mark_unable(store: Store, report: Report, *coming: Worker, planning: Iterable[str] = ()) -> None:
    """Jobs that none of the workers can run and no scheduler plans, nor one that is about to join (`planning` are its
    regions). It is no reason to refuse a job: whoever deploys often applies first, and starts the workers then."""
    crew = await fleet(store, *coming, planning=planning)
    report.jobs = [replace(each, unable=_unable(each.applied, crew)) for each in report.jobs]


def _unable(applied: Applied, crew: Crew) -> str | None:
    return None if applied.done == "refused" or applied.job is None else crew.warning(applied.job)


async def gone_from(store: Store, documents: Documents, managed_by: str | None, prune: Prune | None) -> Sequence[Job]:
    """The jobs of this manager that are no longer in the documents, and are not at rest yet."""
    if managed_by is None or prune in (None, "keep"):
        return ()
    found = await vanished(store, {(each.tenant, each.name) for each in documents.jobs}, managed_by)
    return [job for job in found if prune == "delete" or job.state == "active"]


def _managed(definitions: Iterable[Definition]) -> Refusal:
    """Whose jobs are left to them: the files of somebody, applied without saying whose they are, would make their jobs
    nobody's, and `prune` would never find them again. A document that names a manager says it on purpose."""
    named = {(each.tenant, each.name): each.managed_by for each in definitions}

    def refusal(job: Job) -> str | None:
        owner = job.definition.managed_by
        if owner is None or named[job.definition.tenant, job.definition.name] is not None:
            return None
        way = "change it in the code of that app" if owner.startswith("app:") else f"add {managing(owner)}"
        return (
            f"{owner} manages it, and files that name no manager do not take it over; if they are its files, {way}; "
            "if not, choose another name, or take it over on purpose: write the new managed_by into the job"
        )

    return refusal


def managing(owner: str) -> str:
    """The option that says whose files these are."""
    return f"--managed-by {shlex.quote(owner)}"


async def _apply(
    store: Store,
    desk: Desk,
    batch: Sequence[Definition],
    beside: Sequence[Definition],
    managed_by: str | None,
    refuse: Refusal | None,
) -> list[JobDone]:
    before = await standings(store, batch)
    applied = await desk.apply(batch, refuse=refuse, beside=beside)
    if managed_by is not None:
        applied = [await awaken(store, desk, each, managed_by) for each in applied]
    return [compared(before, each) for each in applied]


async def standings(store: Store, definitions: Sequence[Definition]) -> Mapping[tuple[str, str], Standing]:
    return (await store.jobs.find([(each.tenant, each.name) for each in definitions])).standings


def compared(before: Mapping[tuple[str, str], Standing], applied: Applied) -> JobDone:
    was = before.get((applied.tenant, applied.name))
    if applied.done not in ("changed", "resumed") or was is None or applied.job is None:
        return JobDone(applied)
    return JobDone(applied, changes(was.job.definition.as_document(), applied.job.definition.as_document()))
