"""What became of ticks and what left the normal path, as documents: the ledger, events, dead letters."""

from typing import Any

from fleetcron.model.answer import WORDS
from fleetcron.store.history import EventLine, LedgerLine
from fleetcron.store.steering import DeadLetter
from fleetcron.views.instants import as_json as instant_json
from fleetcron.views.instants import utc


def words(reason: str, covered_by_ms: int | None = None) -> str:
    """Why, in plain words. A newer program may have written a reason that this one does not know."""
    said = WORDS.get(reason, reason)  # type: ignore[call-overload]
    return f"{said}: {utc(covered_by_ms)}" if covered_by_ms is not None else str(said)


def ledger_json(line: LedgerLine) -> dict[str, Any]:
    answer = line.answer
    return {
        "entry_id": line.entry_id,
        "tenant": line.tenant,
        "name": line.name,
        "job_id": line.job_id,
        "from": instant_json(answer.from_ms),
        "to": instant_json(answer.to_ms),
        "ticks": answer.ticks,
        "answer": answer.answer,
        "reason": answer.reason,
        "words": words(answer.reason, answer.covered_by_ms),
        "covered_by": instant_json(answer.covered_by_ms),
        "noted_at": instant_json(line.noted_ms),
        "revision": line.revision,
    }


def event_json(line: EventLine) -> dict[str, Any]:
    return {
        "event_id": line.event_id,
        "at": instant_json(line.at_ms),
        "kind": line.kind,
        "count": line.count,
        "tenant": line.tenant,
        "name": line.name,
        "node_id": line.node_id,
        "by": line.actor,
        "detail": dict(line.detail),
    }


def dead_json(each: DeadLetter) -> dict[str, Any]:
    return {
        "run_id": each.run_id,
        "tenant": each.tenant,
        "name": each.name,
        "job_id": each.job_id,
        "type": each.type,
        "kind": each.kind,
        "scheduled_for": instant_json(each.scheduled_for_ms),
        "died_at": instant_json(each.finished_ms),
        "attempt": each.attempt,
        "failures": each.failures,
        "losses": each.losses,
        "round": each.round,
        "outcome": each.outcome,
        "error": {"code": each.error_code, "text": each.error_text},
        "node_id": each.node_id,
    }
