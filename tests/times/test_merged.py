"""Several schedules on one job: the union of their ticks, and a count that knows which ones coincide."""

import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from heapq import merge
from itertools import groupby

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from fleetcron import Cron, Every, Once, ScheduleError
from fleetcron.times.calendars import DayRule, business_days
from fleetcron.times.merged import Merged
from fleetcron.times.schedule import Schedule
from fleetcron.times.timetable import BlackoutRule, Timetable
from fleetcron.times.windows import blackout
from tests.times import reference
from tests.times.reference import DAY, FOLDS, GAPS

JUST = timedelta(microseconds=1)
MINUTE = timedelta(minutes=1)

# a change of the clock, New Year, and a zone that lost a day
MOMENTS = {
    "UTC": datetime(2026, 12, 31, 20, tzinfo=UTC),
    "Africa/Casablanca": datetime(2026, 3, 22, 2, tzinfo=UTC),
    "America/New_York": datetime(2026, 11, 1, 6, tzinfo=UTC),
    "Asia/Kathmandu": datetime(2026, 2, 28, 18, 15, tzinfo=UTC),
    "Australia/Lord_Howe": datetime(2026, 4, 4, 15, tzinfo=UTC),
    "Europe/Berlin": datetime(2026, 3, 29, 1, tzinfo=UTC),
    "Pacific/Apia": datetime(2011, 12, 30, 10, tzinfo=UTC),
}
EXPRESSIONS = [
    "*/15 * * * *",
    "0 * * * *",
    "30 1,2 * * *",
    "15 0 * * *",
    "0 */6 * * 1-5",
    "45 23 L * *",
    "30 2 * * SUN",
    "0 0 1 1 *",
    "30 */10 2 * * *",
]


class Listed(Schedule):
    """A schedule that gives no shapes and counts by walking: the slow way round."""

    def __init__(self, ticks: list[datetime]) -> None:
        self._ticks = [round(tick.timestamp() * 1000) for tick in ticks]

    def next_ms(self, after: int) -> int | None:
        return min((tick for tick in self._ticks if tick > after), default=None)

    def prev_ms(self, before: int) -> int | None:
        return max((tick for tick in self._ticks if tick < before), default=None)

    def ticks_ms(self, after: int, until: int) -> Iterator[int]:
        return (tick for tick in self._ticks if after < tick <= until)

    def count_ms(self, after: int, until: int) -> int:
        return len(list(self.ticks_ms(after, until)))


@st.composite
def entries(draw: st.DrawFn, moment: datetime) -> tuple[Schedule, list[datetime]]:
    """A schedule, and the list of its ticks within 30 days of the moment, found the slow way."""
    low, high = moment - 30 * DAY, moment + 30 * DAY
    match draw(st.sampled_from(["cron", "cron", "cron", "every", "once", "listed"])):
        case "cron":
            expression, zone = draw(st.sampled_from(EXPRESSIONS)), draw(st.sampled_from(sorted(MOMENTS)))
            policies = draw(st.sampled_from(GAPS)), draw(st.sampled_from(FOLDS))
            ends = low.replace(tzinfo=None), high.replace(tzinfo=None)
            found = reference.ticks(expression, zone, *ends, *policies)
            return Cron(expression, zone, *policies), [tick.replace(tzinfo=UTC) for tick in found]
        case "every":
            every = draw(st.sampled_from([15, 45, 60, 90, 1440, 1435, 10_080])) * MINUTE
            anchor = moment + draw(st.integers(-50, 50)) * 15 * MINUTE
            first, last = (low - anchor) // every + 1, (high - anchor) // every
            return Every(every, anchor), [anchor + k * every for k in range(first, last + 1)]
        case "once":
            at = moment + draw(st.integers(-300, 300)) * 15 * MINUTE
            return Once(at), [at]
        case _:
            ticks = sorted({moment + n * 15 * MINUTE for n in draw(st.lists(st.integers(-300, 300), max_size=5))})
            return Listed(ticks), ticks


AMOUNT = pytest.mark.parametrize(
    "amount",
    [pytest.param(0.5, id="bounded"), pytest.param(40, id="long", marks=[pytest.mark.soak, pytest.mark.timeout(3600)])],
)


@AMOUNT
def test_the_union_of_several_schedules(amount: int):
    same_in_every_run = settings(
        max_examples=round(18 * amount),
        derandomize=True,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )
    same_in_every_run(given(st.data())(is_the_union))()


def is_the_union(data: st.DataObject) -> None:
    moment = data.draw(st.sampled_from(list(MOMENTS.values())))
    drawn = data.draw(st.lists(entries(moment), min_size=1, max_size=4))
    merged = Merged([entry for entry, _ in drawn])
    owed = [tick for tick, _ in groupby(merge(*(ticks for _, ticks in drawn)))]
    minutes = st.integers(-29 * 1440, 29 * 1440)
    points = sorted(moment + n * MINUTE for n in data.draw(st.lists(minutes, min_size=3, max_size=5)))
    points = [moment - 30 * DAY, *points, moment + 30 * DAY]
    for low in points:
        for high in points:
            inside = [tick for tick in owed if low < tick <= high]
            assert merged.count(low, high) == len(inside)
            if low <= high:
                assert list(merged.between(low, high)) == inside
    for tick in owed[:: max(1, len(owed) // 9)]:
        assert tick in merged
        assert merged.next_after(tick - JUST) == merged.prev_before(tick + JUST) == tick
        assert merged.count(tick - JUST, tick) == 1
        assert merged.count(tick, tick) == 0
    for at in points[1:-1]:
        later, before = [tick for tick in owed if tick > at], [tick for tick in owed if tick < at]
        following, previous = merged.next_after(at), merged.prev_before(at)
        assert following == later[0] if later else (following is None or following > points[-1])
        assert previous == before[-1] if before else (previous is None or previous <= points[0])


def test_ticks_at_the_same_instant_are_one():
    """09:00 in Berlin is 03:00 in New York, except for three weeks of March and one of autumn: 02:00 or 04:00 then."""
    merged = Merged([Cron("0 9 * * *", "Europe/Berlin"), Cron("0 3 * * *", "America/New_York")])
    low, high = datetime(2026, 1, 1, tzinfo=UTC), datetime(2027, 1, 1, tzinfo=UTC)
    apart = (datetime(2026, 3, 29, tzinfo=UTC) - datetime(2026, 3, 8, tzinfo=UTC)).days
    apart += (datetime(2026, 11, 1, tzinfo=UTC) - datetime(2026, 10, 25, tzinfo=UTC)).days
    assert merged.count(low, high) == len(list(merged.between(low, high))) == 365 + apart


def test_a_schedule_merged_with_itself_is_itself():
    for zone in MOMENTS:
        alone, moment = Cron("*/20 0-3 * * *", zone), MOMENTS[zone]
        twice = Merged([alone, Cron("*/20 0-3 * * *", zone)])
        low, high = moment - 400 * DAY, moment + 400 * DAY
        assert twice.count(low, high) == alone.count(low, high)
        assert list(twice.between(low, high)) == list(alone.between(low, high))


def test_merged_schedules_that_never_meet_add_up_over_ten_years():
    """One at even and one at odd minutes, in zones that change their clocks by whole hours. Few days are walked."""
    even, odd = Cron("*/2 * * * *", "America/New_York"), Cron("1-59/2 * * * *", "Europe/Berlin")
    low, high = datetime(2020, 1, 1, tzinfo=UTC), datetime(2030, 1, 1, tzinfo=UTC)
    calls = 0

    def note(frame: object, event: str, arg: object) -> None:
        nonlocal calls
        calls += event == "call"

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        total = Merged([even, odd]).count(low, high)
    finally:
        sys.setprofile(before)
    assert total == even.count(low, high) + odd.count(low, high) == (high - low) // MINUTE
    assert calls * 3 < total


def test_merged_of_schedules_under_calendars():
    """Business days in one zone, a nightly blackout in another: brute force over a month with a clock change."""
    work = Timetable(
        Cron("*/30 * * * *", "Europe/Berlin"),
        calendars=[DayRule(business_days("work", timezone="Asia/Tokyo"), require=True)],
    )
    quiet = Timetable(
        Cron("*/20 * * * *"),
        calendars=[BlackoutRule(blackout("night", repeated=[(Cron("0 1 * * *", "America/New_York"), "3h")]), "defer")],
    )
    merged = Merged([work, quiet, Every("6h")])
    low, high = datetime(2026, 3, 1, 0, 10, tzinfo=UTC), datetime(2026, 4, 2, 5, 50, tzinfo=UTC)
    walked = {tick for entry in merged.entries for tick in entry.between(low, high)}
    assert list(merged.between(low, high)) == sorted(walked)
    assert merged.count(low, high) == len(walked)
    for n in range(0, 32 * 24, 17):
        at = low + n * 60 * MINUTE
        assert merged.count(low, at) == len([tick for tick in walked if tick <= at])


def test_days_of_one_shape_tick_alike():
    """What Merged.count stands on: equal shapes mean equal times of day."""
    night = blackout("night", repeated=[(Cron("0 1 * * *", "America/New_York"), "3h"), (Cron("0 9 * * 3"), "30m")])
    schedules: list[Schedule] = [
        Cron("*/15 * * * *", "America/New_York"),
        Cron("0 9 * * 1-5", "Pacific/Apia"),
        Cron("30 2 31 * *", "Europe/Berlin", month_end="clamp"),
        Every("7h", datetime(2026, 1, 1, 0, 1, tzinfo=UTC)),
        Every("36h"),
        Once("2026-03-08T07:00:00Z"),
        Merged([Cron("0 * * * *"), Cron("30 1 * * *", "Europe/Berlin")]),
        *(Timetable(Cron("*/20 * * * *"), calendars=[BlackoutRule(night, on)]).whole for on in ("skip", "defer")),
        Timetable(
            Cron("0 23 * * MON"),
            calendars=[BlackoutRule(blackout("late", repeated=[(Cron("0 23 * * *"), "1h")]), "defer")],
        ).whole,
    ]
    epoch = datetime(1970, 1, 1, tzinfo=UTC)
    first = (datetime(2026, 1, 1, tzinfo=UTC) - epoch).days
    for schedule in schedules:
        seen: dict[object, list[timedelta]] = {}
        shaped = 0
        for day in range(first, first + 365):
            start = epoch + day * DAY
            times = [tick - start for tick in schedule.between(start - JUST, start + DAY - JUST)]
            shape = schedule.day_shape(day)
            if shape is not None:
                shaped += 1
                assert seen.setdefault(shape, times) == times
        assert shaped == 0 or len(seen) < shaped


def test_nothing_to_merge_is_refused():
    with pytest.raises(ScheduleError, match="a job needs at least one schedule"):
        Merged([])
