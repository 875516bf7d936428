"""The whole fleet at a glance: what its pools have to do, who is there, what runs, and what has failed lately."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from fleetcron.model.run import RunLine
from fleetcron.store.history import Span
from fleetcron.store.limits import PoolLine
from fleetcron.store.shards import FleetView
from fleetcron.store.steering import DeadFilter, DeadLetter
from fleetcron.store.store import Store
from fleetcron.views.fleet import fleet_json, pool_json
from fleetcron.views.instants import as_json as instant_json
from fleetcron.views.past import dead_json
from fleetcron.views.runs import line_json


@dataclass(frozen=True, slots=True)
class Top:
    """Of runs and failures only as many as were asked for; `in_flight` counts them all."""

    view: FleetView
    shards: int | None
    pools: list[PoolLine]
    running: list[RunLine]  # the one that runs longest comes first
    retrying: Sequence[RunLine]
    dead: list[DeadLetter]

    @property
    def now_ms(self) -> int:
        return self.view.now_ms

    @property
    def in_flight(self) -> int:
        return sum(line.usage.in_flight for line in self.pools)

    @property
    def queued(self) -> int:
        return sum(line.usage.queued for line in self.pools)

    def lag_ms(self, line: PoolLine) -> int | None:
        """How long the first run in the queue of a pool has waited for a free slot."""
        due_ms = line.usage.due_ms
        return None if due_ms is None else max(0, self.now_ms - due_ms)


async def top(store: Store, limit: int) -> Top:
    """Several looks, not one instant: good enough for eyes."""
    view, number = await store.shards.view(), await store.shards.number()
    pools = await store.limits.pools()
    running = await store.history.runs(Span(), state="running", limit=limit, later=True)
    retrying = await store.history.runs(Span(), state="retrying", limit=limit, later=True)
    dead = await store.steering.dead(DeadFilter(), limit=limit)
    return Top(view, number, pools, sorted(running, key=_begun), retrying, dead)


def top_json(found: Top) -> dict[str, Any]:
    lags = {line.pool.name: found.lag_ms(line) for line in found.pools}
    return {
        "at": instant_json(found.now_ms),
        "in_flight": found.in_flight,
        "queued": found.queued,
        "pools": [{**pool_json(line), "lag_seconds": _seconds(lags[line.pool.name])} for line in found.pools],
        **fleet_json(found.view, found.shards),
        "running": [
            {**line_json(line, found.now_ms, {}), "attempt_started_at": instant_json(line.begun_ms)}
            for line in found.running
        ],
        "retrying": [line_json(line, found.now_ms, {}) for line in found.retrying],
        "dead": [dead_json(each) for each in found.dead],
    }


def _seconds(ms: int | None) -> float | None:
    return None if ms is None else ms / 1000


def _begun(line: RunLine) -> tuple[int, int]:
    return line.begun_ms or line.run.run_after_ms, line.run.run_id
