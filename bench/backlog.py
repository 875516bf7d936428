"""Runs by the hundred thousand, planned for some instant and written straight into the tables, with their jobs: what is
measured is the work, not the planning."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any
from uuid import UUID

from bench.handlers import NOTHING
from bench.tables import Tables
from fleetcron.model.definition import Definition
from fleetcron.model.rules import OnceEntry, OverlapRule
from fleetcron.model.target import PythonTarget, handler_key
from fleetcron.times.instants import from_ms, iso

_JOBS = (
    "job_id", "tenant", "name", "type", "pool", "region", "state", "revision", "definition", "created_by", "created_ms",
    "updated_ms", "overlap", "claim_key", "max_running", "handler",
)  # fmt: skip
_REVISIONS = ("job_id", "revision", "at_ms", "actor", "action", "timing_id", "after")
_RUNS = (
    "run_id", "job_id", "scheduled_for_ms", "run_after_ms", "created_ms", "almanac", "covers", "revision", "kind",
    "lane", "state",
)  # fmt: skip
_UPCOMING = ("run_after_ms", "run_id", "job_id", "lane")


@dataclass(frozen=True)
class Part:
    """So many runs of one tenant, all due at an instant. Each has a job of its own, as after midnight; `overlap` is the
    default, so each of them is exclusive."""

    tenant: str
    runs: int
    due_ms: int
    handler: str = NOTHING
    payload: Mapping[str, Any] = field(default_factory=dict)
    pool: str = "default"


async def fill(tables: Tables, parts: Sequence[Part], first_run: int = 1) -> None:
    """In the order of the parts: the runs of the first one have the lowest ids."""
    chance = Random(first_run)
    jobs, revisions, runs, upcoming = [], [], [], []
    run_id = first_run
    for part in parts:
        pattern = _definition(part)
        before, after = pattern.body().split('"name":"pattern"')
        for _ in range(part.runs):
            job_id = UUID(int=1_700_000_000_000 + run_id << 80 | 7 << 76 | 2 << 62 | chance.getrandbits(62))
            key = text = str(job_id)
            name = f"job-{run_id}"
            body = f'{before}"name":"{name}"{after}'
            jobs.append((
                key, part.tenant, name, pattern.type, part.pool, "*", "active", 1, body, "bench", 0, 0,
                pattern.overlap.policy, f"j:{text}", 1, handler_key(pattern.run),
            ))  # fmt: skip
            revisions.append((key, 1, 0, "bench", "create", 1, body))
            runs.append((run_id, key, part.due_ms, part.due_ms, 0, 1, 1, 1, "tick", "live", "planned"))
            upcoming.append((part.due_ms, run_id, key, "live"))
            run_id += 1
    await tables.copy("jobs", _JOBS, jobs)
    await tables.copy("job_revisions", _REVISIONS, revisions)
    await tables.copy("runs", _RUNS, runs)
    await tables.copy("upcoming", _UPCOMING, upcoming)
    await tables.settle()


def _definition(part: Part) -> Definition:
    return replace(
        Definition("pattern", (OnceEntry(iso(from_ms(part.due_ms))),), PythonTarget(part.handler)),
        tenant=part.tenant,
        payload=part.payload,
        pool=part.pool,
        overlap=OverlapRule(),
    )


async def is_done(tables: Tables) -> bool:
    """Whether nothing is on its way any more."""
    for table in ("leases", "queue", "upcoming"):
        if await tables.fetch(f"SELECT 1 FROM {table} LIMIT 1"):
            return False
    return True
