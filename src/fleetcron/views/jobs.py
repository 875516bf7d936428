"""Jobs as documents."""

from typing import Any, Final

from fleetcron.model.job import Job, Revision, changes
from fleetcron.model.writing import shadow_document
from fleetcron.scheduler.desk import Applied
from fleetcron.store.jobs import JobLine
from fleetcron.views.able import Crew
from fleetcron.views.health import health
from fleetcron.views.instants import as_json as instant_json
from fleetcron.views.instants import local, zone_of
from fleetcron.views.schedules import short

COUNTED: Final = 1_000  # runs: as far as people count them


def line_json(line: JobLine, next_ms: int | None, now_ms: int, crew: Crew) -> dict[str, Any]:
    job, definition = line.job, line.job.definition
    return {
        "tenant": definition.tenant,
        "name": definition.name,
        "job_id": job.job_id,
        "type": definition.type,
        "pool": definition.pool,
        "state": job.state,
        "shadow": shadow_document(definition.shadow_ms),
        "problem": job.problem,
        "revision": job.revision,
        "schedule": short(definition),
        "next": instant_json(next_ms),
        "next_local": None if next_ms is None else local(next_ms, zone_of(definition)),
        "last": last_json(line),
        "health": health(line, next_ms, now_ms, crew),
    }


def job_json(
    line: JobLine, ticks: list[int], next_ms: int | None, now_ms: int, crew: Crew, said: str | None = None
) -> dict[str, Any]:
    """`next_ms` is the next tick as lists have it, which may be one that nobody has planned yet. `said` is a warning of
    whoever has just written it."""
    job, zone = line.job, zone_of(line.job.definition)
    return {
        "tenant": job.definition.tenant,
        "name": job.definition.name,
        "job_id": job.job_id,
        "state": job.state,
        "on_resume": job.on_resume,
        "problem": job.problem,
        "revision": job.revision,
        "created_at": instant_json(job.created_ms),
        "created_by": job.created_by,
        "updated_at": instant_json(job.updated_ms),
        "schedule": short(job.definition),
        "next": [{"scheduled_for": instant_json(tick), "local": local(tick, zone)} for tick in ticks],
        "last": last_json(line),
        "health": health(line, next_ms, now_ms, crew),
        "definition": job.definition.as_document(),
        "warnings": list(dict.fromkeys(each for each in (said, crew.warning(job)) if each is not None)),
    }


def stated_json(job: Job) -> dict[str, Any]:
    """Its definition and its state: what an export wants."""
    return {"state": job.state, "definition": job.definition.as_document()}


def steered_json(applied: Applied) -> dict[str, Any]:
    job = applied.job
    return {
        "tenant": applied.tenant,
        "name": applied.name,
        "done": applied.done,
        "state": job and job.state,
        "revision": job and job.revision,
        "on_resume": job and job.on_resume,
        "next": instant_json(applied.next_due_ms),
    }


def revision_json(revision: Revision) -> dict[str, Any]:
    changed = changes(revision.before, revision.after) if revision.before is not None else []
    return {
        "job_id": revision.job_id,
        "revision": revision.revision,
        "at": instant_json(revision.at_ms),
        "by": revision.actor,
        "action": revision.action,
        "changes": [{"field": each.field, "old": each.old, "new": each.new} for each in changed],
    }


def last_json(line: JobLine) -> dict[str, Any] | None:
    """S1-34: what became of its last tick."""
    if line.last_state is None:
        return None
    started_ms, finished_ms = line.last_started_ms, line.last_finished_ms
    return {
        "scheduled_for": instant_json(line.last_scheduled_ms),
        "state": line.last_state,
        "run_id": line.last_run_id,
        "started_at": instant_json(started_ms),
        "finished_at": instant_json(finished_ms),
        "duration_ms": None if started_ms is None or finished_ms is None else max(0, finished_ms - started_ms),
        "reason": line.last_reason,
    }
