"""Whose turn it is to have a key that several jobs share. Pure.

The runs that want one key stand in the queues of several pools. Whoever ends has the next claim of its pool at hand, so
without a rule the pool that had the key would have it for ever. And where some jobs let several run beside each other,
one that wants the key for itself would never find it free.

The rule is about order only. That a key is not held by too many rests on the unique key of the leases.
"""

from collections.abc import Sequence
from typing import Final

from fleetcron.model.queued import Facts, Holder, Park, Queued, Rival
from fleetcron.policy.fairness import precedence

# So long a free key is left to the first who waits for it in another pool. Its worker is told at once; a process that
# shares a SQLite file looks within a second. Then anybody may have it: that pool may be full, or have no worker.
TURN_MS: Final = 2_000


def gives_way(run: Queued, facts: Facts, holders: Sequence[Holder]) -> Park | None:
    """A run that might take a shared key, and leaves it to one that comes before it."""
    assert run.claim_key is not None
    mine = precedence(run, facts.now_ms)
    for rival in facts.rivals.get(run.claim_key, ()):
        if precedence(rival.run, facts.now_ms) >= mine:
            continue
        if _is_called(rival, facts):
            return Park(run.run_id, "key", run.claim_key, (rival.look_ms or 0) + TURN_MS)
        if _is_kept_out(rival, facts, holders):
            return Park(run.run_id, "key", run.claim_key)  # the end of one that holds it is the next look
    return None


def _is_called(rival: Rival, facts: Facts) -> bool:
    """In our own pool the order of the candidates decides."""
    if rival.run.pool == facts.pool or rival.look_ms is None:
        return False
    return rival.look_ms <= facts.now_ms < rival.look_ms + TURN_MS


def _is_kept_out(rival: Rival, facts: Facts, holders: Sequence[Holder]) -> bool:
    """Too many hold it, and would for ever if others came beside them. Not so if runs that rest between two attempts
    are enough to keep it out: nobody helps it by waiting. Nor if it was called in vain: then its pool has no worker."""
    resting = sum(each.node_id is None for each in holders)
    if not resting < rival.run.max_running <= len(holders):
        return False
    return rival.look_ms is None or facts.now_ms < rival.look_ms + TURN_MS
