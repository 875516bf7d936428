"""What happens to local times that do not exist, exist twice, or lie past the end of a month."""

from difflib import get_close_matches
from typing import Literal, cast, get_args

from fleetcron.errors import ScheduleError
from fleetcron.times.expression import Expression

DstGap = Literal["skip", "shift"]
DstFold = Literal["first", "second", "both"]
MonthEnd = Literal["skip", "clamp"]


def dst_gap(value: str | None, expression: Expression | None = None) -> DstGap:
    """The chosen policy, or the one that follows from the expression: a time-of-day job is not lost in a gap."""
    if value is None:
        return "skip" if expression is not None and expression.is_clock_job else "shift"
    return cast(DstGap, _one_of("dst_gap", value, get_args(DstGap)))


def dst_fold(value: str | None, expression: Expression | None = None) -> DstFold:
    """The chosen policy, or the one that follows from the expression: a time-of-day job runs once."""
    if value is None:
        return "both" if expression is not None and expression.is_clock_job else "first"
    return cast(DstFold, _one_of("dst_fold", value, get_args(DstFold)))


def month_end(value: str | None) -> MonthEnd:
    return "skip" if value is None else cast(MonthEnd, _one_of("month_end", value, get_args(MonthEnd)))


def _one_of(name: str, value: str, allowed: tuple[str, ...]) -> str:
    if value in allowed:
        return value
    near = get_close_matches(str(value), allowed, n=1)
    hint = f"did you mean {near[0]}?" if near else None
    raise ScheduleError(f"{name}: '{value}' is not one of {', '.join(allowed)}", hint=hint)
