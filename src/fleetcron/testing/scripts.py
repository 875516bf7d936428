"""Handlers that a test writes down instead of calling them: how long, how often they fail, what they return."""

import asyncio
import inspect
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from fleetcron.errors import ScheduleError
from fleetcron.executors.context import Context
from fleetcron.times.durations import duration_ms


class ItWasToFail(Exception):
    """What a handler raises that was told to fail and not with what."""


def scripted(
    seconds: str | float | timedelta,
    fails: int | bool,
    raises: BaseException | type[BaseException] | None,
    returns: Any,
    calls: Callable[[Context], Any] | None,
) -> Callable[[Context], Any]:
    """`fails` attempts of each run fail, True: all of them; so it is if there is only something to raise."""
    lasts_s = seconds_of(seconds)
    failures = (True if raises is not None else 0) if fails is False else fails
    if not isinstance(failures, int) or failures < 0:
        raise ScheduleError(f"fails={fails!r}: write how many attempts of a run fail, or True for all")
    if raises is not None and not isinstance(raises, BaseException | type):
        raise ScheduleError(f"raises={raises!r}: write an exception, such as ValueError({raises!r})")
    error = raises if raises is not None else ItWasToFail("this attempt was to fail")

    async def play(ctx: Context) -> Any:
        if lasts_s:
            await asyncio.sleep(lasts_s)
        if failures is True or ctx.attempt <= failures:
            raise error
        value = returns if calls is None else calls(ctx)
        return await value if inspect.isawaitable(value) else value

    return play


def seconds_of(value: str | float | timedelta) -> float:
    """`90`, `"1m30s"` or a timedelta; 0 is a moment."""
    if isinstance(value, int | float) and not isinstance(value, bool) and value == 0:
        return 0.0
    return duration_ms(value, "seconds") / 1000
