"""What a change of schedule does to the ticks."""

import json
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fleetcron import Cron, Every, Once
from fleetcron.times.calendars import DayRule, business_days
from fleetcron.times.diff import Diff, diff
from fleetcron.times.merged import Merged
from fleetcron.times.schedule import Schedule
from fleetcron.times.timetable import Timetable
from fleetcron.times.zone import Zone
from fleetcron.times.zones import zone

DAY = timedelta(days=1)
LOW, HIGH = datetime(2027, 1, 1, tzinfo=UTC), datetime(2027, 1, 4, tzinfo=UTC)


def utc(*parts: int) -> datetime:
    return datetime(*parts, tzinfo=UTC)


def days(hour: int, *which: int) -> list[datetime]:
    return [utc(2027, 1, day, hour) for day in which]


def test_nothing_changes():
    found = diff(Cron("0 9 * * *"), Cron("0 9 1-31 * *"), LOW, HIGH)
    assert not found
    assert found == Diff(kept=3, until=HIGH)


def test_ticks_appear():
    found = diff(Cron("0 9 * * *"), Cron("0 9,21 * * *"), LOW, HIGH)
    assert found
    assert found == Diff(appear=days(21, 1, 2, 3), kept=3, until=HIGH)


def test_ticks_vanish():
    found = diff(Cron("0 9,21 * * *"), Cron("0 9 * * *"), LOW, HIGH)
    assert found == Diff(vanish=days(21, 1, 2, 3), kept=3, until=HIGH)


def test_ticks_move():
    later = diff(Cron("0 9 * * *"), Cron("0 11 * * *"), LOW, HIGH)
    assert later == Diff(move=list(zip(days(9, 1, 2, 3), days(11, 1, 2, 3), strict=True)), until=HIGH)
    earlier = diff(Cron("0 11 * * *"), Cron("0 9 * * *"), LOW, HIGH)
    assert earlier == Diff(move=list(zip(days(11, 1, 2, 3), days(9, 1, 2, 3), strict=True)), until=HIGH)


def test_far_apart_is_not_a_move():
    found = diff(Once(utc(2027, 1, 1, 9)), Once(utc(2027, 1, 2, 9)), LOW, HIGH)
    assert found == Diff(move=[(utc(2027, 1, 1, 9), utc(2027, 1, 2, 9))], until=HIGH)
    found = diff(Once(utc(2027, 1, 1, 9)), Once(utc(2027, 1, 2, 10)), LOW, HIGH)
    assert found == Diff(vanish=days(9, 1), appear=days(10, 2), until=HIGH)


def test_a_tick_that_stays_is_in_the_way():
    """From 09:00 and 10:00 to 10:00 and 11:00: 10:00 stays, so one vanishes and one appears."""
    found = diff(Cron("0 9,10 1 1 *"), Cron("0 10,11 1 1 *"), LOW, HIGH)
    assert found == Diff(vanish=days(9, 1), appear=days(11, 1), kept=1, until=HIGH)


def test_the_bounds_are_those_of_between():
    found = diff(Cron("0 0 * * *"), Cron("0 12 * * *"), utc(2027, 1, 1), utc(2027, 1, 2))
    assert found == Diff(move=[(utc(2027, 1, 2), utc(2027, 1, 1, 12))], until=utc(2027, 1, 2))
    assert diff(Cron("0 0 * * *"), Cron("0 12 * * *"), HIGH, LOW) == Diff(until=LOW)


def test_another_zone_table_moves_ticks():
    """A fleet adopts a table in which New York keeps standard time: summer ticks move by an hour, winter ticks stay."""
    table = json.loads(zone("America/New_York").dump())
    kept = [change for change in table["changes"] if change[0] < utc(2027, 1, 1).timestamp()]
    adopted = Zone.load("America/New_York", json.dumps({**table, "changes": kept, "rule": [-18_000, -18_000]}))
    low, high = utc(2027, 3, 12), utc(2027, 3, 17)
    found = diff(Cron("0 9 * * *", "America/New_York"), Cron("0 9 * * *", adopted), low, high)
    assert found.move == [(utc(2027, 3, day, 13), utc(2027, 3, day, 14)) for day in (14, 15, 16)]
    assert (found.appear, found.vanish, found.kept) == ([], [], 2)
    gap = diff(Cron("30 2 * * *", "America/New_York"), Cron("30 2 * * *", adopted), low, utc(2027, 3, 15))
    assert gap.move == [(utc(2027, 3, 14, 7), utc(2027, 3, 14, 7, 30))]


def test_a_calendar_moves_and_drops_ticks():
    daily, work = Cron("0 9 * * *"), business_days("work")
    low, high = utc(2027, 1, 1), utc(2027, 1, 5)  # Friday to Monday
    dropped = diff(daily, Timetable(daily, calendars=[DayRule(work, require=True)]), low, high)
    assert dropped == Diff(vanish=days(9, 2, 3), kept=2, until=high)
    saturday = Cron("0 9 * * SAT")
    moved = diff(saturday, Timetable(saturday, calendars=[DayRule(work, require=True, on="previous")]), low - DAY, high)
    assert moved.move == [(utc(2027, 1, 2, 9), utc(2027, 1, 1, 9))]


def test_the_limit():
    found = diff(Every("1h"), Every("1h", utc(2027, 1, 1, 0, 30)), LOW, HIGH, limit=10)
    assert found.complete is False
    assert found.until == utc(2027, 1, 1, 9, 30)  # the tenth tick of the one that has more of them by then
    assert len(found.move) + len(found.vanish) + len(found.appear) <= 20
    exactly = diff(Every("1h"), Every("30m"), LOW, LOW + timedelta(hours=5), limit=10)
    assert (exactly.complete, exactly.until, exactly.kept, len(exactly.appear)) == (
        True,
        LOW + timedelta(hours=5),
        5,
        5,
    )
    one_less = diff(Every("1h"), Every("30m"), LOW, LOW + timedelta(hours=5), limit=9)
    assert one_less.complete is False
    assert one_less.until == LOW + timedelta(hours=4, minutes=30)
    assert (one_less.kept, len(one_less.appear)) == (4, 5)


def test_a_day_of_seconds_is_cut_at_the_usual_limit():
    found = diff(Cron("* * * * * *"), Cron("*/2 * * * * *"), LOW, LOW + 2 * DAY)
    assert found.complete is False
    assert found.until == LOW + timedelta(seconds=100_000)
    assert (found.kept, len(found.vanish), found.appear, found.move) == (50_000, 50_000, [], [])


def test_as_json():
    found = diff(Cron("0 9 1,2 * *"), Merged([Cron("0 9 2 * *"), Cron("30 9 1 * *"), Cron("0 0 4 * *")]), LOW, HIGH)
    assert json.loads(json.dumps(found.as_json())) == {
        "appear": ["2027-01-04T00:00:00Z"],
        "vanish": [],
        "move": [{"from": "2027-01-01T09:00:00Z", "to": "2027-01-01T09:30:00Z"}],
        "kept": 1,
        "complete": True,
        "until": "2027-01-04T00:00:00Z",
    }


hours = st.sets(st.integers(1, 200).map(lambda n: LOW + n * timedelta(hours=1)), max_size=12)


@settings(max_examples=60, derandomize=True, database=None, deadline=None)
@given(hours, hours)
def test_everything_is_said_once(old: set[datetime], new: set[datetime]):
    """Each tick stays, moves, vanishes or appears; a move has nothing between its ends, no partners are left over."""
    if not old or not new:
        return
    found = diff(schedule(old), schedule(new), LOW, LOW + 10 * DAY)
    assert found.kept == len(old & new)
    gone, come = [pair[0] for pair in found.move], [pair[1] for pair in found.move]
    assert sorted(gone + found.vanish) == sorted(old - new)
    assert sorted(come + found.appear) == sorted(new - old)
    assert found.vanish == sorted(found.vanish)
    assert found.appear == sorted(found.appear)
    every = sorted(old | new)
    for a, b in found.move:
        assert timedelta(0) < abs(a - b) <= DAY
        assert abs(every.index(a) - every.index(b)) == 1
    for a in found.vanish:
        for b in found.appear:
            assert abs(every.index(a) - every.index(b)) > 1 or abs(a - b) > DAY


def schedule(ticks: set[datetime]) -> Schedule:
    return Merged([Once(tick) for tick in ticks])


@pytest.mark.parametrize("empty_side", [0, 1])
def test_a_schedule_that_is_over(empty_side: int):
    pair = [Once(LOW - DAY), Cron("0 9 * * *")]
    old, new = pair if empty_side == 0 else reversed(pair)
    found = diff(old, new, LOW, HIGH)
    assert (found.appear if empty_side == 0 else found.vanish) == days(9, 1, 2, 3)
    assert found.kept == 0
