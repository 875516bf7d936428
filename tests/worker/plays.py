"""How the checklist is played: a scenario with a crew, and a handler that writes down what it was called for.

On SQLite in memory, and on PostgreSQL where storage or concurrency matters. Where a story needs hours, the database's
clock is set to the next thing that happens: it is the only clock that counts.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from fleetcron.model.rules import EveryEntry, RetryRule
from fleetcron.model.states import RunState
from fleetcron.times.instants import iso, parse_instant, to_ms
from tests.worker.crew import PATIENCE_S, Crew, Function, crew

ENGINES = pytest.mark.parametrize("engine", ["sqlite_memory", "postgres18"])
SECOND, MINUTE, HOUR = 1000, 60_000, 3_600_000
NOON = to_ms(parse_instant("2026-06-10T12:00:00Z"))
TICK = "2026-06-01T02:00:00Z"
MINUTELY = (EveryEntry(MINUTE, 0),)
ONCE_ONLY = RetryRule(max_attempts=1)
SUCCEEDED, DEAD, CANCELLED, SKIPPED = RunState.SUCCEEDED, RunState.DEAD, RunState.CANCELLED, RunState.SKIPPED

Scenario = Callable[[Crew], Awaitable[None]]


def played(url: str, scenario: Scenario, functions: dict[str, Function] | None = None, **settings: Any) -> None:
    async def play() -> None:
        async with crew(url, functions, **settings) as made:
            await scenario(made)

    asyncio.run(play())


def at(text: str) -> int:
    return to_ms(parse_instant(text))


class Seen:
    """A handler that writes down what it was called for."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, str]] = []  # job and tick
        self._more = asyncio.Condition()

    async def handler(self, ctx: Any) -> None:
        async with self._more:
            self.calls.append((ctx.job, iso(ctx.scheduled_for)))
            self._more.notify_all()

    async def until(self, is_so: Callable[[], bool]) -> None:
        async with asyncio.timeout(PATIENCE_S), self._more:
            await self._more.wait_for(is_so)

    def has(self, tick: str, names: set[str]) -> bool:
        return names <= {name for name, its in self.calls if its == tick}

    def ticks(self, name: str) -> list[str]:
        return sorted(tick for job_name, tick in self.calls if job_name == name)
