"""The coming ticks as rows, with the reason for each that is not where its expression says."""

import json
from datetime import UTC, datetime, timedelta

import pytest

from fleetcron import Cron, Every, Once
from fleetcron.times.calendars import DayRule, business_days, holidays
from fleetcron.times.jitter import offset_ms
from fleetcron.times.merged import Merged
from fleetcron.times.preview import preview
from fleetcron.times.schedule import Schedule
from fleetcron.times.timetable import BlackoutRule, Timetable
from fleetcron.times.windows import blackout
from fleetcron.times.zones import zone


def utc(*parts: int) -> datetime:
    return datetime(*parts, tzinfo=UTC)


def rows(schedule: Schedule, after: datetime, count: int = 3) -> list[tuple[str, ...]]:
    """`local time, note, note…` for each row."""
    return [(f"{row.local:%m-%d %H:%M %z}", *row.notes) for row in preview(schedule, after, count)]


def excluded(*dates: str, on: str = "skip") -> DayRule:
    return DayRule(holidays("feasts", dates), on=on)


GAP, FOLD = utc(2027, 3, 13, 12), utc(2027, 11, 6, 12)


def test_a_row_has_utc_local_start_and_notes():
    first, second = preview(Cron("30 2 * * *", "America/New_York"), GAP, 2)
    assert first.scheduled_for == first.starts == utc(2027, 3, 14, 7)
    assert first.local.isoformat() == "2027-03-14T03:00:00-04:00"
    assert first.notes == ("moved from 02:30: does not exist",)
    assert first.as_json() == {
        "scheduled_for": "2027-03-14T07:00:00Z",
        "local": "2027-03-14T03:00:00-04:00",
        "notes": ["moved from 02:30: does not exist"],
    }
    assert second.as_json() == {
        "scheduled_for": "2027-03-15T06:30:00Z",
        "local": "2027-03-15T02:30:00-04:00",
        "notes": [],
    }


def test_a_gap():
    new_york = "America/New_York"
    assert rows(Cron("30 2 * * *", new_york, "skip"), GAP, 1) == [("03-15 02:30 -0400",)]
    shifted = Cron("0,30 2,3 * * *", new_york)
    assert rows(shifted, GAP, 2) == [
        ("03-14 03:00 -0400", "moved from 02:00: does not exist", "collapsed 3"),
        ("03-14 03:30 -0400",),
    ]
    assert rows(Cron("15 30 2 * * *", new_york), GAP, 1) == [
        ("03-14 03:00 -0400", "moved from 02:30:15: does not exist")
    ]
    assert rows(Cron("0 3 * * *", new_york), GAP, 1) == [("03-14 03:00 -0400",)]
    half = Cron("15 2 * * *", "Australia/Lord_Howe")
    assert rows(half, utc(2027, 10, 2), 1) == [("10-03 02:30 +1100", "moved from 02:15: does not exist")]


def test_a_day_that_a_zone_skipped():
    friday = Cron("0 9 * * 5", "Pacific/Apia")
    assert rows(friday, utc(2011, 12, 28), 1) == [("12-31 00:00 +1400", "moved from 09:00: does not exist")]
    daily = Cron("0 0,9 * * *", "Pacific/Apia")
    assert rows(daily, utc(2011, 12, 29, 20), 2) == [
        ("12-31 00:00 +1400", "moved from 00:00: does not exist", "collapsed 3"),
        ("12-31 09:00 +1400",),
    ]


@pytest.mark.parametrize(
    ("fold", "owed"),
    [
        ("first", [("11-07 01:30 -0400", "first of two"), ("11-08 01:30 -0500",)]),
        ("second", [("11-07 01:30 -0500", "second of two"), ("11-08 01:30 -0500",)]),
        ("both", [("11-07 01:30 -0400", "first of two"), ("11-07 01:30 -0500", "second of two")]),
    ],
)
def test_a_fold(fold: str, owed: list[tuple[str, ...]]):
    assert rows(Cron("30 1 * * *", "America/New_York", dst_fold=fold), FOLD, 2) == owed
    once = Once("2027-11-07 01:30", "America/New_York", dst_fold=fold)
    assert rows(once, FOLD, 2) == [row for row in owed if row[0].startswith("11-07")]


def test_a_clamped_day():
    clamped = Cron("0 9 31 * *", month_end="clamp")
    assert rows(clamped, utc(2027, 1, 1), 3) == [
        ("01-31 09:00 +0000",),
        ("02-28 09:00 +0000", "clamped from 31"),
        ("03-31 09:00 +0000",),
    ]
    assert rows(Cron("0 9 29-31 * *", month_end="clamp"), utc(2027, 2, 1), 1) == [
        ("02-28 09:00 +0000", "clamped from 29, 30, 31")
    ]
    assert rows(Cron("0 9 28,30 * *", month_end="clamp"), utc(2027, 2, 1), 1) == [("02-28 09:00 +0000",)]
    assert rows(Cron("0 9 31W * *", month_end="clamp"), utc(2027, 2, 1), 1) == [
        ("02-26 09:00 +0000", "clamped from 31")
    ]
    assert rows(Cron("0 9 L * *", month_end="clamp"), utc(2027, 2, 1), 1) == [("02-28 09:00 +0000",)]


def test_a_clamped_day_under_a_calendar():
    """That some calendar looks at the job is no reason to forget why a tick is where it is."""
    clamped = Cron("0 9 31 * *", month_end="clamp")
    watched = Timetable(clamped, calendars=[excluded("12-25")])
    assert rows(watched, utc(2027, 2, 1), 1) == [("02-28 09:00 +0000", "clamped from 31")]
    monday = Timetable(clamped, calendars=[DayRule(business_days("work"), require=True, on="next")])
    (row,) = rows(monday, utc(2027, 2, 2), 1)  # the 28th is a Sunday
    assert row[0] == "03-01 09:00 +0000"
    assert set(row[1:]) == {"clamped from 31", "rolled from 2027-02-28"}


def test_a_rolled_day():
    christmas = Cron("0 9 25 12 *")
    working = DayRule(business_days("work", holidays=["12-24", "12-25"]), require=True, on="previous")
    assert rows(Timetable(christmas, calendars=[working]), utc(2026, 12, 1), 1) == [
        ("12-23 09:00 +0000", "rolled from 2026-12-25")
    ]
    weekend = DayRule(business_days("work"), require=True, on="next")
    saturday_and_sunday = Timetable(Cron("0 9 * * 6,0"), calendars=[weekend])
    assert rows(saturday_and_sunday, utc(2026, 12, 4), 1) == [
        ("12-07 09:00 +0000", "rolled from 2026-12-05", "rolled from 2026-12-06")
    ]
    daily = Timetable(Cron("0 9 * * *"), calendars=[weekend])
    assert rows(daily, utc(2026, 12, 4), 3) == [
        ("12-04 09:00 +0000",),
        ("12-07 09:00 +0000", "collapsed 3"),
        ("12-08 09:00 +0000",),
    ]


def test_a_day_rolled_over_new_year_and_onto_a_clock_change():
    year = Timetable(Cron("0 9 31 12 *"), calendars=[excluded("12-31", on="next")])
    assert rows(year, utc(2026, 6, 1), 1) == [("01-01 09:00 +0000", "rolled from 2026-12-31")]
    saturday = Cron("30 2 * * SAT", "America/New_York")
    gap = Timetable(saturday, calendars=[excluded("2027-03-13", on="next")])
    (row,) = rows(gap, utc(2027, 3, 12), 1)
    assert row[0] == "03-14 03:00 -0400"
    assert set(row[1:]) == {"moved from 02:30: does not exist", "rolled from 2027-03-13"}


def test_a_rolled_single_instant():
    christmas = Timetable(Once("2026-12-25 09:00", "Europe/Berlin"), calendars=[excluded("12-25", "12-26", on="next")])
    assert rows(christmas, utc(2026, 12, 1)) == [("12-27 09:00 +0100", "rolled from 2026-12-25")]


def test_a_deferred_tick():
    night = blackout("night", [(utc(2027, 1, 4, 2), utc(2027, 1, 4, 4))])
    rule = [BlackoutRule(night, "defer")]
    alone = Timetable(Cron("*/30 2-3 * * *"), calendars=rule)
    assert rows(alone, utc(2027, 1, 4), 2) == [
        ("01-04 04:00 +0000", "deferred to the end of a blackout (stands for 4)"),
        ("01-05 02:00 +0000",),
    ]
    with_one_there = Timetable(Cron("0 2,4 * * *"), calendars=rule)
    assert rows(with_one_there, utc(2027, 1, 4), 2) == [
        ("01-04 04:00 +0000", "deferred to the end of a blackout (stands for 1)"),
        ("01-05 02:00 +0000",),
    ]
    nothing_to_defer = Timetable(Cron("0 4 * * *"), calendars=rule)
    assert rows(nothing_to_defer, utc(2027, 1, 4), 1) == [("01-04 04:00 +0000",)]
    skipped = Timetable(Cron("0 2,4 * * *"), calendars=[BlackoutRule(night)])
    assert rows(skipped, utc(2027, 1, 4), 1) == [("01-04 04:00 +0000",)]


def test_several_schedules_give_their_notes_once():
    merged = Merged([Cron("30 2 * * *", "America/New_York"), Cron("30 2 * * *", "US/Eastern"), Every("1h")])
    assert rows(merged, utc(2027, 3, 14, 6, 30), 2) == [
        ("03-14 03:00 -0400", "moved from 02:30: does not exist"),
        ("03-14 04:00 -0400",),
    ]


def test_jitter_is_the_start_and_never_the_tick():
    timetable = Timetable(Cron("0 9 * * *", "Europe/Berlin"), jitter="10m", seed="acme/report")
    (row,) = preview(timetable, utc(2027, 1, 1, 9), 1)
    assert row.scheduled_for == utc(2027, 1, 2, 8)
    assert row.starts - row.scheduled_for == timedelta(milliseconds=offset_ms("acme/report", 600_000))
    assert row.local.isoformat() == "2027-01-02T09:00:00+01:00"
    started = row.as_json()["starts"]
    assert started == row.starts.isoformat().replace("+00:00", "Z")
    assert json.loads(json.dumps(row.as_json())) == row.as_json()


def test_as_many_rows_as_there_are():
    assert preview(Once(utc(2027, 1, 1)), utc(2027, 1, 1)) == []
    assert len(preview(Once(utc(2027, 1, 1)), utc(2026, 1, 1))) == 1
    few = Timetable(Every("1h"), starts_at=utc(2027, 1, 1), max_ticks=3)
    assert [row.scheduled_for.hour for row in preview(few, utc(2026, 1, 1), 10)] == [0, 1, 2]
    assert len(preview(Every("1h"), utc(2027, 1, 1))) == 10
    assert preview(Every("1h"), utc(2027, 1, 1), 0) == []


def test_local_times_are_those_of_the_schedule_or_of_a_zone_that_is_given():
    entries = [Cron("0 9 * * *", "Asia/Kathmandu"), Cron("0 9 * * *", "Europe/Berlin")]
    (row,) = preview(Timetable(entries), utc(2027, 1, 1), 1)
    assert row.local.isoformat() == "2027-01-01T09:00:00+05:45"
    (row,) = preview(Every("1h"), utc(2027, 7, 1), 1, zone("Australia/Lord_Howe"))
    assert row.local.isoformat() == "2027-07-01T11:30:00+10:30"
    (row,) = preview(Every("1h"), utc(2027, 7, 1), 1)
    assert row.local.isoformat() == "2027-07-01T01:00:00+00:00"
