"""Nodes are cut off from their database, one after the other and at once: by a black hole, a reset, a slow line, a lost
answer, a network that is parted. Whoever is cut off stops in time and works again by itself; nothing runs twice."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from random import Random
from time import monotonic
from typing import Final

import pytest

from tests.faults.fleet import until
from tests.faults.lines import Line, cabled, proxied
from tests.faults.work_fleet import COMMANDS, LOAD, Siege, create
from tests.faults.work_stage import Sieges
from tests.services.guard import Guard
from tests.soak.rounds import Soak

BACK_S: Final = 5.0  # how soon a node works again when its line does
BUSY_S: Final = 3.0  # and what a busy machine may add to it
NODES: Final = ("north", "east", "west")
STOPPED: Final = "everything is stopped"
MANY: Final = 51  # faults of a kind in the long suite
A_ROUND: Final = 17


@dataclass
class Trial:
    """What happens to the lines of one siege."""

    siege: Siege
    chance: Random
    tell: Callable[[int], None] = lambda _: None
    faults: Counter[str] = field(default_factory=Counter)
    instead: set[str] = field(default_factory=set)  # why there was a proxy where a cable was wanted

    async def suffers(self, name: str, line: Line, fault: str, longer: bool) -> None:
        """For longer than a lease, or for a moment. Then it works again."""
        far, siege = self.siege.members[name], self.siege
        await self._works(name)
        before = _stops(siege, name)
        line.faults[fault]()
        if fault == "lost reply":
            await asyncio.wait_for(line.struck.wait(), 20)
        elif longer and fault != "slow":  # a line that is slow may let a renewal through
            await until(lambda: _stops(siege, name) > before)
        else:
            await asyncio.sleep(self.chance.random() * 1.5)
        line.heal()
        began = monotonic()
        await self._works(name)
        assert monotonic() - began < BACK_S + BUSY_S, f"{name} after {fault}: {far.lines()[-5:]}"
        self.faults[fault] += 1
        self.tell(self.faults.total())

    async def _works(self, name: str) -> None:
        await self.siege.begun(len(self.siege.said("start", node=name)) + 1, node=name)


def _stops(siege: Siege, name: str) -> int:
    return sum(STOPPED in line for line in siege.members[name].lines())


@asynccontextmanager
async def lines(
    siege: Siege, chance: Random, guard: Guard | None, names: Sequence[str]
) -> AsyncIterator[dict[str, Line]]:
    """With a guard: cables."""
    async with AsyncExitStack() as stack:
        yield {
            name: await stack.enter_async_context(cabled(siege, chance, guard) if guard else proxied(siege, chance))
            for name in names
        }


def cut_off(siege: Siege, chance: Random, plan: Sequence[tuple[str, str, bool]], guard: Guard | None = None,
            tell: Callable[[int], None] = lambda _: None) -> Trial:  # fmt: skip
    """`plan` says whose line has which fault, and whether it is a long one. Those of different nodes come at once."""
    trial, here = Trial(siege, chance, tell), siege.cradle
    names = sorted({name for name, _, _ in plan})

    async def one(name: str, line: Line) -> None:
        for whose, fault, longer in plan:
            if whose == name:
                await trial.suffers(name, line, fault, longer)

    async def scenario() -> None:
        await create(siege.url, [*LOAD, *COMMANDS])
        siege.survivor(slots=3)
        async with lines(siege, chance, guard, names) as found:
            trial.instead = {line.instead for line in found.values() if line.instead}
            for number, (name, line) in enumerate(found.items()):
                siege.cradle = line.cradle or here
                isolation = ("inline", "host")[number % 2]
                siege.survivor(name, url=line.url, ttl_s=2, elsewhere=True, isolation=isolation, slots=4)
            siege.cradle = here
            await asyncio.gather(*(one(name, line) for name, line in found.items()))
            await siege.heals()

    asyncio.run(scenario())
    return trial


def planned(kinds: Sequence[str], many: int, chance: Random) -> list[tuple[str, str, bool]]:
    """Each node in turn, each kind in turn; two of three are longer than a lease."""
    return [(NODES[turn % 3], kinds[turn // 3 % len(kinds)], chance.random() < 0.67) for turn in range(many)]


def test_a_network_is_parted(postgres_siege: Siege, guard: Guard) -> None:
    """S3-15, S3-35: two machines, each beyond a cable. One is cut off past its lease, the other for a moment."""
    plan = [("north", "partition", True), ("east", "partition", False)]
    trial = cut_off(postgres_siege, Random(2), plan, guard)
    for reason in trial.instead:
        print(f"\na proxy instead of a network namespace: {reason}")
    verdict = postgres_siege.check()
    assert trial.faults == {"partition": 2}
    assert _stops(postgres_siege, "north") > 0
    assert verdict.attempts["succeeded"] > 10


PROXIED: Final = ("black hole", "reset", "slow", "lost reply")


@pytest.mark.soak
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("kind", PROXIED)
def test_fifty_times_behind_a_proxy(postgres_sieges: Sieges, soak: Soak, kind: str) -> None:
    suite = soak.suite(f"nodes are cut off: {kind}", "postgres", goal={kind: MANY}, seed=6)
    for number in suite.rounds(MANY // A_ROUND):
        chance = Random(f"{suite.seed} {kind} {number}")
        with postgres_sieges.begun() as siege:
            trial = cut_off(siege, chance, planned([kind], A_ROUND, chance), tell=suite.tell)
            suite.over(trial.faults, siege.judged())
    suite.check()


@pytest.mark.soak
@pytest.mark.timeout(7200)
def test_fifty_partitions(postgres_sieges: Sieges, soak: Soak, guard: Guard) -> None:
    suite = soak.suite("nodes are cut off: partition", "postgres", goal={"partition": MANY}, seed=7)
    for number in suite.rounds(MANY // A_ROUND):
        chance = Random(f"{suite.seed} {number}")
        with postgres_sieges.begun() as siege:
            trial = cut_off(siege, chance, planned(["partition"], A_ROUND, chance), guard, suite.tell)
            where = [f"with a proxy instead of network namespaces: {reason}" for reason in sorted(trial.instead)]
            suite.notes = where or ["in network namespaces: a cable pulled, requests lost, replies lost, by lot"]
            suite.over(trial.faults, siege.judged())
    suite.check()
