"""Executors with everything around them, for one test."""

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

from fleetcron.clock import SystemClock
from fleetcron.config import ExecutorConfig
from fleetcron.executors.assignment import Assignment, Key
from fleetcron.executors.command import Commands
from fleetcron.executors.handler_hosts import HandlerHosts
from fleetcron.executors.programs import Programs
from fleetcron.executors.reports import Declined, Done, LogChunk, Progress, Report
from fleetcron.model.target import CommandTarget, PythonTarget, Target

ROOT = Path(__file__).parents[2]
SUBJECTS = "tests.executors.subjects"
PATIENCE_S = 60  # with a machine that is busy with other things
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT), "FLEETCRON_TEST_SECRET_URL": "postgresql://me:hush@db/x"}


def assignment(
    target: Target,
    run_id: int = 1,
    *,
    attempt: int = 1,
    timeout_s: float = 3600,
    payload: Mapping[str, Any] | None = None,
) -> Assignment:
    return Assignment(
        run_id=run_id,
        attempt=attempt,
        job_id="018f3b2e-7c3a-7b1e-9a1b-2c3d4e5f6071",
        tenant="acme",
        job="nightly-report",
        target=target,
        payload=payload or {},
        scheduled_for_ms=1_790_000_000_000,
        run_after_ms=1_790_000_000_500,
        window_ms=None,
        covers=1,
        idempotency_key="job:018f3b2e-7c3a-7b1e-9a1b-2c3d4e5f6071:scheduled_for:2026-09-21T14:13:20Z",
        timeout_ms=round(timeout_s * 1000),
    )


def python(name: str) -> PythonTarget:
    return PythonTarget(f"{SUBJECTS}:{name}")


def shell(text: str) -> CommandTarget:
    """A program that is a shell; not `shell: true`."""
    return CommandTarget(("/bin/sh", "-c", text))


def all_at_once(parties: int, place: Path) -> list[Assignment]:
    payload = {"parties": parties, "place": str(place)}
    return [assignment(python("meets_all"), at, payload=payload) for at in range(parties)]


@contextmanager
def module_that_hangs(
    place: Path, name: str = "shop_that_hangs", work: str = "def work(): pass"
) -> Iterator[Callable[[], None]]:
    """With a function `work`. Its import reads from a pipe, and goes on when the function that this gives is called."""
    pipe = place / f"{name}.pipe"
    os.mkfifo(pipe)
    (place / f"{name}.py").write_text(f"with open({str(pipe)!r}) as pipe: pipe.readline()\n{work}\n")
    end = os.open(pipe, os.O_RDWR)

    def go_on() -> None:
        os.write(end, b"\n")

    try:
        yield go_on
    finally:
        os.close(end)


class Heard:
    """Everything that was told, and a way to wait for more."""

    def __init__(self) -> None:
        self.reports: list[Report] = []
        self.batches = 0
        self._news = asyncio.Event()

    def tell(self, reports: Sequence[Report]) -> None:
        assert reports
        self.batches += 1
        self.reports.extend(reports)
        self._news.set()

    async def until(self, condition: Callable[[], bool]) -> None:
        async with asyncio.timeout(PATIENCE_S):
            while not condition():
                self._news.clear()
                await self._news.wait()

    @property
    def done(self) -> dict[Key, Done]:
        found = [report for report in self.reports if isinstance(report, Done)]
        by_key = {report[:2]: report for report in found}
        assert len(by_key) == len(found), "an attempt ended twice"
        return by_key

    async def end_of(self, run_id: int, attempt: int = 1) -> Done:
        await self.until(lambda: (run_id, attempt) in self.done)
        return self.done[run_id, attempt]

    async def ends(self, count: int) -> dict[Key, Done]:
        await self.until(lambda: sum(isinstance(report, Done) for report in self.reports) >= count)
        return self.done

    async def declined(self, run_id: int) -> str:
        def found() -> list[Declined]:
            return [one for one in self.reports if isinstance(one, Declined) and one.run_id == run_id]

        await self.until(lambda: bool(found()))
        return found()[0].reason

    def chunks(self, run_id: int) -> list[LogChunk]:
        return [one for one in self.reports if isinstance(one, LogChunk) and one.run_id == run_id]

    def log(self, run_id: int) -> str:
        chunks = self.chunks(run_id)
        assert [chunk.seq for chunk in chunks] == list(range(len(chunks)))
        return "".join(chunk.text for chunk in chunks)

    def progress(self, run_id: int) -> list[Progress]:
        return [one for one in self.reports if isinstance(one, Progress) and one.run_id == run_id]

    async def log_has(self, run_id: int, text: str) -> str:
        await self.until(lambda: text in self.log(run_id))
        return self.log(run_id)


@asynccontextmanager
async def handler_hosts(
    *names: str,
    slots: int = 20,
    config: ExecutorConfig | None = None,
    path: Path | None = None,
    store_url: str | None = None,
    **settings: Any,
) -> AsyncIterator[tuple[HandlerHosts, Heard]]:
    """The functions of the subjects, with the named ones already learned. `path`: where more modules are found.
    It must leave no process behind."""
    heard = Heard()
    programs = Programs(ENVIRONMENT)
    config = config or ExecutorConfig(handlers=(SUBJECTS,), **{"grace_s": 0.3, "patience_s": 0.5, **settings})
    environment = ENVIRONMENT if path is None else {**ENVIRONMENT, "PYTHONPATH": f"{ROOT}{os.pathsep}{path}"}
    hosts = HandlerHosts(programs, config, slots, environment, SystemClock(), heard.tell, store_url)
    try:
        targets = [python(name) for name in names]
        await hosts.learn(targets)
        assert [hosts.why_not(target) for target in targets] == [None] * len(targets)
        yield hosts, heard
    finally:
        await hosts.close(0)
        await programs.close()


async def pid_of(hosts: HandlerHosts, heard: Heard, run_id: int) -> int:
    """The process that new work goes to now."""
    hosts.start([assignment(python("pid_of"), run_id)])
    return int((await heard.end_of(run_id)).result_json or 0)


@asynccontextmanager
async def commands(**settings: Any) -> AsyncIterator[tuple[Commands, Heard]]:
    heard = Heard()
    programs = Programs(ENVIRONMENT)
    config = ExecutorConfig(**{"grace_s": 0.3, **settings})
    executor = Commands(programs, config, ENVIRONMENT, SystemClock(), heard.tell)
    try:
        yield executor, heard
    finally:
        await executor.close(0)
        await programs.close()
