"""Why a run stands where it stands: everything that decides it, read on one snapshot. And what became of a tick."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from fleetcron.model.control import Switched, in_force
from fleetcron.model.queued import Control, Queued, queued
from fleetcron.model.run import RunLine
from fleetcron.model.situation import KeyHolder, PoolWorker, Situation, Used
from fleetcron.store.engine import Engine, Row, Script
from fleetcron.store.history import LedgerLine, ledger_line, run_lines
from fleetcron.store.rows import ids, rows, texts
from fleetcron.store.upstreams import upstream_facts

_READY: Final = 10_000  # as far as people count a queue


@dataclass(frozen=True, slots=True)
class TickAnswer:
    """What became of a tick: at most one of these. `gap`: it lies in a stretch (from, to] that is not decided yet."""

    situation: Situation | None = None
    ledger: LedgerLine | None = None
    gap: tuple[int, int, str] | None = None


class Situations:
    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    async def of_run(self, run_id: int) -> Situation | None:
        def script() -> Script[Situation | None]:
            return (yield from _situation(run_id))

        return await self._engine.read(script)

    async def of_tick(self, tenant: str, name: str, at_ms: int) -> TickAnswer:
        """S3-7, S4-26: its run, or its line in the ledger. Both are missing if it is no tick, or not decided yet."""
        tick = {"tenant": tenant, "name": name, "at_ms": at_ms}

        def script() -> Script[TickAnswer]:
            for row in (yield "runs_of_tick", tick):
                return TickAnswer(situation=(yield from _situation(row["run_id"])))
            for row in (yield "ledger_of_tick", tick):
                return TickAnswer(ledger=ledger_line(row))
            for row in (yield "gaps_of_tick", tick):
                return TickAnswer(gap=(row["from_ms"], row["to_ms"], row["cause"]))
            return TickAnswer()

        return await self._engine.read(script)


def _situation(run_id: int) -> Script[Situation | None]:
    [facts] = yield "fleet_now", {}
    now_ms: int = facts["now_ms"]
    found = yield from run_lines([run_id], now_ms)
    if not found:
        return None
    [line] = found
    if line.run.state.is_final:
        return Situation(now_ms, line)
    place = [queued(row) for row in (yield "queue_of_run", {"run_id": run_id})]
    run = place[0] if place else None
    pool = run.pool if run else line.pool
    known: dict[str, Any] = {"queued": run}
    [job] = yield "runs_steered", {"ids": ids([run_id])}
    known["ended"] = (
        "deleted" if job["deleted_ms"] is not None else "cancelled" if job["job_state"] == "cancelled" else None
    )
    known["workers"] = yield from _workers(pool, now_ms)
    held = {(row["pool"], row["tenant"], row["type"]): row["held"] for row in (yield "leases_counts", {})}
    limits = yield "limits_of_pool", {"pool": pool}
    known["in_pool"] = Used(_sum(held, pool=pool), limits[0]["slots"] if limits else None)
    [ready] = yield "queue_ready_count", {"pool": pool, "most": _READY}
    known["ready"] = ready["runs"]
    if run is not None and line.waiting is not None:
        known |= yield from _gate(line.waiting.gate, line.waiting.key, run, held, limits, now_ms)
    elif run is not None and run.claim_key is not None and not run.leased:
        known |= yield from _key(run.claim_key, run, now_ms)
    return Situation(now_ms, line, **known)


def _gate(
    gate: str, key: str, run: Queued, held: Mapping[tuple[str, str, str], int], limits: Sequence[Row], now_ms: int
) -> Script[dict[str, Any]]:
    """What there is to know about the gate at which it waits."""
    match gate:
        case "key":
            return (yield from _key(key, run, now_ms))
        case "former":
            return {"holders": _key_holders((yield "leases_of_job", {"job_id": run.job_id}))}
        case "tenant":
            caps = yield "limits_of_tenants", {"tenants": texts([run.tenant])}
            most = caps[0]["max_in_flight"] if caps else None
            return {"cap": Used(_sum(held, tenant=run.tenant), most)}
        case "quota_tenant":
            most = limits[0]["per_tenant"] if limits else None
            return {"cap": Used(_sum(held, pool=run.pool, tenant=run.tenant), most)}
        case "quota_type":
            most = json.loads(limits[0]["per_type"]).get(run.type) if limits else None
            return {"cap": Used(_sum(held, pool=run.pool, kind=run.type), most)}
        case "rate":
            return {"next_start_ms": (yield from _next_start(run.tenant))}
        case "paused":
            scope, _, name = key.partition(":")
            rows_found = yield "controls_list", {"scope": scope, "name": name}
            switched = [_switched(row) for row in rows_found]
            return {"control": next((each for each in switched if in_force(each.control, now_ms)), None)}
        case "upstream":
            return (yield from _upstream(run, now_ms))
    return {}


def _key(key: str, run: Queued, now_ms: int) -> Script[dict[str, Any]]:
    found = yield "leases_of_key", {"key": key}
    holders = _key_holders(found)
    earlier: list[RunLine] = []
    if run.overlap == "queue":
        asked = {"run_id": run.run_id, "job_id": run.job_id, "claim_key": key, "scheduled_for_ms": run.scheduled_for_ms}
        first = yield "queue_earlier", {"rows": rows([asked])}
        earlier = yield from run_lines((row["earlier"] for row in first), now_ms)
    return {"holders": holders, "earlier": earlier[0] if earlier else None}


def _key_holders(found: Sequence[Row]) -> list[KeyHolder]:
    return [KeyHolder(row["run_id"], f"{row['tenant']}/{row['name']}", row["node_id"], row["at_ms"]) for row in found]


def _upstream(run: Queued, now_ms: int) -> Script[dict[str, Any]]:
    facts = (yield from upstream_facts([run])).get(run.run_id, [])
    latest: dict[str, RunLine] = {}
    for each in facts:
        found = yield "runs_latest_of_job", {"job_id": each.job_id, "until_ms": run.scheduled_for_ms}
        for line in (yield from run_lines((row["run_id"] for row in found), now_ms)):
            latest[each.job_id] = line
    return {"upstream": facts, "upstream_runs": latest}


def _next_start(tenant: str) -> Script[int | None]:
    """GCRA, as policy/choose has it: a tenant may be ahead of its rate by its burst."""
    names = {"tenants": texts([tenant])}
    caps = yield "limits_of_tenants", names
    found = yield "rates_read", names
    if not caps or not found or caps[0]["rate_per_s"] is None:
        return None
    ahead_us: int = (caps[0]["burst"] - 1) * round(1_000_000 / caps[0]["rate_per_s"])
    next_us: int = found[0]["next_us"] - ahead_us
    return -(-next_us // 1000)


def _workers(pool: str, now_ms: int) -> Script[list[PoolWorker]]:
    found = []
    for row in (yield "workers_list", {}):
        slots = json.loads(row["pools"]).get(pool)
        if slots is not None and row["expires_ms"] > now_ms:
            found.append(PoolWorker(row["node_id"], slots, json.loads(row["lacks"])))
    return found


def _sum(
    held: Mapping[tuple[str, str, str], int],
    pool: str | None = None,
    tenant: str | None = None,
    kind: str | None = None,
) -> int:
    wanted = (pool, tenant, kind)
    return sum(
        count for place, count in held.items() if all(w is None or w == p for w, p in zip(wanted, place, strict=True))
    )


def _switched(row: Row) -> Switched:
    control = Control(row["scope"], row["name"], row["percent"], row["retries"], row["backoff"], row["until_ms"])
    return Switched(control, row["reason"], row["actor"], row["updated_ms"])
