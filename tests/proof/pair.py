"""Both stores, and what they both say: every move of a story is made in both, and everything is compared."""

from collections import Counter
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

from fleetcron.model.calendar import CalendarDocument
from fleetcron.model.control import Scope, Wish
from fleetcron.model.definition import Definition
from fleetcron.model.outcome import Outcome, Succeeded
from fleetcron.store.claims import Claim
from tests.proof.drawn import BEGIN_MS, NODES, POOLS, Move
from tests.proof.rows_alike import Row, first_difference
from tests.proof.twin import SHARDS, Twin
from tests.scheduler.world import opened_world


class Pair:
    def __init__(self, sqlite: Twin, postgres: Twin) -> None:
        self.twins = (sqlite, postgres)
        self.rows: dict[str, list[Row]] = {}
        self.done: Counter[str] = Counter()
        self.batches = 0

    async def begin(self) -> None:
        for twin in self.twins:
            await twin.begin(BEGIN_MS)
        self._compare(*[await twin.rows() for twin in self.twins])

    async def make(self, move: Move) -> None:
        name, *args = move
        await getattr(self, name)(*args)

    async def _do(self, verb: str, *args: Any, **more: Any) -> Any:
        (one, rows), (other, others) = [await twin.do(verb, *args, **more) for twin in self.twins]
        assert one == other, f"{verb} is answered differently:\n  sqlite:   {one}\n  postgres: {other}"
        self._compare(rows, others)
        self.done[verb] += 1
        if isinstance(one, dict) and isinstance(value := one.get("value"), dict):
            self.done["parked"] += value.get("parked") or 0
        return one

    def _compare(self, one: dict[str, list[Row]], other: dict[str, list[Row]]) -> None:
        different = first_difference(one, other)
        assert different is None, different
        self.rows = one
        self.done.update(f"waits for {each['gate']}" for each in one["queue"] if each["gate"])

    def end(self) -> None:
        """Count what has happened in this story."""
        self.done["stories"] += 1
        self.done.update(f"run {run['state']}" for run in self.rows["runs"])
        self.done.update(f"attempt {each['outcome']}" for each in self.rows["attempts"])
        self.done.update(event["kind"] for event in self.rows["events"])
        self.done["ledger"] += len(self.rows["ledger"])
        self.done["stands for others"] += sum(run["covers"] > 1 for run in self.rows["runs"])

    # -- time, schedulers, upkeep

    async def time_passes(self, ms: int) -> None:
        for twin in self.twins:
            await twin.clock.advance(ms)

    async def a_while(self, ms: int, lookahead_ms: int, room: int) -> None:
        """Time passes, and a scheduler does its round."""
        await self.time_passes(ms)
        await self._do("plan", lookahead_ms)
        await self._do("fill", room)

    async def plan(self, lookahead_ms: int) -> None:
        await self._do("plan", lookahead_ms)

    async def plan_stale(self) -> None:
        await self._do("plan_stale", 3_000)

    async def fill(self, room: int) -> None:
        await self._do("fill", room)

    async def keep_up(self) -> None:
        await self._do("sweep")
        await self._do("watch_failures")

    # -- workers

    async def work(self, node: str, ms: int) -> None:
        """What a worker does all day: queue what is due, and take what there is, in both pools."""
        await self.time_passes(ms)
        if node not in {each["node_id"] for each in self.rows["workers"]}:
            await self.join(node, 3)
        await self._do("promote", 1_000, 100)
        for pool in POOLS:
            for _ in range(3):
                self.batches += 1
                taken = await self._do("claim", Claim(node, str(self.batches), pool, 3, 2))
                if not taken["value"]["more"]:
                    break

    async def promote(self, ahead_ms: int, most: int) -> None:
        await self._do("promote", ahead_ms, most)

    async def claim(self, node: str, pool: str, wish: dict[str, Any], twice: bool) -> None:
        self.batches += 1
        for _ in range(1 + twice):  # as after a lost reply
            await self._do("claim", Claim(node, str(self.batches), pool, **wish))

    async def finish(self, picks: list[tuple[int, Outcome]], again: bool) -> None:
        await self._finish(picks, again, 0)

    async def finish_all(self, pick: int) -> None:
        """All is well with somebody."""
        node, _ = self._held([pick])
        if mine := [each for each in self.rows["leases"] if each["node_id"] == node and node]:
            await self._do("finish", node, [(row["run_id"], row["attempt"], Succeeded()) for row in mine], False)

    async def finish_late(self, pick: int, outcome: Outcome) -> None:
        """By somebody who has lost it: an older attempt."""
        await self._finish([(pick, outcome)], False, 1)

    async def _finish(self, picks: list[tuple[int, Outcome]], again: bool, older: int) -> None:
        node, mine = self._held([pick for pick, _ in picks])
        ends = {row["run_id"]: (row["attempt"] - older, end) for row, (_, end) in zip(mine, picks, strict=False)}
        if ends:
            await self._do("finish", node, [(run, *end) for run, end in ends.items()], again)

    async def hand_back(self, picks: list[int]) -> None:
        node, mine = self._held(picks)
        if mine:
            held = {row["run_id"]: (row["attempt"], row["batch"]) for row in mine}
            await self._do("hand_back", node, [(run, *which) for run, which in held.items()])

    async def say(self, pick: int, seq: int, share: float) -> None:
        node, mine = self._held([pick])
        for row in mine:
            await self._do("say", node, row["run_id"], row["attempt"], seq, share)

    async def renew(self, node: str) -> None:
        await self._do("renew", node)

    async def join(self, node: str, slots: int) -> None:
        await self._do("join", node, {"p1": slots, "p2": slots})

    async def bury(self, pick: int, node: str, gone: bool) -> None:
        """Rather somebody who holds something."""
        await self._do("bury", self._held([pick])[0] or node, gone)

    async def go(self, node: str, verb: str) -> None:
        await self._do(verb, node)

    async def handlers(self, node: str, lacks: bool) -> None:
        """Nobody has one of the handlers: what needs it waits; or it may be there by now."""
        if lacks:
            for each in NODES:
                await self._do("lack", each, {"python:m:g": "no module"})
            for pool in POOLS:
                wish = {"room": 1, "catchup_room": 1, "lacks": ("python:m:g",)}
                await self.claim(node, pool, wish, False)
        else:
            await self._do("look_again", node)

    # -- people

    async def apply(self, definition: Definition) -> None:
        await self._do("apply", definition)

    async def define(self, definition: Definition, verb: str) -> None:
        await self._do(verb, definition)

    async def hold(self, name: tuple[str, str], policy: str | None, verb: str) -> None:
        await self._do(verb, *name, policy)

    async def end_job(self, name: tuple[str, str], verb: str) -> None:
        await self._do(verb, *name)

    async def calendar(self, document: CalendarDocument) -> None:
        await self._do("put_calendar", document)

    async def trigger(self, name: tuple[str, str], payload: dict[str, int] | None, key: str) -> None:
        await self._do("trigger", *name, payload, key)

    async def cancel(self, picks: list[int], reason: str | None) -> None:
        if runs := self._runs(picks):
            await self._do("cancel", runs, reason)

    async def reopen(self, picks: list[int], verb: str) -> None:
        runs = self._runs(picks, lambda run: run["state"] in ("dead", "cancelled")) or self._runs(picks)
        if runs:
            await self._do(verb, runs)

    async def replay_many(self, tenant: str | None, limit: int) -> None:
        await self._do("replay_many", tenant, limit)

    async def backfill(self, name: tuple[str, str], back_ms: int, length_ms: int) -> None:
        await self._do("backfill", *name, back_ms, length_ms)

    async def limit_tenant(self, tenant: str, fields: dict[str, object]) -> None:
        await (self._do("put_tenant", tenant, fields) if fields else self._do("delete_tenant", tenant))

    async def limit_pool(self, pool: str, fields: dict[str, object]) -> None:
        await (self._do("put_pool", pool, fields) if fields else self._do("delete_pool", pool))

    async def switch(self, wish: Wish) -> None:
        await self._do("switch", wish)

    async def release(self, scope: Scope, name: str) -> None:
        """Rather one that is switched."""
        for row in self.rows["controls"][:1]:
            scope, name = row["scope"], row["name"]
        await self._do("release", scope, name)

    # -- whoever looks

    async def look(self, name: tuple[str, str], state: str | None) -> None:
        await self._do("look", name, state)

    async def look_at(self, pick: int) -> None:
        for run in self._runs([pick]):
            await self._do("look_at", run)

    def _runs(self, picks: Sequence[int], are: Callable[[Row], bool] = lambda _: True) -> list[str]:
        found = [run["run_id"] for run in self.rows["runs"] if are(run)]
        return list(dict.fromkeys(found[pick % len(found)] for pick in picks)) if found else []

    def _held(self, picks: Sequence[int]) -> tuple[str, list[Row]]:
        """Somebody who holds runs, and some of them."""
        held = [each for each in self.rows["leases"] if each["node_id"] is not None]
        if not held:
            return "", []
        node = held[picks[0] % len(held)]["node_id"]
        mine = [each for each in held if each["node_id"] == node]
        return node, [mine[pick % len(mine)] for pick in picks]


@asynccontextmanager
async def opened_pair(postgres_url: str) -> AsyncIterator[Pair]:
    async with AsyncExitStack() as stack:
        twins = []
        for url in (":memory:", postgres_url):
            fleet = await stack.enter_async_context(opened_world(url, BEGIN_MS))
            assert len(fleet[2]) == SHARDS
            twins.append(Twin(*fleet))
        yield Pair(*twins)
