"""Workers that vanished: what they held is settled as lost, by the same pure policy as every other end.

The watched-lease rule: a worker is taken for lost if the database says that its lease has expired AND this node has
seen its row unchanged for a whole lease on its own steady clock. Where the worker ran on this very machine and its
process is gone, nobody has to wait.
"""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from fleetcron.clock import Clock
from fleetcron.model.errand import Errand
from fleetcron.store.ends import Settle
from fleetcron.store.store import Store
from fleetcron.store.workers import Seen, Worker
from fleetcron.store.written import Ok
from fleetcron.upkeep.processes import is_gone

log = logging.getLogger(__name__)

Settling = Callable[[dict[int, Errand]], Settle]


@dataclass(slots=True)
class Watch:
    """What a node has seen of the workers: since when, on its own steady clock, each row stands as it stands."""

    ttl_ms: int
    since_ms: dict[tuple[str, int, int], int] = field(default_factory=dict)

    def lost(self, seen: Seen, monotonic_ms: int, gone: Callable[[str], bool]) -> list[tuple[Worker, bool]]:
        """Those that may be declared lost, and whether their process is known to be gone."""
        keys = {(each.node_id, each.started_ms, each.beat): each for each in seen.workers}
        self.since_ms = {key: self.since_ms.get(key, monotonic_ms) for key in keys}
        found = []
        for key, worker in keys.items():
            if gone(worker.process):
                found.append((worker, True))
            elif worker.expires_ms <= seen.now_ms and monotonic_ms - self.since_ms[key] >= self.ttl_ms:
                found.append((worker, False))
        return found


async def bury_lost(store: Store, watch: Watch, settling: Settling, *, clock: Clock, by: str) -> Sequence[str]:
    """One look at all workers. The names of those that were declared lost."""
    seen = await store.workers.list()
    buried = []
    for worker, gone in watch.lost(seen, clock.monotonic_ms(), is_gone):
        if worker.node_id == by and not gone:
            continue  # it would rather know itself
        errands = await store.definitions.held_by(worker.node_id)
        match await store.workers.bury(worker, settling(errands), gone=gone, by=by):
            case Ok(ends):
                buried.append(worker.node_id)
                held = len(ends.transitions)
                log.warning("the worker %s is lost; it held %d run%s", worker.node_id, held, "" if held == 1 else "s")
    return buried
