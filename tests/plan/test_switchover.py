"""What the moment of a change doubles or loses, as people count."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fleetcron import Cron, Every
from fleetcron.applying.firing import Firing, Side, firing
from fleetcron.applying.plan import begun
from fleetcron.times.instants import FIRST_MS, from_ms, to_ms
from fleetcron.times.merged import Merged
from fleetcron.times.preview import local_time
from fleetcron.times.schedule import Schedule
from fleetcron.times.switchover import Switchover, switchover
from fleetcron.times.zones import zone

UTC_ZONE, NEW_YORK = zone("UTC"), zone("America/New_York")


def ms(text: str) -> int:
    return to_ms(datetime.fromisoformat(text))


def change(old: str, new: str, at: str, timezone: str = "UTC", since: str | None = None) -> Switchover | None:
    created = FIRST_MS if since is None else ms(since)
    return switchover(Cron(old, timezone), Cron(new, timezone), ms(at), zone(timezone), created)


def test_a_nightly_job_that_moves_past_now_fires_twice_today() -> None:
    found = change("0 2 * * *", "0 3 * * *", "2027-01-13T02:30Z")
    assert found == Switchover(
        "doubled",
        "day",
        fires=2,
        old=1,
        new=1,
        past_ms=ms("2027-01-13T02:00Z"),
        coming_ms=ms("2027-01-13T03:00Z"),
        better_ms=ms("2027-01-13T03:00Z"),
    )


def test_the_reverse_does_not_fire_today() -> None:
    found = change("0 3 * * *", "0 2 * * *", "2027-01-13T02:30Z")
    assert found == Switchover(
        "lost",
        "day",
        fires=0,
        old=1,
        new=1,
        past_ms=ms("2027-01-13T02:00Z"),
        coming_ms=ms("2027-01-13T03:00Z"),
        better_ms=ms("2027-01-13T03:00Z"),
    )


@pytest.mark.parametrize("at", ["2027-01-13T01:59:59Z", "2027-01-13T03:00Z", "2027-01-13T12:00Z"])
def test_at_any_other_time_of_day_both_are_fine(at: str) -> None:
    assert change("0 2 * * *", "0 3 * * *", at) is None
    assert change("0 3 * * *", "0 2 * * *", at) is None


def test_a_tick_at_the_very_instant_belongs_to_the_old_schedule() -> None:
    found = change("0 2 * * *", "0 3 * * *", "2027-01-13T02:00Z")
    assert found is not None
    assert found.kind == "doubled"
    assert change("0 2 * * *", "0 3 * * *", "2027-01-13T01:59:59.999Z") is None


@pytest.mark.parametrize(
    ("old", "new", "at", "said"),
    [
        ("0 2 * * MON", "0 2 * * FRI", "2027-01-13T12:00Z", ("doubled", "week", 2)),
        ("0 2 * * FRI", "0 2 * * MON", "2027-01-13T12:00Z", ("lost", "week", 0)),
        ("0 2 5 * *", "0 2 25 * *", "2027-01-13T12:00Z", ("doubled", "month", 2)),
        ("0 2 25 * *", "0 2 5 * *", "2027-01-13T12:00Z", ("lost", "month", 0)),
        ("0 2 1 1 *", "0 2 1 7 *", "2027-03-13T12:00Z", ("doubled", "year", 2)),
        ("0 * * * *", "30 * * * *", "2027-01-13T12:15Z", ("doubled", "hour", 2)),
        ("30 * * * *", "0 * * * *", "2027-01-13T12:15Z", ("lost", "hour", 0)),
        ("*/15 * * * *", "7-59/15 * * * *", "2027-01-13T12:05Z", ("doubled", "hour", 5)),
        ("0 2 * * *", "0 3,15 * * *", "2027-01-13T02:30Z", ("doubled", "day", 3)),
    ],
)
def test_weeks_months_years_and_hours_count_too(old: str, new: str, at: str, said: tuple[str, str, int]) -> None:
    found = change(old, new, at)
    assert found is not None
    assert (found.kind, found.period, found.fires) == said


@pytest.mark.parametrize(
    ("old", "new", "at"),
    [
        ("0 2 * * *", "0 * * * *", "2027-01-13T02:30Z"),  # more often: what it is asked for
        ("0 * * * *", "0 2 * * *", "2027-01-13T02:30Z"),
        ("0 2 * * *", "0 2 * * MON-FRI", "2027-01-13T12:00Z"),
        ("30 23 * * *", "30 0 * * *", "2027-01-13T00:00Z"),  # yesterday's has run, today's comes
        ("30 0 * * *", "30 23 * * *", "2027-01-13T23:45Z"),
        ("*/15 * * * *", "7-59/15 * * * *", "2027-01-13T12:10Z"),
    ],
)
def test_what_is_no_double_and_no_loss(old: str, new: str, at: str) -> None:
    assert change(old, new, at) is None


def test_days_are_those_of_the_zone() -> None:
    """20:00 and 21:00 in New York are one day there and two in UTC."""
    at = "2027-01-14T01:30Z"
    found = change("0 20 * * *", "0 21 * * *", at, "America/New_York")
    assert found is not None
    assert (found.kind, found.period) == ("doubled", "day")
    utc = switchover(Cron("0 20 * * *", "America/New_York"), Cron("0 21 * * *", "America/New_York"), ms(at), UTC_ZONE)
    assert utc is not None  # both are on the 14th in UTC too
    late = change("0 18 * * *", "30 19 * * *", "2027-01-14T00:10Z", "America/New_York")
    assert late is not None
    assert (late.period, late.past_ms, late.coming_ms) == ("day", ms("2027-01-13T23:00Z"), ms("2027-01-14T00:30Z"))


def test_a_day_with_a_clock_change_has_its_own_length() -> None:
    """On 2027-11-07 01:30 comes twice; the change between the two does not double what runs once."""
    first, second = "2027-11-07T05:30Z", "2027-11-07T06:30Z"
    found = change("30 1 * * *", "45 1 * * *", "2027-11-07T05:40Z", "America/New_York")
    assert found is not None
    assert (found.past_ms, found.fires) == (ms(first), 2)
    assert change("30 1 * * *", "45 1 * * *", second, "America/New_York") is None


def test_before_a_job_was_created_it_had_no_ticks() -> None:
    assert change("0 2 * * *", "0 3 * * *", "2027-01-13T02:30Z", since="2027-01-13T02:10Z") is None
    assert change("0 3 * * *", "0 2 * * *", "2027-01-13T02:30Z", since="2027-01-13T02:10Z") is None
    assert change("0 3 * * *", "0 2 * * *", "2027-01-13T02:30Z", since="2027-01-13T01:50Z") is not None
    gone = Cron("30 2 * * *", "America/New_York", dst_gap="skip")  # one night less in March is no loss of today
    assert switchover(Cron("30 2 * * *", "America/New_York"), gone, ms("2027-01-13T02:30Z"), NEW_YORK) is None


HOURLY = st.builds(lambda minute: Cron(f"{minute} * * * *"), st.integers(0, 59))
DAILY = st.builds(
    lambda minute, hour, where: Cron(f"{minute} {hour} * * *", where),
    st.integers(0, 59),
    st.integers(0, 23),
    st.sampled_from(["UTC", "America/New_York"]),
)
WEEKLY = st.builds(lambda hour, day: Cron(f"0 {hour} * * {day}"), st.integers(0, 23), st.integers(0, 6))
ANY: st.SearchStrategy[Schedule] = HOURLY | DAILY | WEEKLY | st.builds(Every, st.sampled_from(["7h", "90m", "36h"]))
ANY |= st.lists(DAILY, min_size=2, max_size=3).map(Merged)
NOW = st.integers(0, 360 * 86_400).map(lambda second: datetime(2027, 1, 2, tzinfo=UTC) + timedelta(seconds=second))


@settings(max_examples=150, deadline=None)
@given(ANY, ANY, NOW)
def test_a_walk_through_the_day_counts_the_same(old: Schedule, new: Schedule, now: datetime) -> None:
    """Second opinion: the ticks of the local day one by one, told by their date. The answer is the day's exactly if the
    hour has none."""
    around = (now - timedelta(days=2), now + timedelta(days=2))
    today = local_time(NEW_YORK, to_ms(now)).date()

    def of_today(schedule: Schedule) -> list[datetime]:
        return [t for t in schedule.between(*around) if local_time(NEW_YORK, to_ms(t)).date() == today]

    olds, news = of_today(old), of_today(new)
    fires = len([t for t in olds if t <= now]) + len([t for t in news if t > now])
    found = switchover(old, new, to_ms(now), NEW_YORK)
    expected = "doubled" if fires > max(len(olds), len(news)) else "lost" if fires < min(len(olds), len(news)) else None
    if found is None:
        assert expected is None
    elif found.period == "day":
        assert (found.kind, found.fires, found.old, found.new) == (expected, fires, len(olds), len(news))
    elif found.period != "hour":
        assert expected is None
    if found is not None and found.better_ms is not None:
        assert from_ms(found.better_ms) > now
        assert switchover(old, new, found.better_ms, NEW_YORK) is None


def test_the_same_schedule_never_warns() -> None:
    for at in ("2027-01-13T02:30Z", "2027-03-14T07:30Z", "2027-11-07T05:59Z"):
        assert change("*/20 1-3 * * *", "*/20 1-3 * * *", at, "America/New_York") is None


@given(
    st.sampled_from(["0 2 * * *", "*/20 * * * *", "0 3 1 * *", "0 0 1 1 *", "0 9 * * MON"]),
    st.sampled_from(["0 3 * * *", "*/30 * * * *", "0 2 29 2 *", "0 9 * * TUE"]),
    st.lists(st.integers(ms("2025-06-01T00:00Z"), ms("2027-03-14T12:00Z")), min_size=5, max_size=20),
)
@settings(max_examples=60)
def test_jobs_that_change_alike_have_one_answer_whenever_they_were_created(old: str, new: str, born: list[int]) -> None:
    now = ms("2027-03-14T12:00Z")
    before, behind = Cron(old, "America/New_York"), Cron(new, "America/New_York")
    answers: dict[int | None, Firing] = {}
    for since in born:
        sides = Side(before, before, since), Side(behind, behind, since)
        made = firing(*sides, now, 10, NEW_YORK, 1000)
        assert answers.setdefault(begun(*sides, now), made) == made
