"""Calendars of days against a model that walks the days one by one, straight from time.md.

The model knows naive local times (from reference.py), asks each rule about each day, steps from day to day until every
rule is content, and only then asks the zone for instants. It shares nothing with src/ and knows no masks.

Two readings that time.md leaves open, as the code decides them: a time that does not exist is judged by a calendar of
another zone at the instant of the change, and a tick is moved by 366 days at most.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from functools import cached_property, lru_cache

import pytest
from hypothesis import strategies as st

from fleetcron import Cron, Every, Once, ScheduleError
from fleetcron.times import days, observed, zones
from fleetcron.times.calendars import DayCalendar, DayRule, business_days, holidays
from fleetcron.times.schedule import Schedule
from fleetcron.times.timetable import Timetable
from tests.times import reference
from tests.times.examples import AMOUNT, for_all
from tests.times.reference import DAY, FOLDS, GAPS

JUST = timedelta(microseconds=1)
FARTHEST = 366
WEEKDAYS = ("MON", "TUE", "WED", "THU", "FRI", "SAT", "SUN")


def utc(*parts: int) -> datetime:
    return datetime(*parts, tzinfo=UTC)


def naive(*parts: int) -> datetime:
    return datetime(*parts)  # noqa: DTZ001 (the reference takes naive times)


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


# --- the model -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Rule:
    business: frozenset[str] | None  # the weekdays of a calendar of business days; None is a calendar of holidays
    dates: frozenset[str]  # 2026-12-25, or 12-25 for every year
    zone: str | None
    require: bool
    on: str

    def made(self) -> DayRule:
        if self.business is None:
            calendar = holidays("feasts", self.dates, self.zone)
        else:
            calendar = business_days("work", self.business, self.dates, self.zone)
        return DayRule(calendar, self.require, self.on)

    def allows(self, day: date) -> bool:
        listed = f"{day}" in self.dates or f"{day:%m-%d}" in self.dates
        held = listed if self.business is None else WEEKDAYS[day.weekday()] in self.business and not listed
        return held == self.require


@dataclass(frozen=True)
class Drawn:
    expression: str
    zone: str
    dst_gap: str
    dst_fold: str
    month_end: str
    rules: tuple[Rule, ...]
    answers: dict[date, Rule | None] = field(default_factory=dict, repr=False, compare=False)

    def made(self, **bounds: datetime) -> Timetable:
        cron = Cron(self.expression, self.zone, self.dst_gap, self.dst_fold, self.month_end)
        return Timetable(cron, calendars=[rule.made() for rule in self.rules], **bounds)

    def ticks(self, low: datetime, high: datetime) -> list[datetime]:
        found = {tick for time in self.local_times(low, high) for tick in self.resolved(time)}
        return sorted(tick.replace(tzinfo=UTC) for tick in found if low < tick.replace(tzinfo=UTC) <= high)

    def local_times(self, low: datetime, high: datetime) -> Iterator[datetime]:
        """The naive times that the calendars leave, each where they put it."""
        fields = reference.parse(self.expression)
        first, last = low.date() - 2 * DAY, high.date() + 2 * DAY
        day = first - FARTHEST * DAY
        while day <= last + FARTHEST * DAY:
            if day in reference.matching_days(fields, day.year, day.month, self.month_end):
                clocks = [(h, m, s) for h in fields.hours for m in fields.minutes for s in fields.seconds]
                for clock in clocks if self.by_clock or first <= self.moved_day(day) <= last else ():
                    moved = self.moved(naive(day.year, day.month, day.day, *clock))
                    if moved is not None and first <= moved.date() <= last:
                        yield moved
            day += DAY

    def moved_day(self, day: date) -> date:
        moved = self.moved(naive(day.year, day.month, day.day))
        return day if moved is None else moved.date()

    def moved(self, time: datetime) -> datetime | None:
        """Where the calendars put a naive time: stepped from day to day until every rule is content."""
        rule = self.refusing(time)
        if rule is None:
            return time
        if rule.on == "skip":
            return None
        step = DAY if rule.on == "next" else -DAY
        for _ in range(FARTHEST):
            time += step
            if self.refusing(time) is None:
                return time
        return None

    def refusing(self, time: datetime) -> Rule | None:
        """The first rule that says no to a naive time; the same for all times of a day, unless by_clock."""
        key = time if self.by_clock else time.date()
        if key not in self.answers:
            self.answers[key] = next((rule for rule in self.rules if not self.allowed(rule, time)), None)
        return self.answers[key]

    def allowed(self, rule: Rule, time: datetime) -> bool:
        if rule.zone in (None, self.zone):
            return rule.allows(time.date())
        if not self.by_clock:
            return True  # wait for the instants
        return rule.allows(reference.local(rule.zone, resolve(self.zone, time).under("shift", self.dst_fold)[0]).date())

    def resolved(self, time: datetime) -> list[datetime]:
        foreign = [rule for rule in self.rules if rule.zone not in (None, self.zone) and not self.by_clock]
        return [
            tick
            for tick in resolve(self.zone, time).under(self.dst_gap, self.dst_fold)
            if all(rule.allows(reference.local(rule.zone, tick).date()) for rule in foreign)
        ]

    @cached_property
    def by_clock(self) -> bool:
        """Something is moved, and a rule of another zone cuts the days at an odd hour."""
        foreign = any(rule.zone not in (None, self.zone) for rule in self.rules)
        return foreign and any(rule.on != "skip" for rule in self.rules)


@lru_cache(maxsize=100_000)
def resolve(zone: str, time: datetime) -> reference.OnTheWall:
    return reference.resolve(zone, time)


# --- what is drawn ---------------------------------------------------------------------------------------------------

# where something happens in each zone, and New Year
MOMENTS = {
    "UTC": [utc(2024, 2, 29), utc(2026, 12, 30)],
    "America/New_York": [utc(2026, 3, 8, 7), utc(2026, 11, 1, 6), utc(2027, 1, 1)],
    "America/Nuuk": [utc(2026, 3, 29, 1), utc(2026, 10, 25, 1)],  # Saturday 23:00 becomes Sunday 00:00
    "America/Sao_Paulo": [utc(2018, 11, 4, 3), utc(2018, 12, 31)],
    "Asia/Tokyo": [utc(2027, 1, 1)],
    "Australia/Lord_Howe": [utc(2026, 4, 4, 15), utc(2026, 10, 3, 15, 30)],
    "Europe/Berlin": [utc(2026, 3, 29, 1), utc(2026, 10, 25, 1), utc(2028, 1, 1)],
    "Pacific/Apia": [utc(2011, 12, 30, 10)],  # no December 30th
}
CLOCKS = ["30 2", "30 1", "0 0", "15 23", "30 0,9", "*/20 0-3", "59 23", "10 30 1"]
DAYS = [
    "* * *",
    "* * 1-5",
    "* * SAT",
    "1 * *",
    "L * *",
    "31 * *",
    "31 12 *",
    "1 1 *",
    "*/2 * *",
    "13 * FRI",
    "* * +SUN#1",
]


@st.composite
def rules(draw: st.DrawFn, around: date, zone: st.SearchStrategy[str | None]) -> Rule:
    near = st.integers(-10, 10).map(lambda n: around + n * DAY)
    dates = st.one_of(near.map(str), near.map(str), near.map(lambda day: f"{day:%m-%d}"))
    business = draw(st.booleans())
    require = draw(st.sampled_from([business, business, business, not business]))
    if require and not business:
        dates = near.map(lambda day: f"{day:%m-%d}")  # or the search for the next one takes a second
    weekdays = st.one_of(st.just(WEEKDAYS[:5]), st.lists(st.sampled_from(WEEKDAYS), min_size=1, max_size=5))
    return Rule(
        frozenset(draw(weekdays)) if business else None,
        frozenset(draw(st.lists(dates, min_size=0 if business else 1, max_size=6))),
        draw(zone),
        require,
        draw(st.sampled_from(["skip", "next", "next", "previous", "previous"])),
    )


@st.composite
def cases(draw: st.DrawFn, foreign: bool) -> tuple[Drawn, datetime]:
    zone = draw(st.sampled_from(sorted(MOMENTS)))
    moment = draw(st.sampled_from(MOMENTS[zone])) + timedelta(hours=draw(st.integers(-30, 30)))
    own, others = st.sampled_from([None, None, zone]), st.sampled_from(sorted(set(MOMENTS) - {zone}))
    if not foreign:
        drawn_rules = draw(st.lists(rules(moment.date(), own), min_size=1, max_size=3))
    else:
        drawn_rules = [draw(rules(moment.date(), others)), *draw(st.lists(rules(moment.date(), own), max_size=1))]
        drawn_rules = draw(st.permutations(drawn_rules))
    case = Drawn(
        f"{draw(st.sampled_from(CLOCKS))} {draw(st.sampled_from(DAYS))}",
        zone,
        draw(st.sampled_from(GAPS)),
        # two instants of one time of day may have two dates in another zone: see the tests on folds below
        draw(st.sampled_from(FOLDS if not foreign else ["first"])),
        draw(st.sampled_from(["skip", "clamp"])),
        tuple(drawn_rules),
    )
    return case, moment


def holds(case: Drawn, moment: datetime, width: timedelta) -> None:
    low, high = moment - width, moment + width
    owed = case.ticks(low, high)
    try:
        timetable = case.made(starts_at=low - 800 * DAY)
    except ScheduleError:
        assert owed == []
    else:
        agrees(timetable, owed, low, high)


@AMOUNT
def test_calendars_of_the_jobs_zone_are_those_of_the_model(amount: int):
    @for_all(45 * amount, cases(foreign=False))
    def law(case: tuple[Drawn, datetime]) -> None:
        holds(*case, 25 * DAY)


@AMOUNT
def test_calendars_of_another_zone_are_those_of_the_model(amount: int):
    @for_all(18 * amount, cases(foreign=True))
    def law(case: tuple[Drawn, datetime]) -> None:
        holds(*case, 12 * DAY)


# --- worked cases ----------------------------------------------------------------------------------------------------


def excluded(*dates: str, on: str = "skip", timezone: str | None = None) -> DayRule:
    return DayRule(holidays("feasts", dates, timezone), on=on)


def working(on: str = "skip", timezone: str | None = None, without: tuple[str, ...] = ()) -> DayRule:
    return DayRule(business_days("work", holidays=without, timezone=timezone), require=True, on=on)


@pytest.mark.parametrize(
    ("on", "owed"),
    [
        ("skip", ["2026-12-24T09:00", "2026-12-28T09:00"]),
        ("next", ["2026-12-24T09:00", "2026-12-28T09:00"]),
        ("previous", ["2026-12-24T09:00", "2026-12-28T09:00"]),
    ],
)
def test_ticks_that_coincide_are_one(on: str, owed: list[str]):
    """Daily over Christmas (Friday) and the weekend: whatever is moved meets a tick that is there anyway."""
    timetable = Timetable(Cron("0 9 * * *"), calendars=[working(on, without=("12-25",))])
    assert ticks(timetable, utc(2026, 12, 24), utc(2026, 12, 29)) == owed
    assert timetable.count(utc(2026, 12, 24), utc(2026, 12, 29)) == 2


@pytest.mark.parametrize(
    ("expression", "rule", "owed"),
    [
        ("0 9 31 12 *", excluded("12-31", "01-01", on="next"), "2027-01-02T09:00"),
        ("0 9 1 1 *", excluded("12-31", "01-01", on="previous"), "2026-12-30T09:00"),
        ("0 9 1 1 *", working("previous", without=("01-01",)), "2026-12-31T09:00"),  # Friday, January 1st 2027
        ("0 9 1 1 *", working("next", without=("01-01",)), "2027-01-04T09:00"),
    ],
)
def test_ticks_move_over_new_year(expression: str, rule: DayRule, owed: str):
    timetable = Timetable(Cron(expression), calendars=[rule])
    assert ticks(timetable, utc(2026, 12, 20), utc(2027, 1, 20)) == [owed]
    # both years, asked on their own, know about it
    assert timetable.count(utc(2026, 12, 20), utc(2027, 1, 1)) == (owed < "2027")
    assert timetable.count(utc(2027, 1, 1), utc(2027, 1, 20)) == (owed > "2027")


@pytest.mark.parametrize(
    ("dst_gap", "owed"), [("shift", ["2026-03-08T07:00", "2026-03-14T06:30"]), ("skip", ["2026-03-14T06:30"])]
)
def test_a_tick_rolled_onto_the_day_of_a_gap_meets_the_gap(dst_gap: str, owed: list[str]):
    saturday = Cron("30 2 * * SAT", "America/New_York", dst_gap)
    timetable = Timetable(saturday, calendars=[excluded("2026-03-07", on="next")])
    assert ticks(timetable, utc(2026, 3, 2), utc(2026, 3, 15)) == owed


@pytest.mark.parametrize(
    ("dst_fold", "owed"),
    [
        ("first", ["2026-11-01T05:30"]),
        ("second", ["2026-11-01T06:30"]),
        ("both", ["2026-11-01T05:30", "2026-11-01T06:30"]),
    ],
)
def test_a_tick_rolled_onto_the_day_of_a_fold_meets_the_fold(dst_fold: str, owed: list[str]):
    monday = Cron("30 1 * * MON", "America/New_York", dst_fold=dst_fold)
    timetable = Timetable(monday, calendars=[excluded("2026-11-02", on="previous")])
    assert ticks(timetable, utc(2026, 10, 31), utc(2026, 11, 8)) == owed


def test_a_tick_rolled_onto_a_day_that_a_zone_skipped():
    """Samoa had no Friday, December 30th 2011. The Thursday's tick is moved to it, and out of it by the DST rules."""
    thursday = Cron("0 9 * * THU", "Pacific/Apia")
    timetable = Timetable(thursday, calendars=[excluded("2011-12-29", on="next")])
    assert ticks(timetable, utc(2011, 12, 25), utc(2012, 1, 3)) == ["2011-12-30T10:00"]  # 31st 00:00 local


def test_a_calendar_looks_at_the_date_before_the_clock_changes():
    """Nuuk has no Saturday 23:30 on 2026-03-28: the tick is at Sunday 00:00, and still Saturday's."""
    late = Cron("30 23 * * SAT", "America/Nuuk")
    assert ticks(Timetable(late), utc(2026, 3, 27), utc(2026, 4, 1)) == ["2026-03-29T01:00"]
    saturday_off, sunday_off = excluded("2026-03-28"), excluded("2026-03-29")
    assert ticks(Timetable(late, calendars=[saturday_off]), utc(2026, 3, 27), utc(2026, 4, 1)) == []
    assert ticks(Timetable(late, calendars=[sunday_off]), utc(2026, 3, 27), utc(2026, 4, 1)) == ["2026-03-29T01:00"]
    # another rule, with a zone of its own and nothing to refuse, changes nothing about that
    elsewhere = excluded("2000-01-01", timezone="UTC")
    for first, owed in (("2026-03-28", ["2026-03-30T00:30"]), ("2026-03-29", ["2026-03-29T01:00"])):
        own = excluded(first, on="next")
        for rules in ([own], [own, elsewhere], [elsewhere, own]):
            assert ticks(Timetable(late, calendars=rules), utc(2026, 3, 27), utc(2026, 4, 1)) == owed
    # a single time is no different
    once = Once("2026-03-28 23:30", "America/Nuuk")
    assert ticks(Timetable(once, calendars=[sunday_off]), utc(2026, 3, 27), utc(2026, 4, 1)) == ["2026-03-29T01:00"]
    with pytest.raises(ScheduleError, match="never fires"):
        Timetable(once, calendars=[saturday_off])


def test_the_first_rule_that_refuses_a_day_decides():
    """Friday, December 25th 2026: both rules refuse it, in one order it goes forward, in the other back."""
    forward, back = excluded("12-25", on="next"), working("previous", without=("12-25", "12-24"))
    cron = Cron("0 9 25 12 *")
    assert ticks(Timetable(cron, calendars=[forward, back]), utc(2026, 12, 1), utc(2027, 1, 9)) == ["2026-12-28T09:00"]
    assert ticks(Timetable(cron, calendars=[back, forward]), utc(2026, 12, 1), utc(2027, 1, 9)) == ["2026-12-23T09:00"]
    drop = working("skip", without=("12-24",))  # has nothing to say about a tick that only passes over the weekend
    assert ticks(Timetable(cron, calendars=[forward, drop]), utc(2026, 12, 1), utc(2027, 1, 9)) == ["2026-12-28T09:00"]


def test_a_tick_is_moved_by_a_year_at_most():
    leap_day = "0 9 29 2 *"
    near = Timetable(Cron(leap_day), calendars=[DayRule(holidays("only", ["2025-03-01"]), require=True, on="next")])
    assert ticks(near, utc(2020, 1, 1), utc(2030, 1, 1)) == ["2025-03-01T09:00"]  # 366 days after 2024-02-29
    with pytest.raises(ScheduleError, match="never fires"):
        Timetable(Cron(leap_day), calendars=[DayRule(holidays("only", ["2025-03-02"]), require=True, on="next")])
    back = Timetable(Cron(leap_day), calendars=[DayRule(holidays("only", ["2023-02-28"]), require=True, on="previous")])
    assert ticks(back, utc(2020, 1, 1), utc(2030, 1, 1)) == ["2023-02-28T09:00"]
    with pytest.raises(ScheduleError, match="never fires"):
        Timetable(Cron(leap_day), calendars=[DayRule(holidays("only", ["2023-02-27"]), require=True, on="previous")])


def test_a_calendar_of_another_zone_looks_at_its_own_dates():
    """09:00 in New York is the evening of that day in Tokyo, 20:00 there is the next day."""
    tokyo = excluded("2026-05-05", timezone="Asia/Tokyo")
    morning, evening = Cron("0 9 * * *", "America/New_York"), Cron("0 20 * * *", "America/New_York")
    low, high = utc(2026, 5, 4), utc(2026, 5, 7)
    assert ticks(Timetable(morning, calendars=[tokyo]), low, high) == ["2026-05-04T13:00", "2026-05-06T13:00"]
    assert ticks(Timetable(evening, calendars=[tokyo]), low, high) == ["2026-05-06T00:00", "2026-05-07T00:00"]
    moved = excluded("2026-05-05", on="next", timezone="Asia/Tokyo")
    monday_evening = Cron("0 20 * * MON", "America/New_York")  # Tuesday 09:00 in Tokyo
    assert ticks(Timetable(monday_evening, calendars=[moved]), low, high) == ["2026-05-06T00:00"]


def test_both_times_of_a_fold_have_their_own_date_in_another_zone():
    """01:30 comes twice in New York on 2026-11-01: in Costa Rica the first is still October, the second is not."""
    feast = holidays("feasts", ["2026-11-01"], "America/Costa_Rica")
    low, high = utc(2026, 11, 1), utc(2026, 11, 2)

    def left(dst_fold: str, on: str) -> list[str]:
        cron = Cron("30 1 * * SUN", "America/New_York", dst_fold=dst_fold)
        return ticks(Timetable(cron, calendars=[DayRule(feast, on=on)]), low, high)

    assert left("both", "skip") == left("first", "skip") == left("first", "next") == ["2026-11-01T05:30"]
    assert left("second", "skip") == []
    assert left("second", "next") == []  # it is on the holiday too, so it is moved to Monday


def test_the_zone_of_the_job_may_be_named():
    """A calendar with the job's zone is a calendar without a zone, also where the zone has another name."""
    for timezone in (None, "America/New_York", "US/Eastern"):
        rule = working("next", timezone, without=("2026-03-09",))
        timetable = Timetable(Cron("*/10 * * * *", "America/New_York"), calendars=[rule])
        assert timetable.count(utc(2026, 3, 8), utc(2026, 3, 11)) == 121  # Tuesday from 00:00 to 20:00


def test_a_calendar_of_another_zone_moves_few_times_a_day():
    rule = working("next", "Asia/Tokyo")
    Timetable(Cron("0 * * * *", "Europe/Berlin"), calendars=[rule])
    with pytest.raises(ScheduleError, match="has 30 times a day; a calendar of another zone moves at most 24"):
        Timetable(Cron("*/4 1,2 * * *", "Europe/Berlin"), calendars=[rule])
    Timetable(Cron("*/4 1,2 * * *", "Europe/Berlin"), calendars=[working("skip", "Asia/Tokyo")])


# --- intervals and single instants -----------------------------------------------------------------------------------


@AMOUNT
def test_an_interval_keeps_out_of_the_days_that_are_refused(amount: int):
    """It has no zone, so a calendar that has none either looks at UTC."""

    @for_all(18 * amount, st.sampled_from(sorted(MOMENTS)), st.data())
    def law(zone: str, data: st.DataObject) -> None:
        moment = data.draw(st.sampled_from(MOMENTS[zone]))
        rule = data.draw(rules(moment.date(), st.sampled_from([None, zone])))
        anchor, every = moment + timedelta(seconds=7), timedelta(minutes=data.draw(st.integers(17, 3000)))
        low, high = moment - 9 * DAY, moment + 9 * DAY

        def allowed(tick: datetime) -> bool:
            return rule.allows(reference.local(rule.zone or "UTC", tick.replace(tzinfo=None)).date())

        first, last = (low - anchor) // every + 1, (high - anchor) // every
        owed = [tick for k in range(first, last + 1) if allowed(tick := anchor + k * every)]
        if rule.on != "skip":
            with pytest.raises(ScheduleError, match="an interval has no local time of day to move"):
                Timetable(Every(every, anchor), calendars=[rule.made()])
        else:
            agrees(Timetable(Every(every, anchor), calendars=[rule.made()]), owed, low, high)


@st.composite
def single_cases(draw: st.DrawFn) -> tuple[Drawn, datetime]:
    zone = draw(st.sampled_from(sorted(MOMENTS)))
    moment = draw(st.sampled_from(MOMENTS[zone]))
    drawn_rules = draw(st.lists(rules(moment.date(), st.sampled_from([None, zone])), min_size=1, max_size=3))
    # on the change, near it, or days away from it
    time = reference.local(zone, moment.replace(tzinfo=None)) + timedelta(minutes=30 * draw(st.integers(-4, 3)))
    time += draw(st.integers(-4, 4)) * DAY
    return Drawn("", zone, draw(st.sampled_from(GAPS)), draw(st.sampled_from(FOLDS)), "skip", tuple(drawn_rules)), time


@AMOUNT
def test_a_single_local_time_is_moved_as_a_cron_is(amount: int):
    @for_all(60 * amount, single_cases())
    def law(case: tuple[Drawn, datetime]) -> None:
        drawn, time = case
        moved = drawn.moved(time)
        owed = [] if moved is None else [tick.replace(tzinfo=UTC) for tick in drawn.resolved(moved)]
        calendars = [rule.made() for rule in drawn.rules]
        start = time.replace(tzinfo=UTC)
        try:
            timetable = Timetable(Once(time, drawn.zone, drawn.dst_gap, drawn.dst_fold), calendars=calendars)
        except ScheduleError:
            # under skip a time that does not exist is refused on its own, wherever the calendars would move it
            assert owed == [] or (drawn.dst_gap == "skip" and resolve(drawn.zone, time).gap is not None)
        else:
            agrees(timetable, owed, start - 400 * DAY, start + 400 * DAY)


def test_a_single_instant_stays_where_it_is_unless_it_is_refused():
    """06:30Z is the second 01:30 of that day in New York: no calendar has anything against it, so it stays."""
    second = Once("2026-11-01T06:30:00Z", "America/New_York")
    timetable = Timetable(second, calendars=[excluded("2026-12-25", on="next")])
    assert ticks(timetable, utc(2026, 1, 1), utc(2027, 1, 1)) == ["2026-11-01T06:30"]


def test_a_single_instant_is_judged_where_it_is():
    """06:30Z on 2026-11-01 is a holiday in Costa Rica. That New York had 01:30 an hour before, too, does not matter."""
    feast = holidays("feasts", ["2026-11-01"], "America/Costa_Rica")
    second = Once("2026-11-01T06:30:00Z", "America/New_York")
    with pytest.raises(ScheduleError, match="never fires"):
        Timetable(second, calendars=[DayRule(feast)])
    moved = Timetable(second, calendars=[DayRule(feast, on="next")])
    assert ticks(moved, utc(2026, 10, 30), utc(2026, 11, 9)) == ["2026-11-02T06:30"]
    first = Once("2026-11-01T05:30:00Z", "America/New_York")
    assert ticks(Timetable(first, calendars=[DayRule(feast)]), utc(2026, 10, 30), utc(2026, 11, 9)) == [
        "2026-11-01T05:30"
    ]


def test_a_single_time_moved_onto_a_gap_loses_its_fraction():
    """As it does without a calendar: the clock changes at a whole second."""
    alone = Once("2026-03-08 02:30:00.250", "America/New_York")
    rolled = Timetable(Once("2026-03-07 02:30:00.250", "America/New_York"), calendars=[excluded("03-07", on="next")])
    assert rolled.next_after(utc(2026, 1, 1)) == alone.next_after(utc(2026, 1, 1)) == utc(2026, 3, 8, 7)
    plain = Timetable(Once("2026-03-05 02:30:00.250", "America/New_York"), calendars=[excluded("03-05", on="next")])
    assert plain.next_after(utc(2026, 1, 1)) == utc(2026, 3, 6, 7, 30) + timedelta(milliseconds=250)


def test_a_single_instant_that_the_calendars_drop_is_no_reason_to_refuse_the_others():
    calendars = [excluded("12-25"), working("next")]
    entries = [Cron("0 9 24 12 *"), Once("2026-12-25 09:00", "UTC"), Once("2026-12-26 09:00", "UTC")]
    assert ticks(Timetable(entries, calendars=calendars), utc(2026, 12, 1), utc(2027, 1, 1)) == [
        "2026-12-24T09:00",
        "2026-12-28T09:00",
    ]


def test_a_single_instant_in_another_zones_holiday():
    tokyo = excluded("2026-05-05", on="next", timezone="Asia/Tokyo")
    once = Once("2026-05-04 20:00", "America/New_York")
    assert ticks(Timetable(once, calendars=[tokyo]), utc(2026, 5, 1), utc(2026, 5, 9)) == ["2026-05-06T00:00"]
    with pytest.raises(ScheduleError, match="never fires"):
        Timetable(once, calendars=[excluded("2026-05-05", timezone="Asia/Tokyo")])


# --- how calendars are written ---------------------------------------------------------------------------------------


def members(calendar: DayCalendar, year: int) -> list[str]:
    start = date(year, 1, 1)
    every = [start + n * DAY for n in range(366) if (start + n * DAY).year == year]
    return [f"{day:%m-%d}" for day in every if (day - date(1970, 1, 1)).days in calendar]


def test_dates_and_yearly_dates():
    calendar = holidays("feasts", ["2026-12-25", "02-29", date(2026, 1, 6), datetime(2026, 3, 4, 5), "05-01"])  # noqa: DTZ001
    assert members(calendar, 2026) == ["01-06", "03-04", "05-01", "12-25"]
    assert members(calendar, 2027) == ["05-01"]
    assert members(calendar, 2028) == ["02-29", "05-01"]


def test_business_days():
    calendar = business_days("work", ["sun", "Mon"], holidays=["2026-01-04", "01-12"])
    assert members(calendar, 2026)[:6] == ["01-05", "01-11", "01-18", "01-19", "01-25", "01-26"]
    assert len(members(business_days("work"), 2026)) == 261


@pytest.mark.parametrize(
    "bad", ["2026-02-29", "02-30", "13-01", "", "Christmas", "2026/12/25", "1-1", "W01-1", "2026-12-25T00:00", 5, None]
)
def test_bad_dates_are_refused(bad: object):
    for make in (lambda: holidays("feasts", [bad]), lambda: business_days("work", holidays=[bad])):
        with pytest.raises(ScheduleError, match="is not a date") as refusal:
            make()
        assert refusal.value.hint == "write 2026-12-25, or 12-25 for every year"
        assert refusal.value.mistake.startswith("calendar ")


def test_bad_calendars_are_refused():
    with pytest.raises(ScheduleError, match="calendar work: 'MONDAY' is not a weekday; write SUN, MON"):
        business_days("work", ["MONDAY"])
    with pytest.raises(ScheduleError, match="calendar work: no weekday is a business day"):
        business_days("work", [])
    with pytest.raises(ScheduleError, match="calendar feasts: 'sideways' is not one of skip, next, previous"):
        excluded("12-25", on="sideways")
    for make in (holidays, business_days):
        with pytest.raises(ScheduleError, match="EST is ambiguous: use America/New_York"):
            make("feasts", ["MON"] if make is business_days else ["12-25"], timezone="EST")


def test_calendars_that_leave_nothing_are_refused():
    with pytest.raises(ScheduleError, match="never fires"):
        Timetable(Cron("0 9 25 12 *"), calendars=[excluded("12-25")])
    with pytest.raises(ScheduleError, match="never fires"):
        Timetable(Once("2026-12-25 09:00", "UTC"), calendars=[excluded("12-25")])


def test_a_calendar_is_looked_at_in_the_zone_table_of_the_job():
    """A job planned with a stored table, and a calendar without a zone: the dates are those of the table."""
    ahead = zones.Zone.load("Europe/Berlin", zones.zone("Pacific/Apia").dump())
    timetable = Timetable(Cron("0 12 * * *", ahead), calendars=[excluded("2026-05-05")])
    assert ticks(timetable, utc(2026, 5, 3), utc(2026, 5, 6)) == ["2026-05-03T23:00", "2026-05-05T23:00"]


FAR_APART = ("America/New_York", "Australia/Lord_Howe", "Pacific/Apia", "Africa/Casablanca", "Asia/Tokyo", "UTC")


@pytest.mark.parametrize("own", FAR_APART)
@pytest.mark.parametrize("other", FAR_APART)
def test_the_days_that_another_zone_allows_are_those_that_it_allows_one_by_one(own: str, other: str) -> None:
    """Between clock changes the days are shifted as one mask; here each is asked by itself."""
    rule = DayRule(
        business_days("work", ["MON", "WED", "FRI"], ["12-31", "2011-06-03"], other), require=True, on="next"
    )
    for time in (0, 2 * 3600 + 1800, 23 * 3600 + 59 * 60):
        entry = Cron(f"{time // 60 % 60} {time // 3600} * * *", own)
        for year in (1, 1970, 2011, 2018, 2026, 2039, 9999):
            start, length = days.year_start(year), days.YEAR_LENGTHS[days.is_leap(year)]
            alone = [observed._allows(rule, entry, (start + day) * 86_400 + time) for day in range(length)]
            mask = observed._allowed_at(rule, entry, time, year)
            assert [bool(mask >> day & 1) for day in range(length)] == alone, year
