"""Every UTC minute around every change of offset of 30 zones, 2015-2035, under every pair of policies: 0 differences.

For each change the walk writes down what the wall shows at each UTC minute from (size of the change + 3 h) before it to
as long after it. That table is the whole truth about the window: a local time on it once, twice or never. From it and
from M follow the ticks of all six pairs of policies, and the calculator must say the same, minute by minute.

`make test` asks every change x every pair x every minute: `in` and next_after of every minute, prev_before of every
third minute (the three folds take turns, so that both gap policies meet every minute), of one expression (they take
turns over the changes of a zone), and the bulk enumeration of another one. `make soak` asks the whole product. The
split keeps the share of `make test` below 20 s on one core; the product takes minutes.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache
from itertools import pairwise

import pytest

from fleetcron import Cron
from tests.times import reference
from tests.times.reference import DAY, FOLDS, PAIRS, Change, OnTheWall, local

MINUTE = timedelta(minutes=1)
HOUR = timedelta(hours=1)
FROM = datetime(2015, 1, 1)  # noqa: DTZ001 (the reference takes naive UTC)
TO = datetime(2036, 1, 1)  # noqa: DTZ001

ZONES = [
    "Africa/Cairo",  # DST dropped in 2014 and taken up again in 2023, on a Friday
    "Africa/Casablanca",  # DST is the rule, standard time the exception of Ramadan
    "Africa/El_Aaiun",
    "Africa/Juba",  # one change only
    "Africa/Sao_Tome",  # there in 2018, back in 2019
    "America/Asuncion",  # midnight, and no more changes from 2024
    "America/Caracas",  # half an hour in 2016
    "America/Havana",  # gap at midnight
    "America/New_York",
    "America/Santiago",  # gap at midnight, from 24:00 of Saturday
    "America/Sao_Paulo",  # gap at midnight, until 2019
    "America/Scoresbysund",  # changed zone and rule in 2024
    "America/Vancouver",  # permanent DST from 2026 in the pinned data
    "America/Winnipeg",
    "Antarctica/Casey",  # three hours, six times
    "Antarctica/Troll",  # two hours
    "Asia/Amman",  # permanent DST from 2022
    "Asia/Beirut",  # gap at midnight
    "Asia/Gaza",  # around Ramadan
    "Asia/Hovd",
    "Asia/Pyongyang",  # half an hour, there and back
    "Asia/Tehran",  # until 2022, at midnight, by another calendar
    "Atlantic/Azores",  # at midnight; fold over the date line of the day
    "Australia/Lord_Howe",  # half an hour
    "Europe/Dublin",  # DST is negative
    "Europe/Istanbul",
    "Pacific/Apia",
    "Pacific/Chatham",  # +12:45
    "Pacific/Fiji",
    "Pacific/Norfolk",  # half an hour back in 2015, DST from 2019
]

# Each with how far one must look to be sure of a tick. An odd number of them, so that each one meets gaps and folds.
EXPRESSIONS = {
    "* * * * *": timedelta(0),
    "*/15 * * * *": timedelta(0),
    "30 2 * * *": 3 * DAY,
    "0 0 * * *": 3 * DAY,
    "0,30 0-3 * * *": 2 * DAY,
    "45 1 * * SUN": 15 * DAY,
    "0 0-23 * * *": timedelta(0),  # a clock job by its 24 hours
    "15 0,2 * * 0L": 71 * DAY,
    "30 0 LW * *": 71 * DAY,
    "0 22-3 1-14 * FRI#2": 31 * DAY,  # wraps over midnight; OR of the day fields
    "*/20 1-2 */2 * FRI-MON": 15 * DAY,  # AND of the day fields
}


@cache
def changes(zone: str) -> list[Change]:
    return reference.changes(zone, FROM, TO)


def aware(instants: list[datetime]) -> list[datetime]:
    return [instant.replace(tzinfo=UTC) for instant in instants]


@dataclass(frozen=True)
class Window:
    """The minutes around one change, and what the wall showed at each of them (and a little beyond)."""

    zone: str
    change: Change
    step: timedelta
    start: datetime
    end: datetime
    wall: dict[datetime, list[datetime]]

    @classmethod
    def around(cls, zone: str, change: Change, step: timedelta = MINUTE) -> "Window":
        reach = change.size + 3 * HOUR
        start, end = change.at - reach, change.at + reach
        beyond = change.size + HOUR + MINUTE  # so that both instants of a fold are on the table
        wall: dict[datetime, list[datetime]] = {}
        instant = start - beyond
        while instant <= end + beyond:
            wall.setdefault(local(zone, instant), []).append(instant)
            instant += step
        return cls(zone, change, step, start, end, wall)

    @property
    def minutes(self) -> list[datetime]:
        return [self.start + n * self.step for n in range(int((self.end - self.start) / self.step) + 1)]

    def times(self, expression: str) -> list[OnTheWall]:
        """M of the window, each with its instants."""
        first, last = min(self.wall), max(self.wall)
        found = []
        for time in reference.naive_times(expression, first, last):
            shown = tuple(self.wall.get(time, ()))
            found.append(OnTheWall(shown) if shown else OnTheWall((), self.change.at))
        return found

    def times_beyond(self, expression: str, reach: timedelta) -> list[OnTheWall]:
        """M before and after the window, far enough that every minute of it has a tick on either side."""
        first, last = min(self.wall), max(self.wall)
        before = reference.naive_times(expression, first - reach, first - timedelta(seconds=1))
        after = reference.naive_times(expression, last + timedelta(seconds=1), last + reach)
        return [reference.resolve(self.zone, time) for times in (before, after) for time in times]


def ticks_under(times: list[OnTheWall], pair: tuple[str, str]) -> list[datetime]:
    return sorted({instant for time in times for instant in time.under(*pair)})


def differences(
    window: Window, expression: str, reach: timedelta, pairs: tuple[tuple[str, str], ...] = PAIRS, thirds: bool = False
) -> Iterator[tuple]:
    """Where the two differ, minute by minute; `thirds` asks prev_before a third of the minutes per fold."""
    times = window.times(expression) + window.times_beyond(expression, reach)
    minutes = window.minutes
    asked = aware(minutes)
    for pair in pairs:
        cron = Cron(expression, window.zone, dst_gap=pair[0], dst_fold=pair[1])
        ticks = ticks_under(times, pair)
        assert ticks[0] < window.start, "the reference did not look back far enough"
        assert ticks[-1] > window.end, "the reference did not look forward far enough"
        known, answers = set(ticks), aware(ticks)
        third = slice(FOLDS.index(pair[1]), None, 3) if thirds else slice(None)
        checks = [
            ("in", minutes, [minute in known for minute in minutes], list(map(cron.__contains__, asked))),
            (
                "next_after",
                minutes,
                [answers[bisect_right(ticks, minute)] for minute in minutes],
                list(map(cron.next_after, asked)),
            ),
            (
                "prev_before",
                minutes[third],
                [answers[bisect_left(ticks, minute) - 1] for minute in minutes[third]],
                list(map(cron.prev_before, asked[third])),
            ),
        ]
        for question, at, owed, said in checks:
            if said != owed:
                wrong = [row for row in zip(at, owed, said, strict=True) if row[1] != row[2]]
                yield (window.zone, expression, pair, question, len(wrong), wrong[:3])


def bulk_differences(window: Window, expression: str, pairs: tuple[tuple[str, str], ...]) -> Iterator[tuple]:
    times = window.times(expression)
    for pair in pairs:
        cron = Cron(expression, window.zone, dst_gap=pair[0], dst_fold=pair[1])
        owed = aware([tick for tick in ticks_under(times, pair) if window.start < tick <= window.end])
        low, high = aware([window.start, window.end])
        said = list(cron.between(low, high))
        if said != owed:
            yield (window.zone, expression, pair, "between", owed, said)
        if cron.count(low, high) != len(owed):
            yield (window.zone, expression, pair, "count", len(owed), cron.count(low, high))


def test_changes_lie_further_apart_than_the_reference_assumes():
    for zone in ZONES:
        assert all(later.at - earlier.at > 4 * DAY for earlier, later in pairwise(changes(zone)))


def test_thirty_zones_and_their_changes():
    """If this number moves, the pinned tzdata changed: look at what moved."""
    assert len(ZONES) == len(set(ZONES)) == 30
    assert all(changes(zone) for zone in ZONES)


@pytest.mark.parametrize("zone", ZONES)
def test_every_minute_around_every_change(zone: str):
    expressions = list(EXPRESSIONS.items())
    wrong = []
    for number, change in enumerate(changes(zone), start=ZONES.index(zone)):
        window = Window.around(zone, change)
        wrong += differences(window, *expressions[number % len(expressions)], thirds=True)
        another, _ = expressions[5 * number % len(expressions)]
        wrong += bulk_differences(window, another, PAIRS[number % 2 :: 2])
    assert wrong == []


@pytest.mark.soak
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("expression", EXPRESSIONS)
@pytest.mark.parametrize("zone", ZONES)
def test_every_minute_around_every_change_of_every_expression(zone: str, expression: str):
    wrong = []
    for change in changes(zone):
        window = Window.around(zone, change)
        wrong += differences(window, expression, EXPRESSIONS[expression])
        wrong += bulk_differences(window, expression, PAIRS)
    assert wrong == []


# --- events that happened once ---------------------------------------------------------------------------------------

EVENTS = [
    ("Apia skips Friday 2011-12-30", "Pacific/Apia", "2011-12-30", 24 * HOUR),
    ("Kwajalein skips 1993-08-21", "Pacific/Kwajalein", "1993-08-21", 24 * HOUR),
    ("Sao_Paulo has no midnight on 2018-11-04", "America/Sao_Paulo", "2018-11-04", HOUR),
    ("Caracas goes back half an hour in 2007", "America/Caracas", "2007-12-09", -HOUR / 2),
    ("Caracas goes forward half an hour in 2016", "America/Caracas", "2016-05-01", HOUR / 2),
    ("Pyongyang goes back half an hour in 2015", "Asia/Pyongyang", "2015-08-14", -HOUR / 2),
    ("Pyongyang goes forward half an hour in 2018", "Asia/Pyongyang", "2018-05-04", HOUR / 2),
    ("Dublin ends its negative DST", "Europe/Dublin", "2025-03-30", HOUR),
    ("Dublin begins its negative DST", "Europe/Dublin", "2025-10-26", -HOUR),
    ("Monrovia leaves -00:44:30", "Africa/Monrovia", "1972-01-07", timedelta(minutes=44, seconds=30)),
    ("Kiritimati skips 1994-12-31", "Pacific/Kiritimati", "1994-12-31", 24 * HOUR),
    ("Casey goes back three hours", "Antarctica/Casey", "2018-03-10", -3 * HOUR),
    ("Juba goes back for good", "Africa/Juba", "2021-01-31", -HOUR),
    ("Troll jumps two hours", "Antarctica/Troll", "2025-03-30", 2 * HOUR),
    ("Singapore moves half an hour in 1981", "Asia/Singapore", "1981-12-31", HOUR / 2),
    ("Lisbon leaves central time by staying on it", "Europe/Lisbon", "1992-09-27", timedelta(0)),
]


def around_event(zone: str, day: str, size: timedelta) -> Window:
    middle = datetime.fromisoformat(day)
    found = reference.changes(zone, middle - DAY, middle + 2 * DAY)
    if not size:  # a change of name without a change of offset is no change at all
        assert found == []
        found = [Change(middle + HOUR, reference.offset(zone, middle), reference.offset(zone, middle))]
    (change,) = found
    assert change.after - change.before == size
    whole_minutes = change.before % MINUTE == change.after % MINUTE == timedelta(0)
    return Window.around(zone, change, MINUTE if whole_minutes else MINUTE / 2)


EACH_EVENT = pytest.mark.parametrize(
    ("zone", "day", "size"), [event[1:] for event in EVENTS], ids=[event[0] for event in EVENTS]
)


@EACH_EVENT
def test_event(zone: str, day: str, size: timedelta):
    """Every expression under both gap policies and, in turn, one of the folds; the clock jobs under one gap policy."""
    window, wrong = around_event(zone, day, size), []
    for turn, (expression, reach) in enumerate(EXPRESSIONS.items()):
        pairs = PAIRS[turn % len(FOLDS) :: len(FOLDS)]
        wrong += differences(window, expression, max(reach, 2 * abs(size)), pairs[: 1 if not reach else 2], thirds=True)
        wrong += bulk_differences(window, expression, pairs)
    assert wrong == []


@pytest.mark.soak
@EACH_EVENT
def test_event_under_every_pair(zone: str, day: str, size: timedelta):
    window, wrong = around_event(zone, day, size), []
    for expression, reach in EXPRESSIONS.items():
        wrong += differences(window, expression, max(reach, 2 * abs(size)))
        wrong += bulk_differences(window, expression, PAIRS)
    assert wrong == []
