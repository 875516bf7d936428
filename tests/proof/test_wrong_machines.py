"""Real processes whose machine has a wrong clock, which jumps while they work (libfaketime)."""

import asyncio
from collections.abc import Callable, Sequence
from random import Random
from time import monotonic
from typing import Final

import pytest

from tests.faults.fleet import until
from tests.faults.work_fleet import COMMANDS, LOAD, Siege, create, rows_of
from tests.faults.work_stage import Sieges
from tests.proof.wrong_clocks import Machine, Machines, cpu_s
from tests.soak.rounds import Soak

MINUTE_S: Final = 60
DAY_S: Final = 1440 * MINUTE_S
BUSY: Final = 0.7  # of a core: what a loop would take that does not sleep is all of it
JUMPS: Final = (DAY_S, -DAY_S, 4 * MINUTE_S, -4 * MINUTE_S, MINUTE_S, -MINUTE_S, 0.7, -0.7, 0)
MANY: Final = 52  # jumps in the long suite
A_ROUND: Final = 26


def with_wrong_clocks(
    siege: Siege,
    machines: Sequence[Machine],
    jumps: Sequence[tuple[int, float]],
    tell: Callable[[int], None] = lambda _: None,
) -> None:
    """Nodes on these machines and nobody else. `jumps` says whose clock is set, and how wrong it is then."""
    here, names = siege.cradle, [f"wrong-{number}" for number in range(len(machines))]

    async def is_known(name: str, seconds: float) -> bool:
        """The node has noticed how wrong its clock is, and has told the others."""
        found = await asyncio.to_thread(rows_of, siege.url, "SELECT node_id, clock_offset_ms FROM nodes")
        [node] = [row for row in found if row["node_id"].startswith(f"{name}-")]
        return bool(abs(node["clock_offset_ms"] + seconds * 1000) < 400)  # what the database is ahead of it

    async def scenario() -> None:
        await create(siege.url, [*LOAD, *COMMANDS])
        for name, machine in zip(names, machines, strict=True):
            siege.cradle = machine.cradle
            siege.survivor(name)
        siege.cradle = here
        for name in names:
            await siege.begun(2, node=name)
        began, used = monotonic(), [cpu_s(siege.members[name].pid) for name in names]
        for number, (which, seconds) in enumerate(jumps, 1):
            machines[which].set(seconds)
            await until(lambda which=which, seconds=seconds: is_known(names[which], seconds))
            await siege.begun(len(siege.said("start", node=names[which])) + 2, node=names[which])
            tell(number)
        for name, before in zip(names, used, strict=True):
            share = (cpu_s(siege.members[name].pid) - before) / (monotonic() - began)
            print(f"\n{name}: {share:.2f} of a core")
            assert share < BUSY, name
        await siege.heals()

    asyncio.run(scenario())


def test_clocks_are_wrong_and_jump(postgres_siege: Siege, machines: Machines, monkeypatch: pytest.MonkeyPatch) -> None:
    """S0-10, S2-41, I4: a day ahead and four minutes behind; then one jumps back by two days and the other ahead.
    Whatever their machines say, nothing starts early or twice, nothing is lost, and nobody spins."""
    wrong = [machines.machine(seconds, monkeypatch) for seconds in (DAY_S, -4 * MINUTE_S)]
    with_wrong_clocks(postgres_siege, wrong, [(0, -DAY_S), (1, 4 * MINUTE_S)])
    verdict = postgres_siege.check()
    assert verdict.attempts["lost"] == 0
    assert verdict.attempts["succeeded"] > 10


@pytest.mark.soak
@pytest.mark.timeout(7200)
def test_fifty_jumps(postgres_sieges: Sieges, machines: Machines, soak: Soak, monkeypatch: pytest.MonkeyPatch) -> None:
    suite = soak.suite("the clocks of nodes jump", "postgres", goal={"clock jump": MANY}, seed=8)
    suite.notes = ["by a second, a minute, four minutes, a day, ahead and back"]
    wrong = [machines.machine(0, monkeypatch) for _ in range(3)]
    for number in suite.rounds(MANY // A_ROUND):
        chance = Random(f"{suite.seed} {number}")
        jumps = [(turn % len(wrong), chance.choice(JUMPS)) for turn in range(A_ROUND)]
        with postgres_sieges.begun() as siege:
            with_wrong_clocks(siege, wrong, jumps, suite.tell)
            suite.over({"clock jump": A_ROUND}, siege.judged())
    suite.check()
