"""Blackouts, bounds, max_ticks and jitter against plain lists of ticks and windows; and what a count costs.

The model of a blackout merges nothing: a tick that some window holds goes to that window's end and is looked at again.
"""

import sys
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cached_property
from hashlib import sha256
from itertools import pairwise

import pytest
from hypothesis import assume
from hypothesis import strategies as st

from fleetcron import Cron, Every, Once, ScheduleError
from fleetcron.times.calendars import DayRule, business_days, holidays
from fleetcron.times.jitter import offset_ms
from fleetcron.times.schedule import Schedule
from fleetcron.times.timetable import BlackoutRule, Timetable
from fleetcron.times.windows import Blackout, blackout
from tests.times import reference
from tests.times.examples import AMOUNT, for_all
from tests.times.reference import DAY

JUST = timedelta(microseconds=1)
HOUR = timedelta(hours=1)
QUARTER = timedelta(minutes=15)

Window = tuple[datetime, datetime]


def utc(*parts: int) -> datetime:
    return datetime(*parts, tzinfo=UTC)


def ticks(schedule: Schedule, low: datetime, high: datetime) -> list[str]:
    return [f"{tick:%Y-%m-%dT%H:%M}" for tick in schedule.between(low, high)]


def agrees(schedule: Schedule, owed: list[datetime], low: datetime, high: datetime) -> None:
    """Every answer about (low, high] is the one that the plain list of ticks gives."""
    assert list(schedule.between(low, high)) == owed
    near = [tick + by for tick in [*owed[:4], *owed[-3:]] for by in (-JUST, JUST - JUST, JUST)]
    for at in [low + (high - low) * n / 9 for n in range(10)] + near:
        if not low <= at <= high:
            continue
        before, later = [tick for tick in owed if tick < at], [tick for tick in owed if tick > at]
        found = schedule.next_after(at)
        assert found == later[0] if later else (found is None or found > high)
        found = schedule.prev_before(at)
        assert found == before[-1] if before else (found is None or found <= low)
        assert schedule.count(low, at) == len([tick for tick in owed if tick <= at])
        assert schedule.count(at, high) == len(later)
        assert at == low or (at in schedule) == (at in owed)


def counted(work: Callable[[], object], most: int) -> object:
    """The answer, if it takes at most so many calls of Python functions (each step of a generator is one)."""
    calls = 0

    def note(frame: object, event: str, arg: object) -> None:
        nonlocal calls
        calls += event == "call"
        if calls > most:
            sys.setprofile(before)
            raise AssertionError(f"more than {most} calls")

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        return work()
    finally:
        sys.setprofile(before)


# --- blackouts against the model -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Repeated:
    starts: str | timedelta  # a cron expression in UTC, or an interval from the moment on
    zone: str
    length: timedelta

    def made(self, moment: datetime) -> tuple[Schedule, timedelta]:
        if isinstance(self.starts, timedelta):
            return Every(self.starts, moment), self.length
        return Cron(self.starts, self.zone), self.length

    def windows(self, moment: datetime, reach: timedelta) -> list[Window]:
        if isinstance(self.starts, timedelta):
            far = reach // self.starts
            starts = [moment + k * self.starts for k in range(-far, far + 1)]
        else:
            ends = [(moment + by).replace(tzinfo=None) for by in (-reach, reach)]
            found = reference.ticks(self.starts, self.zone, *ends, *reference.default_policies(self.starts))
            starts = [start.replace(tzinfo=UTC) for start in found]
        return [(start, start + self.length) for start in starts]


@dataclass(frozen=True)
class Rule:
    on: str
    fixed: tuple[Window, ...]
    repeated: tuple[Repeated, ...]

    def made(self, moment: datetime) -> BlackoutRule:
        return BlackoutRule(blackout("quiet", self.fixed, [one.made(moment) for one in self.repeated]), self.on)

    def windows(self, moment: datetime, reach: timedelta) -> list[Window]:
        return [*self.fixed, *(window for one in self.repeated for window in one.windows(moment, reach))]


def end_of(windows: list[Window], tick: datetime) -> datetime | None:
    """The end of the window that holds the tick, with all windows that touch or overlap it."""
    found = None
    while (end := next((end for start, end in windows if start <= tick < end), None)) is not None:
        found = tick = end
    return found


def put(tick: datetime, rules: list[tuple[str, list[Window]]]) -> datetime | None:
    """Where a tick goes: the first rule with a window that holds it decides, until none does."""
    while True:
        held = next(((on, end) for on, windows in rules if (end := end_of(windows, tick)) is not None), None)
        if held is None:
            return tick
        if held[0] == "skip":
            return None
        tick = held[1]


MOMENTS = {
    "UTC": utc(2026, 12, 31, 22),
    "America/New_York": utc(2026, 3, 8, 7),
    "Australia/Lord_Howe": utc(2026, 4, 4, 15),
    "Europe/Berlin": utc(2026, 10, 25, 1),
}
BASES = ["*/30 * * * *", "0 */2 * * *", "15 2 * * *", "*/15 1-4 * * *", "45 */5 * * *", "0 0 * * 1-5", "10 30 3 * * *"]
STARTS = ["0 2 * * *", "0 */6 * * *", "30 22 * * 5", "15 1 * * *", "45 2,3 * * *"]
REACH = 20 * DAY
LONGEST = 8 * DAY  # more than all windows of a rule in a row


@st.composite
def rules(draw: st.DrawFn, zone: str) -> Rule:
    quarters = st.integers(-300, 300).map(lambda n: MOMENTS[zone] + n * QUARTER)
    lengths = st.one_of(st.integers(1, 20), st.integers(1, 150)).map(lambda n: n * QUARTER)
    fixed = draw(st.lists(st.tuples(quarters, lengths), max_size=5))
    interval = st.sampled_from([6 * HOUR, 7 * HOUR, 30 * HOUR])
    repeats = st.builds(
        Repeated,
        st.one_of(st.sampled_from(STARTS), interval),
        st.sampled_from([zone, "UTC"]),
        st.integers(1, 19).map(lambda n: n * QUARTER),
    )
    repeated = draw(st.lists(repeats, min_size=0 if fixed else 1, max_size=2))
    return Rule(
        draw(st.sampled_from(["skip", "defer"])),
        tuple((start, start + length) for start, length in fixed),
        tuple(repeated),
    )


@dataclass(frozen=True)
class Case:
    zone: str
    expression: str
    rules: tuple[Rule, ...]

    @property
    def moment(self) -> datetime:
        return MOMENTS[self.zone]

    @cached_property
    def windows(self) -> list[tuple[str, list[Window]]]:
        return [(rule.on, rule.windows(self.moment, REACH)) for rule in self.rules]

    def ticks(self, low: datetime, high: datetime) -> list[datetime]:
        ends = [end.replace(tzinfo=None) for end in (low - LONGEST, high)]
        policies = reference.default_policies(self.expression)
        base = [tick.replace(tzinfo=UTC) for tick in reference.ticks(self.expression, self.zone, *ends, *policies)]
        found = {put(tick, self.windows) for tick in base} - {None}
        return sorted(tick for tick in found if low < tick <= high)

    def made(self, **more: object) -> Timetable:
        calendars = [rule.made(self.moment) for rule in self.rules]
        return Timetable(Cron(self.expression, self.zone), calendars=calendars, **more)


@st.composite
def cases(draw: st.DrawFn) -> Case:
    zone = draw(st.sampled_from(sorted(MOMENTS)))
    case = Case(zone, draw(st.sampled_from(BASES)), tuple(draw(st.lists(rules(zone), min_size=1, max_size=3))))
    assume(
        case.ticks(case.moment + 5 * DAY, case.moment + 8 * DAY)
    )  # something is left, also without the fixed windows
    return case


@AMOUNT
def test_blackouts_are_those_of_the_model(amount: int):
    @for_all(32 * amount, cases())
    def law(case: Case) -> None:
        low, high = case.moment - 5 * DAY, case.moment + 5 * DAY
        agrees(case.made(), case.ticks(low, high), low, high)


@AMOUNT
def test_bounds_cut_what_the_calendars_leave(amount: int):
    @for_all(18 * amount, cases(), st.integers(-300, 100), st.integers(1, 300), st.integers(1, 40))
    def law(case: Case, start: int, length: int, most: int) -> None:
        low, high = case.moment - 5 * DAY, case.moment + 5 * DAY
        bounds = {"starts_at": case.moment + start * QUARTER, "ends_at": case.moment + (start + length) * QUARTER}
        left = case.ticks(case.moment - 10 * DAY, high)
        bounded = [tick for tick in left if bounds["starts_at"] <= tick < bounds["ends_at"]]
        if not bounded:
            with pytest.raises(ScheduleError, match="never fires: its calendars and bounds leave no tick"):
                case.made(**bounds)
            return
        agrees(case.made(**bounds), [tick for tick in bounded if low < tick <= high], low, high)
        few = counted(lambda: case.made(**bounds, max_ticks=most), most=3_000_000)
        agrees(few, [tick for tick in bounded[:most] if low < tick <= high], low, high)
        assert few.next_after(bounded[:most][-1]) is None
        assert few.prev_before(bounded[0]) is None
        assert few.count(utc(2000, 1, 1), utc(2100, 1, 1)) == len(bounded[:most])


@AMOUNT
def test_jitter_is_the_formula_and_stays_in_its_room(amount: int):
    """offset = sha256(tenant/name)[:8] mod min(window, gap to the next nominal tick, gap to the next blackout)."""

    @for_all(18 * amount, cases(), st.text(max_size=20), st.integers(1, 90))
    def law(case: Case, seed: str, minutes: int) -> None:
        low, high = case.moment - 4 * DAY, case.moment + 4 * DAY
        jittered, again = (case.made(jitter=f"{minutes}m", seed=seed) for _ in range(2))
        owed = case.ticks(low, high)
        assert list(jittered.between(low, high)) == owed  # identity stays nominal
        windows = [window for _, windows in case.windows for window in windows]
        chosen = int.from_bytes(sha256(seed.encode()).digest()[:8], "big")
        for tick, following in pairwise(owed):
            room = min([timedelta(minutes=minutes), following - tick, *(s - tick for s, _ in windows if s > tick)])
            start = jittered.start_after(tick)
            assert start == again.start_after(tick)
            assert start - tick == timedelta(milliseconds=chosen % (room // timedelta(milliseconds=1)))
            assert tick <= start < tick + timedelta(minutes=minutes)
            assert start < following
            assert end_of(windows, start) is None


# --- blackouts, worked -----------------------------------------------------------------------------------------------

NIGHT = blackout("night", [(utc(2026, 5, 4, 2), utc(2026, 5, 4, 4))])
MORNING = blackout("morning", [(utc(2026, 5, 4, 4), utc(2026, 5, 4, 5)), (utc(2026, 5, 4, 4, 30), utc(2026, 5, 4, 6))])


def left(expression: str, *rules: BlackoutRule) -> list[str]:
    timetable = Timetable(Cron(expression), calendars=rules)
    return [f"{tick:%H:%M}" for tick in timetable.between(utc(2026, 5, 4), utc(2026, 5, 4, 12))]


def test_the_start_is_inside_and_the_end_is_outside():
    around = "0,59 1,2,3,4 * * *"
    assert left(around, BlackoutRule(NIGHT)) == ["01:00", "01:59", "04:00", "04:59"]
    assert left(around, BlackoutRule(NIGHT, "defer")) == ["01:00", "01:59", "04:00", "04:59"]
    assert left("0 2 * * *", BlackoutRule(NIGHT, "defer")) == ["04:00"]
    assert left("59 3 * * *", BlackoutRule(NIGHT, "defer")) == ["04:00"]
    assert left("0 4 * * *", BlackoutRule(NIGHT, "skip")) == ["04:00"]
    timetable = Timetable(
        Once(utc(2026, 5, 4, 4) - timedelta(milliseconds=1)), calendars=[BlackoutRule(NIGHT, "defer")]
    )
    assert timetable.next_after(utc(2026, 1, 1)) == utc(2026, 5, 4, 4)


def test_deferred_ticks_are_one_tick():
    assert left("*/10 2,3 * * *", BlackoutRule(NIGHT, "defer")) == ["04:00"]
    assert left("*/30 * * * *", BlackoutRule(NIGHT, "defer"))[:6] == [
        "00:30",
        "01:00",
        "01:30",
        "04:00",
        "04:30",
        "05:00",
    ]


def test_windows_that_touch_or_overlap_are_one():
    assert left("15 4 * * *", BlackoutRule(MORNING, "defer")) == ["06:00"]
    assert MORNING.ending_after(0) == MORNING.starting_before(1 << 50)
    both = Blackout("both", (*NIGHT.fixed, *MORNING.fixed))
    assert left("30 2 * * *", BlackoutRule(both, "defer")) == ["06:00"]
    hours = blackout("hours", repeated=[(Cron("0 1-4 * * *"), "1h"), (Cron("15 5 * * *"), "15m")])
    assert left("*/15 1-5 * * *", BlackoutRule(hours, "defer")) == ["05:00", "05:30", "05:45"]
    assert left("30 1 * * *", BlackoutRule(hours, "defer")) == ["05:00"]


@pytest.mark.parametrize(
    ("first", "second", "owed"),
    [("skip", "skip", []), ("skip", "defer", []), ("defer", "skip", []), ("defer", "defer", ["06:00"])],
)
def test_nothing_starts_inside_any_blackout(first: str, second: str, owed: list[str]):
    """02:30 in the night, whose end is the beginning of the morning. In either order of the rules."""
    rules = BlackoutRule(NIGHT, first), BlackoutRule(MORNING, second)
    assert left("30 2 * * *", *rules) == owed
    assert left("30 2 * * *", *reversed(rules)) == owed


def test_a_window_begins_at_the_ticks_of_a_schedule_and_lasts_in_real_time():
    """02:00 in New York for 2 h: on the day of the gap it begins at 03:00 local."""
    sunday = blackout("backup", repeated=[(Cron("0 2 * * SUN", "America/New_York"), "2h")])
    timetable = Timetable(Cron("*/30 * * * *"), calendars=[BlackoutRule(sunday)])
    gone = {f"{tick:%H:%M}" for tick in Cron("*/30 * * * *").between(utc(2026, 3, 8, 5), utc(2026, 3, 8, 10))}
    gone -= {f"{tick:%H:%M}" for tick in timetable.between(utc(2026, 3, 8, 5), utc(2026, 3, 8, 10))}
    assert sorted(gone) == ["07:00", "07:30", "08:00", "08:30"]


def test_calendars_come_first_then_blackouts_then_bounds():
    """A tick of Saturday is moved to Monday 02:30, from there to 04:00, and that is before the end or not."""
    saturday = Cron("30 2 * * SAT")
    working, night = DayRule(business_days("work"), require=True, on="next"), BlackoutRule(NIGHT, "defer")
    for order in ([working, night], [night, working]):
        timetable = Timetable(saturday, calendars=order)
        assert ticks(timetable, utc(2026, 5, 1), utc(2026, 5, 8)) == ["2026-05-04T04:00"]
        ends = Timetable(saturday, calendars=order, starts_at=utc(2026, 4, 20), ends_at=utc(2026, 5, 4, 4))
        assert ticks(ends, utc(2026, 5, 1), utc(2026, 5, 8)) == []
        starts = Timetable(saturday, calendars=order, starts_at=utc(2026, 5, 4, 4), ends_at=utc(2026, 5, 4, 4, 1))
        assert ticks(starts, utc(2026, 5, 1), utc(2026, 5, 8)) == ["2026-05-04T04:00"]


@pytest.mark.parametrize(
    "endless",
    [
        (Cron("0 0 * * *"), "24h"),
        (Every("1h"), "1h"),
        (Every("1h"), "90m"),
        (Cron("0 */6 * * *"), timedelta(hours=7)),
        (Cron("* * * * *"), 60),
    ],
)
def test_windows_that_never_end_are_refused(endless: tuple[Schedule, object]):
    with pytest.raises(ScheduleError, match="blackout always has windows that never end"):
        blackout("always", repeated=[endless])


def test_windows_that_never_end_together_are_refused():
    with pytest.raises(ScheduleError, match="never end"):
        blackout("always", repeated=[(Cron("0 0 * * *"), "12h"), (Cron("0 12 * * *"), "12h")])
    blackout("nearly", repeated=[(Cron("0 0 * * *"), "12h"), (Cron("0 12 * * *"), "11h")])


def test_bad_blackouts_are_refused():
    noon = utc(2026, 1, 1, 12)
    for start, end in ((noon, noon), (noon, noon - JUST)):
        with pytest.raises(ScheduleError, match=r"blackout freeze: .* is not after 2026-01-01T12:00:00Z"):
            blackout("freeze", [(start, end)])
    with pytest.raises(ScheduleError, match="blackout freeze has no window"):
        blackout("freeze")
    with pytest.raises(ScheduleError, match="for: 'a while' is not a duration"):
        blackout("freeze", repeated=[(Every("1h"), "a while")])
    with pytest.raises(ScheduleError, match="has no zone"):
        blackout("freeze", [(noon.replace(tzinfo=None), noon.replace(tzinfo=None) + DAY)])
    with pytest.raises(ScheduleError, match="blackout night: 'wait' is not one of skip, defer"):
        BlackoutRule(NIGHT, "wait")


def test_a_tick_that_is_free_once_a_month_is_found():
    """8,640 windows in a row hold a tick each."""
    busy = blackout("busy", repeated=[(Cron("*/5 * 2-31 * *"), "1m")])
    timetable = Timetable(Cron("*/5 * * * *"), calendars=[BlackoutRule(busy)])
    assert timetable.count(utc(2026, 1, 2), utc(2026, 2, 1)) == 1
    assert timetable.next_after(utc(2026, 1, 2)) == utc(2026, 2, 1)
    assert timetable.prev_before(utc(2026, 2, 1)) == utc(2026, 1, 1, 23, 55)


# --- bounds, max_ticks -----------------------------------------------------------------------------------------------


def test_the_start_is_a_tick_and_the_end_is_none():
    daily = Timetable(Cron("0 9 * * *"), starts_at=utc(2026, 5, 4, 9), ends_at=utc(2026, 5, 6, 9))
    assert ticks(daily, utc(2026, 1, 1), utc(2027, 1, 1)) == ["2026-05-04T09:00", "2026-05-05T09:00"]
    assert daily.next_after(utc(2026, 1, 1)) == utc(2026, 5, 4, 9)
    assert daily.prev_before(utc(2027, 1, 1)) == utc(2026, 5, 5, 9)
    assert daily.next_after(utc(2026, 5, 5, 9)) is None
    assert daily.prev_before(utc(2026, 5, 4, 9)) is None
    assert daily.count(utc(2026, 1, 1), utc(2027, 1, 1)) == 2
    assert utc(2026, 5, 6, 9) not in daily
    assert utc(2026, 5, 4, 9) in daily


def test_max_ticks_counts_what_is_left():
    """Ten business days from a Friday on, less one feast; the moved ticks of a weekend count once."""
    rules = [DayRule(business_days("work", holidays=["2026-05-05"]), require=True, on="next")]
    few = Timetable(Cron("0 9 * * *"), calendars=rules, starts_at=utc(2026, 5, 1), max_ticks=4)
    owed = ["2026-05-01T09:00", "2026-05-04T09:00", "2026-05-06T09:00", "2026-05-07T09:00"]
    assert ticks(few, utc(2026, 1, 1), utc(2027, 1, 1)) == owed
    assert few.count(utc(2026, 1, 1), utc(2027, 1, 1)) == 4


def test_max_ticks_may_be_more_than_there_are():
    nightly = BlackoutRule(blackout("night", repeated=[(Cron("0 2 * * *"), "2h")]))
    for entry in (Once(utc(2026, 5, 4)), [Once(utc(2026, 5, 4)), Once(utc(2026, 5, 5))]):

        def make(entry: object = entry) -> Timetable:
            return Timetable(entry, calendars=[nightly], starts_at=utc(2026, 1, 1), max_ticks=3)

        few = counted(make, most=100_000)
        assert few.next_after(utc(2026, 1, 1)) == utc(2026, 5, 4)
    with_end = Timetable(Cron("0 9 * * *"), starts_at=utc(2026, 5, 4), ends_at=utc(2026, 5, 6), max_ticks=99)
    assert with_end.count(utc(2026, 1, 1), utc(2027, 1, 1)) == 2


def test_a_rare_schedule_under_nightly_blackouts_is_counted_out_quickly():
    """20 years of nights are 7,300 windows: looking at each a few times is work enough."""
    nightly = BlackoutRule(blackout("night", repeated=[(Cron("0 2 * * *"), "2h")]))

    def make() -> Timetable:
        return Timetable(Cron("0 9 1 1 *"), calendars=[nightly], starts_at=utc(2026, 1, 1), max_ticks=20)

    few = counted(make, most=20 * 366 * 150)
    assert few.prev_before(utc(2100, 1, 1)) == utc(2045, 1, 1, 9)


def test_bad_bounds_are_refused():
    daily = Cron("0 9 * * *")
    noon = utc(2026, 1, 1, 12)
    with pytest.raises(ScheduleError, match="ends_at 2026-01-01T12:00:00Z is not after starts_at 2026-01-01T12:00:00Z"):
        Timetable(daily, starts_at=noon, ends_at=noon)
    with pytest.raises(ScheduleError, match="max_ticks: 0 is not at least 1"):
        Timetable(daily, starts_at=noon, max_ticks=0)
    with pytest.raises(ScheduleError, match="max_ticks needs starts_at"):
        Timetable(daily, max_ticks=3)
    with pytest.raises(ScheduleError, match="the schedule never fires"):
        Timetable(daily, starts_at=noon, ends_at=noon + HOUR)
    with pytest.raises(ScheduleError, match="has no zone"):
        Timetable(daily, starts_at=noon.replace(tzinfo=None))
    with pytest.raises(ScheduleError, match="a job needs at least one schedule"):
        Timetable([])


# --- jitter ----------------------------------------------------------------------------------------------------------


def test_the_offset_is_the_hash_within_the_room():
    # sha256("acme/report") begins with 8c1b3f… : the number itself is written out, so that no node may change its mind
    chosen = int(sha256(b"acme/report").hexdigest()[:16], 16)
    assert offset_ms("acme/report", 300_000) == chosen % 300_000
    assert offset_ms("acme/report", 300_000, 1000, None) == chosen % 1000
    assert offset_ms("acme/report", 300_000, None, 7) == chosen % 7
    assert offset_ms("acme/report", 300_000, 0) == 0
    assert offset_ms("acme/report", 300_000, -5) == 0
    assert offset_ms("ünïcode/näme", 1 << 62) == int.from_bytes(sha256("ünïcode/näme".encode()).digest()[:8]) % (
        1 << 62
    )


def test_jitter_spreads_jobs_and_knows_them_again():
    hourly = Cron("0 * * * *")
    at = utc(2026, 5, 4, 9)
    starts = {Timetable(hourly, jitter="10m", seed=f"acme/job-{n}").start_after(at) for n in range(200)}
    assert len(starts) > 190
    assert all(at <= start < at + timedelta(minutes=10) for start in starts)
    assert max(starts) - min(starts) > timedelta(minutes=9)
    one = Timetable(hourly, jitter="10m", seed="acme/report")
    assert {one.start_after(at + n * HOUR) - n * HOUR for n in range(100)} == {one.start_after(at)}


def test_jitter_ends_before_the_next_tick_and_before_a_blackout():
    """At 01:59:59 there is a second left before the night."""
    close = Timetable(
        [Cron("59 59 1 * * *"), Cron("0 1 * * *")], calendars=[BlackoutRule(NIGHT)], jitter="1h", seed="acme/x"
    )
    for tick, room in (
        (utc(2026, 5, 4, 1, 59, 59), 1000),
        (utc(2026, 5, 4, 1), 3_599_000),
        (utc(2026, 5, 3, 1), 3_599_000),
    ):
        offset = close.start_after(tick) - tick
        assert offset == timedelta(milliseconds=offset_ms("acme/x", room))
    last = Timetable(Once(utc(2026, 5, 4)), jitter="1h", seed="acme/x")
    assert last.start_after(utc(2026, 5, 4)) - utc(2026, 5, 4) == timedelta(milliseconds=offset_ms("acme/x", 3_600_000))


def test_without_jitter_a_run_starts_at_its_tick():
    plain = Timetable(Cron("0 * * * *"), seed="acme/x")
    assert plain.start_after(utc(2026, 5, 4, 9)) == utc(2026, 5, 4, 9)
    with pytest.raises(ScheduleError, match="jitter needs a seed"):
        Timetable(Cron("0 * * * *"), jitter="5m")
    with pytest.raises(ScheduleError, match="jitter: 'soon' is not a duration"):
        Timetable(Cron("0 * * * *"), jitter="soon", seed="acme/x")


# --- nothing for a year ----------------------------------------------------------------------------------------------


def test_a_plan_that_yields_nothing_for_a_year_is_reported():
    feasts = DayRule(holidays("feasts", ["2026-01-01", "2030-06-01"]), require=True)
    timetable = Timetable(Cron("0 9 * * *"), calendars=[feasts])
    timetable.check(utc(2025, 12, 1))
    with pytest.raises(ScheduleError, match="yields nothing for a year after 2026-01-02T09:00:00Z") as refusal:
        timetable.check(utc(2026, 1, 1, 9))
    assert refusal.value.hint == "the calendars leave no tick: feasts"
    with pytest.raises(ScheduleError):
        timetable.check(utc(2029, 5, 30))
    timetable.check(utc(2029, 5, 31))  # 366 days
    with pytest.raises(ScheduleError):
        timetable.check(utc(2030, 6, 1, 9))


def test_a_long_blackout_is_reported():
    freeze = BlackoutRule(blackout("freeze", [(utc(2026, 1, 1), utc(2027, 3, 1))]))
    timetable = Timetable(Every("1h"), calendars=[freeze])
    timetable.check(utc(2025, 12, 30))
    with pytest.raises(ScheduleError, match=r"nothing for a year after 2026-01-01T01:00:00Z; .*: freeze"):
        timetable.check(utc(2026, 1, 1))
    timetable.check(utc(2026, 6, 1))


def test_a_plan_that_is_rare_or_over_is_not_the_fault_of_its_calendars():
    feasts = DayRule(holidays("feasts", ["12-25"]))
    Timetable(Cron("0 9 29 2 *")).check(utc(2025, 1, 1))
    Timetable(Cron("0 9 29 2 *"), calendars=[feasts]).check(utc(2024, 3, 1))
    Timetable(Once(utc(2026, 5, 4)), calendars=[feasts]).check(utc(2026, 5, 4))
    over = Timetable(Cron("0 9 * * *"), calendars=[feasts], starts_at=utc(2026, 5, 1), ends_at=utc(2026, 6, 1))
    over.check(utc(2026, 5, 20))
    over.check(utc(2026, 6, 1))
    spent = Timetable(Cron("0 9 * * *"), calendars=[feasts], starts_at=utc(2026, 5, 1), max_ticks=3)
    spent.check(utc(2026, 6, 1))


# --- what a count costs ----------------------------------------------------------------------------------------------


LONG = utc(2000, 1, 1), utc(2050, 1, 1)


def test_a_count_over_fifty_years_of_minutes_does_not_walk():
    """18.7 million ticks, counted from the business days less the feasts on them."""
    feast = "12-25"
    rule = DayRule(business_days("work", holidays=[feast]), require=True)
    timetable = Timetable(Cron("* * * * *"), calendars=[rule])
    days = [LONG[0] + n * DAY for n in range((LONG[1] - LONG[0]) // DAY)]
    work = [day for day in days if day.weekday() < 5 and f"{day:%m-%d}" != feast]
    total = counted(lambda: timetable.count(LONG[0] - JUST, LONG[1] - JUST), most=50 * 100)
    assert total == len(work) * 1440


def test_a_count_with_rolling_days_does_not_walk():
    """What is moved meets what is there, so rolling changes nothing for a schedule of every day."""
    for on in ("next", "previous"):
        rule = DayRule(business_days("work", holidays=["12-25"]), require=True, on=on)
        timetable = Timetable(Cron("* * * * *", "America/New_York"), calendars=[rule])
        skipping = Timetable(timetable.entries, calendars=[DayRule(rule.calendar, require=True)])
        total = counted(lambda timetable=timetable: timetable.count(*LONG), most=50 * 366 * 4)
        assert total == skipping.count(*LONG) == 18_732_960


def test_a_count_with_a_calendar_of_another_zone_costs_by_days():
    """Two years of minutes, of one schedule and of two: a few days near clock changes may be walked, not all."""
    rule = DayRule(business_days("work", timezone="Europe/Berlin"), require=True)
    low, high = utc(2026, 1, 1), utc(2028, 1, 1)
    hours = [reference.local("Europe/Berlin", (low + n * HOUR).replace(tzinfo=None)) for n in range(730 * 24)]
    owed = 60 * sum(hour.weekday() < 5 for hour in hours)
    for entries in (Cron("* * * * *"), [Cron("* * * * *"), Cron("30 5 * * *", "Asia/Tokyo")]):
        timetable = Timetable(entries, calendars=[rule])
        total = counted(lambda timetable=timetable: timetable.count(low - JUST, high - JUST), most=owed // 3)
        assert total == owed


def test_a_count_under_blackouts_costs_by_days():
    nightly = blackout("night", repeated=[(Cron("0 2 * * *"), "2h")])
    low, high = utc(2026, 1, 1), utc(2028, 1, 1)
    owed = 730 * 22 * 60
    for entries in (Cron("* * * * *"), [Cron("* * * * *"), Every("7m")]):
        timetable = Timetable(entries, calendars=[BlackoutRule(nightly, "defer")])
        assert counted(lambda timetable=timetable: timetable.count(low, high), most=owed) == owed


def test_the_end_of_a_calendar_is_found_without_a_look_at_every_year_to_come():
    """A required calendar of 2026 alone: what comes after it is nothing, and that takes no seconds to say."""
    for timezone, on in ((None, "skip"), (None, "next"), ("Asia/Tokyo", "skip"), ("Asia/Tokyo", "next")):
        rule = DayRule(holidays("feasts", ["2026-05-05", "2026-12-25"], timezone), require=True, on=on)
        timetable = counted(lambda rule=rule: Timetable(Cron("0 9 * * *"), calendars=[rule]), most=3_000_000)
        assert counted(lambda timetable=timetable: timetable.next_after(utc(2027, 1, 1)), most=3_000_000) is None
        assert counted(lambda timetable=timetable: timetable.prev_before(utc(2026, 1, 1)), most=3_000_000) is None


def test_calendars_that_leave_nothing_are_refused_quickly():
    every_day = business_days("work", ["MON", "TUE", "WED", "THU", "FRI", "SAT", "SUN"])
    for on in ("skip", "next", "previous"):

        def make(on: str = on) -> Timetable:
            return Timetable(Cron("0 9 * * *"), calendars=[DayRule(every_day, on=on)])

        with pytest.raises(ScheduleError, match="never fires"):
            counted(make, most=1_000_000)
