"""A schedule in words: whole texts for fixed instants, and the same as data."""

import json
from datetime import UTC, datetime

import pytest

from fleetcron import Cron, Every, Once
from fleetcron.times.calendars import DayRule, business_days, holidays
from fleetcron.times.explain import Change, Explanation, clock_changes, explain
from fleetcron.times.expression import parse
from fleetcron.times.schedule import Schedule
from fleetcron.times.timetable import BlackoutRule, Timetable
from fleetcron.times.windows import blackout
from fleetcron.times.words import sentence

NOW = datetime(2026, 11, 16, tzinfo=UTC)
NEW_YORK = "America/New_York"


def changes(schedule: Schedule, after: datetime = NOW) -> list[str]:
    return [f"{change.date}: {change.text}" for change in clock_changes(schedule, after)]


# --- whole texts -----------------------------------------------------------------------------------------------------


def test_a_nightly_job_in_new_york():
    assert explain(Cron("30 2 * * *", NEW_YORK), datetime(2027, 3, 12, 12, tzinfo=UTC)) == (
        "At 02:30 every day, America/New_York time.\n"
        "  expression   30 2 * * *   (second=0 minute=30 hour=2 day_of_month=* month=* day_of_week=*)\n"
        "  day rule     both day fields must match, because day-of-month begins with *\n"
        "  class        time-of-day job: dst_gap=shift, dst_fold=first, month_end=skip\n"
        "  between runs 23h30m to 25h\n"
        "Next ticks\n"
        "  2027-03-13T07:30:00Z   2027-03-13T02:30:00-05:00\n"
        "  2027-03-14T07:00:00Z   2027-03-14T03:00:00-04:00   moved from 02:30: does not exist\n"
        "  2027-03-15T06:30:00Z   2027-03-15T02:30:00-04:00\n"
        "  2027-03-16T06:30:00Z   2027-03-16T02:30:00-04:00\n"
        "  2027-03-17T06:30:00Z   2027-03-17T02:30:00-04:00\n"
        "Clock changes within two years\n"
        "  2027-03-14: 02:30 does not exist in America/New_York, runs at 03:00\n"
        "  2028-03-12: 02:30 does not exist in America/New_York, runs at 03:00\n"
        "  2029-03-11: 02:30 does not exist in America/New_York, runs at 03:00"
    )


def test_a_rare_day():
    assert explain(Cron("0 0 29 2 +MON"), NOW) == (
        "At 00:00 on day 29 of the month in February, if that is Monday, UTC time.\n"
        "  expression   0 0 29 2 +MON   (second=0 minute=0 hour=0 day_of_month=29 month=2 day_of_week=MON)\n"
        "  day rule     both day fields must match, because of the + on the weekday\n"
        "  class        time-of-day job: dst_gap=shift, dst_fold=first, month_end=skip\n"
        "  between runs 10227d to 10227d\n"
        "  verdict      next in 17 years\n"
        "Next ticks\n"
        "  2044-02-29T00:00:00Z   2044-02-29T00:00:00+00:00\n"
        "  2072-02-29T00:00:00Z   2072-02-29T00:00:00+00:00\n"
        "  2112-02-29T00:00:00Z   2112-02-29T00:00:00+00:00\n"
        "  2140-02-29T00:00:00Z   2140-02-29T00:00:00+00:00\n"
        "  2168-02-29T00:00:00Z   2168-02-29T00:00:00+00:00\n"
        "Worth a look\n"
        "  warning: February 29th exists in leap years only; month_end=clamp takes the 28th in other years\n"
        "  warning: next in 17 years, on 2044-02-29; check the day fields"
    )


def test_an_interval_of_a_day():
    assert explain(Every("24h", NOW), NOW, NEW_YORK) == (
        "Every 1d of real time, counted from 2026-11-16T00:00:00Z, America/New_York time.\n"
        "  between runs 24h to 24h\n"
        "Next ticks\n"
        "  2026-11-17T00:00:00Z   2026-11-16T19:00:00-05:00\n"
        "  2026-11-18T00:00:00Z   2026-11-17T19:00:00-05:00\n"
        "  2026-11-19T00:00:00Z   2026-11-18T19:00:00-05:00\n"
        "  2026-11-20T00:00:00Z   2026-11-19T19:00:00-05:00\n"
        "  2026-11-21T00:00:00Z   2026-11-20T19:00:00-05:00\n"
        "Worth a look\n"
        "  warning: every 1d is real time: in America/New_York it moves by an hour at each clock change; "
        "did you mean a daily cron, such as 0 9 * * *?"
    )


def test_what_is_over():
    assert explain(Once("2026-01-01T00:00Z"), NOW) == (
        "Once, at 2026-01-01T00:00:00Z, UTC time.\n"
        "  verdict      never fires after 2026-11-16T00:00:00Z\n"
        "No tick is left."
    )


# --- as data ---------------------------------------------------------------------------------------------------------


def test_an_explanation_is_text_and_data():
    told = explain(Cron("30 2 * * *", NEW_YORK), NOW)
    assert isinstance(told, Explanation)
    assert isinstance(told, str)
    data = told.as_json()
    assert json.loads(json.dumps(data)) == data
    assert data["schedule"] == {
        "sentence": "at 02:30 every day",
        "cron": "30 2 * * *",
        "fields": {"second": "0", "minute": "30", "hour": "2", "day_of_month": "*", "month": "*", "day_of_week": "*"},
        "day_rule": "both day fields must match, because day-of-month begins with *",
        "class": "time-of-day job",
        "dst_gap": "shift",
        "dst_fold": "first",
        "month_end": "skip",
    }
    assert data["timezone"] == NEW_YORK
    assert [row["scheduled_for"] for row in data["next"]][:2] == ["2026-11-16T07:30:00Z", "2026-11-17T07:30:00Z"]
    assert data["clock_changes"][0] == {
        "date": "2027-03-14",
        "text": "02:30 does not exist in America/New_York, runs at 03:00",
    }
    assert (data["shortest_gap"], data["longest_gap"], data["verdict"]) == ("23h30m", "25h", "fires")
    assert [finding["code"] for finding in data["findings"]] == ["dst-hour"]


NIGHT = blackout("night", repeated=[(Cron("0 1 * * *", NEW_YORK), "3h")])
EVERYTHING: list[Schedule] = [
    Cron("*/5 * * * * *"),
    Cron("@hourly", "Europe/Berlin"),
    Cron("H H * * *", NEW_YORK, seed="acme/x"),
    Every("1s"),
    Every("7d"),
    Once("2027-11-07 01:30", NEW_YORK, dst_fold="both"),
    Timetable([Cron("0 9 * * *"), Every("1h"), Once("2027-01-01T00:00Z")], jitter="2h", seed="acme/x"),
    Timetable(
        Cron("30 2 31 * *", NEW_YORK, month_end="clamp"),
        calendars=[DayRule(business_days("work", timezone="Asia/Tokyo"), True, "next"), BlackoutRule(NIGHT, "defer")],
    ),
]


@pytest.mark.parametrize("schedule", EVERYTHING, ids=range(len(EVERYTHING)))
def test_every_schedule_explains_itself(schedule: Schedule):
    told = explain(schedule, NOW, NEW_YORK)
    assert json.loads(json.dumps(told.as_json())) == told.as_json()
    assert told[0].isupper()
    assert "\nNext ticks\n" in told
    assert set(told.as_json()) == {
        "schedule", "timezone", "next", "clock_changes", "shortest_gap", "longest_gap", "verdict", "findings",
    }  # fmt: skip


def test_schedules_have_a_method_for_it():
    for schedule in (Cron("30 2 * * *", NEW_YORK), Every("1h"), Once("2027-01-01T00:00Z")):
        assert schedule.explain(NOW) == explain(schedule, NOW)
        assert schedule.explain()  # from now on, whenever that is


# --- the day rule and the class --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("expression", "rule"),
    [
        ("0 9 * * *", "both day fields must match, because day-of-month begins with *"),
        ("0 9 13 * *", "both day fields must match, because day-of-week begins with *"),
        ("0 9 */2 * MON", "both day fields must match, because day-of-month begins with *"),
        ("0 9 13 * ?", "both day fields must match, because day-of-week begins with *"),
        ("0 9 13 * FRI", "either day field is enough, because both are restricted"),
        ("0 9 13 * +FRI", "both day fields must match, because of the + on the weekday"),
    ],
)
def test_the_day_rule(expression: str, rule: str):
    assert explain(Cron(expression), NOW).as_json()["schedule"]["day_rule"] == rule


def test_the_class_and_the_policies():
    said = explain(Cron("*/15 1-3 * * *", NEW_YORK), NOW).as_json()["schedule"]
    assert (said["class"], said["dst_gap"], said["dst_fold"]) == ("clock job", "skip", "both")
    chosen = explain(Cron("*/15 1-3 * * *", NEW_YORK, "shift", "second", "clamp"), NOW).as_json()["schedule"]
    assert [chosen[key] for key in ("class", "dst_gap", "dst_fold", "month_end")] == [
        "clock job",
        "shift",
        "second",
        "clamp",
    ]


# --- clock changes ---------------------------------------------------------------------------------------------------


GONE, TWICE = "does not exist in America/New_York", "comes twice in America/New_York"


@pytest.mark.parametrize(
    ("schedule", "owed"),
    [
        (Cron("30 2 * * *", NEW_YORK), [f"03-14: 02:30 {GONE}, runs at 03:00"]),
        (Cron("30 2 * * *", NEW_YORK, "skip"), [f"03-14: 02:30 {GONE}, is skipped"]),
        (Cron("0,30 2 * * *", NEW_YORK), [f"03-14: 02:00 to 03:00 {GONE}, one run at 03:00 stands for all 2 times"]),
        (Cron("30 1 * * *", NEW_YORK), [f"11-07: 01:30 {TWICE}, runs the first time"]),
        (Cron("30 1 * * *", NEW_YORK, None, "second"), [f"11-07: 01:30 {TWICE}, runs the second time"]),
        (
            Cron("*/15 1-3 * * *", NEW_YORK),
            [
                f"03-14: 02:00 to 03:00 {GONE}, 4 times are skipped and real time goes on",
                f"11-07: 01:00 to 02:00 {TWICE}, runs both times",
            ],
        ),
        (
            Cron("15,45 1,2 * * *", "Australia/Lord_Howe"),
            [
                "04-04: 01:45 comes twice in Australia/Lord_Howe, runs the first time",
                "10-03: 02:15 does not exist in Australia/Lord_Howe, runs at 02:30",
            ],
        ),
        (
            Cron("30 23 * * *", "America/Nuuk"),
            [
                "03-27: 23:30 does not exist in America/Nuuk, runs at 00:00",
                "10-30: 23:30 comes twice in America/Nuuk, runs the first time",
            ],
        ),
        (Cron("30 2 * * SAT", NEW_YORK), []),
        (Cron("30 2 * * *", "UTC"), []),
        (Cron("30 2 * * *", "Asia/Tokyo"), []),
        (Every("1h"), []),
    ],
)
def test_what_the_clock_changes_of_2027_do(schedule: Schedule, owed: list[str]):
    assert [change for change in changes(schedule) if change.startswith("2027")] == [f"2027-{line}" for line in owed]


def test_two_years_are_looked_at():
    assert [change[:10] for change in changes(Cron("30 2 * * *", NEW_YORK))] == ["2027-03-14", "2028-03-12"]
    right_at_one = datetime(2026, 3, 8, 7, tzinfo=UTC)
    assert [change[:10] for change in changes(Cron("30 2 * * *", NEW_YORK), right_at_one)] == ["2027-03-14"]


def test_a_zone_that_skips_a_day():
    assert clock_changes(Cron("0 9 * * *", "Pacific/Apia"), datetime(2011, 12, 1, tzinfo=UTC))[0] == Change(
        "2011-12-30", "09:00 does not exist in Pacific/Apia, runs at 00:00"
    )


def test_calendars_do_not_hide_the_clock_changes():
    """Neither one of the job's zone, nor one of another zone, nor one that moves ticks."""
    job = Cron("30 2 * * *", NEW_YORK)
    owed = changes(job)
    assert owed
    for timezone in (None, "Asia/Tokyo"):
        for on in ("skip", "next"):
            rule = DayRule(holidays("feasts", ["12-25"], timezone), on=on)
            assert changes(Timetable(job, calendars=[rule])) == owed
    assert changes(Timetable(job, calendars=[BlackoutRule(blackout("x", [(NOW, NOW.replace(day=17))]))])) == owed
    assert changes(Timetable([job, Every("1h"), Cron("30 1 * * *", NEW_YORK)]))[: len(owed)] == owed


def test_a_calendar_that_keeps_the_day_free_has_nothing_to_tell():
    rule = DayRule(holidays("feasts", ["2027-03-14"]))
    assert [change[:10] for change in changes(Timetable(Cron("30 2 * * *", NEW_YORK), calendars=[rule]))] == [
        "2028-03-12"
    ]


# --- gaps and verdicts -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("schedule", "shortest", "longest"),
    [
        (Cron("0 9 * * 1-5"), "24h", "3d"),
        (Cron("0 9 * * 1-5", NEW_YORK), "24h", "3d1h"),
        (Cron("0 0,9 * * *"), "9h", "15h"),
        (Cron("30 2 * * *", NEW_YORK, "skip"), "24h", "47h"),
        (Cron("0 9 31 * *", month_end="clamp"), "28d", "31d"),
        (Cron("0 9 29 2 *"), "1461d", "1461d"),
        (Every("90s"), "1m30s", "1m30s"),
        (Every(1.5), "1500ms", "1500ms"),
        (Once("2027-01-01T00:00Z"), None, None),
    ],
)
def test_the_shortest_and_the_longest_gap(schedule: Schedule, shortest: str | None, longest: str | None):
    data = explain(schedule, NOW).as_json()
    assert (data["shortest_gap"], data["longest_gap"]) == (shortest, longest)


@pytest.mark.parametrize(
    ("schedule", "verdict"),
    [
        (Cron("0 9 * * *"), "fires"),
        (Cron("0 9 29 2 *"), "fires"),
        (Cron("0 9 29 2 +MON"), "next in 17 years"),
        (Once("2030-01-01T00:00Z"), "next in 3 years"),
        (Once("2026-01-01T00:00Z"), "never fires after 2026-11-16T00:00:00Z"),
        (Timetable(Every("1h"), ends_at=datetime(2026, 1, 1, tzinfo=UTC)), "never fires after 2026-11-16T00:00:00Z"),
    ],
)
def test_the_verdict(schedule: Schedule, verdict: str):
    told = explain(schedule, NOW)
    assert told.as_json()["verdict"] == verdict
    assert (f"  verdict      {verdict}\n" in told) == (verdict != "fires")


# --- sentences -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("expression", "said"),
    [
        ("* * * * *", "every minute"),
        ("* * * * * *", "every second"),
        ("*/5 * * * *", "every 5 minutes"),
        ("*/10 * * * * *", "every 10 seconds"),
        ("3/15 * * * *", "every 15 minutes, from minute 3 on"),
        ("0 * * * *", "at minute 0 of every hour"),
        ("5,10 * * * *", "at minutes 5 and 10 of every hour"),
        ("30 * * * * *", "at second 30 of every minute"),
        ("30 0 * * * *", "at second 30 of minute 0 of every hour"),
        ("0 * * * 1-5", "at minute 0 of every hour on Monday to Friday"),
        ("30 2 * * *", "at 02:30 every day"),
        ("15 30 2 * * *", "at 02:30:15 every day"),
        ("0 9,17 * * *", "at 09:00 and 17:00 every day"),
        ("* 2 * * *", "every minute of hour 2"),
        ("*/30 9-17 * * *", "at minutes 0 and 30 from 09:00 to 17:59 every day"),
        ("15 */3 * * *", "at minute 15 of every 3 hours every day"),
        ("0 9 * * 1-5", "at 09:00 on Monday to Friday"),
        ("0 0 * * 7", "at 00:00 on Sunday"),
        ("0 12 * JAN-MAR SAT,SUN", "at 12:00 on Saturday and Sunday in January to March"),
        ("0 12 * 1,2,3,6 *", "at 12:00 every day in January to March and June"),
        ("0 0 1 1 *", "at 00:00 on day 1 of the month in January"),
        ("0 0 1,15,L * *", "at 00:00 on days 1 and 15 and the last day of the month"),
        ("0 0 LW * *", "at 00:00 on the last weekday of the month"),
        ("0 0 15W * *", "at 00:00 on the weekday nearest to day 15 of the month"),
        ("0 0 * * 5L", "at 00:00 on the last Friday of the month"),
        ("0 0 * * MON#2", "at 00:00 on the second Monday of the month"),
        ("0 0 13 * FRI", "at 00:00 on day 13 of the month, and also on Friday"),
        ("0 0 1-7 * +MON", "at 00:00 on days 1 to 7 of the month, if that is Monday"),
    ],
)
def test_sentences(expression: str, said: str):
    assert sentence(parse(expression)) == said
