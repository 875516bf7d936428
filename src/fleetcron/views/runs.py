"""Runs, their attempts, and what became of those that somebody steered, as documents."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from fleetcron.model.payload import filled
from fleetcron.model.run import RunLine, idempotency_key
from fleetcron.scheduler.backfill import Backfilled
from fleetcron.store.attempts import PastAttempt
from fleetcron.store.history import RunShown
from fleetcron.store.steering import Steered, Triggered
from fleetcron.times.instants import from_ms, iso
from fleetcron.views.instants import as_json as instant_json


def line_json(line: RunLine, now_ms: int, workers: Mapping[int, int]) -> dict[str, Any]:
    run, waiting = line.run, line.waiting
    window = run.window_ms
    return {
        "run_id": run.run_id,
        "tenant": line.tenant,
        "name": line.name,
        "job_id": run.job_id,
        "pool": line.pool,
        "scheduled_for": instant_json(run.scheduled_for_ms),
        "run_after": instant_json(run.run_after_ms),
        "state": run.state.value,
        "kind": run.kind,
        "lane": run.lane,
        "covers": run.covers,
        "window": window and {"from": instant_json(window[0]), "to": instant_json(window[1])},
        "created_at": instant_json(run.created_ms),
        "started_at": instant_json(run.started_ms),
        "finished_at": instant_json(run.finished_ms),
        "delay_ms": line.delay_ms,
        "duration_ms": line.lasted_ms(now_ms),
        "attempt": run.attempt,
        "failures": run.failures,
        "losses": run.losses,
        "round": run.round,
        "reason": run.reason,
        "covered_by": run.covered_by,
        "worked_by": workers.get(run.run_id),
        "asked_by": run.asked_by,
        "node_id": line.node_id,
        "progress": line.progress,
        "note": line.note,
        "asked_to_stop": line.cancel,
        "next_try": instant_json(line.next_ms),
        "waiting": waiting and {"gate": waiting.gate, "key": waiting.key, "since": instant_json(waiting.since_ms)},
        "revision": run.revision,
        "idempotency_key": run.idempotency_key,
    }


def run_json(shown: RunShown, attempts: Sequence[PastAttempt], sentence: str, now_ms: int) -> dict[str, Any]:
    after, gone = shown.next and shown.next.run, shown.discarded
    return {
        **line_json(shown.line, now_ms, {shown.line.run.run_id: shown.way[-1]} if shown.way else {}),
        "why": sentence,
        "payload": payload_of(shown),
        "discarded": gone and {"at": instant_json(gone.at_ms), "by": gone.by, "reason": gone.why},
        "merged_into": list(shown.way),
        "next_run": after
        and {
            "run_id": after.run_id,
            "scheduled_for": instant_json(after.scheduled_for_ms),
            "state": after.state.value,
        },
        "attempts": [attempt_json(each, shown) for each in attempts],
    }


def attempt_json(attempt: PastAttempt, shown: RunShown) -> dict[str, Any]:
    error = attempt.error
    return {
        "attempt": attempt.attempt,
        "node_id": attempt.node_id,
        "outcome": attempt.outcome,
        "started_at": instant_json(attempt.started_ms),
        "finished_at": instant_json(attempt.finished_ms),
        "duration_ms": attempt.lasted_ms,
        "error": error and {"code": error.code, "text": error.text, "trace": error.trace},
        "result": None if attempt.result is None else json.loads(attempt.result),
        "log_bytes": printed(attempt, shown),
        "progress": attempt.progress,
        "note": attempt.note,
    }


def payload_of(shown: RunShown) -> dict[str, Any]:
    """As the handler gets it."""
    line = shown.line
    return filled(shown.payload, iso(from_ms(line.run.scheduled_for_ms)), line.name, line.tenant)


def printed(attempt: PastAttempt, shown: RunShown) -> int:
    """Bytes. Nobody counted them for an attempt that was lost or that runs: then what is kept."""
    return max(attempt.log_bytes, shown.kept.get(attempt.attempt, 0))


def triggered_json(made: Triggered) -> dict[str, Any]:
    return {
        "run_id": made.run_id,
        "tenant": made.tenant,
        "name": made.name,
        "job_id": made.job_id,
        "scheduled_for": instant_json(made.scheduled_for_ms),
        "created": made.created,
        "idempotency_key": idempotency_key(made.job_id, made.scheduled_for_ms, made.run_id, "manual"),
    }


def backfilled_json(
    tenant: str, name: str, from_ms: int, to_ms: int, done: Backfilled, *, dry_run: bool
) -> dict[str, Any]:
    return {
        "tenant": tenant,
        "name": name,
        "from": instant_json(from_ms),
        "to": instant_json(to_ms),
        "dry_run": dry_run,
        "ticks": done.ticks,
        "created": done.created,
        "superseded": done.superseded,
        "existing": done.existing,
        "undecided": done.undecided,
        "shadowed": done.shadowed,
    }


def steered_json(each: Steered) -> dict[str, object]:
    return {"run_id": each.run_id, "job": each.job, "done": each.done, "reason": each.reason}
