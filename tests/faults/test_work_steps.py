"""kill -9 of workers at every step of their verbs, while another one lives: every run ends, and nothing runs twice."""

import asyncio
import re
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from random import Random
from time import monotonic, time_ns
from typing import Any

import pytest

import fleetcron
from tests.faults.fleet import until
from tests.faults.work_fleet import COMMANDS, LOAD, Member, Nursery, Siege, create, job, once, trigger
from tests.faults.work_stage import cradle, siege
from tests.faults.work_truth import Verdict

__all__ = ["cradle", "siege"]

SOURCES = Path(fleetcron.__file__).parent
MARKED = re.compile(r'^ *step\("([^"]+)"\)$', re.MULTILINE)
OURS = ("claim", "finish", "promote", "hand_back", "worker", "sweep", "output")
STEPS = {name for path in SOURCES.rglob("*.py") for name in MARKED.findall(path.read_text())}

LEAVES = ("term", "claim.written", 2)  # it is asked to leave when it has claimed something
# Where a worker dies, at which times; what comes rarely only at the first.
TIMES = {
    "claim.begin": (1, 2, 5),
    "claim.written": (1, 2, 3, 5, 7),
    "finish.begin": (1, 2, 3),
    "finish.written": (1, 2, 3),
    "promote.lock": (1, 2, 3),
    "promote.written": (1, 2),
    "hand_back.begin": (1, 1),
    "hand_back.written": (1, 1),
    "output.begin": (1, 2),
    "output.written": (1, 2),
    "sweep.begin": (1, 2),
    "sweep.written": (1, 2),
    "worker.bury": (1,),
    "worker.buried": (1,),
    "worker.join": (1,),
    "worker.leave": (1, 1),
    "worker.renew": (1, 2, 3, 4),
    "store.began": (7, 15, 30),
    "store.commit": (8, 16, 25, 40),
    "store.committed": (9, 17, 26, 35, 50),
}
ELSEWHERE = {"worker.forsake", "worker.forsaken"}  # only who lost its lease comes there: test_work_zombies.py
FODDER = [("kill", "claim.written", 1)]
AT_ONCE = 4
Faults = list[tuple[str, str, int]]


def faults() -> list[Faults]:
    return [
        [*([LEAVES] if step.startswith("hand_back") or step == "worker.leave" else []), ("kill", step, nth)]
        for step, times in TIMES.items()
        for nth in times
    ]


class Storm:
    """Victims come and die, a few at a time."""

    def __init__(self, siege: Siege) -> None:
        self.siege = siege
        self.kills = 0
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
                if not dead.said():
                    self.kills += 1
                else:  # it was asked to leave, and had nothing to give back: another one
                    assert LEAVES in fault, f"{dead.name} has left in an orderly way"
                    coming.append(fault)
            while coming and len(self._living) < AT_ONCE:
                self.born(coming.popleft())
            if not coming and self.living and all("bur" in name for name in self._living):
                self.born(FODDER)  # those who are left wait for somebody's death
            await asyncio.sleep(0.02)


def shuffled(some: list[Faults], chance: Random) -> list[Faults]:
    return chance.sample(some, len(some))


def besiege(siege: Siege, some: Sequence[Faults], patience_s: float) -> tuple[Storm, Verdict]:
    storm = Storm(siege)

    async def scenario() -> None:
        await create(siege.url, [*LOAD, *COMMANDS])
        siege.survivor(slots=3)
        await siege.begun(3)
        await storm.rages(some, patience_s)
        await siege.heals()

    asyncio.run(scenario())
    print(f"\n{storm.kills} kills")
    return storm, siege.check()


@dataclass
class Patient:
    """A worker with the default lease that was killed; nobody can look whether its process is there."""

    siege: Siege
    run: int
    killed_ms: int


@pytest.fixture(scope="module")
def patient(cradle: Nursery, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Patient]:
    """It only has to wait, so that it waits beside all the others."""
    folder = tmp_path_factory.mktemp("patient")
    siege = Siege(f"sqlite:///{folder / 'jobs.db'}", folder, cradle)
    leases: dict[str, Any] = {"roles": ["scheduler", "worker"], "ttl_s": 30, "deadline_s": 5, "elsewhere": True}

    async def scenario() -> tuple[int, int]:
        await create(siege.url, [once(job("long", "blocks", 300))])
        doomed = siege.born("doomed", **leases)
        run = await trigger(siege.url, "long")
        await siege.begun()
        siege.survivor(**leases)
        await until(lambda: siege.works("survivor"))
        killed_ms = time_ns() // 1_000_000
        await siege.kill(doomed)
        return run, killed_ms

    yield Patient(siege, *asyncio.run(scenario()))
    siege.end()


@pytest.mark.usefixtures("patient")
def test_no_step_is_left_out() -> None:
    """A step that nobody reaches is a place where nobody was ever killed."""
    assert {step for step in TIMES if not step.startswith("store.")} | ELSEWHERE == {
        step for step in STEPS if step.startswith(tuple(f"{verb}." for verb in OURS))
    }


def test_killed_at_every_step_while_another_lives(siege: Siege) -> None:
    """S4-3, S2-9: more than fifty deaths on each store; every run ends, no two attempts of a run at the same time, no
    more attempts than deaths, no write of somebody who is given up."""
    storm, verdict = besiege(siege, shuffled(faults(), Random(3)), patience_s=200)
    assert storm.kills >= 50
    assert verdict.events["worker_lost"] > 20
    assert verdict.attempts["lost"] > 10
    assert verdict.attempts["succeeded"] > 50


def test_the_default_lease_is_over_in_time(patient: Patient) -> None:
    """S2-8: a lost worker's run begins again 35 s later at the latest, while another one lives."""
    siege = patient.siege
    again = asyncio.run(siege.begun(2, patience_s=60, run=patient.run))[1]
    print(f"\nagain after {(again['at_ms'] - patient.killed_ms) / 1000:.1f} s")
    assert (again["node"], again["attempt"]) == ("survivor", 2)
    assert 15_000 < again["at_ms"] - patient.killed_ms <= 35_000
    assert siege.said("beside") == []


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_a_thousand_kills_of_workers(siege: Siege) -> None:
    chance = Random(9)
    many = [each for _ in range(20) for each in shuffled(faults(), chance)]
    for each in many:
        if each[-1][1].startswith("store."):
            each[-1] = ("kill", each[-1][1], chance.randint(5, 120))
    storm, _ = besiege(siege, many, patience_s=3000)
    assert storm.kills >= 1000
