"""What the moment of a change does: ticks that come twice, or not at all, because the schedule changes just now.

After a change every tick belongs to one schedule, so none is computed twice. People count otherwise: a nightly job that
moves from 02:00 to 03:00 while it is 02:30 has run today and runs again; moved back at 02:30 it does not run today. So
the ticks of the hour, day, week, month and year of the change are counted, by the clocks of the job's zone: those of
the old schedule up to the change and those of the new one after it. More than either schedule has alone is a double,
fewer than either is a loss. The smallest such period is told.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from fleetcron.times import days
from fleetcron.times.instants import FIRST_MS
from fleetcron.times.localtimes import DAY
from fleetcron.times.schedule import Schedule
from fleetcron.times.zone import Zone

PeriodName: TypeAlias = Literal["hour", "day", "week", "month", "year"]
_CANDIDATES: Final = 12


@dataclass(frozen=True, slots=True)
class Switchover:
    """`fires` ticks in a period in which the schedules have `old` and `new` of their own.

    Doubled: `past` has run and `coming` runs too. Lost: `past` was the new schedule's and did not run, `coming` is the
    old one's and will not. `better_ms`: a change right after this instant does neither; None if none was found near.
    """

    kind: Literal["doubled", "lost"]
    period: PeriodName
    fires: int
    old: int
    new: int
    past_ms: int | None
    coming_ms: int | None
    better_ms: int | None


def switchover(old: Schedule, new: Schedule, now_ms: int, zone: Zone, since_ms: int = FIRST_MS) -> Switchover | None:
    """What a change from `old` to `new` right now doubles or loses. Up to `since_ms` there was no job, and no tick."""
    found = _found(old, new, now_ms, zone, since_ms)
    if found is None:
        return None
    name, start, end, fires, olds, news = found
    doubled = fires > max(olds, news)
    ran, comes = (old, new) if doubled else (new, old)
    past = ran.prev_ms(now_ms + 1)
    coming = comes.next_ms(now_ms)
    return Switchover(
        "doubled" if doubled else "lost",
        name,
        fires,
        olds,
        news,
        past if past is not None and past >= start else None,
        coming if coming is not None and coming < end else None,
        _better(old, new, now_ms, zone, since_ms),
    )


_Found: TypeAlias = tuple[PeriodName, int, int, int, int, int]


def _found(old: Schedule, new: Schedule, now_ms: int, zone: Zone, since_ms: int) -> _Found | None:
    for name, start, end in _periods(now_ms, zone):
        begun = max(start - 1, since_ms)
        olds = old.count_ms(min(begun, end - 1), end - 1)
        news = new.count_ms(min(begun, end - 1), end - 1)
        fires = old.count_ms(min(begun, now_ms), now_ms) + new.count_ms(now_ms, end - 1)
        if not min(olds, news) <= fires <= max(olds, news):
            return name, start, end, fires, olds, news
    return None


def _better(old: Schedule, new: Schedule, now_ms: int, zone: Zone, since_ms: int) -> int | None:
    """The next tick of either schedule after which the change does no harm: between ticks nothing gets better."""
    at = now_ms
    for _ in range(_CANDIDATES):
        coming = [tick for tick in (old.next_ms(at), new.next_ms(at)) if tick is not None]
        if not coming:
            return None
        at = min(coming)
        if _found(old, new, at, zone, since_ms) is None:
            return at
    return None


def _periods(now_ms: int, zone: Zone) -> Iterator[tuple[PeriodName, int, int]]:
    """The calendar periods around an instant, from the smallest: first millisecond, and the one after the last."""
    second = now_ms // 1000
    local = second + zone.offset_at(second)
    hour = second - local % 3600
    yield "hour", hour * 1000, (hour + 3600) * 1000
    day = local // DAY
    monday = day - (days.weekday_of(day) + 6) % 7
    year, month, _ = days.split(day)
    starts = days.MONTH_STARTS[days.is_leap(year)]
    first, of_year = days.year_start(year), days.year_start(year + 1)
    spans: tuple[tuple[PeriodName, int, int], ...] = (
        ("day", day, day + 1),
        ("week", monday, monday + 7),
        ("month", first + starts[month - 1], first + starts[month] if month < 12 else of_year),
        ("year", first, of_year),
    )
    for name, begins, ends in spans:
        yield name, zone.day_start(begins) * 1000, zone.day_start(ends) * 1000
