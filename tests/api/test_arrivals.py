"""Many who wait for work: one look at a pool serves them all."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import NamedTuple

import pytest

from fleetcron.api.arrivals import LOOK_EVERY_S, Arrivals
from fleetcron.errors import StoreUnavailable
from fleetcron.store.queue import Queue
from fleetcron.store.store import Store
from tests.store.engines import opened


class Scene(NamedTuple):
    arrivals: Arrivals
    closing: asyncio.Event
    looks: Counter[str]  # by pool
    work: set[str]  # pools where there is some


@asynccontextmanager
async def staged(path: Path, fails: bool = False) -> AsyncIterator[Scene]:
    async with opened(f"sqlite:///{path}/jobs.db") as engine:
        store, closing = Store(engine), asyncio.Event()
        scene = Scene(Arrivals(store, closing), closing, Counter(), set())
        really = store.queue.has_work

        async def look(pool: str) -> bool:
            scene.looks[pool] += 1
            if fails:
                raise StoreUnavailable("away")
            return await really(pool) or pool in scene.work

        store.queue.has_work = look  # type: ignore[method-assign]
        yield scene


def until(looks: float) -> float:
    return asyncio.get_running_loop().time() + looks * LOOK_EVERY_S


def test_one_look_serves_all_who_wait_for_a_pool(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with staged(tmp_path) as scene:
            asked = [scene.arrivals.come(f"p{number % 2}", until(3.5)) for number in range(100)]
            assert await asyncio.gather(*asked) == [False] * 100
            assert max(scene.looks.values()) <= 4
            scene.work.add("p1")
            found = await asyncio.gather(*(scene.arrivals.come(f"p{number % 2}", until(40)) for number in (1, 1, 1)))
            assert found == [True] * 3
            assert scene.looks["p1"] <= 5

    asyncio.run(scenario())


def test_who_leaves_takes_nothing_from_the_others(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with staged(tmp_path) as scene:
            first = asyncio.create_task(scene.arrivals.come("p", until(400)))
            second = asyncio.create_task(scene.arrivals.come("p", until(400)))
            await asyncio.sleep(0)
            first.cancel()
            assert await scene.arrivals.come("p", until(0.1)) is False
            scene.work.add("p")
            assert await second is True
            assert first.cancelled()

    asyncio.run(scenario())


def test_nobody_waits_for_a_process_that_ends(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with staged(tmp_path) as scene:
            asked = asyncio.create_task(scene.arrivals.come("p", until(4_000)))
            await asyncio.sleep(0)
            scene.closing.set()
            assert await asked is False
            assert await scene.arrivals.come("p", until(4_000)) is False

    asyncio.run(scenario())


def test_all_hear_that_the_store_is_away(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with staged(tmp_path, fails=True) as scene:
            heard = await asyncio.gather(
                *(scene.arrivals.come("p", until(40)) for _ in range(3)), return_exceptions=True
            )
            assert [type(each) for each in heard] == [StoreUnavailable] * 3
            with pytest.raises(StoreUnavailable):
                await scene.arrivals.come("p", until(40))
            assert scene.looks["p"] == 2

    asyncio.run(scenario())


def test_what_is_queued_comes_although_nothing_can_be_queued(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def promote(*_: object) -> None:
        raise StoreUnavailable("too slow")

    async def scenario() -> None:
        async with staged(tmp_path) as scene:
            monkeypatch.setattr(Queue, "promote", promote)
            scene.work.add("p")
            assert await scene.arrivals.come("p", until(40))
            assert await scene.arrivals.come("p", until(40))

    asyncio.run(scenario())
    assert [each.getMessage() for each in caplog.records] == ["queueing waits: too slow"]
