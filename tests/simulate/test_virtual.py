"""The loop of simulated worlds: its time jumps, processes take turns by chance, and the dead do not clean up."""

import asyncio
from random import Random
from typing import Any

import pytest

from fleetcron.simulate.virtual import Deadlock, Process, VirtualLoop


def played(work: Any, seed: int = 1) -> Any:
    chance = Random(seed)
    loop = VirtualLoop(chance.randrange, lambda: chance.uniform(5e-6, 5e-5))
    try:
        return loop.run_until_complete(work(loop))
    finally:
        loop.close()


def test_time_jumps_to_the_next_timer() -> None:
    async def scenario(loop: VirtualLoop) -> float:
        await asyncio.sleep(3 * 24 * 3600)
        return loop.time()

    assert 259_200 <= played(scenario) < 259_200.01


def test_whoever_asks_again_and_again_sees_time_pass() -> None:
    """A loop that waits for a moment by asking the clock must not stand still for ever."""

    async def scenario(loop: VirtualLoop) -> int:
        asked = 0
        while loop.time() < 0.01:
            asked += 1
            await asyncio.sleep(0)
        return asked

    assert 100 < played(scenario) < 3000


def test_the_killed_do_not_clean_up_and_the_stopped_go_on_later() -> None:
    async def scenario(loop: VirtualLoop) -> list[str]:
        said: list[str] = []

        async def live(name: str) -> None:
            try:
                for number in range(3):
                    await asyncio.sleep(1)
                    said.append(f"{name}{number}")
            finally:
                said.append(f"{name} cleaned up")

        a, b = (loop.process(name) for name in "ab")
        a.spawn(live("a"))
        b.spawn(live("b"))
        await asyncio.sleep(1.5)
        a.kill()
        b.stop()
        await asyncio.sleep(5)
        assert sorted(said) == ["a0", "b0"]
        b.go_on()
        await asyncio.sleep(5)
        return said[2:]

    assert played(scenario) == ["b1", "b2", "b cleaned up"]


def test_chance_decides_between_processes_and_not_within_one() -> None:
    async def scenario(loop: VirtualLoop) -> str:
        said: list[str] = []

        def say(process: Process, number: int) -> None:
            said.append(f"{process.name}{number}")

        for process in [loop.process(name) for name in "abc"]:
            for number in range(4):
                process.call(say, process, number)
        await asyncio.sleep(1)
        for name in "abc":
            assert [each for each in said if each[0] == name] == [f"{name}{number}" for number in range(4)]
        return " ".join(said)

    assert played(scenario, 1) == played(scenario, 1)
    assert len({played(scenario, seed) for seed in range(20)}) > 10


def test_a_world_that_stands_still_says_so() -> None:
    async def scenario(loop: VirtualLoop) -> None:
        await loop.create_future()

    with pytest.raises(Deadlock, match="nothing can run"):
        played(scenario)
