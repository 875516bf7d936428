"""The fleet as documents: tenants, pools, what is held back, nodes and who plans which shard."""

from collections.abc import Sequence
from typing import Any, Protocol

from fleetcron.store.controls import ControlLine
from fleetcron.store.limits import PoolLine, Usage
from fleetcron.store.looking import Changed
from fleetcron.store.nodes import SeenNode
from fleetcron.store.shards import FleetView
from fleetcron.views.instants import as_json as instant_json


class Limited(Protocol):
    """A tenant or a pool: a name, and limits that make a document."""

    @property
    def name(self) -> str: ...

    def as_document(self) -> dict[str, Any]: ...


def changed_json(changed: Changed[Any]) -> dict[str, Any]:
    return {
        "done": "unchanged" if changed.before == changed.after else "changed",
        "before": changed.before and changed.before.as_document(),
        "after": changed.after and changed.after.as_document(),
        "looked_at": changed.looked,
        "complete": not changed.rest,
    }


def limited_json(limited: Limited, usage: Usage, updated_ms: int | None) -> dict[str, Any]:
    return {
        "name": limited.name,
        **limited.as_document(),
        "jobs": usage.jobs,
        "ended": usage.ended,
        "in_flight": usage.in_flight,
        "queued": usage.queued,
        "waiting": {gate or "slot": count for gate, count in sorted(usage.waiting.items())},
        "updated_at": instant_json(updated_ms),
    }


def pool_json(line: PoolLine) -> dict[str, Any]:
    return {
        **limited_json(line.pool, line.usage, line.updated_ms),
        "in_flight_by_type": dict(line.usage.by_type),
        "workers": line.workers,
        "worker_slots": line.worker_slots,
    }


def hold_json(line: ControlLine) -> dict[str, Any]:
    control = line.switched.control
    return {
        "scope": control.scope,
        "name": control.name,
        "percent": control.percent,
        "attempts": control.retries,
        "backoff": control.backoff,
        "until": instant_json(control.until_ms),
        "waiting": line.waiting,
        "reason": line.switched.reason,
        "by": line.switched.actor,
        "since": instant_json(line.switched.updated_ms),
    }


def fleet_json(view: FleetView, shards: int | None) -> dict[str, Any]:
    return {
        "now": instant_json(view.now_ms),
        "shards": shards,
        "nodes": [node_json(seen) for seen in view.nodes],
        "job_regions": list(view.job_regions),
        "leases": [
            {
                "region": lease.held.region,
                "shard": lease.held.shard,
                "term": lease.held.term,
                "node_id": lease.held.owner,
                "taken_at": instant_json(lease.taken_ms),
                "expires_at": instant_json(lease.expires_ms),
            }
            for lease in view.leases
        ],
    }


def node_json(seen: SeenNode) -> dict[str, Any]:
    node = seen.node
    roles: Sequence[str] = list(node.roles)
    return {
        "node_id": node.node_id,
        "alive": seen.alive,
        "host": node.host,
        "pid": node.pid,
        "roles": roles,
        "region": node.region,
        "version": node.version,
        "zone_release": node.zone_release,
        "started_at": instant_json(seen.started_ms),
        "seen_at": instant_json(seen.seen_ms),
        "clock_ahead_ms": -seen.clock_offset_ms,
    }
