"""Parts of a claim: what limits say, and who may go on because they have room again.

There are no counters: what is in flight is counted when somebody claims, one claim at a time.
"""

import json
from collections import Counter
from collections.abc import Collection
from dataclasses import replace
from typing import Final

from fleetcron.model.queued import Cap, Control, Limits
from fleetcron.model.rules import Lane
from fleetcron.store.closing import release
from fleetcron.store.engine import Row, Script
from fleetcron.store.rows import texts

_PULLED: Final = ("tenant", "quota_tenant", "quota_type", "rate")  # gates of limits, which may have room by now


def limits_of(pool: str, now_ms: int) -> Script[tuple[Limits, bool]]:
    """What holds for the pool, and whether anything has to be counted.

    Tenants have caps across pools: claims of all pools count one by one. Changes of limits take the same lock, and let
    the runs be looked at that wait; a claim that parked by what it read before would leave runs behind a gate that
    nobody opens any more, so under the lock everything is read again.
    """
    limits, counted = yield from _read_limits(pool, now_ms)
    if not counted and not limits.controls:
        return limits, False
    yield "work_lock", {"name": "limits"}
    return (yield from _read_limits(pool, now_ms))


def _read_limits(pool: str, now_ms: int) -> Script[tuple[Limits, bool]]:
    found = yield "limits_of_pool", {"pool": pool}
    controls = yield from control_rows(now_ms)
    [caps] = yield "limits_exist", {}
    if not found:
        return Limits(controls=controls), bool(caps["there"])
    [row] = found
    return Limits(row["slots"], row["per_tenant"], json.loads(row["per_type"]), controls=controls), True


def counted(limits: Limits, tenants: Collection[str]) -> Script[Limits]:
    """With what is in flight, and the caps of these tenants."""
    names = texts(sorted(tenants))
    found = yield "limits_of_tenants", {"tenants": names}
    caps = {row["tenant"]: Cap(row["max_in_flight"], row["rate_per_s"], row["burst"]) for row in found}
    next_us: dict[str, int] = {}
    if any(cap.rate_per_s is not None for cap in caps.values()):
        next_us = {row["tenant"]: row["next_us"] for row in (yield "rates_read", {"tenants": names})}
    counts = yield "leases_counts", {}
    held = {(row["pool"], row["tenant"], row["type"]): row["held"] for row in counts}
    lent: Counter[str] = Counter()
    for row in counts:
        lent[row["pool"]] += row["lent"]
    return replace(limits, tenants=caps, next_us=next_us, held=held, lent=lent)


def pull(pool: str, limits: Limits, room: int, catchup_room: int, now_ms: int) -> Script[bool]:
    """A slot is free: whoever waits here for a limit that has room by now is looked at again. Ends do the same; this is
    for the run that was parked while the last one ended, and for time, which gives room to a rate."""
    if room <= 0:
        return False
    gates = {row["gate"] for row in (yield "queue_gates", {})}
    waited: list[tuple[str, str]] = []
    for gate in _PULLED:
        if gate in gates:
            waited += [(gate, row["key"]) for row in (yield "queue_parked_keys", {"gate": gate})]
    if not waited:
        return False
    limits = yield from counted(limits, {key for gate, key in waited if gate in ("tenant", "rate")})
    free = min(room, limits.free_slots(pool))
    by_places: dict[int, list[tuple[str, str]]] = {}
    for gate, key in waited:
        places = min(free, limits.places(gate, key, pool, now_ms))
        if places > 0:
            by_places.setdefault(places, []).append((gate, key))
    lane: Lane | None = None if min(catchup_room, limits.free_for_catchup(pool)) > 0 else "live"
    pools: set[str] = set()
    for places, gates_and_keys in sorted(by_places.items()):
        pools |= yield from release(gates_and_keys, places, pool=pool, lane=lane, due_ms=now_ms)
    return bool(pools)


def control_rows(now_ms: int) -> Script[list[Control]]:
    """Part of another verb: what is switched now."""
    return [_control(row) for row in (yield "controls_active", {"now_ms": now_ms})]


def _control(row: Row) -> Control:
    return Control(row["scope"], row["name"], row["percent"], row["retries"], row["backoff"], row["until_ms"])
