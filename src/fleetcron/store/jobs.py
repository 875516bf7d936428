"""Jobs, their revisions, and the one transaction that changes them."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from fleetcron.errors import SchemaError, StoreError
from fleetcron.events import Event
from fleetcron.model.almanac import Part
from fleetcron.model.amendment import Amendment
from fleetcron.model.definition import Definition
from fleetcron.model.job import Job, Revision
from fleetcron.model.standing import Position, Standing
from fleetcron.model.timing import Timing, timing_id
from fleetcron.steps import step
from fleetcron.store.admission import admit
from fleetcron.store.almanac import Table, add_tables
from fleetcron.store.cursors import answer_row
from fleetcron.store.engine import Engine, Row, Script
from fleetcron.store.events import note_all
from fleetcron.store.following import follow
from fleetcron.store.job_pages import JobFilter, page_of
from fleetcron.store.job_rows import Documents, cursor_row, gap_row, is_moved, job_row, revision_row, seen_row
from fleetcron.store.rows import rows
from fleetcron.store.upstreams import Apart, Around, check_together, hold_around, read_around
from fleetcron.store.written import Refused, Written

_EVENTS = {
    "create": "job_created", "edit": "job_edited", "pause": "job_paused",
    "resume": "job_resumed", "cancel": "job_cancelled", "delete": "job_deleted",
    "hand_over": "job_handed_over", "shadow": "job_shadowed",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Found:
    """Jobs by name, as they stood at one instant."""

    now_ms: int
    epoch: int
    shards: int | None  # None: nobody has said yet how many there are
    standings: Mapping[tuple[str, str], Standing]


@dataclass(frozen=True, slots=True)
class JobLine:
    """A job as a list shows it. `next_due_ms` is when the scheduler looks at it again: mostly a tick."""

    job: Job
    next_due_ms: int | None
    next_planned_ms: int | None  # the first tick to come that has its run already
    last_scheduled_ms: int | None
    last_state: str | None
    last_run_id: int | None = None
    last_started_ms: int | None = None
    last_finished_ms: int | None = None
    last_reason: str | None = None  # why it ended so


@dataclass(frozen=True, slots=True)
class Count:
    """How many jobs there are in each state, and the next instant at which one of them is due."""

    now_ms: int
    jobs: Mapping[str, int]
    next_ms: int | None


class _Claimed(Exception):
    """Roll back: a claimed run stands, so the change has to begin after it."""


class Jobs:
    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    async def find(self, names: Sequence[tuple[str, str]]) -> Found:
        """Jobs by (tenant, name), with where they stand, and the facts that a change of them needs."""
        text = rows({"tenant": tenant, "name": name} for tenant, name in names)

        def script() -> Script[Found]:
            [facts] = yield "fleet_now", {}
            fleet = yield "fleet_shards_read", {}
            found = yield "jobs_standing", {"rows": text}
            standings = {(row["tenant"], row["name"]): _standing(row) for row in found}
            return Found(facts["now_ms"], facts["epoch"], int(fleet[0]["value"]) if fleet else None, standings)

        return await self._engine.read(script)

    async def around(self, starts: Sequence[tuple[str, str]], ends: Sequence[tuple[str, str]]) -> Around:
        """What the jobs upstream of `starts` depend on, and who depends on `ends`."""
        return await self._engine.read(lambda: read_around(starts, ends))

    async def amend(
        self,
        amendments: Sequence[Amendment],
        *,
        epoch: int,
        shards: int | None = None,
        tables: Sequence[Table] = (),
        around: Around | None = None,
    ) -> Written[frozenset[str]]:
        """Write changes; the answer has the ids of the jobs that were changed.

        A change is written only if its job still stands where the change was decided, and a new job only if its name is
        free; the others are left out. All of it is refused if the zone tables, the calendars or the number of shards
        have changed meanwhile, or the dependencies around these jobs, or (RefusedJobs) if a tenant has reached a limit.
        Safe to repeat: what was written no longer stands where it was. Runs in the queue follow (store/following).
        """

        documents = {a.after.job.job_id: a.after.job.definition.as_document() for a in amendments}

        def script() -> Script[frozenset[str] | Refused]:
            step("amend.begin")
            [held] = yield "almanac_hold", {}
            if held["epoch"] != epoch:
                return Refused("the zone tables or calendars have changed")
            fleet = yield "fleet_shards_hold", {}
            if shards is not None and [int(row["value"]) for row in fleet] != [shards]:
                return Refused("the jobs were divided into another number of shards")
            if around is not None and not (yield from hold_around(around)):
                return Refused("other changes have changed what these jobs depend on")
            if (denied := (yield from admit(amendments))) is not None:
                return denied
            refusal = yield from add_tables(tables, epoch)
            if refusal is not None:
                return refusal
            yield from _keep_timings({a.after.timing: None for a in amendments})
            created = yield from _create([a for a in amendments if a.before is None], documents)
            changed = yield from _change([a for a in amendments if a.before is not None], documents)
            done = [a for a in amendments if a.after.job.job_id in created | changed]
            if around is not None:
                check_together(amendments, created | changed)
            yield from _leave_behind(done, documents, epoch)
            step("amend.written")
            if done:
                yield "notify", {"topic": "jobs"}
            return frozenset(a.after.job.job_id for a in done)

        try:
            written = await self._engine.write(script)
        except _Claimed:
            return Refused("a worker has claimed a run that is later than the change")
        except Apart:
            return Refused("some of the jobs have moved, and others depend on them")
        if not isinstance(written, Refused) and (moved := [a.after.job.job_id for a in amendments if is_moved(a)]):
            await follow(self._engine, moved)  # also if nobody knows whether it was written: then somebody has to look
        return written

    async def list(self, wanted: JobFilter, limit: int) -> list[JobLine]:
        """By tenant and name. The page is found first, in an index; only its jobs are looked at."""

        def script() -> Script[list[JobLine]]:
            found = (
                (yield page_of(wanted, limit))
                if not wanted.is_one
                else [{"tenant": wanted.tenant, "name": wanted.name}]
            )
            names = rows({"tenant": row["tenant"], "name": row["name"]} for row in found)
            return [_line(row) for row in (yield "jobs_lines", {"rows": names})]

        return await self._engine.read(script)

    async def named(self, tenant: str, name: str, limit: int = 20) -> Sequence[Job]:
        """All jobs that ever had this name, the newest first: a deleted job keeps its history."""

        def script() -> Script[Sequence[Job]]:
            found = yield "jobs_named", {"tenant": tenant, "name": name, "most": limit}
            return [_job(row) for row in found]

        return await self._engine.read(script)

    async def name_of(self, tenant: str, job_id: str) -> str | None:
        """None: the tenant has no such job, or it was deleted."""

        def script() -> Script[str | None]:
            found = yield "jobs_name_of", {"tenant": tenant, "job_id": job_id}
            return found[0]["name"] if found else None

        return await self._engine.read(script)

    async def count(self) -> Count:
        def script() -> Script[Count]:
            [facts] = yield "fleet_now", {}
            found = yield "jobs_count", {}
            next_ms = [row[key] for row in found for key in ("next_due_ms", "next_planned_ms") if row[key] is not None]
            return Count(facts["now_ms"], {row["state"]: row["jobs"] for row in found}, min(next_ms, default=None))

        return await self._engine.read(script)

    async def revisions(self, job_id: str, limit: int) -> Sequence[Revision]:
        """The newest first."""

        def script() -> Script[list[Revision]]:
            found = yield "job_revisions_list", {"job_id": job_id, "most": limit}
            return [
                Revision(str(row["job_id"]), row["revision"], row["at_ms"], row["actor"], row["action"],
                         _json(row["before"]), _json(row["after"]))
                for row in found
            ]  # fmt: skip

        return await self._engine.read(script)


def _create(amendments: Sequence[Amendment], documents: Documents) -> Script[set[str]]:
    if not amendments:
        return set()
    found = yield "jobs_insert_if_free", {"rows": rows(job_row(a, documents) for a in amendments)}
    created = {str(row["job_id"]) for row in found}
    mine = [a for a in amendments if a.after.job.job_id in created]
    yield "cursors_insert", {"rows": rows(cursor_row(a) for a in mine)}
    return created


def _change(amendments: Sequence[Amendment], documents: Documents) -> Script[set[str]]:
    """The cursor is the guard: it is locked first, as the scheduler does, and it moves with every revision."""
    if not amendments:
        return set()
    kept = [a for a in amendments if a.action != "delete"]
    moved = yield "cursors_move_if_unmoved", {"rows": rows(cursor_row(a) for a in kept)}
    gone = yield (
        "cursors_delete_if_unmoved",
        {"rows": rows(seen_row(a) for a in amendments if a.action == "delete")},
    )
    changed = {str(row["job_id"]) for row in [*moved, *gone]}
    mine = [a for a in amendments if a.after.job.job_id in changed]
    yield "jobs_update", {"rows": rows(job_row(a, documents) for a in mine)}
    return changed


def _leave_behind(amendments: Sequence[Amendment], documents: Documents, epoch: int) -> Script[None]:
    """Revisions, events, gaps and answers; and the forecasts go."""
    changed = [a for a in amendments if a.before is not None]
    withdrawn: dict[str, int] = {}
    if changed:
        gone = yield (
            "runs_withdraw",
            {"rows": rows(_instants(changed))},
        )
        withdrawn = {str(row["job_id"]): row["withdrawn"] for row in gone}
        if (yield "runs_standing_after", {"rows": rows(_instants(changed))}):
            raise _Claimed
    notice = [_notice_row(a) for a in changed if a.notice]
    if notice:
        yield "gaps_notice", {"rows": rows(notice)}
    gaps = [gap_row(a, epoch) for a in changed if a.gaps]
    if gaps:
        yield "gaps_insert", {"rows": rows(row for each in gaps for row in each)}
    homes = [{"job_id": a.after.job.job_id, "region": _region(a.after)} for a in changed if _has_moved(a)]
    if homes:
        yield "gaps_move", {"rows": rows(homes)}
    answers = [
        answer_row(answer)
        | {"job_id": a.after.job.job_id, "revision": a.after.job.revision, "almanac": epoch, "noted_ms": a.at_ms}
        for a in amendments
        for answer in a.answers
    ]
    if answers:
        yield "ledger_insert", {"rows": rows(answers)}
    if amendments:
        yield "job_revisions_insert", {"rows": rows(revision_row(a, documents) for a in amendments)}
        yield from note_all(_events(amendments, withdrawn))


def _region(standing: Standing) -> str:
    return standing.job.definition.region or "*"


def _has_moved(a: Amendment) -> bool:
    return a.before is not None and _region(a.before) != _region(a.after)


def _instants(changed: Sequence[Amendment]) -> list[dict[str, Any]]:
    return [{"job_id": a.after.job.job_id, "at_ms": a.at_ms} for a in changed]


def _notice_row(a: Amendment) -> dict[str, Any]:
    cause = a.action if a.notice == "cancel" else None
    return {"job_id": a.after.job.job_id, "policy": a.notice, "cause": cause, "noticed_ms": a.at_ms}


def _events(amendments: Iterable[Amendment], withdrawn: Mapping[str, int]) -> list[Event]:
    found = []
    for a in amendments:
        job = a.after.job
        detail: dict[str, Any] = {
            "tenant": job.definition.tenant,
            "name": job.definition.name,
            "revision": job.revision,
        }
        found.append(Event(_EVENTS[a.action], job_id=job.job_id, actor=a.actor, detail=detail))
        if job.job_id in withdrawn:
            count = withdrawn[job.job_id]
            found.append(
                Event("runs_withdrawn", job_id=job.job_id, actor=a.actor, count=count, detail={"by": a.action})
            )
    return found


def _keep_timings(timings: Iterable[Timing]) -> Script[None]:
    bodies = {timing_id(body): (body, timing) for timing in timings for body in [timing.body()]}
    text = rows({"timing_id": key, "body": body} for key, (body, _) in bodies.items())
    yield "timings_insert", {"rows": text}
    if (yield "timings_clash", {"rows": text}):
        raise StoreError("two schedules have the same fingerprint", hint="change any field of the job, and try again")
    parts = [
        {"kind": part.kind, "tenant": part.tenant, "name": part.name, "timing_id": key}
        for key, (_, timing) in bodies.items()
        for part in timing.parts()
    ]
    if parts:
        yield "timing_parts_insert", {"rows": rows(parts)}


def _standing(row: Row) -> Standing:
    at = Position(row["cursor_ms"], row["ticks_used"])
    with _readable(row):
        timing = Timing.from_body(row["timing"])
    settled = [row[name] for name in ("claimed_ms", "answered_ms", "gap_ms") if row[name] is not None]
    return Standing(_job(row), timing, at, row["shard"], row["next_due_ms"], max(settled, default=None))


@contextmanager
def _readable(row: Row) -> Iterator[None]:
    """Old and new nodes work side by side while a fleet is renewed."""
    try:
        yield
    except (AttributeError, LookupError, TypeError, ValueError) as error:
        what = f"the job {row['name']} of {row['tenant']} was written by a newer release, and this one cannot read it"
        raise SchemaError(f"{what} ({error})", hint="use the newer release") from error


def _job(row: Row) -> Job:
    with _readable(row):
        definition = Definition.from_body(row["definition"])
    return Job(
        job_id=str(row["job_id"]),
        definition=definition,
        state=row["state"],
        revision=row["revision"],
        on_resume=row["on_resume"],
        problem=row["problem"],
        created_ms=row["created_ms"],
        created_by=row["created_by"],
        updated_ms=row["updated_ms"],
        deleted_ms=row["deleted_ms"],
    )


def _line(row: Row) -> JobLine:
    return JobLine(
        _job(row), row["next_due_ms"], row["next_planned_ms"], row["last_scheduled_ms"], row["last_state"],
        row["last_run_id"], row["last_started_ms"], row["last_finished_ms"], row["last_reason"],
    )  # fmt: skip


def _json(text: str | None) -> dict[str, Any] | None:
    return None if text is None else dict(json.loads(text))


__all__ = ["Count", "Found", "JobFilter", "JobLine", "Jobs", "Part"]
