"""Named calendars of days (holidays, business days) and what they do to a schedule.

A day calendar is a set of local dates. A job excludes one (holidays) or requires one (business days); a tick on a day
that is not allowed is skipped, or moved to the `next` or `previous` allowed day at the same local time. Moving happens
to local times, before the DST rules, so it is a change of the days on which an expression fires and nothing else.
"""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import date
from functools import lru_cache
from typing import Literal

from fleetcron.errors import ScheduleError
from fleetcron.times import days
from fleetcron.times.daysets import Complement, DaySet
from fleetcron.times.zone import Zone
from fleetcron.times.zones import zone as zone_named

_DATE = re.compile(r"(?:[0-9]{4}-)?[0-9]{2}-[0-9]{2}")
OnDay = Literal["skip", "next", "previous"]
MONDAY_TO_FRIDAY = 0b0111110
_WEEKDAYS = ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT")
# Farther than this a tick is not moved: a plan without an allowed day for a year yields nothing.
FARTHEST_ROLL = 366


@dataclass(frozen=True)
class DayCalendar(DaySet):
    """A set of local dates: some weekdays, and dates added or taken away.

    `dates` and `every_year` (month, day) add; `without` and `without_every_year` take away.
    """

    name: str
    timezone: str | Zone | None = None  # None: the zone of the job; a Zone: a given table
    weekdays: int = 0  # bit 0 is Sunday
    dates: frozenset[int] = frozenset()
    every_year: frozenset[tuple[int, int]] = frozenset()
    without: frozenset[int] = frozenset()
    without_every_year: frozenset[tuple[int, int]] = frozenset()

    def mask(self, year: int) -> int:
        mask = days.weekdays(days.kind_of(year), self.weekdays)
        mask |= _bits(year, self.dates, self.every_year)
        return mask & ~_bits(year, self.without, self.without_every_year)

    @property
    def own_years(self) -> tuple[int, int] | None:  # type: ignore[override]
        return _years(self.dates | self.without)

    @property
    def zone(self) -> Zone | None:
        return checked_zone(self.timezone)


@lru_cache(maxsize=256)
def _years(dates: frozenset[int]) -> tuple[int, int] | None:
    return (days.year_of(min(dates)), days.year_of(max(dates))) if dates else None


@lru_cache(maxsize=4096)
def _bits(year: int, dates: frozenset[int], every_year: frozenset[tuple[int, int]]) -> int:
    start = days.year_start(year)
    leap = days.is_leap(year)
    mask = 0
    for day in dates:
        if 0 <= day - start < days.YEAR_LENGTHS[leap]:
            mask |= 1 << day - start
    for month, day in every_year:
        if day <= days.MONTH_LENGTHS[leap][month - 1]:
            mask |= 1 << days.MONTH_STARTS[leap][month - 1] + day - 1
    return mask


def checked_zone(timezone: str | Zone | None) -> Zone | None:
    return timezone if timezone is None or isinstance(timezone, Zone) else zone_named(timezone)


def holidays(name: str, dates: Iterable[date | str], timezone: str | Zone | None = None) -> DayCalendar:
    """Dates as `2026-12-25`, or `12-25` for every year."""
    once, yearly = read_dates(dates, name)
    checked_zone(timezone)
    return DayCalendar(name, timezone, dates=once, every_year=yearly)


def business_days(
    name: str,
    weekdays: Iterable[str] = ("MON", "TUE", "WED", "THU", "FRI"),
    holidays: Iterable[date | str] = (),
    timezone: str | Zone | None = None,
) -> DayCalendar:
    """The weekdays on which work is done, without the holidays."""
    mask = 0
    for weekday in weekdays:
        if str(weekday).upper() not in _WEEKDAYS:
            raise ScheduleError(f"calendar {name}: '{weekday}' is not a weekday", hint=f"write {', '.join(_WEEKDAYS)}")
        mask |= 1 << _WEEKDAYS.index(weekday.upper())
    if not mask:
        raise ScheduleError(f"calendar {name}: no weekday is a business day")
    once, yearly = read_dates(holidays, name)
    checked_zone(timezone)
    return DayCalendar(name, timezone, weekdays=mask, without=once, without_every_year=yearly)


def read_dates(dates: Iterable[date | str], name: str) -> tuple[frozenset[int], frozenset[tuple[int, int]]]:
    once, yearly = set(), set()
    if isinstance(dates, str) or not isinstance(dates, Iterable):
        raise ScheduleError(f"calendar {name}: {dates!r} is not a list of dates")
    for value in dates:
        text = value.strftime("%Y-%m-%d") if isinstance(value, date) else str(value)
        try:
            if not _DATE.fullmatch(text):
                raise ValueError(text)
            if len(text) == 5:
                day = date.fromisoformat(f"2000-{text}")
                yearly.add((day.month, day.day))
            else:
                day = date.fromisoformat(text)
                once.add(days.number(day.year, day.month, day.day))
        except ValueError:
            raise ScheduleError(
                f"calendar {name}: '{text}' is not a date", hint="write 2026-12-25, or 12-25 for every year"
            ) from None
    return frozenset(once), frozenset(yearly)


@dataclass(frozen=True, slots=True)
class DayRule:
    """How a job uses a day calendar."""

    calendar: DayCalendar
    require: bool = False  # True: only on days of the calendar; False: never on them
    on: OnDay = "skip"

    def __post_init__(self) -> None:
        if not isinstance(self.calendar, DayCalendar):
            raise ScheduleError(f"{self.calendar!r} is not a calendar of days", hint="make one with holidays(…)")
        if self.on not in ("skip", "next", "previous"):
            raise ScheduleError(f"calendar {self.calendar.name}: '{self.on}' is not one of skip, next, previous")

    def allowed(self, year: int) -> int:
        return self.allowed_days().mask(year)

    def allowed_days(self) -> DaySet:
        return self.calendar if self.require else Complement(self.calendar)

    def refused_days(self) -> DaySet:
        return Complement(self.calendar) if self.require else self.calendar


Allowed = Callable[[int], int]  # year -> mask


class ObservedDays(DaySet):
    """The days of a schedule after its calendars: what is not allowed is dropped or moved."""

    def __init__(
        self, base: DaySet, rules: Iterable[tuple[Allowed, OnDay]], own_years: Iterable[tuple[int, int] | None] = ()
    ) -> None:
        self._base = base
        # What a rule allows is asked for three years at a time (see below): remember it.
        self._rules = tuple((lru_cache(maxsize=64)(allowed), on) for allowed, on in rules)
        self._masks: dict[int, int] = {}
        known = [years for years in own_years if years is not None]
        if known:  # and one more on either side: a tick can be moved over New Year
            self.own_years = (min(first for first, _ in known) - 1, max(last for _, last in known) + 1)

    def mask(self, year: int) -> int:
        known = self._masks.get(year)
        if known is None:
            known = self._masks[year] = self._compute(year)
        return known

    def sources(self, day: int) -> list[int]:
        """The days whose ticks were moved to this one: the refused days right before and after it."""
        found = []
        for step, on in ((-1, "next"), (1, "previous")):
            other = day + step
            while abs(other - day) <= FARTHEST_ROLL and (refusing := self._refusing(other)) is not None:
                if refusing == on and other in self._base:
                    found.append(other)
                other += step
        return sorted(found)

    def _refusing(self, day: int) -> OnDay | None:
        """What the first rule that refuses a day does with it; None for an allowed day."""
        year = days.year_of(day)
        bit = day - days.year_start(year)
        return next((on for allowed, on in self._rules if not allowed(year) >> bit & 1), None)

    @property
    def base(self) -> DaySet:
        return self._base

    def _compute(self, year: int) -> int:
        if all(on == "skip" for _, on in self._rules):
            mask = self._base.mask(year)
            for allowed, _ in self._rules:
                mask &= allowed(year)
            return mask
        # A tick can be moved over New Year, so three years are looked at as one row of days.
        years = [y for y in (year - 1, year, year + 1) if days.FIRST_YEAR <= y <= days.LAST_YEAR]
        origin = days.year_start(years[0])
        base = _row(years, origin, self._base.mask)
        rules = [(_row(years, origin, allowed), on) for allowed, on in self._rules]
        everywhere = base | -1
        for allowed_row, _ in rules:
            everywhere &= allowed_row
        found = base & everywhere
        refused = base & ~everywhere
        while refused:
            day = (refused & -refused).bit_length() - 1
            refused &= refused - 1
            on = next(on for allowed_row, on in rules if not allowed_row >> day & 1)
            moved = _roll(day, everywhere, on)
            if moved is not None:
                found |= 1 << moved
        start = days.year_start(year) - origin
        return found >> start & (1 << days.YEAR_LENGTHS[days.is_leap(year)]) - 1


def _row(years: list[int], origin: int, mask: Allowed) -> int:
    row = 0
    for year in years:
        row |= mask(year) << days.year_start(year) - origin
    return row


def _roll(day: int, allowed: int, on: OnDay) -> int | None:
    if on == "next":
        later = allowed >> day
        moved = day + (later & -later).bit_length() - 1 if later else None
    elif on == "previous":
        earlier = allowed & (1 << day) - 1
        moved = earlier.bit_length() - 1 if earlier else None
    else:
        return None
    return moved if moved is not None and abs(moved - day) <= FARTHEST_ROLL else None
