"""kill -9 of workers at every step of their verbs, while another one lives: every run ends, and nothing runs twice."""

import asyncio
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from itertools import count
from random import Random
from time import monotonic

import pytest

from tests.faults.marks import WORK, marked
from tests.faults.work_fleet import COMMANDS, LOAD, Member, Siege, create
from tests.faults.work_stage import Sieges
from tests.soak.rounds import Soak

LEAVES = ("term", "claim.written", 2)  # it is asked to leave when it has claimed something
# Where a worker dies, at which times; what comes rarely only at the first. `MORE` are for the long suite.
TIMES = {
    "claim.begin": (1, 5),
    "claim.written": (1, 2, 5),
    "finish.begin": (1,),
    "finish.written": (1, 2),
    "promote.lock": (1,),
    "promote.written": (1,),
    "hand_back.begin": (1,),
    "hand_back.written": (1,),
    "output.begin": (1,),
    "output.written": (1,),
    "sweep.begin": (1,),
    "sweep.written": (1,),
    "worker.bury": (1,),
    "worker.buried": (1,),
    "worker.join": (1,),
    "worker.leave": (1,),
    "worker.renew": (1, 3),
    "store.began": (7, 30),
    "store.commit": (8, 25),
    "store.committed": (9, 17, 35),
}
MORE = {
    "claim.begin": (2,),
    "claim.written": (3, 7),
    "finish.begin": (2, 3),
    "finish.written": (3,),
    "promote.lock": (2, 3),
    "promote.written": (2,),
    "output.begin": (2,),
    "output.written": (2,),
    "sweep.begin": (2,),
    "sweep.written": (2,),
    "worker.renew": (2, 4),
    "store.began": (15,),
    "store.commit": (16, 40),
    "store.committed": (26, 50),
}
ELSEWHERE = {"worker.forsake", "worker.forsaken"}  # only who lost its lease comes there: test_work_zombies.py
FODDER = [("kill", "claim.written", 1)]
AT_ONCE = 4
MANY = 1000  # kills of the long suite, on each store
Tell = Callable[[int], None]
Faults = list[tuple[str, str, int]]


def faults(*tables: Mapping[str, Sequence[int]]) -> list[Faults]:
    return [
        [*([LEAVES] if step.startswith("hand_back") or step == "worker.leave" else []), ("kill", step, nth)]
        for table in tables
        for step, times in table.items()
        for nth in times
    ]


class Storm:
    """Victims come and die, a few at a time. `tell` hears how many it were so far."""

    def __init__(self, siege: Siege, tell: Tell) -> None:
        self.siege = siege
        self.kills = 0
        self._tell = tell
        self._numbers = count(1)
        self._living: dict[str, tuple[Member, Faults]] = {}

    def born(self, faults: Faults) -> None:
        """One of three says that it runs on another machine: then only its lease tells that it is dead. One of eight
        has its functions in a process of their own."""
        number = next(self._numbers)
        isolation = "host" if number % 8 == 5 else "inline"
        name = f"{faults[-1][1].replace('.', '-')}-{number}"
        wish = {"elsewhere": number % 3 == 0, "isolation": isolation, "drain_s": 0.2}
        self._living[name] = self.siege.born(name, faults=faults, **wish), faults

    @property
    def living(self) -> list[tuple[Member, Faults]]:
        return list(self._living.values())

    async def rages(self, faults: Sequence[Faults], patience_s: float) -> None:
        coming, until_s = deque(faults), monotonic() + patience_s
        while coming or self._living:
            assert monotonic() < until_s, f"they live: {[(each.name, each.lines()[-1:]) for each, _ in self.living]}"
            for dead, fault in [each for each in self.living if not each[0].alive]:
                del self._living[dead.name]
                self.siege.cuts[dead.name] += 1
                if dead.was_killed:
                    self.kills += 1
                    self._tell(self.kills)
                elif dead.could_not_begin:
                    coming.append(fault)
                else:  # it was asked to leave, and had nothing to give back: another one
                    assert LEAVES in fault, f"{dead.name} was not killed: {dead.lines()[-5:]}"
                    assert dead.said(), f"{dead.name} has crashed: {dead.lines()[-5:]}"
                    coming.append(fault)
            while coming and len(self._living) < AT_ONCE:
                self.born(coming.popleft())
            if not coming and self.living and all("bur" in name for name in self._living):
                self.born(FODDER)  # those who are left wait for somebody's death
            await asyncio.sleep(0.02)


def shuffled(some: list[Faults], chance: Random) -> list[Faults]:
    return chance.sample(some, len(some))


async def raged(siege: Siege, some: Sequence[Faults], patience_s: float, tell: Tell) -> Storm:
    storm = Storm(siege, tell)
    await create(siege.url, [*LOAD, *COMMANDS])
    siege.survivor(slots=3)
    await siege.begun(3)
    await storm.rages(some, patience_s)
    await siege.heals()
    return storm


@pytest.mark.usefixtures("patients")  # they begin to wait here
def test_no_step_is_left_out() -> None:
    """A step that nobody reaches is a place where nobody was ever killed."""
    assert {step for step in TIMES if not step.startswith("store.")} | ELSEWHERE == marked(*WORK)


def test_killed_at_every_step_while_another_lives(both_sieges: tuple[Siege, Siege]) -> None:
    """S4-3, S2-9: a death at every step, on each store; every run ends, no two attempts of a run at the same time, no
    more attempts than deaths, no write of somebody who is given up."""

    async def storms() -> list[Storm]:
        some = shuffled(faults(TIMES), Random(3))
        return await asyncio.gather(*(raged(siege, some, 200, lambda _: None) for siege in both_sieges))

    for storm in asyncio.run(storms()):
        verdict = storm.siege.check()
        assert storm.kills >= len(faults(TIMES))
        assert verdict.events["worker_lost"] > 10
        assert verdict.attempts["lost"] > 5
        assert verdict.attempts["succeeded"] > 30


@pytest.mark.soak
@pytest.mark.timeout(7200)
def test_a_thousand_kills_of_workers(sieges: Sieges, soak: Soak) -> None:
    suite = soak.suite("workers are killed at a step", sieges.store, goal={"kill": MANY}, seed=9)
    every = faults(TIMES, MORE)
    for number in suite.rounds(-(-MANY // (2 * len(every)))):
        chance = Random(f"{suite.seed} {number}")
        many = [by_lot(each, chance) for _ in range(2) for each in shuffled(every, chance)]
        with sieges.begun() as siege:
            storm = asyncio.run(raged(siege, many, 600, suite.tell))
            suite.over({"kill": storm.kills}, siege.judged())
    suite.check()


def by_lot(some: Faults, chance: Random) -> Faults:
    """The steps of every transaction: anywhere in a long life."""
    *others, (does, step, nth) = some
    return [*others, (does, step, chance.randint(5, 120) if step.startswith("store.") else nth)]
