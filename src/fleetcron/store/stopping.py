"""Part of a verb: cancel runs, wherever they are.

A run that is on its way or queued is ended at once, as is one that rests between two attempts; an attempt that runs is
asked to stop, and its worker writes the end. Runs move meanwhile, so each is only touched once it cannot move any more:
its row in `upcoming` was deleted here, or the claims of its pool wait for us, or its lease is locked. What was on the
move when we looked is looked at again.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

from fleetcron.errors import StoreUnavailable
from fleetcron.model.queued import Close
from fleetcron.model.states import RunState
from fleetcron.store.closing import close_runs, release_keys
from fleetcron.store.engine import Row, Script
from fleetcron.store.rows import ids, rows

_LOOKS: Final = 20


@dataclass(slots=True)
class Caught:
    """Where runs were found, and stay until the end of the transaction."""

    open: set[int] = field(default_factory=set)  # on their way, queued, waiting or between two attempts
    held: dict[int, Row] = field(default_factory=dict)  # leases of attempts that run
    told: dict[int, Row] = field(default_factory=dict)  # runs that have ended

    @property
    def asked_before(self) -> set[int]:
        return {run_id for run_id, lease in self.held.items() if lease["cancel"] is not None}


def catch(run_ids: Sequence[int]) -> Script[Caught]:
    """Runs that do not exist are in none of its places."""
    caught, locked = Caught(), set[str]()
    left = set(run_ids)
    for _ in range(_LOOKS):
        left -= yield from _catch_open(caught, left, locked)
        if left:
            left -= yield from _catch_held(caught, left)
        if left:
            left &= yield from _catch_ended(caught, left)
        if not left:
            return caught
    raise StoreUnavailable("the runs are moving: they could not be cancelled", hint="try again")


def stop(run_ids: Iterable[int], reason: str, now_ms: int) -> Script[list[int]]:
    """End runs that were caught open, and give back the keys of those that rested. The runs that were ended."""
    wanted = sorted(run_ids)
    if not wanted:
        return []
    resting = yield "leases_lock", {"ids": ids(wanted)}
    yield "leases_delete", {"ids": ids(row["run_id"] for row in resting)}
    closed = yield from close_runs([Close(run_id, RunState.CANCELLED, reason) for run_id in wanted], now_ms)
    keys = sorted({row["claim_key"] for row in resting if row["claim_key"] is not None})
    yield from release_keys(keys, most=1, now_ms=now_ms)
    return closed


def ask(run_ids: Iterable[int], reason: str) -> Script[None]:
    """Attempts that were caught while they ran: the worker hears it with its next renewal."""
    wanted = sorted(run_ids)
    if wanted:
        yield "leases_ask", {"rows": rows({"run_id": run_id, "reason": reason} for run_id in wanted)}


def _catch_open(caught: Caught, left: set[int], locked: set[str]) -> Script[set[int]]:
    """What we delete from `upcoming` nobody can queue any more; and nobody claims in a pool whose lock we have."""
    gone = {row["run_id"] for row in (yield "upcoming_withdraw", {"ids": ids(sorted(left))})}
    queued = yield "queue_pools", {"ids": ids(sorted(left - gone))}
    new = {row["pool"] for row in queued} - locked
    for pool in sorted(new):
        yield "work_lock", {"name": f"pool:{pool}"}
    locked |= new
    if new:  # they may have been claimed while we waited
        queued = yield "queue_pools", {"ids": ids(sorted(left - gone))}
    found = gone | {row["run_id"] for row in queued if row["pool"] in locked}
    caught.open |= found
    return found


def _catch_held(caught: Caught, left: set[int]) -> Script[set[int]]:
    leases = yield "leases_lock", {"ids": ids(sorted(left))}
    running = {row["run_id"]: row for row in leases if row["node_id"] is not None}
    caught.held |= running
    return set(running)


def _catch_ended(caught: Caught, left: set[int]) -> Script[set[int]]:
    """Those that are on the move: neither here nor there, and not at their end."""
    known = {row["run_id"]: row for row in (yield "runs_steered", {"ids": ids(sorted(left))})}
    caught.told |= {run_id: row for run_id, row in known.items() if row["finished_ms"] is not None}
    return known.keys() - caught.told.keys()
