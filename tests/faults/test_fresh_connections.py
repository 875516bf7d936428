"""A connection may be lost and made anew at any moment: every verb may be the first one that it carries."""

import asyncio
from collections.abc import Callable
from typing import TypeVar

import pytest

from fleetcron.store.engine import Script
from fleetcron.store.migrations import Altering
from fleetcron.store.postgres import PostgresEngine
from fleetcron.store.sqlite import SqliteEngine
from fleetcron.store.sqlite_session import SqliteSession
from fleetcron.store.written import Refused, Written
from tests.faults import truth
from tests.faults.replies import Through, verb_of
from tests.faults.story import CLOCK_SQL, life
from tests.services.postgres import execute

T = TypeVar("T")


class Forgotten(Through):
    """Every write of a verb finds no connection and has to make one; those that come after it use the same."""

    def __init__(self, engine: Altering, verb: str) -> None:
        super().__init__(engine)
        self._verb = verb
        self.times = 0

    async def write(self, script: Callable[[], Script[T | Refused]]) -> Written[T]:
        if verb_of(script) == self._verb:
            self.times += 1
            await self._forget()
        return await super().write(script)

    async def _forget(self) -> None:
        match self.engine:
            case SqliteEngine():
                await self.engine._writer.call(SqliteSession.close)
            case PostgresEngine():
                self.engine._connections.forget_idle()


VERBS = (
    "Cursors.advance", "Gaps.settle", "Jobs.amend", "AlmanacTables.adopt", "Shards.take", "Shards.renew",
    "Shards.release", "Nodes.announce", "Nodes.heartbeat", "Nodes.leave",
)  # fmt: skip


@pytest.mark.parametrize("store", ["sqlite", pytest.param("postgres", marks=pytest.mark.soak)])
def test_every_verb_may_be_the_first_of_a_connection(store: str, request: pytest.FixtureRequest) -> None:
    """What a verb leaves behind in a connection (temporary tables, settings, statements) is in no other verb's way."""
    if store == "sqlite":
        url = str(request.getfixturevalue("sqlite_file_url"))
    else:
        url = str(request.getfixturevalue("postgres18_url"))
        execute(url, CLOCK_SQL)

    async def scenario() -> int:
        for number, verb in enumerate(VERBS):
            forgotten: list[Forgotten] = []

            def through(engine: Altering, verb: str = verb, forgotten: list[Forgotten] = forgotten) -> Altering:
                forgotten.append(Forgotten(engine, verb))
                return forgotten[-1]

            async with life(url, number, through) as one:
                await one.tell()
            assert forgotten[-1].times > 0
        return one.clock.now_ms()

    now_ms = asyncio.run(scenario())
    verdict = truth.judge(truth.read(url), now_ms)
    assert verdict.wrong == []
    assert verdict.undecided == 0
