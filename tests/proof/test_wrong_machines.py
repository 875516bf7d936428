"""Real processes whose machine has a wrong clock (libfaketime), and tables that change while workers are at work."""

import asyncio
import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from time import monotonic

import pytest

from fleetcron.errors import StoreUnavailable
from fleetcron.store import migrations
from fleetcron.store.migrations import Migration, known, migrate
from tests.faults.nursery import Nursery, nursery
from tests.faults.work_fleet import COMMANDS, LOAD, Member, Siege, create, rows_of, store_of
from tests.services import debian
from tests.services.guard import Guard

pytestmark = pytest.mark.soak  # not yet bounded for the short run

MINUTE_MS = 60_000
BUSY = 0.7  # of a core: what a loop would take that does not sleep is all of it


@dataclass
class Machines:
    """Where processes are born whose clock is wrong by so much, as libfaketime writes it."""

    library: Path
    guard: Guard
    folder: Path
    stack: ExitStack

    def with_clock(self, shift: str, monkeypatch: pytest.MonkeyPatch) -> Nursery:
        with monkeypatch.context() as changed:
            changed.setenv("LD_PRELOAD", str(self.library))
            changed.setenv("FAKETIME", shift)
            changed.setenv("FAKETIME_DONT_FAKE_MONOTONIC", "1")
            changed.setenv("FAKETIME_NO_CACHE", "0")
            made = nursery(self.guard, self.folder, "tests.proof.wrong_clock_node", waits=False)
            return self.stack.enter_context(made)


@pytest.fixture
def machines(guard: Guard, tmp_path: Path) -> Iterator[Machines]:
    try:
        tree = debian.unpack("faketime", ("libfaketime",), 1, print)
    except debian.NoPackages as reason:
        pytest.skip(f"libfaketime cannot be had here: {reason}")
    [library] = tree.glob("usr/lib/*/faketime/libfaketime.so.1")
    with ExitStack() as stack:
        yield Machines(library, guard, tmp_path, stack)


def cpu_s(member: Member) -> float:
    fields = Path(f"/proc/{member.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@pytest.mark.parametrize(
    "shifts",
    [("+1d", "-4m"), pytest.param(("-1d", "+4m"), marks=pytest.mark.soak)],
    ids=["a day ahead, four minutes behind", "a day behind, four minutes ahead"],
)
def test_processes_with_wrong_clocks(
    postgres_siege: Siege, machines: Machines, shifts: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """S0-10, S2-41, I4: whatever their machines say, nothing starts early or twice, and nobody spins."""
    siege = postgres_siege
    right = siege.cradle

    async def scenario() -> None:
        await create(siege.url, [*LOAD, *COMMANDS])
        for name, shift in zip(("ahead", "behind"), shifts, strict=True):
            siege.cradle = machines.with_clock(shift, monkeypatch)
            siege.survivor(name)
        siege.cradle = right
        for name in ("ahead", "behind"):
            await siege.begun(3, node=name)
        nodes = await asyncio.to_thread(rows_of, siege.url, "SELECT clock_offset_ms FROM nodes")
        assert sorted(round(abs(node["clock_offset_ms"]) / MINUTE_MS) for node in nodes) == [4, 24 * 60]
        began, used = monotonic(), {name: cpu_s(siege.members[name]) for name in ("ahead", "behind")}
        await siege.begun(len(siege.said("start")) + 20)
        for name, before in used.items():
            share = (cpu_s(siege.members[name]) - before) / (monotonic() - began)
            print(f"\n{name}: {share:.2f} of a core")
            assert share < BUSY, name
        await siege.heals()

    asyncio.run(scenario())
    verdict = siege.check()
    assert verdict.attempts["lost"] == 0
    assert verdict.attempts["succeeded"] > 15


MORE = (
    "ALTER TABLE runs ADD COLUMN colour TEXT;\n"
    "ALTER TABLE leases ADD COLUMN colour TEXT;\n"
    "CREATE TABLE colours (name TEXT PRIMARY KEY);\n"
    "CREATE INDEX runs_by_colour ON runs (colour) WHERE colour IS NOT NULL"
)


@pytest.fixture
def newer(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """This process is a newer version of the program; those at work are not."""

    def become() -> None:
        def knows(engine: str) -> tuple[Migration, ...]:
            own = known(engine)
            return (*own, Migration(len(own) + 1, "colours", MORE))

        monkeypatch.setattr(migrations, "known", knows)

    return become


@pytest.mark.parametrize("store", ["sqlite", "postgres"])
def test_tables_change_under_work(store: str, newer: Callable[[], None], request: pytest.FixtureRequest) -> None:
    """S2-31: a newer version brings its migration while workers of the old one are at work: nobody is lost, nothing is
    done twice, nobody has to be restarted."""
    siege: Siege = request.getfixturevalue(f"{store}_siege")

    async def scenario() -> None:
        await create(siege.url, [*LOAD, *COMMANDS])
        for name in ("one", "other"):
            siege.survivor(name, isolation="inline")
            await siege.begun(3, node=name)
        async with store_of(siege.url) as old:
            newer()
            took = await migrated(old.engine)
        print(f"\nmigrated in {took:.2f} s")
        for name in ("one", "other"):
            await siege.begun(len(siege.said("start", node=name)) + 5, node=name)
        await siege.heals()

    asyncio.run(scenario())
    verdict = siege.check()
    assert verdict.attempts["lost"] == 0
    assert verdict.events["worker_lost"] == verdict.events["finish_refused"] == 0
    assert verdict.events["schema_migrated"] >= 1
    for member in siege.members.values():
        assert not member.has_logged("everything is stopped")


async def migrated(engine: migrations.Altering) -> float:
    """Seconds of the try that succeeded. One that meets a long transaction gives up, and is made again."""
    async with asyncio.timeout(30):
        while True:
            began = monotonic()
            try:
                assert len(await migrate(engine)) == 1
                return monotonic() - began
            except StoreUnavailable:
                await asyncio.sleep(0.05)
