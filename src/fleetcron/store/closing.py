"""Parts of other verbs: end runs that nobody holds, and let those look again that waited for what is free now."""

from collections.abc import Iterable, Sequence
from typing import Final

from fleetcron.model.queued import Close
from fleetcron.model.rules import Lane
from fleetcron.store.engine import Script
from fleetcron.store.rows import ids, rows

EVERYBODY: Final = 10_000


def close_runs(closes: Sequence[Close], now_ms: int) -> Script[list[int]]:
    """Give runs their answer. Only those that had none are returned; whoever waited for them is let go on."""
    closed, _ = yield from close_and_free(closes, now_ms)
    return closed


def close_and_free(closes: Sequence[Close], now_ms: int) -> Script[tuple[list[int], set[str]]]:
    """The runs that were closed, and the pools that have something to claim because of it."""
    if not closes:
        return [], set()
    text = rows(each._asdict() for each in closes)
    done = yield "runs_close", {"rows": text, "now_ms": now_ms}
    closed = [row["run_id"] for row in done]
    left = yield "queue_delete", {"ids": ids(closed)}
    merged = {each.run_id for each in closes if each.covered_by is not None}
    if merged:
        yield "runs_cover", {"ids": ids(run for run in closed if run in merged)}
    keys = {row["claim_key"] for row in left if row["claim_key"] is not None}
    freed = yield from release((("key", key) for key in sorted(keys)), most=1)
    freed |= yield from release_downstream(str(row["job_id"]) for row in done)
    return closed, freed


def release(
    gates: Iterable[tuple[str, str]],
    most: int,
    *,
    pool: str | None = None,
    lane: Lane | None = None,
    due_ms: int | None = None,
) -> Script[set[str]]:
    """Let the first runs that wait at these gates be looked at again: of every queue, since nobody may be serving the
    one of the very first. The pools that have something to claim now."""
    found = [{"gate": gate, "key": key} for gate, key in gates]
    if not found:
        return set()
    freed = yield "queue_release", {"rows": rows(found), "most": most, "pool": pool, "lane": lane, "due_ms": due_ms}
    return {row["pool"] for row in freed}


def release_downstream(job_ids: Iterable[str]) -> Script[set[str]]:
    """Runs that waited for these jobs."""
    return (yield from release((("upstream", job_id) for job_id in sorted(set(job_ids))), EVERYBODY))
