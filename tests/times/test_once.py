"""A single instant, or a local time in a zone resolved with the DST policies."""

from datetime import UTC, date, datetime, timedelta, timezone

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fleetcron import Once, ScheduleError
from fleetcron.times.zones import zone
from tests.times import reference
from tests.times.reference import FOLDS, GAPS

JUST = timedelta(microseconds=1)
LONG_AGO, LONG_AFTER = datetime(1900, 1, 1, tzinfo=UTC), datetime(2100, 1, 1, tzinfo=UTC)

# a local time near a change of each zone
NEAR = {
    "America/New_York": [datetime(2026, 3, 8, 2), datetime(2026, 11, 1, 1)],  # noqa: DTZ001
    "America/Sao_Paulo": [datetime(2018, 11, 4), datetime(2018, 2, 17, 23)],  # noqa: DTZ001
    "Antarctica/Troll": [datetime(2026, 3, 29, 1), datetime(2026, 10, 25, 1)],  # noqa: DTZ001
    "Australia/Lord_Howe": [datetime(2026, 10, 4, 2), datetime(2026, 4, 5, 1, 30)],  # noqa: DTZ001
    "Europe/Dublin": [datetime(2026, 3, 29, 1), datetime(2026, 10, 25, 1)],  # noqa: DTZ001
    "Pacific/Apia": [datetime(2011, 12, 30, 12)],  # noqa: DTZ001
}


def ticks(once: Once) -> list[datetime]:
    return list(once.between(LONG_AGO, LONG_AFTER))


@settings(max_examples=150, derandomize=True, database=None, deadline=None)
@given(st.sampled_from(sorted(NEAR)), st.integers(-180, 180), st.sampled_from(GAPS), st.sampled_from(FOLDS), st.data())
def test_a_local_time_is_what_the_definition_says(zone: str, minutes: int, gap: str, fold: str, data: st.DataObject):
    time = data.draw(st.sampled_from(NEAR[zone])) + timedelta(minutes=minutes)
    owed = [tick.replace(tzinfo=UTC) for tick in reference.resolve(zone, time).under(gap, fold)]
    if not owed:
        with pytest.raises(ScheduleError, match=f"does not exist in {zone}, so it never fires"):
            Once(time, zone, gap, fold)
        return
    once = Once(time, zone, gap, fold)
    assert ticks(once) == owed
    assert once.at == owed[0]
    assert once.count(LONG_AGO, LONG_AFTER) == len(owed)
    assert once.next_after(LONG_AGO) == owed[0]
    assert once.next_after(owed[-1]) is None
    assert once.prev_before(LONG_AFTER) == owed[-1]
    assert once.prev_before(owed[0]) is None
    for tick in owed:
        assert tick in once
        assert tick + JUST not in once
        assert once.next_after(tick - JUST) == once.prev_before(tick + JUST) == tick
        assert once.count(tick - JUST, tick) == 1
        assert once.count(tick, LONG_AFTER) == len([later for later in owed if later > tick])
    assert once.count(LONG_AFTER, LONG_AGO) == 0
    for text in (time.isoformat(), time.isoformat(" "), f"  {time.isoformat()} "):
        assert Once(text, zone, gap, fold) == once


def test_the_defaults_are_those_of_a_time_of_day_job():
    gap, fold = Once("2027-03-14 02:30", "America/New_York"), Once("2027-11-07 01:30", "America/New_York")
    assert (gap.dst_gap, gap.dst_fold) == ("shift", "first")
    assert ticks(gap) == [datetime(2027, 3, 14, 7, tzinfo=UTC)]
    assert ticks(fold) == [datetime(2027, 11, 7, 5, 30, tzinfo=UTC)]


@pytest.mark.parametrize(
    "at",
    [
        datetime(2027, 3, 14, 7, 0, 0, 123_000, tzinfo=UTC),
        datetime(2027, 3, 14, 7, 0, 0, 123_999, tzinfo=UTC),  # kept to the millisecond
        "2027-03-14T07:00:00.123Z",
        "2027-03-14 03:00:00.123-04:00",
        datetime(2027, 3, 14, 12, 30, 0, 123_000, tzinfo=timezone(timedelta(hours=5, minutes=30))),
    ],
)
def test_an_instant_is_an_instant_in_any_zone(at: datetime | str):
    owed = datetime(2027, 3, 14, 7, 0, 0, 123_000, tzinfo=UTC)
    for timezone_given in (None, "UTC", "America/New_York", zone("Asia/Tokyo")):
        once = Once(at, timezone_given)
        assert ticks(once) == [owed]
        assert once == Once(owed)
        assert hash(once) == hash(Once(owed))
    assert Once(at, "America/New_York").timezone == "America/New_York"
    assert Once(at).timezone == "UTC"


def test_fractions_of_a_local_time():
    """Kept, except in a gap: the clock changes at a whole second."""
    plain = Once("2027-03-15 02:30:00.5", "America/New_York")
    assert ticks(plain) == [datetime(2027, 3, 15, 6, 30, 0, 500_000, tzinfo=UTC)]
    both = Once("2027-11-07 01:30:00.5", "America/New_York", dst_fold="both")
    assert ticks(both) == [datetime(2027, 11, 7, hour, 30, 0, 500_000, tzinfo=UTC) for hour in (5, 6)]
    assert ticks(Once("2027-03-14 02:30:00.5", "America/New_York")) == [datetime(2027, 3, 14, 7, tzinfo=UTC)]


def test_equality_is_about_the_ticks():
    assert (
        Once("2027-03-14 02:30", "America/New_York")
        == Once("2027-03-14T07:00Z")
        == Once("2027-03-14 02:15", "US/Eastern")
    )
    assert Once("2027-03-14T07:00Z") != Once("2027-03-14T07:01Z")
    assert Once("2027-11-07 01:30", "America/New_York") != Once("2027-11-07 01:30", "America/New_York", dst_fold="both")
    assert Once("2027-03-14T07:00Z") != "2027-03-14T07:00Z"
    assert repr(Once("2027-03-14 02:30", "America/New_York")) == "Once('2027-03-14T07:00:00Z')"


def test_a_date_alone_is_its_midnight():
    assert ticks(Once("2018-11-04", "America/Sao_Paulo")) == [datetime(2018, 11, 4, 3, tzinfo=UTC)]


def test_a_local_time_needs_a_zone():
    for at in ("2027-03-14 02:30", datetime(2027, 3, 14, 2, 30)):  # noqa: DTZ001
        with pytest.raises(ScheduleError, match="has no zone; write 2027-03-14T02:30:00Z for UTC, or give a timezone"):
            Once(at)
        Once(at, "UTC")


@pytest.mark.parametrize(
    "bad", ["", "soon", "2027-13-01T00:00Z", "2027-02-29", "25:00", 5, None, [], date(2027, 3, 14), b"2027"]
)
def test_bad_instants_are_refused(bad: object):
    for timezone_given in (None, "America/New_York"):
        with pytest.raises(ScheduleError, match="is not an instant") as refusal:
            Once(bad, timezone_given)
        assert isinstance(refusal.value, ValueError)


@pytest.mark.parametrize(
    ("at", "timezone_given"),
    [
        ("0001-01-01T00:00:00+14:00", None),
        ("9999-12-31T23:59:59-01:00", None),
        ("0001-01-01 00:00", "Asia/Tokyo"),
        ("9999-12-31 23:59", "America/New_York"),
        (datetime(1, 1, 1, tzinfo=timezone(timedelta(hours=1))), "UTC"),
    ],
)
def test_years_beyond_1_and_9999_are_refused(at: datetime | str, timezone_given: str | None):
    with pytest.raises(ScheduleError, match="outside the years 1 to 9999"):
        Once(at, timezone_given)


def test_the_first_and_the_last_instant():
    for at in (datetime(1, 1, 1, tzinfo=UTC), datetime(9999, 12, 31, 23, 59, 59, 999_000, tzinfo=UTC)):
        once = Once(at)
        assert once.at == at
        assert at in once


def test_bad_policies_and_zones_are_refused():
    at = "2027-03-14 02:30"
    with pytest.raises(ScheduleError, match="dst_gap: 'shft' is not one of skip, shift; did you mean shift"):
        Once(at, "America/New_York", "shft")
    with pytest.raises(ScheduleError, match="dst_fold: 'twice' is not one of first, second, both"):
        Once(at, "America/New_York", None, "twice")
    with pytest.raises(ScheduleError, match="EST is ambiguous: use America/New_York"):
        Once(at, "EST")
    with pytest.raises(ScheduleError, match=r"Invalid timezone: X\. Use IANA format \(e\.g\., America/New_York\)"):
        Once(at, "X")
