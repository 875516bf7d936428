"""A start does not wait for what the worker computes besides: that is put off for a moment."""

import asyncio
from typing import Any, cast

import pytest

from fleetcron.clock import SystemClock
from fleetcron.model.errand import Errand
from fleetcron.model.outcome import Succeeded
from fleetcron.model.target import CommandTarget
from fleetcron.store.dbclock import Reading
from fleetcron.store.ends import Ended
from fleetcron.worker.acks import Acks
from fleetcron.worker.dbtime import DatabaseTime
from fleetcron.worker.hands import Hands
from tests.worker.plays import Crew, played
from tests.worker.test_pool import attempt

NOTHING: Any = cast(Any, None)  # what is not used here
NOW_MS = 1_800_000_000_000


@pytest.mark.parametrize(
    ("due", "soon_s"), [((), 0), ((2,), 0.002), ((50, 2), 0.002), ((50,), 0), ((-1,), 0), ((-1, 2), 0)]
)
def test_it_is_known_when_a_start_is_a_moment_away(due: tuple[int, ...], soon_s: float) -> None:
    """What is late already starts in the next turn of the loop: it is not waited for."""

    async def scenario() -> None:
        now_s = asyncio.get_running_loop().time()
        time = DatabaseTime()
        time.read(Reading(NOW_MS * 1000, now_s, now_s))
        hands = Hands(
            {"default": 5}, lambda *_: NOTHING, acks=NOTHING, output=NOTHING, time=time, clock=SystemClock(),
            is_ours=NOTHING, idle=NOTHING, look=NOTHING, back=NOTHING, declined=NOTHING,
        )  # fmt: skip
        for number, after_ms in enumerate(due):
            hands.pools[0].hold(attempt(number, NOW_MS + after_ms))
        assert hands.soon_s(now_s) == pytest.approx(soon_s, abs=1e-4)

    asyncio.run(scenario())


def test_ends_are_written_when_nobody_is_kept_from_starting(sqlite_memory_url: str) -> None:
    """And what ended meanwhile is in the same batch."""
    written: list[int] = []

    async def scenario(made: Crew) -> None:
        still, asked = asyncio.Event(), asyncio.Event()

        async def wait() -> None:
            asked.set()
            await still.wait()

        async def nothing() -> None: ...

        acks = Acks(
            made.store.attempts, "w1", chance=lambda: 0.5, before=nothing, heard=lambda *_: None,
            written=lambda done: written.append(len(done.late)), still=wait,
        )  # fmt: skip
        writing = asyncio.create_task(acks.run())
        errand = Errand(CommandTarget(("true",)))
        acks.put(Ended(1, 1, Succeeded(), 0, 0), errand)
        await asked.wait()
        acks.put(Ended(2, 1, Succeeded(), 0, 0), errand)
        assert not written
        still.set()
        await acks.empty()
        writing.cancel()

    played(sqlite_memory_url, scenario)
    assert written == [2]
