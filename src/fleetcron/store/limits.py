"""The limits that people set: of tenants and of pools, with what is used of them.

Every change is one transaction under the lock that claims take to count, so that no claim decides by half a change. It
carries an event with who, before and after, and the runs that waited because of the old value are looked at again.
Whoever asks twice changes once.
"""

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from fleetcron.events import Event
from fleetcron.model.pool import Pool, read_pool
from fleetcron.model.tenant import Tenant, read_tenant
from fleetcron.steps import step
from fleetcron.store.engine import Engine, Row, Script
from fleetcron.store.events import note
from fleetcron.store.looking import Changed, Place, and_the_rest, look_again, quotas
from fleetcron.store.written import Refused, Written

_ENDED = ("cancelled", "finished")
_CAPS = frozenset({"max_in_flight", "rate"})  # of tenants: claims of all pools count together


@dataclass(slots=True)
class Usage:
    """What is there now. `ended` of the jobs are cancelled or finished; `waiting` is the queue by gate, and '' is for
    runs that only wait for a free slot."""

    jobs: int = 0
    ended: int = 0
    in_flight: int = 0
    waiting: Counter[str] = field(default_factory=Counter)
    by_type: Counter[str] = field(default_factory=Counter)  # in flight
    due_ms: int | None = None  # of the run that has waited longest for nothing but a free slot

    @property
    def queued(self) -> int:
        return self.waiting.total()


@dataclass(frozen=True, slots=True)
class TenantLine:
    """`updated_ms` is None where nobody has set anything: the defaults hold."""

    tenant: Tenant
    updated_ms: int | None
    usage: Usage


@dataclass(frozen=True, slots=True)
class PoolLine:
    """`workers` are alive, and have so many slots in this pool together."""

    pool: Pool
    updated_ms: int | None
    usage: Usage
    workers: int = 0
    worker_slots: int = 0


class LimitRecords:
    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    async def put_tenant(self, name: str, fields: Mapping[str, object], *, actor: str) -> Written[Changed[Tenant]]:
        """Set these fields (`model/tenant.py`), and leave the others. A DefinitionError has all mistakes in them."""
        read_tenant(name, fields)  # a mistake is told before anything is locked

        def change(before: Tenant | None) -> Tenant:
            return read_tenant(name, fields, before)

        first = not _CAPS.isdisjoint(fields)
        return await and_the_rest(
            self._engine, await self._engine.write(lambda: _tenant_script(name, change, actor, maybe_first=first))
        )

    async def delete_tenant(self, name: str, *, actor: str) -> Written[Changed[Tenant]]:
        """Back to the defaults. Its jobs stay."""
        return await and_the_rest(
            self._engine, await self._engine.write(lambda: _tenant_script(name, lambda _: None, actor))
        )

    async def put_pool(self, name: str, fields: Mapping[str, object], *, actor: str) -> Written[Changed[Pool]]:
        """Set these fields (`model/pool.py`), and leave the others. A DefinitionError has all mistakes in them."""
        read_pool(name, fields)

        def change(before: Pool | None) -> Pool:
            return read_pool(name, fields, before)

        return await and_the_rest(self._engine, await self._engine.write(lambda: _pool_script(name, change, actor)))

    async def delete_pool(self, name: str, *, actor: str) -> Written[Changed[Pool]]:
        """No limit but the slots of its workers."""
        return await and_the_rest(
            self._engine, await self._engine.write(lambda: _pool_script(name, lambda _: None, actor))
        )

    async def tenants(self) -> list[TenantLine]:
        """Everybody who has jobs, runs or limits, by name."""
        return await self._engine.read(lambda: _tenants(None))

    async def tenant(self, name: str) -> TenantLine:
        """One tenant. Whoever is not known has the defaults, and nothing else."""
        found = await self._engine.read(lambda: _tenants(name))
        return found[0] if found else TenantLine(Tenant(name), None, Usage())

    async def jobs_by_pool(self) -> Counter[str]:
        """How many jobs that have not ended each pool has."""

        def script() -> Script[Counter[str]]:
            found: Counter[str] = Counter()
            for row in (yield "jobs_census", {"tenant": None}):
                if row["state"] not in _ENDED:
                    found[row["pool"]] += row["jobs"]
            return found

        return await self._engine.read(script)

    async def pools(self) -> list[PoolLine]:
        """Every pool that has jobs, runs, workers or limits, by name."""
        return await self._engine.read(_pools)


def _tenant_script(
    name: str, change: Callable[[Tenant | None], Tenant | None], actor: str, *, maybe_first: bool = False
) -> Script[Changed[Tenant] | Refused]:
    """Claims of all pools count one by one when anybody has a cap, and those that have read that nobody has do not. So
    whoever may bring the first one waits until these have ended; before the other lock, which they may want."""
    step("limits.begin")
    if maybe_first:
        yield "work_lock", {"name": "caps"}
    yield "work_lock", {"name": "limits"}
    [facts] = yield "fleet_now", {}
    found = yield "tenants_list", {"tenant": name}
    before = _tenant(found[0]) if found else None
    after = change(before)
    if after is None:
        yield "tenants_delete", {"tenant": name}
    elif after != (before or Tenant(name)):
        yield "tenants_put", _tenant_row(after, facts["now_ms"])
    else:
        after = before
    old, new = before or Tenant(name), after or Tenant(name)
    if (old.rate_per_s, old.burst) != (new.rate_per_s, new.burst):
        yield "rates_forget", {"tenant": name}
    if before != after:
        documents = {"before": before and before.as_document(), "after": after and after.as_document()}
        yield from note(Event("tenant_changed", actor=actor, detail={"tenant": name, **documents}))
        yield "notify", {"topic": "work"}
    looked, rest = yield from look_again([Place("tenant", name), Place("rate", name)])
    step("limits.written")
    return Changed(before, after, looked, rest)


def _pool_script(
    name: str, change: Callable[[Pool | None], Pool | None], actor: str
) -> Script[Changed[Pool] | Refused]:
    step("limits.begin")
    yield "work_lock", {"name": "limits"}
    [facts] = yield "fleet_now", {}
    found = yield "pools_list", {"pool": name}
    before = _pool(found[0]) if found else None
    after = change(before)
    if after is None:
        yield "pools_delete", {"pool": name}
    elif after != (before or Pool(name)):
        yield "pools_put", _pool_row(after, facts["now_ms"])
    else:
        after = before
    if before != after:
        documents = {"before": before and before.as_document(), "after": after and after.as_document()}
        yield from note(Event("pool_changed", actor=actor, detail={"pool": name, **documents}))
        yield "notify", {"topic": "work"}
    looked, rest = yield from look_again((yield from quotas(name)))
    step("limits.written")
    return Changed(before, after, looked, rest)


def _tenants(name: str | None) -> Script[list[TenantLine]]:
    found = yield "tenants_list", {"tenant": name}
    used: dict[str, Usage] = {}
    for row in (yield "jobs_census", {"tenant": name}):
        _count_jobs(used.setdefault(row["tenant"], Usage()), row)
    for row in (yield "leases_counts", {}):
        if name is None or row["tenant"] == name:
            _count_held(used.setdefault(row["tenant"], Usage()), row)
    for row in (yield "queue_census", {"tenant": name}):
        _count_queued(used.setdefault(row["tenant"], Usage()), row)
    known = {row["tenant"]: (_tenant(row), row["updated_ms"]) for row in found}
    return [
        TenantLine(*known.get(each, (Tenant(each), None)), used.get(each, Usage())) for each in sorted({*known, *used})
    ]


def _pools() -> Script[list[PoolLine]]:
    [facts] = yield "fleet_now", {}
    found = yield "pools_list", {"pool": None}
    used: dict[str, Usage] = {}
    for row in (yield "jobs_census", {"tenant": None}):
        _count_jobs(used.setdefault(row["pool"], Usage()), row)
    for row in (yield "leases_counts", {}):
        _count_held(used.setdefault(row["pool"], Usage()), row)
    for row in (yield "queue_census", {"tenant": None}):
        _count_queued(used.setdefault(row["pool"], Usage()), row)
    slots = _slots((yield "workers_list", {}), facts["now_ms"])
    known = {row["pool"]: (_pool(row), row["updated_ms"]) for row in found}
    return [
        PoolLine(
            *known.get(each, (Pool(each), None)),
            used.get(each, Usage()),
            len(slots.get(each, ())),
            sum(slots.get(each, ())),
        )
        for each in sorted({*known, *used, *slots})
    ]


def _slots(workers: Sequence[Row], now_ms: int) -> dict[str, list[int]]:
    """By pool, of each worker that is alive."""
    found: dict[str, list[int]] = {}
    for row in workers:
        if row["expires_ms"] > now_ms:
            for pool, slots in json.loads(row["pools"]).items():
                found.setdefault(pool, []).append(slots)
    return found


def _count_jobs(usage: Usage, row: Row) -> None:
    usage.jobs += row["jobs"]
    usage.ended += row["jobs"] if row["state"] in _ENDED else 0


def _count_queued(usage: Usage, row: Row) -> None:
    usage.waiting[row["gate"] or ""] += row["runs"]
    if row["gate"] is None:
        usage.due_ms = row["due_ms"] if usage.due_ms is None else min(usage.due_ms, row["due_ms"])


def _count_held(usage: Usage, row: Row) -> None:
    usage.in_flight += row["held"]
    usage.by_type[row["type"]] += row["held"]


def _tenant(row: Row) -> Tenant:
    return Tenant(
        row["tenant"], row["weight"], row["max_jobs"], row["max_in_flight"], row["rate_per_s"], row["burst"],
        row["max_payload"],
    )  # fmt: skip


def _tenant_row(tenant: Tenant, now_ms: int) -> dict[str, Any]:
    return {
        "tenant": tenant.name,
        "weight": tenant.weight,
        "max_jobs": tenant.max_jobs,
        "max_in_flight": tenant.max_in_flight,
        "rate_per_s": tenant.rate_per_s,
        "burst": tenant.burst,
        "max_payload": tenant.max_payload,
        "now_ms": now_ms,
    }


def _pool(row: Row) -> Pool:
    return Pool(row["pool"], row["slots"], row["per_tenant"], json.loads(row["per_type"]))


def _pool_row(pool: Pool, now_ms: int) -> dict[str, Any]:
    per_type = json.dumps(dict(pool.per_type), sort_keys=True)
    return {
        "pool": pool.name,
        "slots": pool.slots,
        "per_tenant": pool.per_tenant,
        "per_type": per_type,
        "now_ms": now_ms,
    }
