"""Scheduler processes of a test: start them, kill them, let them fall asleep and wake as zombies, stop them."""

import asyncio
import json
import os
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import asyncpg  # type: ignore[import-untyped]

from tests.faults.node import VARIABLE
from tests.services.guard import Guard, alive

ROOT = Path(__file__).parents[2]
PATIENCE_S = 30.0


@dataclass
class Member:
    name: str
    pid: int
    log: Path
    fault: str | None = None

    def lines(self) -> list[str]:
        return self.log.read_text(errors="replace").splitlines()

    def counted(self) -> dict[str, Any]:
        """What it said at its end; nothing if it was killed."""
        last = [line for line in self.lines() if line.startswith("{")]
        return dict(json.loads(last[-1])) if last else {}

    @property
    def alive(self) -> bool:
        return alive(self.pid)

    @property
    def asleep(self) -> bool:
        return self.alive and Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()[0] == "T"

    def send(self, number: signal.Signals) -> None:
        if self.alive:
            os.kill(self.pid, number)


@dataclass
class Fleet:
    guard: Guard
    url: str
    folder: Path
    members: list[Member] = field(default_factory=list)

    def start(self, name: str, fault: str | None = None, *leases: str) -> Member:
        """A new process; its node's id begins with the name."""
        log = self.folder / f"{name}.log"
        environment = {**os.environ, "PYTHONPATH": str(ROOT), VARIABLE: fault or "kill never 1"}
        argv = [sys.executable, "-m", "tests.faults.node", self.url, name, *leases]
        process = self.guard.start(argv, log=log, env=environment)
        member = Member(name, process.pid, log, fault)
        self.members.append(member)
        return member

    async def kill(self, member: Member) -> None:
        member.send(signal.SIGKILL)
        await until(lambda: not member.alive)

    async def stop(self, members: Sequence[Member]) -> None:
        for member in members:
            member.send(signal.SIGTERM)
        await until(lambda: not any(member.alive for member in members))

    def end(self) -> None:
        for member in self.members:
            member.send(signal.SIGKILL)


@contextmanager
def fleet(guard: Guard, url: str, folder: Path) -> Iterator[Fleet]:
    found = Fleet(guard, url, folder)
    try:
        yield found
    finally:
        found.end()


async def until(true: Any, patience_s: float = PATIENCE_S) -> None:
    """Wait until a question is answered with yes; the question may be a coroutine function."""
    async with asyncio.timeout(patience_s):
        while True:
            answer = true()
            if await answer if asyncio.iscoroutine(answer) else answer:
                return
            await asyncio.sleep(0.02)


class Watch:
    """A connection of the test's own, past the store: who holds what, what was noted."""

    def __init__(self, connection: asyncpg.Connection) -> None:
        self._connection = connection

    @classmethod
    async def open(cls, url: str) -> "Watch":
        return cls(await asyncpg.connect(url, server_settings={"search_path": "fleetcron"}))

    async def close(self) -> None:
        await self._connection.close()

    async def ask(self, sql: str, *values: Any) -> Any:
        return await self._connection.fetchval(sql, *values)

    async def now_ms(self) -> int:
        return int(await self.ask("SELECT db_now_ms()"))

    async def holds(self, name: str) -> int:
        """How many shards a node has, by the beginning of its id."""
        sql = "SELECT count(*) FROM shard_leases WHERE node_id LIKE $1 || '-%' AND expires_ms > db_now_ms()"
        return int(await self.ask(sql, name))

    async def has_lost_all(self, name: str) -> bool:
        """Every lease that a node had is somebody else's by now, or was given back."""
        return not await self.ask("SELECT count(*) FROM shard_leases WHERE node_id LIKE $1 || '-%'", name)

    async def events(self, kind: str, name: str = "") -> int:
        sql = "SELECT coalesce(sum(count), 0) FROM events WHERE kind = $1 AND ($2 = '' OR node_id LIKE $2 || '-%')"
        return int(await self.ask(sql, kind, name))

    async def caught_up_ms(self) -> int | None:
        """The database's time, if every job is planned up to it and no gap is open."""
        sql = (
            "SELECT CASE WHEN EXISTS (SELECT FROM cursors WHERE next_due_ms <= now) OR"
            " EXISTS (SELECT FROM gaps WHERE noticed_ms IS NOT NULL) THEN NULL ELSE now END FROM db_now_ms() AS now"
        )
        found = await self.ask(sql)
        return None if found is None else int(found)
