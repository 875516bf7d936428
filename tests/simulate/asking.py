"""People in a world: they edit, pause, resume, delete, trigger, cancel, replay and backfill in the middle of it all.

What became of a wish is not remembered here: the revisions and events in the database tell it.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from random import Random
from typing import Any, Final

from fleetcron.errors import FleetcronError
from fleetcron.ids import uuid7
from fleetcron.model.control import Wish
from fleetcron.model.definition import Definition
from fleetcron.model.rules import EveryEntry, OnceEntry
from fleetcron.scheduler.backfill import backfill
from fleetcron.scheduler.desk import Desk
from fleetcron.simulate.database import Database
from fleetcron.store.store import Store
from tests.simulate.record import Record
from tests.simulate.scenario import Scenario

_WISHES: Final = (
    "edit", "edit", "touch", "pause", "resume", "delete", "trigger", "trigger", "cancel", "cancel", "replay", "replay",
    "backfill", "end",
)  # fmt: skip


class People:
    def __init__(
        self, scenario: Scenario, store: Store, database: Database, record: Record, now: Callable[[], float]
    ) -> None:
        self._scenario = scenario
        self._store = store
        self._database = database
        self._record = record
        self._now = now
        ids = scenario.chance("ids")
        self._shards = int(scenario.settings["scheduler.shards"])
        self.desk = Desk(store, actor="people", shards=self._shards, new_id=lambda ms: uuid7(ms, ids.randbytes))
        self._chance = scenario.chance("asking")
        self._known: dict[str, Definition] = {each.name: each for each in scenario.definitions}

    async def live(self, until_s: float) -> None:
        while self._now() < until_s:
            await asyncio.sleep(self._chance.expovariate(1 / 25))
            if self._now() < until_s:
                await self._wish(self._chance.choice(_WISHES), Random(self._chance.random()))

    async def set_up(self) -> None:
        for name, fields in self._scenario.tenants.items():
            await self._store.limits.put_tenant(name, fields, actor="people")
        for name, fields in self._scenario.pools.items():
            await self._store.limits.put_pool(name, fields, actor="people")

    async def define(self) -> None:
        for calendar in self._scenario.calendars:
            await self.patiently(lambda given=calendar: self.desk.put_calendar(given))  # type: ignore[misc]
        await self.patiently(lambda: self.desk.apply(self._scenario.definitions))

    async def change_limit(self, what: tuple[Any, ...]) -> None:
        match what:
            case ("tenant", name, field, value):
                await self.patiently(lambda: self._store.limits.put_tenant(name, {field: value}, actor="people"))
            case ("pool", name, field, value):
                await self.patiently(lambda: self._store.limits.put_pool(name, {field: value}, actor="people"))
            case ("hold", scope, name, percent):
                wish = Wish(scope, name, percent=percent, for_ms=600_000, reason="an incident")
                await self.patiently(lambda: self._store.controls.switch(wish, actor="people"))

    async def take_back_limit(self, what: tuple[Any, ...]) -> None:
        if what[0] == "hold":
            await self.patiently(lambda: self._store.controls.release(what[1], what[2], actor="people"))

    async def resume_all(self) -> None:
        for name, definition in self._known.items():
            await self._tried(lambda name=name, t=definition.tenant: self.desk.resume(t, name))  # type: ignore[misc]

    async def pause_all(self) -> None:
        for name, definition in self._known.items():
            await self._tried(lambda name=name, t=definition.tenant: self.desk.pause(t, name))  # type: ignore[misc]

    async def give_up(self, run_ids: Sequence[int]) -> None:
        self._record.asked_to_cancel.update(run_ids)
        self._record.say(self._now(), f"people give up on runs {run_ids}")
        await self.patiently(lambda: self._store.steering.cancel(list(run_ids), None, actor="people"))

    async def patiently(self, wish: Callable[[], Awaitable[Any]]) -> None:
        for _ in range(8):
            with suppress(FleetcronError):
                await wish()
                return
            await asyncio.sleep(0.5)

    async def _tried(self, wish: Callable[[], Awaitable[Any]]) -> None:
        with suppress(FleetcronError):
            await wish()

    async def _wish(self, kind: str, chance: Random, name: str | None = None) -> None:
        name = name or chance.choice(sorted(self._known))
        tenant = self._known[name].tenant
        self._record.say(self._now(), f"people {kind} {tenant}/{name}")
        match kind:
            case "edit" | "touch":
                await self._tried(lambda: self._edit(name, kind, chance))
            case "pause":
                await self._tried(lambda: self.desk.pause(tenant, name, chance.choice(("skip", "latest", "all"))))
            case "resume":
                await self._tried(lambda: self.desk.resume(tenant, name))
            case "delete":
                await self._delete(tenant, name, chance)
            case "end" if chance.random() < 0.3:
                await self._tried(lambda: self.desk.cancel(tenant, name))
            case "trigger":
                key = f"key{chance.randrange(10**9)}"
                await self._tried(lambda: self._store.steering.trigger((tenant, name), None, actor="people", key=key))
            case "cancel":
                await self._cancel(chance)
            case "replay":
                await self._replay(chance)
            case "backfill":
                now_ms = self._database_ms()
                back_ms = chance.choice((60_000, 300_000))
                await self._tried(
                    lambda: backfill(self._store, tenant, name, now_ms - back_ms, now_ms, actor="people", limit=30)
                )

    async def _edit(self, name: str, kind: str, chance: Random) -> None:
        before = self._known[name]
        if before.max_ticks is not None or any(isinstance(entry, OnceEntry) for entry in before.schedule):
            return
        if kind == "touch":
            after = replace(before, priority=chance.choice((0, 5, 10)), payload={"n": chance.randrange(100)})
        else:
            after = replace(
                before,
                schedule=(EveryEntry(chance.choice((25, 40, 70, 130)) * 1000),),
                misfire=replace(before.misfire, grace_ms=chance.choice((2_000, 30_000))),
            )
        done = await self.desk.edit(after)
        if done.done in ("changed", "unchanged"):
            self._known[name] = after

    async def _delete(self, tenant: str, name: str, chance: Random) -> None:
        definition = self._known[name]
        if any(isinstance(entry, OnceEntry) for entry in definition.schedule) or chance.random() < 0.5:
            return
        await self._tried(lambda: self.desk.delete(tenant, name))
        await asyncio.sleep(chance.uniform(0, 20))
        await self._tried(lambda: self.desk.apply([definition]))

    async def _cancel(self, chance: Random) -> None:
        found = self._runs("finished_ms IS NULL AND run_after_ms < db_now_ms() + 20000")
        if found:
            run_id = chance.choice(found)
            self._record.asked_to_cancel.add(run_id)
            self._record.say(self._now(), f"people cancel run {run_id}")
            await self._tried(lambda: self._store.steering.cancel([run_id], None, actor="people"))
            if chance.random() < 0.7:
                await self._change_around(run_id, chance)

    async def _change_around(self, run_id: int, chance: Random) -> None:
        """Who has cancelled a run ahead of its time (and has replayed it, maybe) changes its job."""
        text = (
            "SELECT j.name FROM runs AS r JOIN jobs AS j ON j.job_id = r.job_id WHERE r.run_id = ? AND r.kind = 'tick'"
            " AND j.deleted_ms IS NULL AND r.scheduled_for_ms > db_now_ms()"
        )
        for row in self._database.session._open().execute(text, (run_id,)).fetchall():
            if chance.random() < 0.4:
                self._record.say(self._now(), f"people replay run {run_id}")
                await self._tried(lambda: self._store.steering.replay([run_id], actor="people"))
            for kind in chance.choice((("edit",), ("touch",), ("pause",), ("pause", "resume"), ("pause", "edit"))):
                await self._wish(kind, chance, row["name"])
                await asyncio.sleep(chance.uniform(0, 10))

    async def _replay(self, chance: Random) -> None:
        found = self._runs("state IN ('dead', 'cancelled')")
        if found:
            run_id = chance.choice(found)
            self._record.say(self._now(), f"people replay run {run_id}")
            await self._tried(lambda: self._store.steering.replay([run_id], actor="people"))

    def _runs(self, where: str) -> list[int]:
        rows = self._database.session._open().execute(f"SELECT run_id FROM runs WHERE {where} ORDER BY run_id")
        return [row["run_id"] for row in rows.fetchall()]

    def _database_ms(self) -> int:
        return self._record.clock.now_ms()
