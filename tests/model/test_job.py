"""Jobs, their revisions, runs and leases."""

from dataclasses import FrozenInstanceError, replace

import pytest

from fleetcron.model.definition import Definition
from fleetcron.model.entry import cron_entry
from fleetcron.model.job import Change, Job, Revision, changes
from fleetcron.model.lease import Lease
from fleetcron.model.rules import MisfireRule
from fleetcron.model.run import Run, RunLine
from fleetcron.model.states import RunState
from fleetcron.model.target import PythonTarget
from fleetcron.model.tenant import Tenant

NIGHTLY = Definition("report", (cron_entry("0 2 * * *"),), PythonTarget("shop:report"))
RUN = Run(7, "0197", 1_767_225_600_000, 1_767_225_605_000, 0, None, None, 1, 1, 3, "tick", "live", RunState.PLANNED)


def test_changes_name_the_smallest_fields_that_differ() -> None:
    after = replace(
        NIGHTLY,
        schedule=(cron_entry("*/15 * * * *"),),
        misfire=MisfireRule("skip"),
        payload={"kind": True},
        description="all of it",
    )
    assert changes(NIGHTLY.as_document(), after.as_document()) == [
        Change("description", None, "all of it"),
        Change("schedule.cron", "0 2 * * *", "*/15 * * * *"),
        Change("schedule.dst_gap", "shift", "skip"),
        Change("schedule.dst_fold", "first", "both"),
        Change("payload.kind", None, True),
        Change("misfire.policy", "latest", "skip"),
    ]
    assert changes(after.as_document(), after.as_document()) == []


def test_changes_see_what_python_calls_equal() -> None:
    one, other = replace(NIGHTLY, payload={"a": 1}), replace(NIGHTLY, payload={"a": True})
    assert changes(one.as_document(), other.as_document()) == [Change("payload.a", 1, True)]


def test_changes_of_a_schedule_with_several_entries() -> None:
    two = replace(NIGHTLY, schedule=(cron_entry("0 2 * * *"), cron_entry("0 3 * * *")))
    moved = replace(NIGHTLY, schedule=(cron_entry("0 2 * * *"), cron_entry("0 4 * * *")))
    assert changes(two.as_document(), moved.as_document()) == [Change("schedule.1.cron", "0 3 * * *", "0 4 * * *")]
    (added,) = changes(NIGHTLY.as_document(), two.as_document())
    assert (added.field, len(added.old), len(added.new)) == ("schedule", 1, 2)


def test_a_creation_and_a_deletion_are_changes_of_everything() -> None:
    document = NIGHTLY.as_document()
    named = [change.field for change in changes(None, document)]
    assert "name" in named
    assert "timeout" in named
    assert [change.new for change in changes(document, None)] == [None] * len(changes(document, None))


def test_a_job_keeps_who_made_it_and_every_revision_what_it_was() -> None:
    """S0-23: created_at, updated_at and created_by; S2-6: the definition is mutable, and its history is not."""
    job = Job("0197", NIGHTLY, "active", 1, None, None, 1000, "ann", 1000)
    assert (job.created_ms, job.updated_ms, job.created_by, job.deleted_ms) == (1000, 1000, "ann", None)
    edited = replace(job, definition=replace(NIGHTLY, priority=5), revision=2, updated_ms=2000)
    kept = Revision("0197", 2, 2000, "bob", "edit", job.definition.as_document(), edited.definition.as_document())
    assert changes(kept.before, kept.after) == [Change("priority", 0, 5)]
    with pytest.raises(FrozenInstanceError):
        job.revision = 3  # type: ignore[misc]


def test_the_idempotency_key_is_the_ticks_and_a_manual_run_never_has_it() -> None:
    """S2-6: the identity of a run is its tick, whatever its state, attempt or jitter."""
    assert RUN.idempotency_key == "job:0197:scheduled_for:2026-01-01T00:00:00Z"
    assert replace(RUN, state=RunState.DEAD, run_after_ms=9, kind="backfill").idempotency_key == RUN.idempotency_key
    assert replace(RUN, kind="manual").idempotency_key == "job:0197:manual:7"


def test_a_lease_ends_at_its_instant() -> None:
    lease = Lease("node-1", 4, 1000)
    assert [lease.is_expired(now) for now in (999, 1000, 1001)] == [False, True, True]


def test_a_tenant_has_no_limits_but_the_size_of_a_payload() -> None:
    tenant = Tenant("acme")
    assert (tenant.weight, tenant.max_jobs, tenant.max_in_flight, tenant.rate_per_s) == (1, None, None, None)
    assert tenant.max_payload == 256 * 1024


def test_nothing_lasts_less_than_nothing() -> None:
    """A worker that guesses the database's clock a moment ahead starts a run after its end."""
    ended = RunLine("default", "a", "default", replace(RUN, started_ms=1_001, finished_ms=1_000))
    running = RunLine("default", "a", "default", replace(RUN, started_ms=1_001))
    assert [line.lasted_ms(1_000) for line in (ended, running)] == [0, 0]
    assert running.lasted_ms(1_005) == 4
