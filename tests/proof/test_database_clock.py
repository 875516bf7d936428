"""The clock of the database jumps under work (libfaketime under a real PostgreSQL). It is the authority: leases seem to
be over all at once, or not for a long time. Nobody takes over what a living worker holds, and no tick is lost."""

import asyncio
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from time import time
from typing import Any, Final

import pytest

from tests.faults.fleet import until
from tests.faults.nursery import Nursery
from tests.faults.work_fleet import COMMANDS, LOAD, Siege, create
from tests.faults.work_stage import Sieges
from tests.proof.early import Jump, latest_ms
from tests.proof.wrong_clocks import libfaketime
from tests.services.guard import Guard
from tests.services.own_postgres import OwnPostgres, ask
from tests.services.postgres import Template
from tests.services.provision import Provision
from tests.soak.rounds import Soak
from tests.store.conftest import give_it_tables

MANY: Final = 50  # jumps of the long suite
A_ROUND: Final = 10
# Back by as much as the fleet waits for then: what was planned is done, and the next tick is as far away. Once by a
# minute, at the end of a round.
JUMPS_S: Final = (60, 60, 10, 4, -2, -4, -6)
# For how long a clock may be believed that the database does not show any more (`early.py`): a run is claimed a second
# ahead, the answer takes less than a call may (0.7 s), and a handler some time to write its first line.
BELIEVED_MS: Final = 1000 + 700 + 1300


@dataclass
class Clock:
    """What the database's clock is ahead of the right one, since when."""

    file: Path
    jumps: list[Jump] = field(default_factory=lambda: [Jump(0, 0)])

    @property
    def shift_ms(self) -> int:
        return self.jumps[-1].shift_ms

    def jump(self, seconds: float) -> None:
        shift_ms = self.shift_ms + round(seconds * 1000)
        part = self.file.with_suffix(".part")
        part.write_text(f"{shift_ms / 1000:+.3f}\n")
        part.chmod(0o644)
        self.jumps.append(Jump(round(time() * 1000), shift_ms))
        part.rename(self.file)

    def told(self, line: dict[str, Any]) -> dict[str, Any]:
        """A line of a handler, in the time of the database, as late as its worker could believe it to be."""
        return {**line, "at_ms": latest_ms(line["at_ms"], self.jumps, BELIEVED_MS), "right_ms": line["at_ms"]}


@pytest.fixture
def clock(guard: Guard) -> Clock:
    folder = guard.folder("clock", None)
    folder.chmod(0o755)  # the server is not root
    shutil.copyfile(libfaketime(), folder / "libfaketime.so.1")
    (folder / "libfaketime.so.1").chmod(0o755)
    found = Clock(folder / "shift")
    found.file.write_text("+0\n")
    found.file.chmod(0o644)
    return found


@pytest.fixture
def server(clock: Clock, provision: Provision) -> OwnPostgres:
    with pytest.MonkeyPatch.context() as changed:
        changed.setenv("LD_PRELOAD", str(clock.file.with_name("libfaketime.so.1")))
        changed.setenv("FAKETIME_TIMESTAMP_FILE", str(clock.file))
        changed.setenv("FAKETIME_DONT_FAKE_MONOTONIC", "1")
        changed.setenv("FAKETIME_NO_CACHE", "1")
        return OwnPostgres(provision)


def jumping(siege: Siege, clock: Clock, jumps_s: Sequence[float], tell: Callable[[int], None]) -> None:
    names = ("one", "other")

    async def scenario() -> None:
        await create(siege.url, [*LOAD, *COMMANDS])
        for name in names:
            siege.survivor(name, elsewhere=True)
        for number, seconds in enumerate(jumps_s, 1):
            await works(siege, names)
            clock.jump(seconds)
            await until(lambda: shows(siege.url, clock))
            tell(number)
        await works(siege, names, 60 - min(0, *jumps_s))
        await siege.heals(90)

    asyncio.run(scenario())


async def works(siege: Siege, names: Sequence[str], patience_s: float = 60) -> None:
    """Each of them begins two more attempts."""
    for name in names:
        await siege.begun(len(siege.said("start", node=name)) + 2, patience_s, node=name)


async def shows(url: str, clock: Clock) -> bool:
    """The server has the time that it was given."""
    now_ms = int(await ask(url, "SELECT fleetcron.db_now_ms()"))
    return abs(now_ms - clock.shift_ms - time() * 1000) < 500


@pytest.mark.soak
@pytest.mark.timeout(7200)
def test_fifty_jumps_of_the_database(
    server: OwnPostgres, clock: Clock, cradle: Nursery, tmp_path: Path, soak: Soak
) -> None:
    """S0-10, I3, I4: a worker that is alive loses nothing, whatever the database believes about its lease."""
    suite = soak.suite("the clock of the database jumps", "postgres", goal={"clock jump": MANY}, seed=11)
    suite.notes = ["by 2 to 60 seconds, ahead and back; PostgreSQL itself under libfaketime"]
    sieges = Sieges("postgres", cradle, tmp_path, Template(server.url, give_it_tables).copy)
    for number in suite.rounds(MANY // A_ROUND):
        chance = Random(f"{suite.seed} {number}")
        with sieges.begun() as siege:
            jumping(siege, clock, [*chance.choices(JUMPS_S, k=A_ROUND - 1), -60], suite.tell)
            (siege.folder / "jumps").write_text("\n".join(map(str, clock.jumps)))
            verdict = siege.judged([clock.told(line) for line in siege.lines()])
            print(f"\n{verdict.summary()}; {verdict}; {verdict.wrong[:5]}")
            suite.over({"clock jump": A_ROUND}, verdict)
            assert verdict.attempts["lost"] == 0
    suite.check()
