"""The laws of time.md, over generated schedules: the whole grammar x zones x policies x month ends.

Each law is a plain function of a drawn schedule and a moment. `make test` holds it for a bounded number of examples,
the same in every run; `make soak` for forty times as many.
"""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache, partial
from itertools import islice, pairwise

import pytest
from hypothesis import assume
from hypothesis import strategies as st

from fleetcron import Cron, Every, Once, ScheduleError
from tests.times import reference
from tests.times.examples import AMOUNT
from tests.times.examples import for_all as for_all_unshrunk
from tests.times.reference import DAY, GAPS, PAIRS

for_all = partial(for_all_unshrunk, shrink=True)  # the calculator is fast: a failing example can be made small

HOUR = timedelta(hours=1)
JUST = timedelta(microseconds=1)
NOTHING = timedelta(0)
FIRST = datetime(1975, 1, 1, tzinfo=UTC)
LAST = datetime(2099, 12, 31, tzinfo=UTC)

ZONES = [
    "UTC",
    "Africa/Casablanca",
    "America/Havana",
    "America/New_York",
    "America/Sao_Paulo",
    "Antarctica/Troll",
    "Asia/Amman",
    "Asia/Kathmandu",
    "Australia/Lord_Howe",
    "Europe/Dublin",
    "Pacific/Apia",
    "Pacific/Chatham",
]


# --- the grammar -----------------------------------------------------------------------------------------------------


@st.composite
def numbers(draw: st.DrawFn, field: reference.Field) -> str:
    value = draw(st.integers(field.low, field.high))
    names = [name for name, n in field.names if n == value]
    spelled = draw(st.sampled_from([str(value), str(value), f"{value:02}", *names, *names]))
    return draw(st.sampled_from([spelled, spelled.lower(), spelled.title()]))


@st.composite
def terms(draw: st.DrawFn, field: reference.Field) -> str:
    step = st.integers(1, field.high)
    match draw(st.sampled_from(["n", "n", "n", "a-b", "a-b", "a-b/s", "*/s", "n/s"])):
        case "n":
            return draw(numbers(field))
        case "a-b":
            return f"{draw(numbers(field))}-{draw(numbers(field))}"
        case "a-b/s":
            return f"{draw(numbers(field))}-{draw(numbers(field))}/{draw(step)}"
        case "*/s":
            return f"*/{draw(step)}"
        case _:
            return f"{draw(numbers(field))}/{draw(step)}"


@st.composite
def day_terms(draw: st.DrawFn) -> str:
    n = st.integers(0, 30)
    day = st.integers(1, 31)
    match draw(st.sampled_from(["plain", "plain", "late", "L", "L-n", "LW", "L-nW", "nW", "?"])):
        case "plain":
            return draw(terms(reference.DAYS))
        case "late":
            return str(draw(st.integers(28, 31)))
        case "L":
            return draw(st.sampled_from(["L", "l"]))
        case "L-n":
            return f"L-{draw(n)}"
        case "LW":
            return draw(st.sampled_from(["LW", "lw"]))
        case "L-nW":
            return f"L-{draw(n)}W"
        case "nW":
            return f"{draw(day)}W"
        case _:
            return "?"


@st.composite
def weekday_terms(draw: st.DrawFn) -> str:
    match draw(st.sampled_from(["plain", "plain", "dL", "d#n", "?"])):
        case "plain":
            return draw(terms(reference.DAYS_OF_WEEK))
        case "dL":
            return draw(numbers(reference.DAYS_OF_WEEK)) + "L"
        case "d#n":
            return f"{draw(numbers(reference.DAYS_OF_WEEK))}#{draw(st.integers(1, 5))}"
        case _:
            return "?"


def lists(term: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    star = st.just("*")
    several = st.lists(term, min_size=1, max_size=3).map(",".join)
    return st.one_of(star, term, several, st.lists(st.one_of(star, term), min_size=2, max_size=2).map(",".join))


@st.composite
def expressions(draw: st.DrawFn) -> str:
    if draw(st.integers(0, 19)) == 0:
        macro = draw(st.sampled_from(sorted(reference.MACROS)))
        return draw(st.sampled_from([macro, macro.lower()]))
    fields = [
        draw(lists(terms(reference.MINUTES))),
        draw(lists(terms(reference.HOURS))),
        draw(lists(day_terms())),
        draw(st.one_of(st.just("*"), lists(terms(reference.MONTHS_OF_YEAR)))),
        draw(st.sampled_from(["", "", "+"])) + draw(lists(weekday_terms())),
    ]
    if draw(st.integers(0, 3)) == 0:
        fields.insert(0, draw(lists(terms(reference.SECONDS))))
    return draw(st.sampled_from([" ", "  ", "\t"])).join(fields)


# --- schedules and moments -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Drawn:
    expression: str
    zone: str
    dst_gap: str
    dst_fold: str
    month_end: str

    @property
    def policies(self) -> tuple[str, str, str]:
        return self.dst_gap, self.dst_fold, self.month_end

    @property
    def cron(self) -> Cron:
        return Cron(self.expression, self.zone, dst_gap=self.dst_gap, dst_fold=self.dst_fold, month_end=self.month_end)

    def naive_times_a_day(self) -> int:
        fields = reference.parse(self.expression)
        return len(fields.hours) * len(fields.minutes) * len(fields.seconds)

    def window(self, about: int) -> timedelta:
        """A stretch with at most about so many ticks (more if every second counts)."""
        return max(HOUR, min(400 * DAY, DAY * about / self.naive_times_a_day()))

    def reference_ticks(self, low: datetime, high: datetime) -> list[datetime]:
        low, high = low.replace(tzinfo=None), high.replace(tzinfo=None)
        found = reference.ticks(self.expression, self.zone, low, high, *self.policies)
        return [tick.replace(tzinfo=UTC) for tick in found]


def drawn() -> st.SearchStrategy[Drawn]:
    return st.builds(
        lambda expression, zone, pair, month_end: Drawn(expression, zone, *pair, month_end),
        expressions(),
        st.sampled_from(ZONES),
        st.sampled_from(PAIRS),
        st.sampled_from(["skip", "clamp"]),
    )


def schedules() -> st.SearchStrategy[Drawn]:
    return drawn().filter(lambda one: not reference.never_fires(one.expression, one.month_end))


@cache
def changes(zone: str) -> list[datetime]:
    low, high = datetime(2010, 1, 1), datetime(2030, 1, 1)  # noqa: DTZ001 (the reference takes naive UTC)
    return [change.at.replace(tzinfo=UTC) for change in reference.changes(zone, low, high)]


@st.composite
def moments(draw: st.DrawFn, zone: str) -> datetime:
    """Any moment of 125 years, but mostly one near a change of the zone."""
    if changes(zone) and draw(st.integers(0, 3)):
        minutes = draw(st.integers(-36 * 60, 36 * 60))
        return draw(st.sampled_from(changes(zone))) + timedelta(minutes=minutes)
    return FIRST + timedelta(seconds=draw(st.integers(0, int((LAST - FIRST).total_seconds()))))


@st.composite
def schedules_at(draw: st.DrawFn) -> tuple[Drawn, datetime]:
    schedule = draw(schedules())
    return schedule, draw(moments(schedule.zone))


# --- against the reference -------------------------------------------------------------------------------------------


@AMOUNT
def test_ticks_are_those_of_the_definition(amount: int):
    @for_all(90 * amount, schedules_at())
    def law(case: tuple[Drawn, datetime]) -> None:
        schedule, moment = case
        half = schedule.window(about=400) / 2
        low, high = moment - half, moment + half
        assert list(schedule.cron.between(low, high)) == schedule.reference_ticks(low, high)


@AMOUNT
def test_next_and_previous_tick_are_those_of_the_definition(amount: int):
    @for_all(30 * amount, schedules_at())
    def law(case: tuple[Drawn, datetime]) -> None:
        schedule, moment = case
        for answer, definition in (
            (schedule.cron.next_after(moment), reference.next_after),
            (schedule.cron.prev_before(moment), reference.prev_before),
        ):
            at = moment.replace(tzinfo=None)
            owed = definition(schedule.expression, schedule.zone, at, *schedule.policies)
            if owed is None:  # further away than the reference looks
                assert answer is None or abs(answer - moment) >= (reference.HORIZON - 3) * DAY
            else:
                assert answer == owed.replace(tzinfo=UTC)


@AMOUNT
def test_refused_if_and_only_if_it_never_fires(amount: int):
    @for_all(90 * amount, drawn())
    def law(one: Drawn) -> None:
        if reference.never_fires(one.expression, one.month_end):
            with pytest.raises(ScheduleError):
                _ = one.cron
        else:
            assert one.cron.dst_gap == one.dst_gap


LATE_DAYS = st.lists(
    st.sampled_from("28 29 30 31 29-31 27-30 30-2 1-31 */29 15-31/4 29/1 L L-1 LW 30W 31W".split()),  # noqa: SIM905
    min_size=1,
    max_size=3,
    unique=True,
).map(",".join)


@AMOUNT
def test_month_end_clamp(amount: int):
    """Every day of four years, one of them leap: a late day becomes the month's last, and only a written one does."""
    months, weekdays = st.sampled_from(["*", "*", "2", "2,4"]), st.sampled_from(["*", "MON", "+MON", "FRIL"])

    @for_all(30 * amount, LATE_DAYS, months, weekdays)
    def law(days: str, months: str, weekdays: str) -> None:
        expression = f"0 0 {days} {months} {weekdays}"
        for month_end in ("skip", "clamp"):
            one = Drawn(expression, "UTC", "shift", "first", month_end)
            if reference.never_fires(expression, month_end):
                continue
            low, high = datetime(2023, 1, 1, tzinfo=UTC), datetime(2027, 1, 1, tzinfo=UTC)
            assert list(one.cron.between(low, high)) == one.reference_ticks(low, high)


@AMOUNT
def test_defaults_are_derived_from_the_expression(amount: int):
    @for_all(70 * amount, expressions(), st.sampled_from([None, *GAPS]), st.sampled_from(ZONES))
    def law(expression: str, dst_gap: str | None, zone: str) -> None:
        assume(not reference.never_fires(expression))
        cron = Cron(expression, zone, dst_gap=dst_gap)
        gap, fold = reference.default_policies(expression)
        assert (cron.dst_gap, cron.dst_fold) == (dst_gap or gap, fold)
        assert cron == Cron(expression, zone, dst_gap=dst_gap or gap, dst_fold=fold)


# --- the calculator against itself -----------------------------------------------------------------------------------


@AMOUNT
def test_count_is_the_length_of_between(amount: int):
    @for_all(60 * amount, schedules_at(), st.floats(0, 1), st.floats(0, 1))
    def law(case: tuple[Drawn, datetime], left: float, right: float) -> None:
        schedule, moment = case
        cron, reach = schedule.cron, schedule.window(about=600)
        low, high = moment - left * reach, moment + right * reach
        ticks = list(cron.between(low, high))
        assert cron.count(low, high) == len(ticks)
        assert cron.count(low, moment) + cron.count(moment, high) == len(ticks)
        assert cron.count(high, high) == 0
        assert list(cron.between(high, high)) == []
        if low < high:
            assert cron.count(high, low) == 0
            assert list(cron.between(high, low)) == []
        if ticks:  # a < tick <= b, to the microsecond
            assert cron.count(ticks[0], ticks[-1]) == len(ticks) - 1
            assert cron.count(ticks[0] - JUST, ticks[-1] - JUST) == len(ticks) - 1
            assert cron.count(ticks[0] - JUST, ticks[-1]) == len(ticks)


@AMOUNT
def test_bulk_is_the_chain_of_next_after(amount: int):
    @for_all(60 * amount, schedules_at(), st.integers(0, 60))
    def law(case: tuple[Drawn, datetime], limit: int) -> None:
        schedule, moment = case
        cron = schedule.cron
        chain, at = [], moment
        while len(chain) < limit and (at := cron.next_after(at)) is not None:
            chain.append(at)
        assert all(tick > moment for tick in chain)
        assert all(earlier < later for earlier, later in pairwise(chain))
        assert all(tick.utcoffset() == NOTHING for tick in chain)
        if chain:
            assert list(cron.between(moment, chain[-1])) == chain
            assert list(cron.between(moment, chain[-1] + 1000 * DAY, limit=limit)) == chain
            assert list(islice(cron.between(moment, chain[-1] + DAY), limit)) == chain


@AMOUNT
def test_prev_before_is_the_inverse_of_next_after(amount: int):
    @for_all(60 * amount, schedules_at())
    def law(case: tuple[Drawn, datetime]) -> None:
        schedule, moment = case
        cron = schedule.cron
        chain, at = [], moment
        while len(chain) < 30 and (at := cron.next_after(at)) is not None:
            chain.append(at)
        assert [cron.prev_before(tick) for tick in chain[1:]] == chain[:-1]
        assert [cron.prev_before(tick + JUST) for tick in chain] == chain
        assert [cron.next_after(tick - JUST) for tick in chain] == chain
        previous = cron.prev_before(moment)
        if previous is not None:
            assert previous < moment
            following = cron.next_after(previous)
            assert following == (moment if moment in cron else (chain[0] if chain else None))


@AMOUNT
def test_membership_agrees_with_the_neighbours(amount: int):
    @for_all(60 * amount, schedules_at())
    def law(case: tuple[Drawn, datetime]) -> None:
        schedule, moment = case
        cron = schedule.cron
        ticks = set(cron.between(moment - HOUR, moment + HOUR))
        for n in range(-55, 61, 5):
            at = moment + timedelta(minutes=n)
            inside = at in cron
            assert inside == (at in ticks)
            assert inside == (cron.next_after(at - JUST) == at) == (cron.prev_before(at + JUST) == at)
        for tick in islice(ticks, 20):
            assert tick in cron
            assert tick + JUST not in cron
            assert tick + timedelta(milliseconds=1) not in cron


# --- equality --------------------------------------------------------------------------------------------------------


@st.composite
def rewritten(draw: st.DrawFn, expression: str) -> str:
    """The same expression in other words: order and repetition in lists, ranges of one, names, Sunday as 0 or 7."""
    fields = reference.MACROS.get(expression.upper(), expression).upper().split()
    fields = fields if len(fields) == 6 else ["0", *fields]
    named = {name: str(n) for name, n in (reference.MONTHS | reference.WEEKDAYS).items()}
    result = []
    for number, field in enumerate(fields):
        plus, text = ("+", field[1:]) if field.startswith("+") else ("", field)
        first, *rest = text.split(",")  # the first stays first: a leading star has a meaning
        parts = [first, *draw(st.permutations(rest))]
        if draw(st.booleans()):
            parts.append(draw(st.sampled_from(parts)))
        if draw(st.booleans()):
            parts = [named.get(part, part) for part in parts]
        if draw(st.booleans()):
            parts = [f"{part}-{part}" if part.isdigit() else part for part in parts]
        if number == 5 and draw(st.booleans()):
            parts = ["7" if part == "0" else part for part in parts]
        result.append(plus + ",".join(parts))
    return " ".join(result)


@AMOUNT
def test_the_same_in_other_words_is_equal(amount: int):
    @for_all(70 * amount, schedules(), st.data())
    def law(one: Drawn, data: st.DataObject) -> None:
        words = data.draw(rewritten(one.expression))
        other = Drawn(words, one.zone, *one.policies)
        assert one.cron == other.cron
        assert hash(one.cron) == hash(other.cron)


NEAR_EACH_OTHER = [
    "0 0 * * *",
    "0 0 1-31 * *",
    "0 0 1-31 * 0-6",
    "0 0 * * 0-6",
    "0 0 0 * * *",
    "@daily",
    "@midnight",
    "0 0 31 * *",
    "0 0 L * *",
    "0 0 31 1 *",
    "0 0 L 1 *",
    "0 0 29 2 *",
    "0 0 28 2 *",
    "0 0 28,29 2 *",
    "0 0 L 2 *",
    "0 0 1-7 * +MON",
    "0 0 * * MON#1",
    "0 0 * * MONL",
    "0 0 L,L-1,L-2,L-3,L-4,L-5,L-6 * +MON",
]


@AMOUNT
def test_equal_means_the_same_ticks(amount: int):
    near = st.sampled_from(NEAR_EACH_OTHER)

    @for_all(70 * amount, near, near, st.sampled_from(["skip", "clamp"]), st.sampled_from(["skip", "clamp"]))
    def law(left: str, right: str, left_end: str, right_end: str) -> None:
        one = Drawn(left, "Europe/Dublin", "shift", "first", left_end)
        other = Drawn(right, "Europe/Dublin", "shift", "first", right_end)
        days = [
            [
                reference.matching_days(reference.parse(each.expression), 2001 + n // 12, n % 12 + 1, each.month_end)
                for n in range(336)
            ]
            for each in (one, other)
        ]
        assert (one.cron == other.cron) == (days[0] == days[1])


@AMOUNT
def test_different_ticks_are_never_equal(amount: int):
    @for_all(45 * amount, schedules_at(), schedules())
    def law(case: tuple[Drawn, datetime], other: Drawn) -> None:
        one, moment = case
        low, high = moment - 40 * DAY, moment + 40 * DAY
        mine = list(one.cron.between(low, high, limit=50))
        theirs = list(other.cron.between(low, high, limit=50))
        if mine != theirs:
            assert one.cron != other.cron
        if one.cron == other.cron:
            assert mine == theirs


# --- H ---------------------------------------------------------------------------------------------------------------

FIELDS = [
    reference.SECONDS,
    reference.MINUTES,
    reference.HOURS,
    reference.DAYS,
    reference.MONTHS_OF_YEAR,
    reference.DAYS_OF_WEEK,
]


@st.composite
def slots(draw: st.DrawFn) -> tuple[int, str, list[str]]:
    """A field with H in it, and every text that H may stand for."""
    number = draw(st.integers(0, 5))
    field = FIELDS[number]
    high = 6 if number == 5 else field.high
    tail = field.high  # `1/2` on weekdays goes on to 7, which is Sunday
    step = draw(st.integers(1, high))
    low, top = sorted([draw(st.integers(field.low, high)), draw(st.integers(field.low, high))])
    match draw(st.sampled_from(["H", "H/n", "H(a-b)", "H(a-b)/n"])):
        case "H":
            return number, "H", [str(n) for n in range(field.low, high + 1)]
        case "H/n":
            return (
                number,
                f"H/{step}",
                [f"{n}-{tail}/{step}" for n in range(field.low, min(high, field.low + step - 1) + 1)],
            )
        case "H(a-b)":
            return number, f"H({low}-{top})", [str(n) for n in range(low, top + 1)]
        case _:
            return (
                number,
                f"H({low}-{top})/{step}",
                [f"{n}-{top}/{step}" for n in range(low, min(top, low + step - 1) + 1)],
            )


@AMOUNT
def test_h_stands_for_one_of_the_values_it_may(amount: int):
    @for_all(45 * amount, slots(), st.sampled_from([f"tenant/job-{n}" for n in range(50)]))
    def law(slot: tuple[int, str, list[str]], seed: str) -> None:
        number, text, meanings = slot

        def expression(part: str) -> str:
            parts = ["0", "30", "4", "*", "*", "*"]
            parts[number] = part
            return " ".join(parts)

        asked = {"dst_gap": "shift", "dst_fold": "first"}
        hashed = Cron(expression(text), "Europe/Dublin", seed=seed, **asked)
        assert hashed == Cron(expression(text), "Europe/Dublin", seed=seed, **asked)
        assert any(Cron(expression(meaning), "Europe/Dublin", **asked) == hashed for meaning in meanings)
        with pytest.raises(ScheduleError, match="H needs"):
            Cron(expression(text))


def test_h_spreads_and_stays():
    """200 jobs do not share a few minutes, and a re-created job keeps its slot."""
    at = datetime(2026, 1, 1, tzinfo=UTC)
    minutes = [Cron("H * * * *", seed=f"acme/job-{n}").next_after(at) for n in range(200)]
    assert len(set(minutes)) > 45
    assert minutes == [Cron("H * * * *", seed=f"acme/job-{n}").next_after(at) for n in range(200)]


# --- Every and Once --------------------------------------------------------------------------------------------------


@AMOUNT
def test_every_is_anchor_plus_multiples(amount: int):
    seconds = st.integers(-(2**31), 2**32)

    @for_all(90 * amount, st.integers(1, 40 * 86_400), seconds, seconds, st.integers(0, 500))
    def law(every: int, anchor: int, at: int, reach: int) -> None:
        epoch = datetime(1970, 1, 1, tzinfo=UTC)
        moment = epoch + timedelta(seconds=at)
        schedule = Every(every, anchor=epoch + timedelta(seconds=anchor))
        number = (at - anchor) // every  # the last tick at or before the moment

        def tick(k: int) -> datetime:
            return epoch + timedelta(seconds=anchor + k * every)

        inside = tick(number) == moment
        assert (moment in schedule) == inside
        assert schedule.next_after(moment) == tick(number + 1)
        assert schedule.prev_before(moment) == tick(number - 1 if inside else number)
        high = moment + reach * timedelta(seconds=every)
        assert list(schedule.between(moment, high)) == [tick(number + k) for k in range(1, reach + 1)]
        assert schedule.count(moment, high) == reach
        assert schedule.prev_before(schedule.next_after(moment) + JUST) == schedule.next_after(moment)


@AMOUNT
def test_once_is_resolved_like_a_cron_of_that_minute(amount: int):
    @for_all(90 * amount, st.sampled_from(ZONES).flatmap(lambda zone: st.tuples(st.just(zone), moments(zone))))
    def law(case: tuple[str, datetime]) -> None:
        zone, moment = case
        wall = reference.local(zone, moment.replace(tzinfo=None))
        for shifted in (wall, wall + HOUR, wall - HOUR, wall + HOUR / 2):
            for gap, fold in PAIRS[:2] + PAIRS[3:5]:  # without "both", which is two instants
                owed = reference.resolve(zone, shifted).under(gap, fold)
                if not owed:
                    with pytest.raises(ScheduleError):
                        Once(shifted, zone, dst_gap=gap, dst_fold=fold)
                    continue
                (tick,) = (instant.replace(tzinfo=UTC) for instant in owed)
                once = Once(shifted, zone, dst_gap=gap, dst_fold=fold)
                assert once.next_after(tick - JUST) == tick == once.prev_before(tick + JUST)
                assert once.next_after(tick) is None
                assert once.prev_before(tick) is None
                assert once == Once(tick)
