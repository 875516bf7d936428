"""Commit done, reply lost, for every verb of a worker: it is done again, and done once."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from random import Random
from typing import TypeVar

import pytest

from fleetcron.clock import SystemClock
from fleetcron.errors import StoreUnavailable
from fleetcron.node import Node
from fleetcron.store.engine import Script
from fleetcron.store.migrations import Altering
from fleetcron.store.opening import open_engine
from fleetcron.store.store import Store
from fleetcron.store.written import Ok, Refused, Unknown, Written
from tests.faults import work_handlers
from tests.faults.fleet import until
from tests.faults.replies import Through, verb_of
from tests.faults.work_fleet import LOAD, Siege, create, job, once, rows_of, trigger
from tests.faults.work_node import Wish
from tests.faults.work_stage import POSTGRES, rarely

T = TypeVar("T")
VERBS = {
    "AttemptOutput.append", "Attempts.finish", "Attempts.hand_back", "Claims.claim", "Queue.promote", "Sweeping.sweep",
    "Workers.bury", "Workers.join", "Workers.leave", "Workers.renew",
}  # fmt: skip
LIVES = 14


class Lossy(Through):
    """The first reply to every verb is lost after its commit, and many later ones; some requests never arrive."""

    def __init__(self, engine: Altering, chance: Random, lost: Counter[str]) -> None:
        super().__init__(engine)
        self._chance = chance
        self._lost = lost

    async def write(self, script: Callable[[], Script[T | Refused]]) -> Written[T]:
        verb = verb_of(script)
        if self._lost[verb] and self._chance.random() < 0.1:
            raise StoreUnavailable("the request was lost")
        answer = await self.engine.write(script)
        if not self._lost[verb] or self._chance.random() < 0.25:
            self._lost[verb] += 1
            return Unknown("the reply was lost")
        return answer


@asynccontextmanager
async def running(node: Node) -> AsyncIterator[None]:
    """A node in this process."""
    stop = asyncio.Event()
    work = asyncio.create_task(node.run(stop))
    try:
        yield
    finally:
        stop.set()
        await work
        await node.close()


async def life(wish: Wish, chance: Random, lost: Counter[str], seconds: float) -> None:
    """A node whose engine loses replies, for a while."""
    clock = SystemClock()
    engine = await open_engine(wish.url, clock=clock, deadline_s=wish.deadline_s, connections=3)
    async with running(Node(Store(Lossy(engine, chance, lost)), wish.config(), clock)):
        await asyncio.sleep(seconds)


@rarely(POSTGRES)
def test_every_reply_may_be_lost(
    siege: Siege, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    lost: Counter[str] = Counter()
    chance = Random(6)
    siege.truth.mkdir()
    monkeypatch.setenv(work_handlers.FOLDER, str(siege.truth))
    monkeypatch.setenv(work_handlers.NODE, "lossy")
    wish = Wish(siege.url, "lossy", str(siege.truth), "", isolation="inline", ttl_s=4, drain_s=3)

    async def scenario() -> None:
        await create(siege.url, LOAD)
        siege.survivor(slots=2, ttl_s=12)  # which looks more rarely after the dead, and leaves them to the other
        await siege.begun(2)
        for number in range(LIVES):
            if number > 1 and set(lost) >= VERBS:
                break
            doomed = siege.born(f"doomed-{number}", faults=[("kill", "claim.written", 1)], isolation="inline")
            await life(wish, chance, lost, seconds=1.2)
            await siege.dies(doomed)
        await siege.heals()

    asyncio.run(scenario())
    print(dict(lost))
    assert set(lost) >= VERBS
    siege.cuts["lossy"] = sum("everything is stopped" in record.getMessage() for record in caplog.records)
    verdict = siege.check()
    assert verdict.attempts["succeeded"] > 20
    assert verdict.events["finish_refused"] == 0  # what we have written ourselves was not refused


class Holding(Through):
    """The reply to the first hand-back is lost, and not before a claim came through, if one does."""

    def __init__(self, engine: Altering) -> None:
        super().__init__(engine)
        self._claimed = asyncio.Event()
        self.hand_backs = 0

    async def write(self, script: Callable[[], Script[T | Refused]]) -> Written[T]:
        verb, answer = verb_of(script), await self.engine.write(script)
        if verb == "Claims.claim" and self.hand_backs and isinstance(answer, Ok) and answer.value.runs:  # type: ignore[attr-defined]
            self._claimed.set()
        if verb == "Attempts.hand_back":
            self.hand_backs += 1
            if self.hand_backs == 1:
                with suppress(TimeoutError):
                    async with asyncio.timeout(1.5):
                        await self._claimed.wait()
                return Unknown("the reply was lost")
        return answer


def test_a_run_is_not_given_away_twice(sqlite_siege: Siege, monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker with one slot gives back what it cannot start, and hears nothing. It could claim the same run again
    before it repeats that, under the same number of attempt: what runs by then must not be given away."""
    siege = sqlite_siege
    siege.truth.mkdir()
    monkeypatch.setenv(work_handlers.FOLDER, str(siege.truth))
    monkeypatch.setenv(work_handlers.NODE, "one")
    roles = ["scheduler", "worker"]
    wish = Wish(siege.url, "one", str(siege.truth), "", roles=roles, isolation="inline", ttl_s=8, slots=1)

    def is_held() -> bool:
        """The next one is held, and its instant has not come."""
        soon_ms = SystemClock().now_ms() + 200
        return any(row["due_ms"] > soon_ms for row in rows_of(siege.url, "SELECT due_ms FROM leases"))

    async def scenario() -> None:
        await create(siege.url, [job("tick", "works", 0.7, schedule="*/2 * * * * *"), once(job("blocker", "works", 1))])
        engine = Holding(await open_engine(wish.url, clock=SystemClock(), connections=3))
        async with running(Node(Store(engine), wish.config(), SystemClock())):
            await siege.begun(job="tick")
            await until(is_held)
            await trigger(siege.url, "blocker")
            siege.inside.add("one")
            await until(lambda: engine.hand_backs >= 2)
            await siege.begun(2, job="tick")
            await siege.heals()

    asyncio.run(scenario())
    assert siege.check().events["finish_refused"] == 0
