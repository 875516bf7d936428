"""What is allowed but probably not meant: each finding on its case, and none of them on a clean one."""

import json
from datetime import UTC, datetime, timedelta

import pytest

from fleetcron import Cron, Every, Once
from fleetcron.times.calendars import DayRule, holidays
from fleetcron.times.lint import Finding, lint
from fleetcron.times.schedule import Schedule
from fleetcron.times.timetable import Timetable

NOW = datetime(2026, 11, 16, tzinfo=UTC)
NEW_YORK = "America/New_York"


def found(schedule: Schedule, timezone: str | None = None, now: datetime = NOW) -> dict[str, Finding]:
    findings = lint(schedule, now, timezone)
    assert len({finding.code for finding in findings}) == len(findings)
    return {finding.code: finding for finding in findings}


CLEAN: list[Schedule] = [
    Cron("0 9 * * 1-5", NEW_YORK),
    Cron("*/15 * * * *", NEW_YORK),
    Cron("*/10 * * * * *"),
    Cron("30 3 1 */3 *", NEW_YORK),
    Cron("0 */6 * * *", NEW_YORK),
    Cron("0 9 L * *"),
    Cron("0 9 31 * *", month_end="clamp"),
    Cron("0 9 31 1,3 *"),
    Cron("0 9 28 * *"),
    Cron("0 9 1-7 * +MON"),
    Cron("30 2 * * *", "UTC"),
    Cron("30 2 * * *", "Asia/Tokyo"),
    Cron("5 0 * * *"),
    Cron("0 0 * * MON"),
    Cron("0 0 * * MON-SAT/2"),
    Cron("*/5 9 * * *"),
    Every("90m"),
    Every("24h"),
    Once("2027-03-14 02:30", NEW_YORK),
    Timetable(Cron("0 9 * * *"), jitter="24h", seed="acme/x"),
]


@pytest.mark.parametrize("schedule", CLEAN, ids=repr)
def test_a_clean_schedule(schedule: Schedule):
    assert found(schedule) == {}


def test_an_interval_of_days_is_clean_in_utc():
    assert found(Every("24h"), "UTC") == {}
    assert found(Every("25h"), NEW_YORK) == {}


INFO = {"midnight", "dst-hour"}  # the others are warnings
STEP = "does not divide the"
GAP = f"2027-03-14 02:30 does not exist in {NEW_YORK}: it"
FOLD = f"2027-11-07 01:30 comes twice in {NEW_YORK}: it runs"
RESTARTS = "starts again on day 1 of each month: day 31 may be followed by day 1"


@pytest.mark.parametrize(
    ("schedule", "code", "message"),
    [
        (Cron("*/7 * * * *"), "uneven-step", f"*/7 {STEP} minute field: from 56 it is 4 to the next"),
        (Cron("*/7 * * * * *"), "uneven-step", f"*/7 {STEP} second field: from 56 it is 4 to the next"),
        (Cron("0 */5 * * *"), "uneven-step", f"*/5 {STEP} hour field: from 20 it is 4 to the next"),
        (Cron("0 9 1 */5 *"), "uneven-step", f"*/5 {STEP} month field: from 11 it is 2 to the next"),
        (Cron("0 9 * * */2"), "uneven-step", f"*/2 {STEP} day-of-week field: from 6 it is 1 to the next"),
        (Cron("0 9 */2 * *"), "step-restarts", f"*/2 in the day-of-month field {RESTARTS}"),
        (Cron("* 2 * * *"), "every-minute-of-an-hour", "fires 60 times, every minute from 02:00 to 02:59"),
        (Cron("0 0 * * *"), "midnight", "starts at midnight together with everything else that is daily"),
        (
            Cron("0 9 13 * FRI"),
            "either-day",
            "both day fields are restricted, so it fires on day 13 and also on FRI, whichever comes",
        ),
        (Cron("0 9 */2 * MON"), "both-days", "*/2 begins with *, so a day must match both day fields"),
        (Cron("0 9 31 * *"), "missing-days", "day 31 does not exist in 5 of its months, which are left out"),
        (Cron("0 9 30 2,4 *"), "missing-days", "day 30 does not exist in 1 of its months, which are left out"),
        (Cron("30 2 * * *", NEW_YORK), "dst-hour", f"{GAP} runs at 03:00"),
        (Cron("30 2 * * *", NEW_YORK, "skip"), "dst-hour", f"{GAP} is skipped"),
        (Cron("30 1 * * *", NEW_YORK), "dst-hour", f"{FOLD} the first time"),
        (Cron("30 1 * * *", NEW_YORK, None, "second"), "dst-hour", f"{FOLD} the second time"),
        (Cron("30 1 * * *", NEW_YORK, None, "both"), "dst-hour", f"{FOLD} both times"),
        (Cron("0 9 29 2 +MON"), "far", "next in 17 years, on 2044-02-29"),
        (
            Timetable(Every("1h"), jitter="90m", seed="acme/x"),
            "jitter-too-long",
            "jitter 90m is longer than the gap between ticks",
        ),
    ],
)
def test_each_finding_on_its_case(schedule: Schedule, code: str, message: str):
    findings = found(schedule)
    assert code in findings
    assert findings[code].message == message
    assert findings[code].level == ("info" if code in INFO else "warning")
    assert findings[code].hint


@pytest.mark.parametrize("schedule", [Every("24h"), Every("7d"), Timetable([Every("48h"), Cron("0 9 * * *")])])
def test_an_interval_of_days_in_a_zone(schedule: Schedule):
    finding = found(schedule, NEW_YORK)["interval-of-days"]
    assert finding.level == "warning"
    assert finding.message.endswith(f"is real time: in {NEW_YORK} it moves by an hour at each clock change")
    assert finding.hint == "did you mean a daily cron, such as 0 9 * * *?"


def test_a_schedule_without_more_ticks():
    late = datetime(9999, 12, 31, 23, tzinfo=UTC)
    assert found(Cron("0 9 * * *"), now=late)["no-more"].message == "never fires after 9999-12-31T23:00:00Z"


def test_the_dst_hint_names_all_hours_that_a_clock_change_touches():
    """New York has no 02:00-03:00 in March and 01:00-02:00 twice in November: 01:30 is no way out for 02:30."""
    for expression in ("30 2 * * *", "30 1 * * *"):
        hint = found(Cron(expression, NEW_YORK))["dst-hour"].hint
        assert hint == "times outside 01:00 and 03:00 are never touched by a clock change"
    half = found(Cron("15 2 * * *", "Australia/Lord_Howe"))["dst-hour"].hint
    assert half == "times outside 01:30 and 02:30 are never touched by a clock change"


def test_a_dst_hour_is_found_on_the_days_of_the_schedule_only():
    assert "dst-hour" in found(Cron("30 2 * * SUN", NEW_YORK))
    assert "dst-hour" not in found(Cron("30 2 * * SAT", NEW_YORK))
    assert "dst-hour" not in found(Cron("30 2 1 1 *", NEW_YORK))
    assert "dst-hour" not in found(Cron("30 2 * * *", "America/Sao_Paulo"))  # no more changes
    assert "dst-hour" not in found(Cron("*/30 * * * *", NEW_YORK))  # a clock job keeps its cadence


def test_jitter_is_held_against_the_shortest_gap_whenever_somebody_asks():
    """09:00 and 09:05: the gap of five minutes is there at any time of day."""
    timetable = Timetable(Cron("0,5 9 * * *"), jitter="10m", seed="acme/x")
    for hour in (0, 9, 10, 23):
        for minute in (0, 3, 30):
            asked = NOW + timedelta(hours=hour, minutes=minute)
            finding = found(timetable, now=asked)["jitter-too-long"]
            assert finding.hint == "it is cut to 5m"
    assert found(Timetable(Cron("0,5 9 * * *"), jitter="5m", seed="acme/x")) == {}


def test_a_timetable_has_the_findings_of_its_schedules():
    feasts = DayRule(holidays("feasts", ["12-25"]))
    codes = found(Timetable([Cron("*/7 9 * * *"), Cron("0 0 * * *")], calendars=[feasts], jitter="1h", seed="a/b"))
    assert set(codes) == {"uneven-step", "midnight", "jitter-too-long"}


def test_findings_are_data():
    findings = lint(Cron("*/7 2 13 * FRI", NEW_YORK), NOW)
    listed = [finding.as_json() for finding in findings]
    assert json.loads(json.dumps(listed)) == listed
    assert all(set(one) == {"level", "code", "message", "hint"} for one in listed)
