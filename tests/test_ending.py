"""When the main coroutine of a process is over, so is the process."""

import asyncio
import logging

import pytest

from fleetcron.ending import run_to_the_end


async def goes_on() -> None:
    while True:
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            continue


def test_nobody_waits_for_ever(caplog: pytest.LogCaptureFixture) -> None:
    kept = []

    async def main() -> None:
        kept.append(asyncio.create_task(goes_on()))
        await asyncio.sleep(0)

    with caplog.at_level(logging.WARNING):
        run_to_the_end(main(), patience_s=0.01)
    assert "1 coroutine goes on when cancelled" in caplog.text
    assert not kept[0].done()


def test_who_ends_when_asked_is_waited_for(caplog: pytest.LogCaptureFixture) -> None:
    ended = []

    async def cleans_up() -> None:
        try:
            await asyncio.sleep(3600)
        finally:
            await asyncio.sleep(0.01)
            ended.append(True)

    async def main() -> None:
        ended.append(asyncio.create_task(cleans_up()) is None)
        await asyncio.sleep(0)

    run_to_the_end(main())
    assert ended == [False, True]
    assert caplog.text == ""


def test_what_it_raises_is_raised() -> None:
    async def main() -> None:
        raise LookupError("no such thing")

    with pytest.raises(LookupError, match="no such thing"):
        run_to_the_end(main())
