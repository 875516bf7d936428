"""Every row of the worked examples of time.md, and every sentence of it with a number in it, literally."""

from datetime import UTC, datetime, timedelta

import pytest

from fleetcron import Cron, Every, Once, ScheduleError

NEW_YORK = "America/New_York"
LORD_HOWE = "Australia/Lord_Howe"
APIA = "Pacific/Apia"


def at(text: str) -> datetime:
    """An instant; `Z` is written out in the examples, a local time carries its offset."""
    return datetime.fromisoformat(text).astimezone(UTC)


def ticks(cron: Cron, low: str, high: str) -> list[datetime]:
    return list(cron.between(at(low), at(high)))


def days(expression: str, low: str, high: str, month_end: str) -> list[str]:
    found = Cron(expression, month_end=month_end).between(
        at(f"{low}T00:00Z") - timedelta(seconds=1), at(f"{high}T00:00Z")
    )
    return [tick.strftime("%Y-%m-%d") for tick in found]


# --- worked examples --------------------------------------------------------------------------------------------------


def test_new_york_gap():
    low, high = "2025-03-09T00:00-05:00", "2025-03-10T12:00-04:00"
    skip = Cron("30 2 * * *", NEW_YORK, dst_gap="skip")
    shift = Cron("30 2 * * *", NEW_YORK, dst_gap="shift")
    assert ticks(skip, low, high) == [at("2025-03-10T02:30-04:00")]
    assert ticks(shift, low, high) == [at("2025-03-09T07:00Z"), at("2025-03-10T02:30-04:00")]


@pytest.mark.parametrize(("fold", "owed"), [("first", ["05:30"]), ("second", ["06:30"]), ("both", ["05:30", "06:30"])])
def test_new_york_fold(fold: str, owed: list[str]):
    cron = Cron("30 1 * * *", NEW_YORK, dst_fold=fold)
    assert ticks(cron, "2025-11-02T04:00Z", "2025-11-02T12:00Z") == [at(f"2025-11-02T{time}Z") for time in owed]


def test_lord_howe_gap():
    low, high = "2025-10-04T16:00+10:30", "2025-10-06T12:00+11:00"
    skip = Cron("15 2 * * *", LORD_HOWE, dst_gap="skip")
    shift = Cron("15 2 * * *", LORD_HOWE, dst_gap="shift")
    assert ticks(skip, low, high) == [at("2025-10-06T02:15+11:00")]
    assert ticks(shift, low, high) == [at("2025-10-04T15:30Z"), at("2025-10-06T02:15+11:00")]
    assert at("2025-10-04T15:30Z") == at("2025-10-05T02:30+11:00")  # "of the day before" is the UTC day


@pytest.mark.parametrize(("fold", "time"), [("first", "14:45"), ("second", "15:15")])
def test_lord_howe_fold(fold: str, time: str):
    cron = Cron("45 1 * * *", LORD_HOWE, dst_fold=fold)
    assert ticks(cron, "2025-04-05T12:00Z", "2025-04-06T12:00Z") == [at(f"2025-04-05T{time}Z")]


def test_sao_paulo_gap_at_midnight():
    low, high = "2018-11-03T12:00Z", "2018-11-05T12:00Z"
    skip = Cron("0 0 * * *", "America/Sao_Paulo", dst_gap="skip")
    shift = Cron("0 0 * * *", "America/Sao_Paulo", dst_gap="shift")
    assert ticks(skip, low, high) == [at("2018-11-05T00:00-02:00")]
    assert ticks(shift, low, high) == [at("2018-11-04T03:00Z"), at("2018-11-05T00:00-02:00")]


def test_apia_without_a_day():
    low, high = "2011-12-29T00:00-10:00", "2011-12-31T23:00+14:00"
    skip = Cron("0 9 * * *", APIA, dst_gap="skip")
    shift = Cron("0 9 * * *", APIA, dst_gap="shift")
    the_29th, the_31st = at("2011-12-29T09:00-10:00"), at("2011-12-31T09:00+14:00")
    assert ticks(skip, low, high) == [the_29th, the_31st]
    assert ticks(shift, low, high) == [the_29th, at("2011-12-31T00:00+14:00"), the_31st]


def test_apia_payroll_is_not_lost():
    cron = Cron("0 9 * * 5", APIA, dst_gap="shift")
    assert cron.next_after(at("2011-12-29T12:00-10:00")) == at("2011-12-31T00:00+14:00")
    assert Cron("0 9 * * 5", APIA, dst_gap="skip").next_after(at("2011-12-29T12:00-10:00")) == at(
        "2012-01-06T09:00+14:00"
    )


# --- Definition -------------------------------------------------------------------------------------------------------


def test_two_times_shifted_to_one_instant_are_one_tick():
    cron = Cron("0,15,30,45 2 * * *", NEW_YORK, dst_gap="shift")
    low, high = at("2025-03-09T06:30Z"), at("2025-03-09T12:00Z")
    assert list(cron.between(low, high)) == [at("2025-03-09T07:00Z")]
    assert cron.count(low, high) == 1


def test_a_shifted_time_and_the_time_it_lands_on_are_one_tick():
    cron = Cron("30 2,3 * * *", NEW_YORK, dst_gap="shift")
    assert ticks(cron, "2025-03-09T06:30Z", "2025-03-09T12:00Z") == [at("2025-03-09T07:00Z"), at("2025-03-09T07:30Z")]
    cron = Cron("0 2,3 * * *", NEW_YORK, dst_gap="shift")
    assert ticks(cron, "2025-03-09T06:30Z", "2025-03-09T12:00Z") == [at("2025-03-09T07:00Z")]


def test_a_time_that_is_always_in_a_gap_never_fires():
    """The second Sunday of March has had no 02:30 in New York since 2007."""
    with pytest.raises(ScheduleError, match="never"):
        Cron("30 2 8-14 3 +SUN", NEW_YORK, dst_gap="skip")
    cron = Cron("30 2 8-14 3 +SUN", NEW_YORK, dst_gap="shift")
    assert cron.next_after(at("2025-01-01T00:00Z")) == at("2025-03-09T07:00Z")
    assert cron.prev_before(at("2007-01-01T00:00Z")) == at("2006-03-12T02:30-05:00")


# --- Defaults ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("expression", "seed"),
    [
        ("* * * * *", None),
        ("*/15 * * * *", None),
        ("*/15 2 * * *", None),
        ("0 * * * *", None),
        ("30 */2 * * *", None),
        ("*/10 30 2 * * *", None),
        ("* 30 2 * * *", None),
        ("0 0-23 * * *", None),
        ("0 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23 * * *", None),
        ("0 22-21 * * *", None),
        ("0 0/1 * * *", None),
        ("*,5 2 * * *", None),
        ("@hourly", None),
        ("@every_minute", None),
        ("@every_second", None),
        ("H/15 2 * * *", "acme/report"),
        ("H H/6 * * *", "acme/report"),
        ("H * * * *", "acme/report"),
    ],
)
def test_clock_job(expression: str, seed: str | None):
    cron = Cron(expression, NEW_YORK, seed=seed)
    assert (cron.dst_gap, cron.dst_fold) == ("skip", "both")


@pytest.mark.parametrize(
    ("expression", "seed"),
    [
        ("30 2 * * *", None),
        ("0 30 2 * * *", None),
        ("0-59 2 * * *", None),
        ("0 0-22 * * *", None),
        ("0 1/2 * * *", None),
        ("0 9 */2 * *", None),
        ("0 9 * */2 */2", None),
        ("@daily", None),
        ("@weekly", None),
        ("@yearly", None),
        ("H 2 * * *", "acme/report"),
        ("H H * * *", "acme/report"),
    ],
)
def test_time_of_day_job(expression: str, seed: str | None):
    cron = Cron(expression, NEW_YORK, seed=seed)
    assert (cron.dst_gap, cron.dst_fold) == ("shift", "first")


def test_every_quarter_of_an_hour_keeps_its_cadence_through_both():
    cron = Cron("*/15 * * * *", NEW_YORK)
    for day in ("2025-03-09", "2025-11-02"):
        start = at(f"{day}T00:00Z")
        assert list(cron.between(start, start + timedelta(days=1))) == [
            start + n * timedelta(minutes=15) for n in range(1, 97)
        ]


def test_a_chosen_policy_stays_and_the_other_is_derived():
    assert Cron("30 2 * * *", NEW_YORK, dst_gap="skip").dst_fold == "first"
    assert Cron("30 2 * * *", NEW_YORK, dst_fold="both").dst_gap == "shift"
    assert Cron("* * * * *", NEW_YORK, dst_fold="first").dst_gap == "skip"


# --- Syntax -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("fields", ["* * * *", "* * * * * * *", "", "   ", "*"])
def test_five_fields_or_six(fields: str):
    with pytest.raises(ScheduleError):
        Cron(fields)


def test_seconds_come_first_when_there_are_six():
    assert Cron("5 30 2 * * *").next_after(at("2025-01-01T00:00Z")) == at("2025-01-01T02:30:05Z")
    assert Cron("30 2 * * *") == Cron("0 30 2 * * *")


@pytest.mark.parametrize(
    ("expression", "same"),
    [
        ("0 0 * * FRI-MON", "0 0 * * 5,6,0,1"),
        ("0 22-3 * * *", "0 22,23,0,1,2,3 * * *"),
        ("0 0 ? * MON", "0 0 * * 1"),
        ("0 0 15 JAN,jul ?", "0 0 15 1,7 *"),
        ("0 0 * * 5L", "0 0 * * FRIL"),
        ("0 0 * * 5#2", "0 0 8-14 * +5"),
        ("0 0 1W,15 * *", "0 0 15,1W * *"),
        ("@monthly", "0 0 1 * *"),
        ("@annually", "@yearly"),
        ("@midnight", "@daily"),
    ],
)
def test_syntax(expression: str, same: str):
    policies = {"dst_gap": "shift", "dst_fold": "first"}
    assert Cron(expression, **policies) == Cron(same, **policies)


@pytest.mark.parametrize(
    "expression", ["*/60 * * * *", "0 */24 * * *", "0 0 */32 * *", "0 0 1 */13 *", "0 0 * * */8", "*/60 * * * * *"]
)
def test_a_step_larger_than_the_field_is_refused(expression: str):
    with pytest.raises(ScheduleError, match="step"):
        Cron(expression)


def test_day_fields():
    june = ("2025-06-01", "2025-06-30")  # begins on a Sunday
    assert days("0 0 13 * FRI", *june, "skip") == ["2025-06-06", "2025-06-13", "2025-06-20", "2025-06-27"]  # OR
    assert days("0 0 2 * FRI", *june, "skip") == ["2025-06-02", "2025-06-06", "2025-06-13", "2025-06-20", "2025-06-27"]
    assert days("0 0 */2 * FRI", *june, "skip") == ["2025-06-13", "2025-06-27"]  # AND: one begins with *
    assert days("0 0 13,14 * +FRI", *june, "skip") == ["2025-06-13"]  # AND: explicit


@pytest.mark.parametrize("text", ["٣ * * * *", "¹ * * * *", "* * * * ſun", "* * * ﬁ *", "* * * * frı"])
def test_digits_and_letters_are_ascii(text: str):
    """int() reads other digits and upper() makes ASCII letters of some others; neither is cron."""
    with pytest.raises(ScheduleError):
        Cron(text)


@pytest.mark.parametrize(
    "expression",
    [
        "0 0 30 2 *",
        "0 0 31 4,6,9,11 *",
        "0 0 31 2,4 +MON",
        "0 0 L-30 2 *",
        "0 0 30W 2 *",
        "0 0 29 2 +MON#1",
        "0 0 6 * +MON#2",
    ],
)
def test_never_firing_is_refused(expression: str):
    with pytest.raises(ScheduleError):
        Cron(expression)


@pytest.mark.parametrize(
    ("expression", "after", "owed"),
    [
        ("0 0 29 2 +MON", "2025-01-01", "2044-02-29"),
        ("0 0 29 2 *", "2096-03-01", "2104-02-29"),  # 2100 is no leap year
        ("0 0 29 2 +SUN", "2088-03-01", "2128-02-29"),  # 40 years
    ],
)
def test_rare_is_not_never(expression: str, after: str, owed: str):
    tick = Cron(expression).next_after(at(f"{after}T00:00Z"))
    assert tick is not None
    assert tick.strftime("%Y-%m-%d") == owed


# --- month_end --------------------------------------------------------------------------------------------------------

FOUR_MONTHS = ("2025-01-01", "2025-04-30")


def test_skip_fires_only_in_months_that_have_the_day():
    assert days("0 0 31 * *", *FOUR_MONTHS, "skip") == ["2025-01-31", "2025-03-31"]


def test_clamp_day_31():
    assert days("0 0 31 * *", *FOUR_MONTHS, "clamp") == ["2025-01-31", "2025-02-28", "2025-03-31", "2025-04-30"]


def test_clamp_30_and_31_give_one_tick_on_february_28():
    assert days("0 0 30,31 * *", "2025-02-01", "2025-02-28", "clamp") == ["2025-02-28"]
    low, high = at("2025-02-01T00:00Z"), at("2025-03-01T00:00Z")
    assert Cron("0 0 30,31 * *", month_end="clamp").count(low, high) == 1


def test_clamp_a_plain_range():
    assert days("0 0 29-31 2,4 *", "2025-01-01", "2025-12-31", "clamp") == ["2025-02-28", "2025-04-29", "2025-04-30"]


def test_days_from_a_star_or_a_step_are_never_clamped():
    for written in ("*/30", "1-31/30", "1/30"):
        assert days(f"0 0 {written} * *", *FOUR_MONTHS, "clamp") == [
            "2025-01-01", "2025-01-31", "2025-02-01", "2025-03-01", "2025-03-31", "2025-04-01"
        ]  # fmt: skip


def test_clamp_february_29():
    assert days("0 0 29 2 *", "2023-01-01", "2025-12-31", "clamp") == ["2023-02-28", "2024-02-29", "2025-02-28"]
    assert days("0 0 29 2 *", "2023-01-01", "2025-12-31", "skip") == ["2024-02-29"]


def test_february_30_is_refused_under_skip_and_valid_under_clamp():
    with pytest.raises(ScheduleError):
        Cron("0 0 30 2 *", month_end="skip")
    assert days("0 0 30 2 *", "2024-01-01", "2025-12-31", "clamp") == ["2024-02-29", "2025-02-28"]


@pytest.mark.parametrize("day", ["L", "L-3", "LW"])
def test_l_never_depends_on_it(day: str):
    assert Cron(f"0 0 {day} * *", month_end="skip") == Cron(f"0 0 {day} * *", month_end="clamp")


# --- Every ------------------------------------------------------------------------------------------------------------


def test_every_is_anchor_plus_k_times_every():
    seven_hours = Every("7h", anchor=at("2025-01-01T01:00Z"))
    assert seven_hours.next_after(at("2025-01-01T01:00Z")) == at("2025-01-01T08:00Z")
    assert seven_hours.next_after(at("2024-12-31T00:00Z")) == at("2024-12-31T04:00Z")  # k may be negative
    assert seven_hours.prev_before(at("2025-01-01T01:00Z")) == at("2024-12-31T18:00Z")
    assert at("2025-01-01T15:00Z") in seven_hours
    assert at("2025-01-01T15:01Z") not in seven_hours
    assert seven_hours.count(at("2025-01-01T01:00Z"), at("2025-01-02T01:00Z")) == 3
    assert list(seven_hours.between(at("2025-01-01T01:00Z"), at("2025-01-02T01:00Z"), limit=2)) == [
        at("2025-01-01T08:00Z"),
        at("2025-01-01T15:00Z"),
    ]


def test_a_restart_does_not_move_it():
    anchor = at("2025-01-01T00:07Z")
    assert Every("15m", anchor=anchor) == Every("15m", anchor=anchor)
    assert Every("15m", anchor=anchor).next_after(at("2026-06-01T12:00Z")) == at("2026-06-01T12:07Z")


def test_every_goes_by_utc_through_a_change_of_the_clocks():
    daily = Every("24h", anchor=at("2025-03-08T02:30-05:00"))
    assert daily.next_after(at("2025-03-08T02:30-05:00")) == at("2025-03-09T07:30Z")


@pytest.mark.parametrize(
    ("duration", "seconds"),
    [("30s", 30), ("15m", 900), ("1h", 3600), ("7d", 604800), (90, 90), (timedelta(minutes=5), 300)],
)
def test_durations(duration: str | int | timedelta, seconds: int):
    start = at("1970-01-01T00:00Z")  # the default anchor
    assert Every(duration).next_after(start) == start + timedelta(seconds=seconds)


@pytest.mark.parametrize("duration", ["0s", 0, -5, "-5m", "", "soon", timedelta(0)])
def test_a_duration_is_positive(duration: str | int | timedelta):
    with pytest.raises(ScheduleError):
        Every(duration)


# --- Once -------------------------------------------------------------------------------------------------------------


def all_of(once: Once) -> list[datetime]:
    return list(once.between(at("1990-01-01T00:00Z"), at("2090-01-01T00:00Z")))


def test_once_is_an_instant():
    once = Once(at("2027-01-01T09:00Z"))
    assert once.next_after(at("2026-01-01T00:00Z")) == at("2027-01-01T09:00Z")
    assert once.next_after(at("2027-01-01T09:00Z")) is None
    assert once.prev_before(at("2027-01-01T09:00Z")) is None
    assert once.prev_before(at("2028-01-01T00:00Z")) == at("2027-01-01T09:00Z")
    assert once.count(at("2026-01-01T00:00Z"), at("2027-01-01T09:00Z")) == 1
    assert once.count(at("2027-01-01T09:00Z"), at("2028-01-01T00:00Z")) == 0
    assert at("2027-01-01T09:00Z") in once


def test_once_is_a_local_time_in_a_zone():
    owed = [at("2025-07-01T09:00-04:00")]
    assert all_of(Once("2025-07-01T09:00:00", NEW_YORK)) == owed
    assert all_of(Once(datetime(2025, 7, 1, 9), NEW_YORK)) == owed  # noqa: DTZ001 (a local time)


def test_once_is_resolved_with_the_same_policies():
    assert all_of(Once("2025-03-09T02:30:00", NEW_YORK, dst_gap="shift")) == [at("2025-03-09T07:00Z")]
    with pytest.raises(ScheduleError):
        Once("2025-03-09T02:30:00", NEW_YORK, dst_gap="skip")
    assert all_of(Once("2025-11-02T01:30:00", NEW_YORK, dst_fold="first")) == [at("2025-11-02T05:30Z")]
    assert all_of(Once("2025-11-02T01:30:00", NEW_YORK, dst_fold="second")) == [at("2025-11-02T06:30Z")]


# --- refusals and zones -----------------------------------------------------------------------------------------------


def test_schedule_error_is_a_value_error():
    assert issubclass(ScheduleError, ValueError)


@pytest.mark.parametrize(
    "wrong",
    [
        {"dst_gap": "jump"},
        {"dst_fold": "third"},
        {"month_end": "round"},
        {"timezone": "Mars/Olympus"},
        {"timezone": "EST"},
    ],
)
def test_a_bad_zone_or_policy_is_refused_at_construction(wrong: dict[str, str]):
    with pytest.raises(ScheduleError):
        Cron("0 0 * * *", **wrong)


@pytest.mark.parametrize("expression", ["H * * * *", "0 H * * *", "0 0 H * *", "H(0-29)/10 * * * *", "0 0 * * H"])
def test_h_without_a_seed_is_refused(expression: str):
    with pytest.raises(ScheduleError, match="H needs"):
        Cron(expression)


@pytest.mark.parametrize(
    ("zone", "day", "owed"),
    [
        ("America/Vancouver", "2026-12-01", "2026-12-01T09:00-07:00"),  # permanent DST in the pinned data, not in 2025b
        ("America/Winnipeg", "2026-12-01", "2026-12-01T09:00-05:00"),
    ],
)
def test_zones_come_from_the_pinned_package(zone: str, day: str, owed: str):
    assert Cron("0 9 * * *", zone).next_after(at(f"{day}T00:00Z")) == at(owed)
