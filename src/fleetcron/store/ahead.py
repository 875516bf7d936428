"""Part of a claim: who is ahead of its candidates. Who holds what they want, what was before them, who waits with them.

Leases are locked here, in the order of their runs: store/claims says why.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from fleetcron.model.queued import Holder, Previous, Queued, Waiting
from fleetcron.store.engine import Row, Script
from fleetcron.store.rows import rows, texts

_LINKS: Final = 16  # how far back it is asked what was before; whoever is further back counts as one that waits


def holders_of(runs: Sequence[Queued]) -> Script[tuple[dict[str, list[Holder]], dict[str, list[Holder]]]]:
    """By the keys that these runs want, and by their jobs: a job that was edited may hold another one. The leases of
    runs that rest are locked with them: whoever goes on with one has it in the order of all."""
    by_key: dict[str, list[Holder]] = {}
    by_job: dict[str, list[Holder]] = {}
    if not runs:
        return by_key, by_job
    keys = {run.claim_key for run in runs if run.claim_key is not None} | {f"j:{run.job_id}" for run in runs}
    jobs = {run.job_id for run in runs}
    want = [run for run in runs if not run.leased]
    wanted = {run.claim_key for run in want} | {f"j:{run.job_id}" for run in want}
    of_jobs = {run.job_id for run in want}
    for row in (yield "leases_of_keys", {"keys": texts(sorted(keys)), "jobs": texts(sorted(jobs))}):
        holder = _holder(row)
        if holder.claim_key is not None and holder.claim_key in wanted:
            by_key.setdefault(holder.claim_key, []).append(holder)
        if holder.job_id in of_jobs:
            by_job.setdefault(holder.job_id, []).append(holder)
    return by_key, by_job


def previous_of(runs: Sequence[Queued]) -> Script[dict[int, Previous | None]]:
    """And what is before those that may not count: who waits behind a gate, where nobody looks at him now, or was left
    out while such a one waited."""
    mine = {run.run_id for run in runs}
    found: dict[int, Previous | None] = {}
    asked: list[Mapping[str, Any]] = [
        {"run_id": r.run_id, "job_id": r.job_id, "scheduled_for_ms": r.scheduled_for_ms, "due_ms": r.due_ms}
        for r in runs
    ]
    for _ in range(_LINKS):
        if not asked:
            break
        due_ms = {each["run_id"]: each["due_ms"] for each in asked}
        found |= dict.fromkeys(due_ms)
        behind: dict[int, Mapping[str, Any]] = {}
        for row in (yield "runs_previous", {"rows": rows(asked)}):
            run_id, previous = row["run_id"], row["previous"]
            waits = row["skips_at_ms"] is not None and not row["started"] and previous not in mine
            found[run_id] = before = Previous(
                previous, row["finished_ms"], bool(row["left_out"]), row["deadline_ms"], bool(row["started"]),
                row["skips_at_ms"] if waits else None,
            )  # fmt: skip
            may_be_left_out = run_id not in mine and (before.left_out or before.deadline_ms is not None)
            if previous not in found and (waits or may_be_left_out):
                behind[previous] = {
                    "run_id": previous,
                    "job_id": str(row["job_id"]),
                    "scheduled_for_ms": row["scheduled_for_ms"],
                    "due_ms": row["skips_at_ms"] if waits else due_ms[run_id],
                }
        asked = list(behind.values())
    return found


def earlier_of(runs: Sequence[Queued]) -> Script[dict[int, int]]:
    if not runs:
        return {}
    return {row["run_id"]: row["earlier"] for row in (yield "queue_earlier", {"rows": _of_jobs(runs)})}


def waiting_of(runs: Sequence[Queued]) -> Script[dict[str, list[Waiting]]]:
    found: dict[str, list[Waiting]] = {}
    jobs = sorted({(run.job_id, run.claim_key) for run in runs if run.claim_key is not None})
    if jobs:
        text = rows({"job_id": job_id, "claim_key": key} for job_id, key in jobs)
        for row in (yield "queue_waiting", {"rows": text}):
            each = Waiting(row["run_id"], row["lane"], row["scheduled_for_ms"], row["due_ms"], row["deadline_ms"])
            found.setdefault(str(row["job_id"]), []).append(each)
    return found


def _of_jobs(runs: Iterable[Queued]) -> str:
    return rows(
        {"run_id": r.run_id, "job_id": r.job_id, "claim_key": r.claim_key, "scheduled_for_ms": r.scheduled_for_ms}
        for r in runs
    )


def _holder(row: Row) -> Holder:
    live = row["kind"] == "tick" and row["lane"] == "live" and row["round"] == 0
    return Holder(
        row["slot"], row["run_id"], str(row["job_id"]), live, row["node_id"], row["claim_key"],
        row["scheduled_for_ms"], row["due_ms"],
    )  # fmt: skip
