"""What a change of a job writes: the rows of its tables, as plain values."""

from collections.abc import Mapping
from typing import Any, TypeAlias

from fleetcron.model.amendment import Amendment
from fleetcron.model.job import Job
from fleetcron.model.target import handler_key

Documents: TypeAlias = Mapping[str, Mapping[str, Any]]  # by job: each is written twice, as the job and as a revision


def job_row(a: Amendment, documents: Documents) -> Mapping[str, Any]:
    job, definition = a.after.job, a.after.job.definition
    return {
        "job_id": job.job_id,
        "tenant": definition.tenant,
        "name": definition.name,
        "type": definition.type,
        "pool": definition.pool,
        "region": definition.region or "*",
        "state": job.state,
        "on_resume": job.on_resume,
        "problem": job.problem,
        "revision": job.revision,
        "definition": documents[job.job_id],
        "managed_by": definition.managed_by,
        "created_by": job.created_by,
        "created_ms": job.created_ms,
        "updated_ms": job.updated_ms,
        "deleted_ms": job.deleted_ms,
        "priority": definition.priority,
        "overlap": definition.overlap.policy,
        "claim_key": definition.claim_key(job.job_id),
        "max_running": definition.overlap.max_running or 1,
        "start_deadline_ms": definition.start_deadline_ms,
        "handler": handler_key(definition.run),
        "depends": int(bool(definition.depends_on)),
        "shadow_ms": definition.shadow_ms,
    }


def is_moved(a: Amendment) -> bool:
    """Whether the queue has to follow: runs of the job that stand there would be claimed otherwise now."""
    return a.before is not None and _place(a.before.job) != _place(a.after.job)


def _place(job: Job) -> tuple[Any, ...]:
    """What the queue knows of a job, and which upstream jobs it asks for."""
    d = job.definition
    return (
        d.pool, d.priority, d.type, handler_key(d.run), d.overlap.policy, d.claim_key(job.job_id),
        d.overlap.max_running or 1, d.start_deadline_ms, d.depends_on, d.on_upstream_failure,
    )  # fmt: skip


def cursor_row(a: Amendment) -> dict[str, Any]:
    after = a.after
    row = {
        "job_id": after.job.job_id,
        "region": after.job.definition.region or "*",
        "shard": after.shard,
        "state": after.job.state,
        "timing_id": after.timing.timing_id,
        "revision": after.job.revision,
        "cursor_ms": after.at.cursor_ms,
        "ticks_used": after.at.ticks_used,
        "next_due_ms": after.next_due_ms,
    }
    return row | seen_row(a)


def seen_row(a: Amendment) -> dict[str, Any]:
    if a.before is None:
        return {}
    return {
        "job_id": a.before.job.job_id,
        "seen_cursor_ms": a.before.at.cursor_ms,
        "seen_revision": a.before.job.revision,
        "seen_state": a.before.job.state,
    }


def gap_row(a: Amendment, epoch: int) -> list[dict[str, Any]]:
    before = a.before
    assert before is not None
    return [
        {
            "job_id": before.job.job_id,
            "region": before.job.definition.region or "*",
            "shard": before.shard,
            "from_ms": gap.from_ms,
            "to_ms": gap.to_ms,
            "cause": gap.cause,
            "policy": gap.policy,
            "revision": before.job.revision,
            "timing_id": before.timing.timing_id,
            "almanac": epoch,
            "noticed_ms": gap.noticed_ms,
            "trimmed": int(gap.trimmed),
        }
        for gap in a.gaps
    ]


def revision_row(a: Amendment, documents: Documents) -> Mapping[str, Any]:
    return {
        "job_id": a.after.job.job_id,
        "revision": a.after.job.revision,
        "at_ms": a.at_ms,
        "actor": a.actor,
        "action": a.action,
        "timing_id": a.after.timing.timing_id,
        "before": None if a.before is None else _snapshot(a.before.job),
        "after": {**documents[a.after.job.job_id], **_state(a.after.job)},
    }


def _snapshot(job: Job) -> dict[str, Any]:
    """A job as a revision keeps it."""
    return job.definition.as_document() | _state(job)


def _state(job: Job) -> dict[str, Any]:
    return {"state": job.state, "on_resume": job.on_resume}
