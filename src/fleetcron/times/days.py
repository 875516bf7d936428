"""Days of the calendar as numbers and bit masks.

A day is the number of days since 1970-01-01. A year is one of 14 kinds (leap or not, times the weekday of January 1st),
so "which days match" is at most 14 masks of 366 bits: the next match is a shift, a count is a popcount, and "never" is
14 zeros.
"""

from functools import lru_cache

FIRST_YEAR, LAST_YEAR = 1, 9999
KINDS = 14
MONTH_LENGTHS = (
    (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31),
    (31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31),
)
# the day of the year (from 0) on which each month begins
MONTH_STARTS = tuple(tuple(sum(lengths[:m]) for m in range(12)) for lengths in MONTH_LENGTHS)
YEAR_LENGTHS = (365, 366)
_EVERY_WEEK = sum(1 << 7 * week for week in range(54))


def year_start(year: int) -> int:
    """The day number of January 1st."""
    y = year - 1
    return 365 * (year - 1970) + y // 4 - y // 100 + y // 400 - 477


def year_of(day: int) -> int:
    # Off by one near New Year at most: 146,097 days are 400 years exactly.
    year = 1970 + day * 400 // 146_097
    if day < year_start(year):
        return year - 1
    return year + 1 if day >= year_start(year + 1) else year


def is_leap(year: int) -> bool:
    return year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)


def weekday_of(day: int) -> int:
    """0 is Sunday, as in cron."""
    return (day + 4) % 7


# 400 years are a whole number of weeks, so the kinds of year repeat.
_KINDS_OF_YEARS = bytes(7 * is_leap(year) + weekday_of(year_start(year)) for year in range(400))


def kind_of(year: int) -> int:
    return _KINDS_OF_YEARS[year % 400]


def split(day: int) -> tuple[int, int, int]:
    """Day number to (year, month, day of month), months from 1."""
    year = year_of(day)
    rest = day - year_start(year)
    starts = MONTH_STARTS[is_leap(year)]
    month = min(rest // 29, 11)
    while starts[month] > rest:
        month -= 1
    return year, month + 1, rest - starts[month] + 1


def number(year: int, month: int, day: int) -> int:
    return year_start(year) + MONTH_STARTS[is_leap(year)][month - 1] + day - 1


@lru_cache(maxsize=4096)
def days_of_months(leap: bool, days: int) -> int:
    """The mask of every day whose day of the month is in `days` (bit 1 to 31)."""
    mask = 0
    for start, length in zip(MONTH_STARTS[leap], MONTH_LENGTHS[leap], strict=True):
        mask |= (days >> 1 & (1 << length) - 1) << start
    return mask


@lru_cache(maxsize=4096)
def clamped_days(leap: bool, days: int) -> int:
    """As `days_of_months`, but a day past the end of a month becomes the last day of that month."""
    mask = days_of_months(leap, days)
    for start, length in zip(MONTH_STARTS[leap], MONTH_LENGTHS[leap], strict=True):
        if days >> length + 1:
            mask |= 1 << start + length - 1
    return mask


@lru_cache(maxsize=128)
def last_days(leap: bool, back: int) -> int:
    """The mask of the days that lie `back` days before the last day of their month."""
    mask = 0
    for start, length in zip(MONTH_STARTS[leap], MONTH_LENGTHS[leap], strict=True):
        if back < length:
            mask |= 1 << start + length - 1 - back
    return mask


@lru_cache(maxsize=4096)
def weekdays(kind: int, days: int) -> int:
    """The mask of every day whose weekday is in `days` (bit 0 is Sunday)."""
    leap, first = divmod(kind, 7)
    week = (days | days << 7) >> first & 0b1111111
    return week * _EVERY_WEEK & (1 << YEAR_LENGTHS[leap]) - 1


@lru_cache(maxsize=16)
def nth_weeks(leap: bool, n: int) -> int:
    """The mask of days 1-7 (n = 1), 8-14 (n = 2), … of every month: where the n-th Monday can be."""
    return days_of_months(leap, 0b1111111 << 7 * (n - 1) + 1)


@lru_cache(maxsize=2)
def last_weeks(leap: bool) -> int:
    """The mask of the last seven days of every month: where the last Monday can be."""
    mask = 0
    for start, length in zip(MONTH_STARTS[leap], MONTH_LENGTHS[leap], strict=True):
        mask |= 0b1111111 << start + length - 7
    return mask


@lru_cache(maxsize=1024)
def nearest_workdays(kind: int, day: int, back: int, clamp: bool) -> int:
    """The weekday (Monday to Friday) nearest to a day of each month, never leaving the month.

    The day is `day`, or `back` days before the month's last one when `day` is 0. A month without the day has no
    match, or its last day stands for it with `clamp`.
    """
    leap, first = divmod(kind, 7)
    mask = 0
    for start, length in zip(MONTH_STARTS[leap], MONTH_LENGTHS[leap], strict=True):
        wanted = day or length - back
        if wanted > length and clamp:
            wanted = length
        if not 1 <= wanted <= length:
            continue
        match (first + start + wanted - 1) % 7:
            case 6:  # Saturday: Friday, but Monday when Friday is in the month before
                wanted += 2 if wanted == 1 else -1
            case 0:  # Sunday: Monday, but Friday when Monday is in the month after
                wanted += -2 if wanted == length else 1
        mask |= 1 << start + wanted - 1
    return mask


@lru_cache(maxsize=1024)
def months(leap: bool, wanted: int) -> int:
    """The mask of every day of the months in `wanted` (bit 1 to 12)."""
    mask = 0
    for month, (start, length) in enumerate(zip(MONTH_STARTS[leap], MONTH_LENGTHS[leap], strict=True), 1):
        if wanted >> month & 1:
            mask |= (1 << length) - 1 << start
    return mask
