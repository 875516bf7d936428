"""One store with everything that people, schedulers and workers do to it, on a clock that is moved by hand.

A run is called by its name here (`rows_alike.run_name`), so that the same call means the same run in another store.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any, NamedTuple
from uuid import UUID

from fleetcron.errors import DefinitionError, RefusedError
from fleetcron.model.calendar import CalendarDocument
from fleetcron.model.control import Scope, Wish
from fleetcron.model.definition import Definition
from fleetcron.model.outcome import Outcome
from fleetcron.model.rules import MisfirePolicy
from fleetcron.model.shard import Held
from fleetcron.policy.choose import choose
from fleetcron.scheduler.backfill import backfill
from fleetcron.scheduler.desk import Desk
from fleetcron.scheduler.failing import FailureWatch
from fleetcron.scheduler.gaps import fill_gaps
from fleetcron.scheduler.tables import Tables
from fleetcron.scheduler.tick import tick
from fleetcron.store.claims import Claim
from fleetcron.store.ends import Ended
from fleetcron.store.history import Span
from fleetcron.store.job_pages import JobFilter
from fleetcron.store.steering import DeadFilter
from fleetcron.store.store import Store
from fleetcron.worker.settling import settling
from tests.proof.rows_alike import TABLES, Row, alike, run_name, told
from tests.store.engines import DatabaseClock, change
from tests.store.handwork import rank
from tests.worker.shop import fetcher

SHARDS = 2
TTL_MS = 30_000
SETTLED_BY = 0.5  # what the dice of a retry say
PAGE = 40
_ALL_ROWS = " UNION ALL ".join(
    f"SELECT '{name}' AS name, row_to_json(r)::text AS row FROM {name} AS r" for name in TABLES
)
# the shards stay whose they are: others would need a database of their own
_KEPT = ("almanac_epoch", "shard_terms", "shard_leases")


class Piece(NamedTuple):
    run_id: int
    attempt: int
    seq: int
    text: str
    truncated: bool = False


class Mark(NamedTuple):
    run_id: int
    attempt: int
    share: float
    note: str


@dataclass
class _Known:
    """A table after the last step: as it came, as rows, and in the form that both stores share."""

    raw: list[Any] = field(default_factory=list)
    rows: list[Row] = field(default_factory=list)
    alike: list[Row] = field(default_factory=list)


def _plain(raw: list[Any]) -> list[Row]:
    return [json.loads(row) if isinstance(row, str) else row for row in raw]


@dataclass
class Twin:
    store: Store
    clock: DatabaseClock
    held: list[Held]
    names: dict[int, str] = field(default_factory=dict)  # of runs, also of those that are gone
    ids: dict[str, int] = field(default_factory=dict)  # of runs that are there

    async def begin(self, now_ms: int) -> None:
        """As if nothing had ever happened."""
        text = ";\n".join(f"DELETE FROM {table}" for table in TABLES if table not in _KEPT)
        await change(self.store.engine, f"{text};\nDELETE FROM almanac_bodies;\nUPDATE almanac_epoch SET epoch = 1;")
        await self.clock.set(now_ms)
        numbers = count(1)
        self.desk = Desk(self.store, actor="ann", shards=SHARDS, new_id=lambda _: str(UUID(int=next(numbers) << 64)))
        self.tables = Tables(self.store.almanac)
        self.failing = FailureWatch(self.store, self.desk)
        self.fetch = fetcher(self.store.engine)
        self.names.clear()
        self.ids.clear()
        self._known = {table: _Known() for table in TABLES}

    async def do(self, verb: str, *args: Any, **more: Any) -> tuple[Any, dict[str, list[Row]]]:
        """What it answered, and all rows then, in the form that both stores share. A refusal is an answer too."""
        answer: Any = None
        try:
            answer = await getattr(self, verb)(*args, **more)
        except (RefusedError, DefinitionError) as error:
            answer = f"{type(error).__name__}: {error}"
        rows = await self.rows()
        return told(answer, self.names), rows

    async def rows(self) -> dict[str, list[Row]]:
        found = await self._fetch()
        runs = self._known["runs"].rows if found["runs"] == self._known["runs"].raw else _plain(found["runs"])
        self.ids = {run_name(row): row["run_id"] for row in runs}
        self.names |= {run_id: name for name, run_id in self.ids.items()}
        for table, raw in found.items():
            if raw != self._known[table].raw:  # most tables are as they were after the step before
                plain = runs if table == "runs" else _plain(raw)
                self._known[table] = _Known(raw, plain, alike(table, plain, self.names))
        return {table: self._known[table].alike for table in TABLES}

    async def _fetch(self) -> dict[str, list[Any]]:
        """In one go: a query for each table would be most of the time that a story takes. Rows, or JSON of rows."""
        if self.store.engine.name == "sqlite":
            return dict(zip(TABLES, await self.fetch(*(f"SELECT * FROM {table}" for table in TABLES)), strict=True))
        [lines] = await self.fetch(_ALL_ROWS)
        found: dict[str, list[Any]] = {table: [] for table in TABLES}
        for line in lines:
            found[line["name"]].append(line["row"])
        return found

    # -- people

    async def apply(self, *definitions: Definition) -> Any:
        return await self.desk.apply(definitions)

    async def create(self, definition: Definition) -> Any:
        return await self.desk.create(definition)

    async def edit(self, definition: Definition) -> Any:
        return await self.desk.edit(definition)

    async def pause(self, tenant: str, name: str, on_resume: MisfirePolicy | None) -> Any:
        return await self.desk.pause(tenant, name, on_resume)

    async def resume(self, tenant: str, name: str, policy: MisfirePolicy | None) -> Any:
        return await self.desk.resume(tenant, name, policy)

    async def cancel_job(self, tenant: str, name: str) -> Any:
        return await self.desk.cancel(tenant, name)

    async def delete_job(self, tenant: str, name: str) -> Any:
        return await self.desk.delete(tenant, name)

    async def put_calendar(self, document: CalendarDocument) -> Any:
        return await self.desk.put_calendar(document)

    async def trigger(self, tenant: str, name: str, payload: Mapping[str, Any] | None, key: str) -> Any:
        return await self.store.steering.trigger((tenant, name), payload, actor="ann", key=key)

    async def cancel(self, runs: Sequence[str], reason: str | None) -> Any:
        return await self.store.steering.cancel(self._ids(runs), reason, actor="ann")

    async def replay(self, runs: Sequence[str]) -> Any:
        return await self.store.steering.replay(self._ids(runs), actor="ann")

    async def replay_many(self, tenant: str | None, limit: int) -> Any:
        return await self.store.steering.replay_many(DeadFilter(tenant), actor="ann", limit=limit)

    async def discard(self, runs: Sequence[str]) -> Any:
        return await self.store.steering.discard(self._ids(runs), "old", actor="ann")

    async def backfill(self, tenant: str, name: str, back_ms: int, length_ms: int) -> Any:
        begin = self.clock.now_ms() - back_ms
        return await backfill(self.store, tenant, name, begin, begin + length_ms, actor="ann", limit=40)

    async def put_tenant(self, tenant: str, fields: Mapping[str, object]) -> Any:
        return await self.store.limits.put_tenant(tenant, fields, actor="ann")

    async def delete_tenant(self, tenant: str) -> Any:
        return await self.store.limits.delete_tenant(tenant, actor="ann")

    async def put_pool(self, pool: str, fields: Mapping[str, object]) -> Any:
        return await self.store.limits.put_pool(pool, fields, actor="ann")

    async def delete_pool(self, pool: str) -> Any:
        return await self.store.limits.delete_pool(pool, actor="ann")

    async def switch(self, wish: Wish) -> Any:
        return await self.store.controls.switch(wish, actor="ann")

    async def release(self, scope: Scope, name: str) -> Any:
        return await self.store.controls.release(scope, name, actor="ann")

    # -- schedulers

    async def plan(self, lookahead_ms: int) -> Any:
        """In one batch: which of the jobs that are due at the same instant come into a smaller one is left open."""
        return await tick(self.store.cursors, self.tables, self.held, lookahead_ms=lookahead_ms)

    async def plan_stale(self, lookahead_ms: int) -> Any:
        stale = [replace(one, term=one.term - 1) for one in self.held]
        return await tick(self.store.cursors, self.tables, stale, lookahead_ms=lookahead_ms)

    async def fill(self, room: int) -> Any:
        return await fill_gaps(self.store.gaps, self.tables, self.held, room=room)

    async def watch_failures(self) -> Any:
        return await self.failing.step(0)

    async def sweep(self) -> Any:
        return await self.store.sweeping.sweep(0)

    # -- workers

    async def join(self, node: str, pools: Mapping[str, int]) -> Any:
        return await self.store.workers.join(node, "process", pools, TTL_MS)

    async def leave(self, node: str) -> Any:
        return await self.store.workers.leave(node)

    async def close_pools(self, node: str) -> Any:
        return await self.store.workers.close_pools(node)

    async def lack(self, node: str, handlers: Mapping[str, str]) -> Any:
        return await self.store.workers.lack(node, handlers)

    async def look_again(self, node: str) -> Any:
        return await self.store.workers.look_again(node)

    async def promote(self, ahead_ms: int, most: int) -> Any:
        return await self.store.queue.promote(ahead_ms, most, rank)

    async def claim(self, wish: Claim) -> Any:
        return await self.store.claims.claim(wish, choose)

    async def renew(self, node: str) -> Any:
        return await self.store.workers.renew(node, TTL_MS)

    async def finish(self, node: str, ends: Sequence[tuple[str, int, Outcome]], again: bool) -> Any:
        now = self.clock.now_ms()
        ended = [Ended(self.ids[run], attempt, outcome, now, now, log_bytes=3) for run, attempt, outcome in ends]
        settle = settling(await self.store.definitions.held_by(node), lambda: SETTLED_BY)
        return await self.store.attempts.finish(node, ended, settle, again=again)

    async def hand_back(self, node: str, held: Sequence[tuple[str, int, str]]) -> Any:
        named = [(self.ids[run], attempt, batch) for run, attempt, batch in held]
        return await self.store.attempts.hand_back(node, named)

    async def say(self, node: str, run: str, attempt: int, seq: int, share: float) -> Any:
        run_id = self.ids[run]
        pieces, marks = [Piece(run_id, attempt, seq, f"line {seq}\n")], [Mark(run_id, attempt, share, "half")]
        return await self.store.output.append(node, pieces, marks)

    async def bury(self, node: str, gone: bool) -> Any:
        found = [each for each in (await self.store.workers.list()).workers if each.node_id == node]
        settle = settling(await self.store.definitions.held_by(node), lambda: SETTLED_BY)
        return [await self.store.workers.bury(each, settle, gone=gone, by="watcher") for each in found]

    async def forsake(self, node: str) -> Any:
        settle = settling(await self.store.definitions.held_by(node), lambda: SETTLED_BY)
        return await self.store.workers.forsake(node, settle)

    # -- whoever looks

    async def look(self, name: tuple[str, str], state: str | None) -> Any:
        """Everything that is shown to people."""
        store, (tenant, job) = self.store, name
        return {
            "jobs": await store.jobs.list(JobFilter(), 100),
            "active": await store.jobs.list(JobFilter(tenant=tenant, state="active"), 3),
            "count": await store.jobs.count(),
            "runs": await store.history.runs(Span(), state=state, limit=PAGE),
            "now": await store.history.runs(Span(tenant=tenant), limit=PAGE, later=False),
            "of job": await store.history.runs(Span(tenant=tenant, name=job), state=state, limit=PAGE),
            "later": await store.history.later(Span(tenant=tenant, name=job)),
            "ledger": await store.history.ledger(Span(tenant=tenant), limit=PAGE),
            "events": await store.history.events(Span(tenant=tenant, name=job), limit=PAGE),
            "counts": dict(sorted((await store.events.counts(0)).items())),
            "dead": await store.steering.dead(DeadFilter(tenant), limit=PAGE),
            "dead count": await store.steering.count_dead(DeadFilter(None, job)),
            "tenants": await store.limits.tenants(),
            "pools": await store.limits.pools(),
            "controls": await store.controls.list(),
            "controls names": await store.controls.names("type"),
            "workers": await store.workers.list(),
            "next": await store.queue.next_look(["p1", "p2"]),
            "named": await store.jobs.named(tenant, job),
        }

    async def look_at(self, run: str) -> Any:
        """Everything about one run."""
        run_id, store = self.ids[run], self.store
        return {
            "run": await store.history.run(run_id),
            "why": await store.situations.of_run(run_id),
            "attempts": await store.past_attempts.of_run(run_id),
            "log": await store.past_attempts.log(run_id),
            "error": await store.past_attempts.last_error(run_id),
            "covering": await store.history.covering([run_id]),
        }

    def _ids(self, runs: Sequence[str]) -> list[int]:
        return [self.ids[run] for run in runs]
