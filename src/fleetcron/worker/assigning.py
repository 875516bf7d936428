"""What is told to an executor about a run that was claimed."""

import json
from collections.abc import Mapping
from typing import Any

from fleetcron.executors.assignment import Assignment
from fleetcron.model.errand import Errand
from fleetcron.model.payload import filled
from fleetcron.model.run import idempotency_key
from fleetcron.store.claims import Claimed
from fleetcron.times.instants import from_ms, iso


def assignment(run: Claimed, errand: Errand, now_ms: int) -> Assignment:
    """`now_ms` is the database's time as far as it is known: only the deadline that a handler is told stands on it."""
    return Assignment(
        run_id=run.run_id,
        attempt=run.attempt,
        job_id=run.job_id,
        tenant=run.tenant,
        job=run.name,
        target=errand.run,
        payload=_payload(run, errand),
        scheduled_for_ms=run.scheduled_for_ms,
        run_after_ms=run.due_ms,
        window_ms=run.window_ms,
        covers=run.covers,
        idempotency_key=idempotency_key(run.job_id, run.scheduled_for_ms, run.run_id, run.kind),
        timeout_ms=errand.timeout_ms,
        deadline_ms=now_ms + errand.timeout_ms,
    )


def _payload(run: Claimed, errand: Errand) -> Mapping[str, Any]:
    given = errand.payload if run.payload is None else json.loads(run.payload)
    return filled(given, iso(from_ms(run.scheduled_for_ms)), run.name, run.tenant) if given else {}
