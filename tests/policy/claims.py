"""Short ways to say what a claim is decided by."""

from typing import Any

from fleetcron.model.queued import Facts, Queued

NOW = 1_800_000_000_000
KEY = "j:1"


def run(run_id: int = 1, due: int = 0, **fields: Any) -> Queued:
    """A live tick of one job under `skip`, due so many ms after NOW."""
    given: dict[str, Any] = {
        "job_id": "1", "tenant": "t1", "pool": "p1", "type": "x", "lane": "live", "kind": "tick", "priority": 0,
        "rank": run_id, "due_ms": NOW + due, "scheduled_for_ms": NOW + due, "deadline_ms": None, "overlap": "skip",
        "claim_key": KEY, "max_running": 1, "handler": "h", "depends": False, "attempt": 0, "failures": 0, "losses": 0,
        "round": 0, "leased": False, **fields,
    }  # fmt: skip
    return Queued(run_id, **given)


def facts(*candidates: Queued, at: int = 0, **fields: Any) -> Facts:
    given: dict[str, Any] = {"now_ms": NOW + at, "pool": "p1", "room": 9, "catchup_room": 9, **fields}
    return Facts(candidates=candidates, **given)
