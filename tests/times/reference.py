"""A slow enumerator of ticks, written straight from the Definition in time.md, to hold the calculator against.

M is the list of naive local times that match; each becomes instants by asking the zone which UTC instants show that
time on the wall; no such instant is a gap (the change is then found by bisection), two are a fold. Nothing is shared
with src/, nothing is fast, and instants are naive datetimes that mean UTC.

Zones come from the tzdata wheel, never from the machine. One fact about them is used: two changes of a zone are more
than four days apart (6.9 days since 1970 says time.md; test_walk.py checks it for its zones), so the offsets two days
before and two days after a time are all that can be in play.
"""

import calendar
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from functools import cache, lru_cache
from importlib import resources
from itertools import pairwise
from zoneinfo import ZoneInfo

DAY = timedelta(days=1)
TWO_DAYS = timedelta(days=2)
SECOND = timedelta(seconds=1)

GAPS = ("skip", "shift")
FOLDS = ("first", "second", "both")
PAIRS = tuple((gap, fold) for gap in GAPS for fold in FOLDS)


class BadExpressionError(ValueError):
    """The reference refuses this expression."""


# --- syntax ---------------------------------------------------------------------------------------------------------

MONTHS = {name.upper(): n for n, name in enumerate(calendar.month_abbr) if n}
WEEKDAYS = {name: n for n, name in enumerate(("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"))}
MACROS = {
    "@YEARLY": "0 0 1 1 *",
    "@ANNUALLY": "0 0 1 1 *",
    "@MONTHLY": "0 0 1 * *",
    "@WEEKLY": "0 0 * * 0",
    "@DAILY": "0 0 * * *",
    "@MIDNIGHT": "0 0 * * *",
    "@HOURLY": "0 * * * *",
    "@EVERY_MINUTE": "* * * * *",
    "@EVERY_SECOND": "* * * * * *",
}


@dataclass(frozen=True)
class Field:
    name: str
    low: int
    high: int
    cycle: int  # how many values before a wrapped range begins again: 7 for weekdays, although 7 may be written
    names: tuple[tuple[str, int], ...] = ()


SECONDS = Field("second", 0, 59, 60)
MINUTES = Field("minute", 0, 59, 60)
HOURS = Field("hour", 0, 23, 24)
DAYS = Field("day-of-month", 1, 31, 31)
MONTHS_OF_YEAR = Field("month", 1, 12, 12, tuple(MONTHS.items()))
DAYS_OF_WEEK = Field("day-of-week", 0, 7, 7, tuple(WEEKDAYS.items()))


@dataclass(frozen=True, eq=False)  # compared by identity (parse is cached), so that it is quick to look up
class Expression:
    seconds: tuple[int, ...]
    minutes: tuple[int, ...]
    hours: tuple[int, ...]
    months: frozenset[int]
    days: tuple[tuple, ...]  # ("day", n, may be clamped) | ("nearest", n) | ("last", n) | ("last nearest", n)
    weekdays: tuple[tuple, ...]  # ("weekday", d) | ("last", d) | ("nth", d, n)
    both_days: bool  # AND of the two day fields, else OR
    clock: bool  # the class that decides the DST defaults


def refuse(field: Field, text: str) -> None:
    raise BadExpressionError(f"{field.name}: {text!r} is not a value")


def number(field: Field, text: str) -> int:
    value = dict(field.names).get(text)
    if value is None:
        if not re.fullmatch("[0-9]+", text) or not field.low <= int(text) <= field.high:
            refuse(field, text)
        value = int(text)
    return value


def values(field: Field, term: str) -> list[int]:
    """`*`, `a`, `a-b`, and each with `/n`. A range may wrap; its step goes on counting across the wrap."""
    body, slash, step_text = term.partition("/")
    step = 1
    if slash:
        if not re.fullmatch("[0-9]+", step_text) or not 1 <= int(step_text) <= field.high:
            refuse(field, term)
        step = int(step_text)
    if body == "*":
        first, last = field.low, field.high
    elif "-" in body:
        left, _, right = body.partition("-")
        first, last = number(field, left), number(field, right)
    else:
        first = number(field, body)
        last = field.high if slash else first
    if first == 7 and field is DAYS_OF_WEEK and last != 7:
        first = 0
    if last < first:
        last += field.cycle
    beyond = field.low + field.cycle  # the first value after the cycle
    return [value if value < beyond else value - field.cycle for value in range(first, last + 1, step)]


def day_term(term: str) -> list[tuple]:
    term = term.replace("?", "*", 1) if term.startswith("?") else term
    if found := re.fullmatch(r"L(?:-([0-9]+))?(W?)", term):
        back = int(found[1] or 0)
        if back > 30:
            refuse(DAYS, term)
        return [("last nearest" if found[2] else "last", back)]
    if found := re.fullmatch(r"([0-9]+)W", term):
        return [("nearest", number(DAYS, found[1]))]
    written = "*" not in term and "/" not in term
    return [("day", n, written) for n in values(DAYS, term)]


def weekday_term(term: str) -> list[tuple]:
    term = term.replace("?", "*", 1) if term.startswith("?") else term
    if found := re.fullmatch(r"(\w+)L", term):
        return [("last", number(DAYS_OF_WEEK, found[1]) % 7)]
    if found := re.fullmatch(r"(\w+)#([1-5])", term):
        return [("nth", number(DAYS_OF_WEEK, found[1]) % 7, int(found[2]))]
    return [("weekday", n % 7) for n in values(DAYS_OF_WEEK, term)]


@cache
def parse(expression: str) -> Expression:
    if not expression.isascii():  # some letters outside ASCII become I, K or S in upper case
        raise BadExpressionError(f"{expression!r} is not ASCII")
    text = expression.strip().upper()
    text = MACROS.get(text, text)
    parts = text.split()
    if len(parts) not in (5, 6):
        raise BadExpressionError(f"{expression!r} has {len(parts)} fields")
    second, minute, hour, day, month, weekday = parts if len(parts) == 6 else ["0", *parts]

    def plain(field: Field, part: str) -> tuple[int, ...]:
        return tuple(sorted({n for term in part.split(",") for n in values(field, term)}))

    hours = plain(HOURS, hour)
    explicit_and = weekday.startswith("+")
    weekday = weekday.removeprefix("+")
    return Expression(
        seconds=plain(SECONDS, second),
        minutes=plain(MINUTES, minute),
        hours=hours,
        months=frozenset(plain(MONTHS_OF_YEAR, month)),
        days=tuple(item for term in day.split(",") for item in day_term(term)),
        weekdays=tuple(item for term in weekday.split(",") for item in weekday_term(term)),
        both_days=explicit_and or day.startswith(("*", "?")) or weekday.startswith(("*", "?")),
        clock=second.startswith("*") or minute.startswith("*") or hour.startswith("*") or len(hours) == 24,
    )


def default_policies(expression: str) -> tuple[str, str]:
    return ("skip", "both") if parse(expression).clock else ("shift", "first")


# --- days -----------------------------------------------------------------------------------------------------------


@cache
def month_length(year: int, month: int) -> int:
    return calendar.monthrange(year, month)[1]


def nearest_weekday(year: int, month: int, day: int) -> int:
    """The weekday nearest to a date, without leaving its month."""
    length = month_length(year, month)
    for away in (0, -1, 1, -2, 2):
        if 1 <= day + away <= length and date(year, month, day + away).weekday() < 5:
            return day + away
    raise AssertionError("every month has a weekday within two days of every date")


def day_of_month_matches(item: tuple, day: date, month_end: str) -> bool:
    length = month_length(day.year, day.month)
    kind, n = item[0], item[1]
    if kind == "day":
        if n > length and month_end == "clamp" and item[2]:
            n = length
        return day.day == n
    if kind == "nearest":
        if n > length and month_end == "clamp":
            n = length
        return n <= length and day.day == nearest_weekday(day.year, day.month, n)
    target = length - n
    if target < 1:
        return False
    return day.day == (target if kind == "last" else nearest_weekday(day.year, day.month, target))


def weekday_matches(item: tuple, day: date) -> bool:
    if day.isoweekday() % 7 != item[1]:
        return False
    if item[0] == "last":
        return (day + 7 * DAY).month != day.month
    if item[0] == "nth":
        return (day.day + 6) // 7 == item[2]
    return True


def day_matches(fields: Expression, day: date, month_end: str) -> bool:
    if day.month not in fields.months:
        return False
    by_date = any(day_of_month_matches(item, day, month_end) for item in fields.days)
    by_weekday = any(weekday_matches(item, day) for item in fields.weekdays)
    return (by_date and by_weekday) if fields.both_days else (by_date or by_weekday)


@lru_cache(maxsize=200_000)
def matching_days(fields: Expression, year: int, month: int, month_end: str) -> tuple[date, ...]:
    if month not in fields.months:
        return ()
    length = month_length(year, month)
    every = (date(year, month, n) for n in range(1, length + 1))
    return tuple(day for day in every if day_matches(fields, day, month_end))


def naive_times(expression: str, low: datetime, high: datetime, month_end: str = "skip") -> Iterator[datetime]:
    """M between two naive local times, both included, in order."""
    fields = parse(expression)
    year, month = low.year, low.month
    while (year, month) <= (high.year, high.month):
        for day in matching_days(fields, year, month, month_end):
            if not low.date() <= day <= high.date():
                continue
            for hour in fields.hours:
                start = datetime(day.year, day.month, day.day, hour)  # noqa: DTZ001 (a naive local time)
                if start > high or start + timedelta(hours=1) <= low:
                    continue
                for minute in fields.minutes:
                    for second in fields.seconds:
                        time = start.replace(minute=minute, second=second)
                        if low <= time <= high:
                            yield time
        year, month = (year, month + 1) if month < 12 else (year + 1, 1)


def never_fires(expression: str, month_end: str = "skip") -> bool:
    """2001-2028 hold all 14 kinds of year."""
    fields = parse(expression)
    return not any(
        matching_days(fields, year, month, month_end) for year in range(2001, 2029) for month in range(1, 13)
    )


# --- zones ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Change:
    at: datetime  # the first instant with the new offset, naive UTC
    before: timedelta
    after: timedelta

    @property
    def size(self) -> timedelta:
        return abs(self.after - self.before)


@cache
def tzdata_zone(name: str) -> ZoneInfo:
    path = resources.files("tzdata.zoneinfo").joinpath(*name.split("/"))
    with path.open("rb") as file:
        return ZoneInfo.from_file(file, key=name)


def local(zone: str, instant: datetime) -> datetime:
    """What the wall shows at a UTC instant."""
    info = tzdata_zone(zone)
    return info.fromutc(instant.replace(tzinfo=info)).replace(tzinfo=None)


def offset(zone: str, instant: datetime) -> timedelta:
    return local(zone, instant) - instant


def change_between(zone: str, low: datetime, high: datetime) -> Change:
    """Bisect the one change between two instants with different offsets, to the second."""
    before, after = offset(zone, low), offset(zone, high)
    while high - low > SECOND:
        middle = low + timedelta(seconds=(high - low) // SECOND // 2)
        if offset(zone, middle) == before:
            low = middle
        else:
            high = middle
    return Change(high, before, after)


def changes(zone: str, low: datetime, high: datetime) -> list[Change]:
    """Every change of offset between two instants: probe every day, bisect where the offset differs."""
    probes = [low + n * DAY for n in range((high - low) // DAY + 1)]
    offsets = [offset(zone, probe) for probe in probes]
    around = zip(pairwise(probes), pairwise(offsets), strict=True)
    return [change_between(zone, *ends) for ends, (before, after) in around if before != after]


@dataclass(frozen=True)
class OnTheWall:
    """The UTC instants that show a naive local time; if there are none, `gap` is the change that jumped over it."""

    instants: tuple[datetime, ...]
    gap: datetime | None = None

    def under(self, dst_gap: str, dst_fold: str) -> tuple[datetime, ...]:
        if self.gap is not None:
            return (self.gap,) if dst_gap == "shift" else ()
        if len(self.instants) == 2 and dst_fold != "both":
            return self.instants[:1] if dst_fold == "first" else self.instants[1:]
        return self.instants


def resolve(zone: str, time: datetime) -> OnTheWall:
    offsets = {offset(zone, time - TWO_DAYS), offset(zone, time + TWO_DAYS)}
    shown = sorted(time - by for by in offsets if local(zone, time - by) == time)
    if shown:
        return OnTheWall(tuple(shown))
    return OnTheWall((), change_between(zone, time - TWO_DAYS, time + TWO_DAYS).at)


# --- ticks ----------------------------------------------------------------------------------------------------------


def ticks(
    expression: str,
    zone: str,
    low: datetime,
    high: datetime,
    dst_gap: str,
    dst_fold: str,
    month_end: str = "skip",
) -> list[datetime]:
    """F in (low, high]."""
    if high <= low:
        return []
    first = low + min(offset(zone, low - TWO_DAYS), offset(zone, low + TWO_DAYS))
    last = high + max(offset(zone, high - TWO_DAYS), offset(zone, high + TWO_DAYS))
    found = set()
    for time in naive_times(expression, first, last, month_end):
        found.update(resolve(zone, time).under(dst_gap, dst_fold))
    return sorted(instant for instant in found if low < instant <= high)


HORIZON = 15_000  # days, 41 years: the longest wait of one weekday on February 29 is 40 years, over 2100


def quiet(fields: Expression, around: date, month_end: str) -> bool:
    """No date within two days matches, so no tick can lie on this UTC day."""
    near = [around + n * DAY for n in range(-2, 3)]
    return not any(day in matching_days(fields, day.year, day.month, month_end) for day in near)


def stride(fields: Expression) -> timedelta:
    """How much to look at in one go: a day, or an hour where a day holds many times."""
    return DAY if len(fields.hours) * len(fields.minutes) * len(fields.seconds) <= 100 else timedelta(hours=1)


def next_after(
    expression: str, zone: str, instant: datetime, dst_gap: str, dst_fold: str, month_end: str = "skip"
) -> datetime | None:
    """min{f > t}, looked for window by window, and day by day where no date matches."""
    fields, low, width = parse(expression), instant, timedelta(minutes=2)
    while low < instant + HORIZON * DAY:
        if quiet(fields, low.date(), month_end):
            low = datetime.combine(low.date() + DAY, datetime.min.time()) - SECOND
            width = 2 * SECOND  # onto the next day
            if quiet(fields, low.date() + DAY, month_end):
                low += width
                continue
        if found := ticks(expression, zone, low, low + width, dst_gap, dst_fold, month_end):
            return found[0]
        low, width = low + width, stride(fields)
    return None


def prev_before(
    expression: str, zone: str, instant: datetime, dst_gap: str, dst_fold: str, month_end: str = "skip"
) -> datetime | None:
    """max{f < t}, likewise."""
    fields, high, width = parse(expression), instant - timedelta(microseconds=1), timedelta(minutes=2)
    while high > instant - HORIZON * DAY:
        if quiet(fields, high.date(), month_end):
            high, width = datetime.combine(high.date(), datetime.min.time()), 2 * SECOND  # onto the day before
            if quiet(fields, high.date() - DAY, month_end):
                high -= width
                continue
        if found := ticks(expression, zone, high - width, high, dst_gap, dst_fold, month_end):
            return found[-1]
        high, width = high - width, stride(fields)
    return None
