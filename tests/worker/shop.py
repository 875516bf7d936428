"""A database with jobs, ticks, limits and workers, moved by hand: the store verbs of work and nothing above them.

Jobs and ticks are written past the scheduler, so that a story can have any of them; everything that happens to runs
afterwards goes through the real verbs and the real policies.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import count
from typing import Any
from uuid import UUID

from fleetcron.model.outcome import Outcome, Succeeded
from fleetcron.model.rules import OverlapPolicy, RetryRule
from fleetcron.store.claims import Taken
from fleetcron.store.ends import Ended, Ends
from fleetcron.store.store import Store
from fleetcron.store.written import Written
from tests.store.engines import DatabaseClock, change
from tests.store.handwork import Handwork, ok, rank, settling

__all__ = ["BEGIN_MS", "QUICK", "TTL_MS", "Job", "Shop", "fetcher", "ok", "rank", "settling"]

BEGIN_MS = 1_800_000_000_000
TTL_MS = 30_000
QUICK = RetryRule(max_attempts=3, backoff="fixed", delays_ms=(2_000,), jitter=0, max_losses=3)
_JOB = (
    "job_id, tenant, name, type, pool, region, state, revision, definition, created_by, created_ms, updated_ms,"
    " priority, overlap, claim_key, max_running, start_deadline_ms, handler, depends"
)
_RUN = "run_id, job_id, scheduled_for_ms, run_after_ms, created_ms, almanac, covers, revision, kind, lane, state"
_EMPTIED = ("jobs", "runs", "upcoming", "queue", "leases", "attempts", "shares", "workers", "tenants", "rates", "pools")


@dataclass(frozen=True)
class Job:
    number: int
    tenant: str = "t1"
    pool: str = "p1"
    type: str = "x"
    overlap: OverlapPolicy = "skip"
    max_running: int = 1
    key: str | None = None  # a shared one
    priority: int = 0
    deadline_ms: int | None = None
    handler: str = "h"

    @property
    def job_id(self) -> str:
        return str(UUID(int=self.number << 64))

    @property
    def claim_key(self) -> str | None:
        if self.key is not None:
            return f"k:{self.tenant}:{self.key}"
        return None if self.overlap == "allow" and self.max_running == 0 else f"j:{self.job_id}"


@dataclass
class Shop(Handwork):
    fetch: Callable[..., Any]  # past the verbs: rows as dicts
    batches: "count[int]" = field(default_factory=count)
    numbers: "count[int]" = field(default_factory=lambda: count(1))

    @classmethod
    async def open(cls, store: Store, clock: DatabaseClock, now_ms: int = BEGIN_MS) -> "Shop":
        """Empty, on a database that may have been used before."""
        text = ";\n".join(f"DELETE FROM {name}" for name in (*_EMPTIED, "controls", "events", "attempt_logs"))
        await change(store.engine, f"{text};")
        await clock.set(now_ms)
        return cls(store, clock, fetcher(store.engine))

    async def rows(self, sql: str) -> list[dict[str, Any]]:
        [found] = await self.fetch(sql)
        return list(found)

    async def define(self, *jobs: Job) -> None:
        for job in jobs:
            key = "NULL" if job.claim_key is None else f"'{job.claim_key}'"
            values = (
                f"'{job.job_id}', '{job.tenant}', 'job-{job.number}', '{job.type}', '{job.pool}', '*', 'active', 1,"
                f" '{{}}', 'test', 0, 0, {job.priority}, '{job.overlap}', {key}, {max(1, job.max_running)},"
                f" {job.deadline_ms or 'NULL'}, '{job.handler}', 0"
            )
            await change(self.store.engine, f"INSERT INTO jobs ({_JOB}) VALUES ({values})")

    async def plan(self, job: Job, *ticks_ms: int, kind: str = "tick", lane: str = "live") -> list[int]:
        """Runs of a job, on their way."""
        made = []
        text = ""
        forced = "OVERRIDING SYSTEM VALUE" if self.store.engine.name == "postgres" else ""
        for tick in ticks_ms:
            run_id = next(self.numbers)
            made.append(run_id)
            values = f"{run_id}, '{job.job_id}', {tick}, {tick}, {self.now}, 1, 1, 1, '{kind}', '{lane}', 'planned'"
            text += (
                f"INSERT INTO runs ({_RUN}) {forced} VALUES ({values});\n"
                f"INSERT INTO upcoming VALUES ({tick}, {run_id}, '{job.job_id}', '{lane}');\n"
            )
        await change(self.store.engine, text)
        return made

    async def limit(self, tenant: str, most: int | None = None, rate: float | None = None, burst: int = 1) -> None:
        values = f"'{tenant}', 1, {most or 'NULL'}, {rate or 'NULL'}, {burst}, 1000, 0"
        await change(
            self.store.engine,
            "INSERT INTO tenants (tenant, weight, max_in_flight, rate_per_s, burst, max_payload, updated_ms)"
            f" VALUES ({values})",
        )

    async def limit_pool(
        self, pool: str, slots: int | None = None, per_tenant: int | None = None, per_type: dict[str, int] | None = None
    ) -> None:
        text = json.dumps(per_type or {})
        values = f"'{pool}', {slots or 'NULL'}, {per_tenant or 'NULL'}, '{text}', 0"
        await change(self.store.engine, f"INSERT INTO pools VALUES ({values})")

    async def join(self, node_id: str, **pools: int) -> None:
        await self.enlist(node_id, pools, TTL_MS)

    async def claim(
        self, node_id: str, pool: str = "p1", room: int = 9, batch: str | None = None, **wish: Any
    ) -> Taken:
        name = str(next(self.batches)) if batch is None else batch
        return await self.take(node_id, pool, room, name, **wish)

    async def claim_all(self, node_id: str, pool: str = "p1", room: int = 9, **wish: Any) -> list[Taken]:
        """Until there is nothing more to look at, as a worker does."""
        found: list[Taken] = []
        for _ in range(200):
            held = sum(len(each.runs) for each in found)
            found.append(await self.claim(node_id, pool, room - held, **wish))
            if not found[-1].more:
                return found
        raise AssertionError("there is always more")

    async def claimed(self, node_id: str, pool: str = "p1", room: int = 9) -> list[int]:
        """The runs that somebody gets who takes what there is."""
        return [run.run_id for taken in await self.claim_all(node_id, pool, room) for run in taken.runs]

    async def finish(
        self, node_id: str, run_id: int, attempt: int, outcome: Outcome | None = None, rule: RetryRule = QUICK
    ) -> Ends:
        return await self.write_end(node_id, Ended(run_id, attempt, outcome or Succeeded(), self.now, self.now), rule)

    async def hand_back(self, node_id: str, *held: tuple[int, int]) -> Written[int]:
        """With the batch that each has now."""
        batches = {row["run_id"]: row["batch"] for row in await self.rows("SELECT run_id, batch FROM leases")}
        named = [(run_id, attempt, batches.get(run_id) or "none") for run_id, attempt in held]
        return await self.store.attempts.hand_back(node_id, named)

    async def bury(self, node_id: str, *, gone: bool = True) -> Written[Ends]:
        [worker] = [each for each in (await self.store.workers.list()).workers if each.node_id == node_id]
        return await self.store.workers.bury(worker, settling(QUICK), gone=gone, by="watcher")

    async def states(self) -> dict[int, str]:
        return {
            row["run_id"]: row["state"] for row in await self.rows("SELECT run_id, state FROM runs ORDER BY run_id")
        }

    async def gates(self) -> dict[int, str | None]:
        found = await self.rows("SELECT run_id, gate, key FROM queue ORDER BY run_id")
        return {row["run_id"]: row["gate"] and f"{row['gate']} {row['key']}" for row in found}


def fetcher(engine: Any) -> Callable[..., Any]:
    """Plain SQL on the database of an engine, past the engine: the rows of each text, in one go."""

    async def from_sqlite(*texts: str) -> list[list[dict[str, Any]]]:
        def read(session: Any) -> list[list[dict[str, Any]]]:
            return [[dict(row) for row in session._open().execute(sql)] for sql in texts]

        found: list[list[dict[str, Any]]] = await engine._reader.call(read)
        return found

    async def from_postgres(*texts: str) -> list[list[dict[str, Any]]]:
        connection, _ = await engine._connections.take()
        try:
            found = [await connection.fetch(sql) for sql in texts]
        finally:
            engine._connections.give_back(connection)
        return [[{name: _plain(value) for name, value in row.items()} for row in some] for some in found]

    return from_sqlite if engine.name == "sqlite" else from_postgres


def _plain(value: Any) -> Any:
    return str(value) if isinstance(value, UUID) else value
