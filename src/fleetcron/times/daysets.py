"""Sets of days: those that an expression matches, and what calendars make of them (`calendars.py`)."""

from abc import ABC, abstractmethod
from functools import lru_cache

from fleetcron.errors import ScheduleError
from fleetcron.times import days
from fleetcron.times.expression import Expression

FIRST_DAY = days.year_start(days.FIRST_YEAR)
LAST_DAY = days.year_start(days.LAST_YEAR + 1) - 1
FAR = 255
_ALL_KINDS = 40
# the years of today first: theirs are the masks that will be asked for
_ONE_OF_EACH_KIND = tuple({days.kind_of(year): year for year in range(2026 + _ALL_KINDS, 2025, -1)}.values())[::-1]


class DaySet(ABC):
    """A set of day numbers, given as one mask of bits for each year."""

    every_day = False  # lets the hot path skip the question
    # The first and the last year that differ from others of their kind (dates of one year only), or None. All kinds of
    # year come within 40 years, also across a century without a leap day: so far a search goes beyond these.
    own_years: tuple[int, int] | None = None

    @abstractmethod
    def mask(self, year: int) -> int:
        """Bit n stands for the day n days after January 1st."""

    def __contains__(self, day: int) -> bool:
        if not FIRST_DAY <= day <= LAST_DAY:
            return False
        year = days.year_of(day)
        return bool(self.mask(year) >> day - days.year_start(year) & 1)

    def on_or_after(self, day: int) -> int | None:
        if day > LAST_DAY:
            return None
        day = max(day, FIRST_DAY)
        year = days.year_of(day)
        rest = self.mask(year) >> day - days.year_start(year)
        if rest:
            return day + (rest & -rest).bit_length() - 1
        farthest = _ALL_KINDS + max(year, self.own_years[1] if self.own_years else year)
        for later in range(year + 1, min(farthest, days.LAST_YEAR) + 1):
            if mask := self.mask(later):
                return days.year_start(later) + (mask & -mask).bit_length() - 1
        return None

    def on_or_before(self, day: int) -> int | None:
        if day < FIRST_DAY:
            return None
        day = min(day, LAST_DAY)
        year = days.year_of(day)
        start = days.year_start(year)
        rest = self.mask(year) & (1 << day - start + 1) - 1
        if rest:
            return start + rest.bit_length() - 1
        farthest = min(year, self.own_years[0] if self.own_years else year) - _ALL_KINDS
        for earlier in range(year - 1, max(farthest, days.FIRST_YEAR) - 1, -1):
            if mask := self.mask(earlier):
                return days.year_start(earlier) + mask.bit_length() - 1
        return None

    def count(self, first: int, last: int) -> int:
        """How many days of the set lie in [first, last]."""
        first, last = max(first, FIRST_DAY), min(last, LAST_DAY)
        if first > last:
            return 0
        total = 0
        for year in range(days.year_of(first), days.year_of(last) + 1):
            start = days.year_start(year)
            mask = self.mask(year) & (1 << last - start + 1) - 1
            total += (mask >> max(0, first - start)).bit_count()
        return total

    def ahead(self, year: int) -> bytes:
        """For each day of the year, and the day after it, how many days until one of the set.

        FAR says: not within this year, or too far for a byte.
        """
        return distances(self.mask(year), days.YEAR_LENGTHS[days.is_leap(year)])


@lru_cache(maxsize=4096)
def distances(mask: int, length: int) -> bytes:
    table = bytearray([FAR]) * (length + 1)
    distance = FAR
    for day in range(length - 1, -1, -1):
        distance = 0 if mask >> day & 1 else min(distance + 1, FAR)
        table[day] = distance
    return bytes(table)


class MatchingDays(DaySet):
    """The days that an expression matches: one mask for each kind of year, made when it is first asked for."""

    __slots__ = ("_clamp", "_expression", "_masks", "every_day")

    def __init__(self, expression: Expression, clamp: bool) -> None:
        self._expression = expression
        self._clamp = clamp
        self._masks: list[int | None] = [None] * days.KINDS
        self.every_day = expression.is_every_day

    def mask(self, year: int) -> int:
        kind = days.kind_of(year)
        mask = self._masks[kind]
        if mask is None:
            mask = self._masks[kind] = self._expression.day_mask(kind, self._clamp)
        return mask

    def __bool__(self) -> bool:
        """Whether there is such a day in any kind of year."""
        return any(self.mask(year) for year in _ONE_OF_EACH_KIND)


@lru_cache(maxsize=8192)
def matching_days(expression: Expression, clamp: bool) -> MatchingDays:
    """The days of an expression; a ScheduleError when there is none in any kind of year."""
    found = MatchingDays(expression, clamp)
    if found:
        return found
    hint = None
    if not clamp and MatchingDays(expression, clamp=True):
        hint = "with month_end=clamp the month's last day stands for it"
    raise ScheduleError(f"'{expression.text}' never fires: {_why_never(expression)}", hint=hint)


def _why_never(expression: Expression) -> str:
    date = f"no day {expression.day.text} in month {expression.month.text}"
    if expression.month.text == "*":
        date = f"no month has a day {expression.day.text}"
    if any(expression.date_mask(kind) for kind in range(days.KINDS)):
        return f"{date} that is also {expression.weekday.text}"
    return date


class Complement(DaySet):
    """All other days."""

    __slots__ = ("_others", "own_years")

    def __init__(self, others: DaySet) -> None:
        self._others = others
        self.own_years = others.own_years

    def mask(self, year: int) -> int:
        return ~self._others.mask(year) & (1 << days.YEAR_LENGTHS[days.is_leap(year)]) - 1
