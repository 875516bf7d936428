"""What the tests of this room share: nodes, events, and an engine whose replies can be lost."""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from typing import Any, TypeVar

from fleetcron.clock import Clock
from fleetcron.config import CoordinationConfig
from fleetcron.coordination.holder import Holder
from fleetcron.errors import StoreUnavailable
from fleetcron.store.engine import Engine, Script
from fleetcron.store.events import Events
from fleetcron.store.migrations import Altering
from fleetcron.store.nodes import Node
from fleetcron.store.written import Ok, Refused, Unknown, Written
from tests.store.engines import change

T = TypeVar("T")

NOON_MS = 1_800_000_000_000
TTL_MS = 15_000
DEFAULTS = CoordinationConfig()


def node(name: str, region: str = "*", roles: tuple[str, ...] = ("scheduler",)) -> Node:
    return Node(name, "host", 7, roles, region, "1.0", "2026a")


def holder(
    engine: Engine,
    name: str,
    clock: Clock,
    *,
    shards: int = 16,
    region: str = "*",
    config: CoordinationConfig = DEFAULTS,
) -> Holder:
    return Holder(engine, node(name, region), config, shards=shards, clock=clock)


def value(answer: Written[T]) -> T:
    assert isinstance(answer, Ok), answer
    return answer.value


async def events(engine: Engine, *kinds: str) -> list[tuple[str, str | None, int, dict[str, Any]]]:
    """(kind, node, count, detail), oldest first; of nodes, all kinds unless some are named."""
    noted = [one.event for one in reversed(await Events(engine).list(limit=1000)) if one.event.node_id]
    return [(one.kind, one.node_id, one.count, dict(one.detail)) for one in noted if not kinds or one.kind in kinds]


async def holds(engine: Altering, condition: str) -> None:
    """Assert something about the tables that none of our statements tells."""
    await change(
        engine,
        "CREATE TABLE IF NOT EXISTS test_truth (truth INTEGER NOT NULL CHECK (truth = 1));\n"
        f"INSERT INTO test_truth SELECT CASE WHEN {condition} THEN 1 ELSE 0 END;",
    )


class Weak:
    """An engine that loses replies after the commit (`lose`), or cannot be reached (`cut`)."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self.name = engine.name
        self.lose = False
        self.cut = False

    async def write(self, script: Callable[[], Script[T | Refused]]) -> Written[T]:
        self._may_fail()
        answer = await self._engine.write(script)
        return Unknown("the reply was lost") if self.lose else answer

    async def read(self, script: Callable[[], Script[T]]) -> T:
        self._may_fail()
        return await self._engine.read(script)

    def hints(self) -> AbstractAsyncContextManager[AsyncIterator[str]]:
        return self._engine.hints()

    async def close(self) -> None:
        await self._engine.close()

    def _may_fail(self) -> None:
        if self.cut:
            raise StoreUnavailable("the network is cut")
