"""A fleet of working nodes on one database, the jobs they work on, and what is done to them."""

import asyncio
import json
import os
import signal
import sqlite3
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, closing, contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import asyncpg  # type: ignore[import-untyped]

from fleetcron.clock import SystemClock
from fleetcron.model.definition import Definition
from fleetcron.model.entry import cron_entry
from fleetcron.model.rules import MisfireRule, OverlapPolicy, OverlapRule, RetryRule
from fleetcron.model.target import CommandTarget, PythonTarget, Target
from fleetcron.scheduler.desk import Desk
from fleetcron.store.migrations import migrate
from fleetcron.store.opening import open_engine
from fleetcron.store.store import Store
from fleetcron.store.written import Ok
from tests.faults import truth, work_handlers, work_truth
from tests.faults.fleet import until
from tests.faults.nursery import Nursery
from tests.faults.work_node import HANDLERS, SHARDS, Wish, pillow_of
from tests.services.guard import alive

PROGRAM = (sys.executable, "-I", "-S", str(Path(work_handlers.__file__)))
AGAIN_MS = 300  # after a failure


def job(
    name: str,
    run: Target | str,
    seconds: float = 0.05,
    *,
    overlap: OverlapPolicy = "skip",
    schedule: str = "* * * * * *",
    **payload: Any,
) -> Definition:
    """Every second; `run` may be the name of a handler of ours."""
    return Definition(
        name,
        (cron_entry(schedule, "UTC"),),
        PythonTarget(f"{HANDLERS}:{run}") if isinstance(run, str) else run,
        payload={"s": seconds, **payload},
        retry=RetryRule(max_attempts=3, backoff="fixed", delays_ms=(AGAIN_MS,), jitter=0, max_losses=50),
        overlap=OverlapRule(overlap),
        misfire=MisfireRule("latest", grace_ms=2000),
    )


def command(*words: str) -> CommandTarget:
    return CommandTarget((*PROGRAM, *words))


LOAD = [
    *(job(f"quick-{number}", "works", 0.02) for number in range(4)),
    job("longer", "works", 0.7),
    job("thread", "blocks", 0.1),
    job("fails", "fails_at_first", 0.02),
    job("queued", "works", 0.3, overlap="queue"),
    # claimed early, and held for longer than the tick: whoever loses it must not let it start before its instant
    *(replace(job(f"jittered-{n}", "works", 0.02, schedule="*/3 * * * * *"), jitter_ms=2500) for n in range(3)),
    job("allowed", "works", 1.2, overlap="allow"),
]
COMMANDS = [job("command", command("works", "0.1")), job("allowed-command", command("works", "0.3"), overlap="allow")]


@dataclass
class Member:
    name: str
    pid: int
    log: Path

    @property
    def alive(self) -> bool:
        return alive(self.pid)

    @property
    def asleep(self) -> bool:
        try:
            return Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()[0] == "T"
        except (FileNotFoundError, ProcessLookupError):
            raise AssertionError(f"{self.name} is not asleep, it is gone: {self.lines()[-20:]}") from None

    def send(self, number: signal.Signals) -> None:
        if self.alive:
            os.kill(self.pid, number)

    def lines(self) -> list[str]:
        return self.log.read_text(errors="replace").splitlines()

    def said(self) -> dict[str, Any]:
        """What it counted, at its orderly end."""
        last = [line for line in self.lines() if line.startswith("{")]
        return dict(json.loads(last[-1])) if last else {}

    @property
    def was_killed(self) -> bool:
        """By its own hand, at a step."""
        return any(line.startswith("SIGKILL at ") for line in self.lines()[-3:])

    @property
    def could_not_begin(self) -> bool:
        """When it came the store did not answer in the short time of these tests: a busy machine, nobody's death."""
        lines = self.lines()
        is_away = bool(lines) and lines[-1].startswith("fleetcron.errors.StoreUnavailable")
        return is_away and any("await Node.start(" in line for line in lines)

    def has_logged(self, text: str) -> bool:
        return any(text in line for line in self.lines())


@dataclass
class Siege:
    """One database, its nodes, and the log of what was done to them."""

    url: str
    folder: Path
    cradle: Nursery
    members: dict[str, Member] = field(default_factory=dict)
    cuts: Counter[str] = field(default_factory=Counter)  # by node: how often it was killed
    sleeps: Counter[str] = field(default_factory=Counter)  # by node: how often it slept, or was cut off, past its lease
    inside: set[str] = field(default_factory=set)  # nodes in the test's own process
    _lines: list[dict[str, Any]] = field(default_factory=list)
    _read: int = 0  # bytes of the log that are in `_lines`

    @property
    def truth(self) -> Path:
        return self.folder / "truth"

    def born(self, name: str, **wish: Any) -> Member:
        self.truth.mkdir(exist_ok=True)
        given = {"url": self.url, **wish}
        asked = Wish(name=name, truth=str(self.truth), log=str(self.folder / f"{name}.log"), **given)
        self.members[name] = Member(name, self.cradle.born(asdict(asked)), Path(asked.log))
        return self.members[name]

    def survivor(self, name: str = "survivor", **wish: Any) -> Member:
        """Plans and works, and is spared."""
        given: dict[str, Any] = {"roles": ["scheduler", "worker"], "ttl_s": 3, "deadline_s": 1, **wish}
        return self.born(name, **given)

    async def kill(self, member: Member) -> None:
        member.send(signal.SIGKILL)
        await until(lambda: not member.alive)
        self.cuts[member.name] += 1

    async def puts_to_sleep(self, member: Member) -> None:
        """Wherever it is; but whoever stands still in a transaction keeps everybody from a SQLite file: there, after
        its next commit."""
        if self.url.startswith("sqlite"):
            pillow_of(str(member.log)).touch()
        else:
            member.send(signal.SIGSTOP)
        await until(lambda: member.asleep)

    async def dies(self, member: Member, patience_s: float = 30) -> None:
        """By its own hand."""
        try:
            await until(lambda: not member.alive, patience_s)
        except TimeoutError:
            raise AssertionError(f"{member.name} did not die: {member.lines()[-5:]}") from None
        assert member.was_killed, f"{member.name} ended otherwise: {member.lines()[-5:]}"
        self.cuts[member.name] += 1

    async def stops(self, *members: Member, patience_s: float = 30) -> None:
        for member in members:
            member.send(signal.SIGTERM)
        await until(lambda: not any(member.alive for member in members), patience_s)

    def lines(self) -> list[dict[str, Any]]:
        """What the handlers said. Asked for all the time, and long: each line is read once."""
        log = self.truth / "log"
        if log.exists():
            with log.open("rb") as file:
                file.seek(self._read)
                found = file.read()
            whole = found[: found.rfind(b"\n") + 1]
            self._read += len(whole)
            self._lines += map(json.loads, whole.splitlines())
        return self._lines

    def said(self, what: str, **which: Any) -> list[dict[str, Any]]:
        return [
            line for line in self.lines() if line["say"] == what and all(line.get(k) == v for k, v in which.items())
        ]

    async def begun(self, times: int = 1, patience_s: float = 30, **which: Any) -> list[dict[str, Any]]:
        """When so many attempts of a kind have begun: their lines."""
        await until(lambda: len(self.said("start", **which)) >= times, patience_s)
        return self.said("start", **which)

    async def works(self, name: str) -> bool:
        """Whether it may hold runs."""
        rows = await asyncio.to_thread(rows_of, self.url, "SELECT node_id FROM workers")
        return name in map(work_truth.name_of, rows)

    def end(self) -> None:
        for member in self.members.values():
            member.send(signal.SIGKILL)

    async def heals(self, patience_s: float = 40) -> None:
        """No more ticks; wait until everything has its answer; then whoever is left leaves."""
        async with desk_of(self.url) as desk:
            for found in await asyncio.to_thread(rows_of, self.url, "SELECT tenant, name FROM jobs"):
                await desk.pause(found["tenant"], found["name"])
        try:
            await until(self._is_settled, patience_s)
        except TimeoutError:
            open_runs = await asyncio.to_thread(rows_of, self.url, OPEN)
            raise AssertionError(f"runs without an answer: {[dict(run) for run in open_runs][:5]}") from None
        await self.stops(*(member for member in self.members.values() if member.alive))

    async def _is_settled(self) -> bool:
        """Every run has its answer, and whoever is dead is given up."""
        if await asyncio.to_thread(rows_of, self.url, OPEN):
            return False
        rows = await asyncio.to_thread(rows_of, self.url, "SELECT node_id FROM workers")
        names = {work_truth.name_of(row) for row in rows}
        return all(name in self.members and self.members[name].alive for name in names - self.inside)

    def judged(self, lines: Sequence[dict[str, Any]] | None = None) -> work_truth.Verdict:
        """`lines` if the clock of the handlers is not the database's: then theirs are not comparable as they are."""
        tables = truth.read(self.url, (*truth.TABLES, *work_truth.TABLES))
        cuts = Counter(self.cuts)
        for (
            member
        ) in self.members.values():  # who slept notices that its lease is over; so does who stood still unasked
            noticed = sum("everything is stopped" in line for line in member.lines())
            cuts[member.name] += max(self.sleeps[member.name], noticed)
        return work_truth.judge(tables, self.lines() if lines is None else lines, cuts, AGAIN_MS)

    def check(self) -> work_truth.Verdict:
        verdict = self.judged()
        cuts = sum(self.cuts.values()) + sum(self.sleeps.values())
        print(f"\n{verdict.summary()}; {verdict}; {cuts} cuts")
        assert verdict.wrong == [], "\n".join(verdict.wrong[:20])
        return verdict


OPEN = (
    "SELECT r.run_id, r.state, r.attempt, r.run_after_ms, j.name, l.node_id, q.gate, q.key FROM runs AS r"
    " JOIN jobs AS j ON j.job_id = r.job_id LEFT JOIN leases AS l ON l.run_id = r.run_id"
    " LEFT JOIN queue AS q ON q.run_id = r.run_id WHERE r.finished_ms IS NULL"
)


def rows_of(url: str, sql: str) -> Sequence[Any]:
    """Past the store."""
    if url.startswith("sqlite:///"):
        with closing(sqlite3.connect(url.removeprefix("sqlite:///"), timeout=10)) as connection:
            connection.row_factory = sqlite3.Row
            return connection.execute(sql).fetchall()

    async def asked() -> Sequence[Any]:
        connection = await asyncpg.connect(url, server_settings={"search_path": "fleetcron"})
        try:
            found: Sequence[Any] = await connection.fetch(sql)
            return found
        finally:
            await connection.close()

    return asyncio.run(asked())


@asynccontextmanager
async def store_of(url: str) -> AsyncIterator[Store]:
    engine = await open_engine(url, clock=SystemClock())
    try:
        await migrate(engine)
        yield Store(engine)
    finally:
        await engine.close()


@asynccontextmanager
async def desk_of(url: str) -> AsyncIterator[Desk]:
    async with store_of(url) as store:
        yield Desk(store, actor="test", shards=SHARDS)


async def create(url: str, jobs: Sequence[Definition]) -> None:
    async with store_of(url) as store:
        assert isinstance(await store.shards.fix(SHARDS), Ok)
        applied = await Desk(store, actor="test", shards=SHARDS).apply(jobs)
        assert {each.done for each in applied} == {"created"}


async def trigger(url: str, name: str, key: str = "1") -> int:
    """One run, now. Its id."""
    async with store_of(url) as store:
        written = await store.steering.trigger(("default", name), None, actor="test", key=key)
        assert isinstance(written, Ok)
        return written.value.run_id


def once(one: Definition) -> Definition:
    """A job that only runs when somebody asks for it."""
    return replace(one, schedule=(cron_entry("0 0 1 1 *", "UTC"),))


@contextmanager
def timed(at_most_s: float) -> Iterator[None]:
    began = time.monotonic()
    yield
    took = time.monotonic() - began
    assert took <= at_most_s, f"{took:.2f} s"
