"""Intervals: anchor + k × every, in UTC, whatever the clocks do and whenever somebody asks."""

from datetime import UTC, date, datetime, timedelta, timezone

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fleetcron import Every, ScheduleError

JUST = timedelta(microseconds=1)
MS = timedelta(milliseconds=1)
ANCHOR = datetime(2026, 3, 7, 12, 0, 7, tzinfo=UTC)

instants = st.datetimes(datetime(1900, 1, 1), datetime(2200, 1, 1), timezones=st.just(UTC))  # noqa: DTZ001
intervals = st.one_of(st.integers(1000, 10_000), st.integers(1000, 10**11)).map(lambda ms: ms * MS)
same_in_every_run = settings(max_examples=80, derandomize=True, database=None, deadline=None)


@same_in_every_run
@given(intervals, instants, instants)
def test_the_ticks_are_whole_intervals_from_the_anchor(every: timedelta, anchor: datetime, at: datetime):
    schedule = Every(every, anchor)
    anchor = anchor.replace(microsecond=anchor.microsecond // 1000 * 1000)  # kept to the millisecond
    assert schedule.anchor == anchor
    assert anchor in schedule
    k = (at - anchor) // every
    before, after = anchor + k * every, anchor + (k + 1) * every
    assert before <= at < after
    assert schedule.next_after(at) == after
    assert schedule.prev_before(at) == (before if before < at else before - every)
    assert (at in schedule) == (before == at)
    chain = [after + n * every for n in range(5)]
    assert list(schedule.between(at, chain[-1])) == chain
    assert list(schedule.between(at, chain[-1] + 9 * every, limit=5)) == chain
    assert list(schedule.between(at, chain[-1] - JUST)) == chain[:-1]
    assert schedule.count(at, chain[-1]) == 5
    assert schedule.count(at, chain[-1] - JUST) == 4
    assert schedule.count(chain[0], chain[-1]) == 4
    assert schedule.count(chain[0] - JUST, chain[-1]) == 5
    assert schedule.count(chain[-1], at) == 0
    assert list(schedule.between(chain[-1], at)) == []


@same_in_every_run
@given(intervals, instants, instants, instants)
def test_a_count_is_a_difference(every: timedelta, anchor: datetime, one: datetime, other: datetime):
    schedule = Every(every, anchor)
    low, high = sorted((one, other))
    anchor = schedule.anchor
    assert schedule.count(low, high) == (high - anchor) // every - (low - anchor) // every


@same_in_every_run
@given(intervals, instants, st.integers(-50, 50))
def test_a_restart_does_not_move_it(every: timedelta, anchor: datetime, k: int):
    """Any tick serves as the anchor: it is the same set of ticks, so the schedules are equal."""
    schedule = Every(every, anchor)
    again = Every(every, schedule.anchor + k * every)
    assert again == schedule
    assert hash(again) == hash(schedule)
    assert Every(every, schedule.anchor + MS) != schedule
    assert Every(every + MS, schedule.anchor) != schedule


def test_without_an_anchor_it_counts_from_1970():
    assert Every("15m").anchor == datetime(1970, 1, 1, tzinfo=UTC)
    assert Every("15m").next_after(datetime(2026, 1, 1, 0, 7, tzinfo=UTC)) == datetime(2026, 1, 1, 0, 15, tzinfo=UTC)


def test_a_day_is_24_hours_through_a_clock_change():
    ticks = list(Every("1d", ANCHOR).between(ANCHOR, ANCHOR + timedelta(days=3)))
    assert ticks == [ANCHOR + timedelta(days=n) for n in (1, 2, 3)]


@pytest.mark.parametrize(
    "anchor",
    [ANCHOR, "2026-03-07T12:00:07Z", "2026-03-07 07:00:07-05:00", ANCHOR.astimezone(timezone(timedelta(hours=5)))],
)
def test_an_anchor_is_an_instant(anchor: datetime | str):
    schedule = Every("1h", anchor)
    assert schedule.anchor == ANCHOR
    assert schedule.anchor.tzinfo is UTC
    assert schedule.every == timedelta(hours=1)
    assert repr(schedule) == "Every('1h', '2026-03-07T12:00:07Z')"


@pytest.mark.parametrize("every", ["90s", 90, 90.0, timedelta(seconds=90), "1m30s", "1.5m"])
def test_an_interval_is_a_duration(every: str | float | timedelta):
    assert Every(every, ANCHOR) == Every("90s", ANCHOR)


@pytest.mark.parametrize("bad", ["", "soon", None, True, [], "-5m", 0, "0s", -1, "101y", timedelta.max, float("nan")])
def test_bad_intervals_are_refused(bad: object):
    with pytest.raises(ScheduleError, match=r"^every: ") as refusal:
        Every(bad)
    assert isinstance(refusal.value, ValueError)


@pytest.mark.parametrize("bad", ["999ms", 0.5, timedelta(milliseconds=1)])
def test_less_than_a_second_is_refused(bad: str | float | timedelta):
    with pytest.raises(ScheduleError, match=r"^every: .* is too short; the shortest interval is 1s"):
        Every(bad)
    Every("1s")
    Every(1.5)


@pytest.mark.parametrize(
    "bad",
    [
        ANCHOR.replace(tzinfo=None),
        "2026-03-07T12:00:07",
        "noon",
        "",
        5,
        [],
        date(2026, 3, 7),
        "0001-01-01T00:00+14:00",
        datetime(1, 1, 1, tzinfo=timezone(timedelta(hours=14))),
        datetime(9999, 12, 31, 23, tzinfo=timezone(-timedelta(hours=2))),
    ],
)
def test_bad_anchors_are_refused(bad: object):
    with pytest.raises(ScheduleError):
        Every("1h", bad)


def test_naive_questions_are_refused():
    naive = ANCHOR.replace(tzinfo=None)
    schedule = Every("1h", ANCHOR)
    questions = [
        lambda: schedule.next_after(naive),
        lambda: schedule.prev_before(naive),
        lambda: schedule.count(naive, ANCHOR),
        lambda: list(schedule.between(ANCHOR, naive)),
        lambda: naive in schedule,
    ]
    for ask in questions:
        with pytest.raises(ScheduleError, match="has no zone"):
            ask()


def test_the_first_and_the_last_year():
    schedule = Every("12h")
    first, last = datetime(1, 1, 1, tzinfo=UTC), datetime(9999, 12, 31, 12, tzinfo=UTC)
    assert first in schedule
    assert schedule.prev_before(first) is None
    assert schedule.next_after(first) == first + timedelta(hours=12)
    assert schedule.next_after(last) is None
    assert schedule.prev_before(datetime(9999, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC)) == last
    assert schedule.count(first, last) == ((last - first) // timedelta(hours=12))
    assert list(schedule.between(last - timedelta(hours=12), datetime(9999, 12, 31, 23, tzinfo=UTC))) == [last]
