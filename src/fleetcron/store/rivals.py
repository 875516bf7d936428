"""Part of a claim: who else wants the keys that several jobs share. Jobs with a key of their own cost nothing here."""

from collections.abc import Mapping, Sequence

from fleetcron.model.queued import Holder, Queued, Rival, queued
from fleetcron.store.closing import is_shared
from fleetcron.store.engine import Script
from fleetcron.store.rows import rows, texts


def rivals_of(
    pool: str, candidates: Sequence[Queued], holders: Mapping[str, Sequence[Holder]], now_ms: int
) -> Script[dict[str, list[Rival]]]:
    """Who else waits for the shared keys that candidates might take: those whose turn it may be in other pools, and
    those that want a key for themselves or with fewer others, and are older."""
    free: dict[str, Queued] = {}  # the oldest of each key
    for run in candidates:
        key = run.claim_key
        if key is None or run.leased or not is_shared(key) or len(holders.get(key, ())) >= run.max_running:
            continue
        free[key] = min(run, free.get(key, run), key=lambda each: (each.scheduled_for_ms, each.run_id))
    if not free:
        return {}
    found = yield "queue_called", {"keys": texts(sorted(free)), "pool": pool, "now_ms": now_ms}
    beside = [
        {"key": key, "held": len(holders[key]), "before_ms": run.scheduled_for_ms, "before_id": run.run_id}
        for key, run in sorted(free.items())
        if holders.get(key)
    ]
    if beside:
        found = [*found, *(yield "queue_kept_out", {"rows": rows(beside)})]
    rivals: dict[str, list[Rival]] = {}
    for row in found:
        rivals.setdefault(row["claim_key"], []).append(Rival(queued(row), row["look_ms"]))
    return rivals
