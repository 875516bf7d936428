"""A world: a fleet of simulated nodes, its database, its people and its faults. Boot, faults, heal, quiesce; what was
seen of it is a `Record`, to be judged by the laws."""

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress
from hashlib import sha256
from typing import Any, Final

from fleetcron import steps
from fleetcron.errors import StoreError
from fleetcron.scheduler import failing
from fleetcron.simulate.clocks import SimulatedClock
from fleetcron.simulate.database import Database, Killed, SimulatedEngine
from fleetcron.simulate.fleet import SimulatedNode
from fleetcron.simulate.virtual import VirtualLoop, here
from fleetcron.store.migrations import migrate
from fleetcron.store.sqlite_session import statements_in
from fleetcron.store.store import Store
from fleetcron.worker import hands
from tests.simulate.acting import Acting
from tests.simulate.asking import People
from tests.simulate.faults import Blow, planned
from tests.simulate.network import Network
from tests.simulate.record import OBSERVERS, Record, Trouble
from tests.simulate.scenario import ASKING, Scenario, Slot

# How often schedulers look for jobs that keep failing: every two seconds would be a third of all requests.
failing._EVERY_S = 15.0  # type: ignore[misc]
# A timer of the virtual loop is exact: the last bit is as short as a few callbacks, not fifty for every start.
hands._ASK_S = 0.0002  # type: ignore[misc]
_AFTER_S: Final = 60.0  # how long a healed world goes on before its jobs are paused
_PATIENCE_S: Final = 900.0  # so long nothing may be open without anything becoming final
_LONGEST_S: Final = 7_200.0  # until then everything must be
_SAMPLE_S: Final = 10.0
_BUSY: Final = 2_000  # requests between two samples: somebody asks again and again
_STRAY: Final = """
SELECT r.run_id,
    (SELECT count(*) FROM leases AS l WHERE l.run_id = r.run_id AND l.node_id IS NOT NULL)
    + (SELECT count(*) FROM queue AS q WHERE q.run_id = r.run_id)
    + (SELECT count(*) FROM upcoming AS u WHERE u.run_id = r.run_id) AS places
FROM runs AS r WHERE r.finished_ms IS NULL AND places <> 1
UNION ALL
SELECT l.run_id, -1 FROM leases AS l JOIN runs AS r ON r.run_id = l.run_id WHERE r.finished_ms IS NOT NULL
UNION ALL
SELECT l.run_id, -2 FROM leases AS l WHERE l.node_id IS NOT NULL AND l.node_id NOT IN (SELECT node_id FROM workers)
"""

_FORSAKEN: Final = """
SELECT q.run_id FROM queue AS q JOIN jobs AS j ON j.job_id = q.job_id
WHERE q.gate = 'upstream' AND q.deadline_ms IS NULL AND j.definition ->> 'on_upstream_failure' = 'wait'
    AND NOT EXISTS (
        SELECT 1 FROM runs AS u WHERE u.job_id = q.key AND u.kind <> 'manual' AND u.state = 'succeeded'
            AND u.scheduled_for_ms = (SELECT max(i.scheduled_for_ms) FROM runs AS i
                WHERE i.job_id = q.key AND i.kind <> 'manual' AND i.scheduled_for_ms <= q.scheduled_for_ms)
            AND NOT EXISTS (SELECT 1 FROM ledger AS l WHERE l.job_id = q.key
                AND l.from_ms > u.scheduled_for_ms AND l.from_ms <= q.scheduled_for_ms))
"""


class Place:
    """Where a node lives, dies and is started again."""

    def __init__(self, slot: Slot) -> None:
        self.slot = slot
        self.node: SimulatedNode | None = None
        self.lives = 0
        self.start_at_s = 0.0
        self.shift_ms = 0
        self.is_down = False  # nobody starts it before it is healed


class World:
    def __init__(self, scenario: Scenario) -> None:
        self.scenario = scenario
        order, cost = scenario.chance("order"), scenario.chance("cost")
        self.loop = VirtualLoop(order.randrange, lambda: cost.random() * 4e-5)
        clock = SimulatedClock(self.loop.time, scenario.begin_ms, scenario.chance("database").uniform(-5e-5, 5e-5))
        self.record = Record(clock)
        self.database = Database(self.loop, clock)
        self.network = Network(scenario.chance("net"), 1.0)
        self.acting = Acting(scenario)
        self.places = {slot.name: Place(slot) for slot in scenario.slots}
        self.chance = scenario.chance("start")
        self._armed: list[list[Any]] = []  # slot, step, times left, seconds until it is started again
        store = Store(SimulatedEngine(self.database, self.network, self.loop.process("admin"), self.loop, 1.0))
        self.people = People(scenario, store, self.database, self.record, self.loop.time)

    def run(self) -> Record:
        level = logging.root.manager.disable
        logging.disable(logging.CRITICAL)
        steps.on_step(self._stepped if "step" in self.scenario.faults else None)
        asyncio.set_event_loop(self.loop)
        try:
            self._over = self.loop.create_task(self._live())
            with suppress(asyncio.CancelledError):
                self.loop.run_until_complete(self._over)
            self.record.ended_s, self.record.ended_ms = self.loop.time(), self.record.clock.now_ms()
            self.record.read(self.database.session._open())
        finally:
            steps.on_step(None)
            logging.disable(level)
            asyncio.set_event_loop(None)
        return self.record

    # -- phases

    async def _live(self) -> None:
        await migrate(self.people._store.engine)
        connection = self.database.session._open()
        connection.create_function("seen_ms", 0, lambda: round(self.loop.time() * 1000))
        for text in statements_in(OBSERVERS):
            connection.execute(text)
        await self.people.set_up()
        keeping = [asyncio.ensure_future(each) for each in (self._keep_up(), self._sample())]
        await asyncio.sleep(self.chance.uniform(0, 5))
        await self.people.define()
        until_s = self.scenario.minutes * 60
        asking = [asyncio.ensure_future(self.people.live(until_s))] if ASKING in self.scenario.faults else []
        await self._strike(until_s)
        await asyncio.gather(*asking)
        await self._heal()
        await self._quiesce()
        for task in keeping:
            task.cancel()
        await asyncio.gather(*keeping, return_exceptions=True)

    async def _strike(self, until_s: float) -> None:
        """All faults have ended when this ends."""
        blows = [asyncio.ensure_future(self._blow(each, until_s)) for each in planned(self.scenario)]
        await asyncio.gather(*blows)
        await asyncio.sleep(max(0.0, until_s - self.loop.time()))

    async def _heal(self) -> None:
        now_s = self.loop.time()
        self._armed.clear()
        self.network.heal()
        self.acting.is_healed = True
        if self.record.clock.shift_ms:
            self.record.shift(now_s, 0)
        for place in self.places.values():
            place.is_down, place.start_at_s = False, now_s
            if place.node is not None:
                place.node.clock.shift_ms = 0
        self.record.healed_s = now_s
        self.record.say(now_s, "everything is healed")
        for kind, name in (("tenant", "acme"), ("pool", "side")):
            await self.people.take_back_limit(("hold", kind, name))
        await self.people.resume_all()

    async def _quiesce(self) -> None:
        await asyncio.sleep(_AFTER_S)
        await self.people.pause_all()
        self.record.say(self.loop.time(), "all jobs are paused")
        end_s = self.loop.time() + _LONGEST_S
        ended, until_s = 0, 0.0
        while (left := self._unsettled()) is not None:
            if (now := self._ended()) > ended:
                ended, until_s = now, min(self.loop.time() + _PATIENCE_S, end_s)
            if self.loop.time() > until_s:
                if not (forsaken := self._forsaken()):
                    self.record.unsettled = left
                    return
                await self.people.give_up(forsaken)
            await asyncio.sleep(5)

    def _forsaken(self) -> list[int]:
        """Runs without a deadline that wait for a run of their upstream job to succeed, as their job says, which it has
        not: nobody but people can end that."""
        return [row[0] for row in self.database.session._open().execute(_FORSAKEN)]

    def _unsettled(self) -> str | None:
        connection = self.database.session._open()
        runs = [row[0] for row in connection.execute("SELECT run_id FROM runs WHERE finished_ms IS NULL LIMIT 20")]
        gaps = [row[0] for row in connection.execute("SELECT gap_id FROM gaps WHERE noticed_ms IS NOT NULL LIMIT 5")]
        [ahead] = connection.execute("SELECT max(updated_ms) > db_now_ms() FROM jobs").fetchone()
        return f"runs {runs}, gaps {gaps}" if runs or gaps or ahead else None

    def _ended(self) -> int:
        [found] = self.database.session._open().execute("SELECT count(*) + 1 FROM seen_finals").fetchone()
        return int(found)

    # -- the fleet

    async def _keep_up(self) -> None:
        for place in self.places.values():
            place.start_at_s = self.chance.uniform(0, 4)
        while True:
            for place in self.places.values():
                if place.node is not None:
                    if not place.node.is_gone:
                        continue
                    self._buried(place)
                if not place.is_down and self.loop.time() >= place.start_at_s:
                    self._start(place)
            await asyncio.sleep(0.25)

    def _start(self, place: Place) -> None:
        place.lives += 1
        name = f"{place.slot.name}.{place.lives}"
        clock = SimulatedClock(self.loop.time, self.scenario.begin_ms, place.slot.drift)
        clock.shift_ms = place.shift_ms
        place.node = SimulatedNode(
            name, self.loop, self.database, way=self.network, clock=clock, config=self.scenario.config(place.slot),
            play=self.acting, chance=self.scenario.chance(f"node/{name}").random, began=self.record.began,
            ended=self.record.ended,
        )  # fmt: skip
        self.record.say(self.loop.time(), f"{name} starts ({place.slot.roles})")
        place.node.start()

    def _buried(self, place: Place) -> None:
        node = place.node
        assert node is not None
        place.node = None
        for process in (node.process, node.hands.process):
            process.kill()
            self.loop.forget(process)
        if node.fault is not None and not isinstance(node.fault, StoreError):
            self.record.node_faults.append((node.name, node.fault))
        self.record.say(self.loop.time(), f"{node.name} is gone{'' if node.fault is None else f': {node.fault!r}'}")

    def _kill(self, place: Place, again_s: float) -> None:
        if place.node is not None and not place.node.is_gone:
            place.node.kill()
            place.start_at_s = self.loop.time() + again_s

    def _stepped(self, name: str) -> None:
        process = self.database.asked_by or here()
        if process is None:
            return
        for armed in self._armed:
            slot, step, left, again_s = armed
            place = self.places[slot]
            if step == name and place.node is not None and place.node.process is process and not process.is_dead:
                armed[2] = left - 1
                if armed[2] <= 0:
                    self._armed.remove(armed)
                    now_s = self.loop.time()
                    self.record.troubles.append(Trouble("step", slot, now_s, now_s, f"killed at {name}"))
                    self.record.say(now_s, f"{process.name} is killed at {name}")
                    self._kill(place, again_s)
                    if self.database.asked_by is not None:
                        raise Killed
                    return

    # -- faults

    async def _blow(self, blow: Blow, end_s: float) -> None:
        await asyncio.sleep(blow.at_s - self.loop.time())
        lasts_s = min(blow.lasts_s, end_s - self.loop.time())
        from_s = self.loop.time()
        place = None if blow.slot is None else self.places[blow.slot]
        what = " ".join(map(str, (blow.kind, blow.slot or "", f"{lasts_s:.1f} s", *blow.detail)))
        self.record.say(from_s, f"fault: {what}")
        at = len(self.record.troubles)
        often = blow.kind in ("lossy", "straggle", "aimed", "slow", "database_clock")
        self.record.troubles.append(Trouble(blow.kind, blow.slot, from_s, from_s + lasts_s, what, often))
        ended: Callable[[], None] | None = getattr(self, "_kill_now" if blow.kind == "kill" else f"_{blow.kind}")(
            blow, place, lasts_s
        )
        if blow.kind == "rolling":
            await self._rolled(blow, end_s, at)
        elif blow.kind == "limits":
            await self.people.change_limit(blow.detail)
            await asyncio.sleep(lasts_s)
            await self.people.take_back_limit(blow.detail)
        elif ended is not None:
            await asyncio.sleep(lasts_s)
            ended()

    def _kill_now(self, blow: Blow, place: Place, lasts_s: float) -> None:
        self._kill(place, lasts_s)

    def _step(self, blow: Blow, place: Place, lasts_s: float) -> None:
        self.record.troubles.pop()  # it is one when it happens
        self._armed.append([place.slot.name, *blow.detail, lasts_s])

    def _freeze(self, blow: Blow, place: Place, lasts_s: float) -> Callable[[], None]:
        node = place.node
        if node is not None:
            node.freeze()
        return lambda: node.thaw() if node is not None else None

    def _cut(self, blow: Blow, place: Place, lasts_s: float) -> Callable[[], None]:
        slot, [way] = place.slot.name, blow.detail
        sets = [self.network.no_way_there] if way in ("there", "both") else []
        sets += [self.network.no_way_back] if way in ("back", "both") else []
        for each in sets:
            each.add(slot)

        def mend() -> None:
            for each in sets:
                each.discard(slot)

        return mend

    def _lossy(self, blow: Blow, place: None, lasts_s: float) -> Callable[[], None]:
        self.network.lost_there, self.network.lost_back = blow.detail  # type: ignore[assignment]
        return lambda: vars(self.network).update(lost_there=0.0, lost_back=0.0)

    def _straggle(self, blow: Blow, place: None, lasts_s: float) -> Callable[[], None]:
        [self.network.late] = blow.detail  # type: ignore[assignment]
        return lambda: vars(self.network).update(late=0.0)

    def _aimed(self, blow: Blow, place: None, lasts_s: float) -> Callable[[], None]:
        verb, how, share = blow.detail
        self.network.aimed[str(verb)] = (str(how), float(str(share)))
        return lambda: vars(self.network).update(aimed={k: v for k, v in self.network.aimed.items() if k != verb})

    def _slow(self, blow: Blow, place: None, lasts_s: float) -> Callable[[], None]:
        [self.network.slow] = blow.detail  # type: ignore[assignment]
        return lambda: vars(self.network).update(slow=0.0)

    def _down(self, blow: Blow, place: None, lasts_s: float) -> Callable[[], None]:
        self.database.go_down()
        return self.database.come_up

    def _node_clock(self, blow: Blow, place: Place, lasts_s: float) -> Callable[[], None]:
        self._set_clock(place, blow.detail[0])  # type: ignore[arg-type]
        return lambda: self._set_clock(place, 0)

    def _set_clock(self, place: Place, shift_ms: int) -> None:
        place.shift_ms = shift_ms
        if place.node is not None:
            place.node.clock.shift_ms = shift_ms

    def _database_clock(self, blow: Blow, place: None, lasts_s: float) -> Callable[[], None]:
        self.record.shift(self.loop.time(), blow.detail[0])  # type: ignore[arg-type]
        return lambda: self.record.shift(self.loop.time(), 0)

    def _outage(self, blow: Blow, place: None, lasts_s: float) -> Callable[[], None]:
        for each in self.places.values():
            self._kill(each, 0)
            each.is_down = True

        def end() -> None:
            for each in self.places.values():
                each.is_down = False

        return end

    def _rolling(self, blow: Blow, place: None, lasts_s: float) -> None:
        pass

    def _limits(self, blow: Blow, place: None, lasts_s: float) -> None:
        pass

    async def _rolled(self, blow: Blow, end_s: float, at: int) -> None:
        """One node after the other is asked to stop, and killed if it does not."""
        drain_s = float(self.scenario.settings["worker.drain"].rstrip("s"))
        patience_s = drain_s + 2 * self.scenario.ttl_s + 5
        self.record.troubles[at] = Trouble("rolled", None, blow.at_s, blow.at_s, "begins")
        for place in self.places.values():
            node = place.node
            if node is None or self.loop.time() > end_s:
                continue
            from_s = self.loop.time()
            place.start_at_s = from_s + 1e9
            node.ask_to_stop()
            with suppress(TimeoutError):
                async with asyncio.timeout(patience_s):
                    while not node.is_gone:
                        await asyncio.sleep(0.2)
            if not node.is_gone:
                self.record.say(self.loop.time(), f"{node.name} did not stop and is killed")
                self.record.troubles.append(Trouble("kill", place.slot.name, from_s, self.loop.time(), "did not stop"))
                node.kill()
            self.record.troubles.append(Trouble("rolling", place.slot.name, from_s, self.loop.time(), node.name))
            place.start_at_s = self.loop.time() + 0.5
            await asyncio.sleep(min(blow.lasts_s, 5))

    # -- looking

    async def _sample(self) -> None:
        connection = self.database.session._open()
        before = 0
        while True:
            await asyncio.sleep(_SAMPLE_S)
            asked, before = self.database.transactions - before, self.database.transactions
            if asked > _BUSY:
                self.record.busy = (self.loop.time(), asked)
                self._over.cancel()
            for row in connection.execute(_STRAY).fetchall():
                self.record.samples.append((self.loop.time(), f"run {row[0]} is at {row[1]} places"))
            found = connection.execute(
                "SELECT pool, tenant, count(*) FROM queue WHERE gate IS NULL AND due_ms <= db_now_ms() GROUP BY 1, 2"
            )
            self.record.waiting.append((self.loop.time(), {(row[0], row[1]): row[2] for row in found.fetchall()}))


def trace(record: Record) -> str:
    """A hash over starts, ends and final rows."""
    seen: list[object] = [
        (each.stay.node, each.key, each.stay.job, each.stay.begun_s, each.at_us, each.ending) for each in record.begun
    ]
    for table in ("runs", "attempts", "ledger", "job_revisions", "seen_finals"):
        seen += [tuple(row.values()) for row in record.tables[table]]
    return sha256(repr(seen).encode()).hexdigest()[:16]
