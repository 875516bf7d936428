"""Odd arguments, far years, copies and threads: nothing but the right answer or a ScheduleError."""

import copy
import pickle
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

import pytest

from fleetcron import Cron, Every, Once, ScheduleError
from fleetcron.times.blackouts import BlackoutRule
from fleetcron.times.calendars import DayRule, business_days, holidays
from fleetcron.times.timetable import Timetable
from fleetcron.times.tzif import read_rule
from fleetcron.times.windows import blackout
from fleetcron.times.zone import Zone
from fleetcron.times.zones import zone

DAILY = Cron("0 9 * * *")
NOW = datetime(2026, 11, 16, tzinfo=UTC)


def utc(year: int, *rest: int) -> datetime:
    return datetime(year, *(rest or (1, 1)), tzinfo=UTC)


@pytest.mark.parametrize(
    "make",
    [
        lambda: Timetable(42),
        lambda: Timetable(["0 0 * * *"]),
        lambda: Timetable([]),
        lambda: Timetable(DAILY, calendars=[holidays("x", ["12-25"])]),
        lambda: Timetable(DAILY, starts_at=NOW, max_ticks=1.5),
        lambda: Timetable(DAILY, starts_at=NOW, max_ticks=True),
        lambda: Timetable(DAILY, starts_at=NOW, max_ticks="3"),
        lambda: Timetable(DAILY, jitter="5m", seed=5),
        lambda: Timetable(DAILY, jitter="5m", seed="\ud800"),
        lambda: Cron("H * * * *", seed="\ud800"),
        lambda: Cron("* * * * *", None),
        lambda: Cron("* * * * *", []),
        lambda: Cron(None),
        lambda: Cron("* * * * *", dst_gap=3),
        lambda: Every(anchor=utc(2026), duration=[]),
        lambda: Every("1h", "0001-01-01T00:00:00+14:00"),
        lambda: Once("9999-12-31T23:59:59", "America/New_York"),
        lambda: DayRule("x", on="next"),
        lambda: DayRule(business_days("x"), on="sometimes"),
        lambda: BlackoutRule(blackout("x", [(utc(2026), utc(2027))]), on="next"),
        lambda: holidays("x", None),
        lambda: holidays("x", "12-25"),
        lambda: holidays("x", [5]),
        lambda: holidays("x", ["W01-1"]),
        lambda: business_days("x", [1]),
        lambda: blackout("x"),
        lambda: blackout("x", [(utc(2026), datetime(2027, 1, 1))]),  # noqa: DTZ001
        lambda: blackout("x", repeated=[("0 2 * * *", "1h")]),
        lambda: blackout("x", repeated=[(Every("1m"), "1m")]),
        lambda: blackout("x", repeated=[(Cron("* * * * *"), "1m")]),
        lambda: list(DAILY.between(NOW, utc(2027), limit=-1)),
        lambda: list(Every("1h").between(NOW, utc(2027), limit="many")),
        lambda: DAILY.next_after("tomorrow"),
        lambda: DAILY.next_after(datetime(2026, 1, 1)),  # noqa: DTZ001
    ],
)
def test_a_wrong_argument_is_a_schedule_error(make: Callable[[], object]) -> None:
    with pytest.raises(ScheduleError):
        make()


def test_a_calendar_may_have_one_date_in_many_centuries() -> None:
    timetable = Timetable(Cron("0 0 * * *"), calendars=[DayRule(holidays("x", ["2026-12-25"]), require=True)])
    assert timetable.next_after(utc(1500)) == timetable.prev_before(utc(2900)) == utc(2026, 12, 25)
    assert timetable.count(utc(1500), utc(2100)) == len(list(timetable.between(utc(1500), utc(2100)))) == 1
    far = Timetable(Cron("0 0 * * *"), calendars=[DayRule(holidays("x", ["2501-12-25"]), require=True)])
    assert far.next_after(utc(2026)) == utc(2501, 12, 25)
    assert Timetable(Once("1850-01-01T00:00:00Z")).next_after(utc(1800)) == utc(1850)


def test_deferring_over_two_blackouts_lands_in_neither() -> None:
    a = blackout("a", [(utc(2026, 5, 4, 10), utc(2026, 5, 4, 11)), (utc(2026, 5, 4, 13), utc(2026, 5, 4, 15))])
    b = blackout("b", [(utc(2026, 5, 4, 10, 30), utc(2026, 5, 4, 14))])
    for rules in ([a, b], [b, a]):
        timetable = Timetable(Cron("0 10 4 5 *"), calendars=[BlackoutRule(rule, "defer") for rule in rules])
        assert timetable.next_after(utc(2026)) == utc(2026, 5, 4, 15)


def test_counting_many_years_of_nothing_is_cheap() -> None:
    twice = Timetable([Once(utc(2026, 6, 1)), Once(utc(2026, 7, 1))], starts_at=utc(2026), max_ticks=3)
    assert twice.count(utc(1), utc(9999)) == 2
    yearly = Timetable([Cron("0 0 1 1 *"), Cron("0 0 1 2 *")], starts_at=utc(2026), max_ticks=1000)
    assert yearly.prev_before(utc(9999)) == utc(2525, 2, 1)
    many = Timetable([Cron("0 9 * * *"), Cron("0 10 * * *")], starts_at=utc(2026), max_ticks=100_001)
    assert many.prev_before(utc(9999)) == utc(2026, 1, 1, 9) + timedelta(days=50_000)


def test_schedules_and_explanations_can_be_copied_and_pickled() -> None:
    for schedule in (Cron("30 2 * * *", "America/New_York"), Every("15m"), Once("2027-01-01T09:00:00Z")):
        for other in (copy.copy(schedule), copy.deepcopy(schedule), pickle.loads(pickle.dumps(schedule))):
            assert other == schedule
            assert other.next_after(NOW) == schedule.next_after(NOW)
        told = schedule.explain(NOW)
        assert pickle.loads(pickle.dumps(told)) == copy.deepcopy(told) == told
        assert copy.deepcopy(told).as_json() == told.as_json()


def test_threads_may_share_a_schedule_and_its_zone() -> None:
    shared = type(zone("America/New_York")).load("New York", zone("America/New_York").dump())
    schedule = Cron("30 2 * * *", shared)
    years = [2027 + 13 * n for n in range(500)]
    owed = {year: Cron("30 2 * * *", "America/New_York").next_after(utc(year, 3, 9)) for year in years}
    with ThreadPoolExecutor(8) as pool:
        found = dict(zip(years, pool.map(lambda year: schedule.next_after(utc(year, 3, 9)), years), strict=True))
    assert found == owed


def test_a_calendar_can_be_computed_with_a_given_zone_table() -> None:
    table = Zone.load("Asia/Tokyo", zone("America/New_York").dump())  # made up: Tokyo keeps New York's time
    feast = holidays("feast", ["2026-05-05"], table)
    timetable = Timetable(Cron("0 */6 * * *"), calendars=[DayRule(feast)])
    assert list(timetable.between(utc(2026, 5, 5), utc(2026, 5, 6, 6))) == [utc(2026, 5, 6, 6)]


def test_summer_time_all_year_round_is_one_offset() -> None:
    assert read_rule("EST5EDT,0/0,J365/25") == read_rule("XXX3EDT4,0/0,J365/23") == read_rule("EDT4")
