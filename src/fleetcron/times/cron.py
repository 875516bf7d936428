"""The tick calculator for cron expressions.

Let M be the local times that match. A zone is a row of periods, each with one offset, and each period answers for a
stretch [low, high) of local times (`zone.py`, which is where the fold policy lives). Then the ticks inside a period are
simply M within that stretch, minus the offset. Between one period's `high` and the next one's `low` lies a gap: if M
has a time there, `shift` puts one tick at the instant of the change and `skip` puts none. That is all; every change of
offset of every zone, of whatever size, is the same case.

All arithmetic is on whole seconds, UTC or local; no datetime is made except the answer.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from copy import copy
from datetime import datetime, timedelta
from functools import lru_cache
from itertools import islice
from typing import TYPE_CHECKING

from fleetcron.errors import ScheduleError
from fleetcron.times import days, policies
from fleetcron.times.daysets import FAR, DaySet, matching_days
from fleetcron.times.daytimes import DayTimes
from fleetcron.times.expression import Expression, parse
from fleetcron.times.instants import EPOCH, not_an_instant
from fleetcron.times.schedule import Schedule
from fleetcron.times.zone import Period, Zone
from fleetcron.times.zones import zone as zone_named

if TYPE_CHECKING:
    from fleetcron.times.explain import Explanation

DAY = 86400
FIRST = -62_135_596_800  # 0001-01-01T00:00:00Z
LAST = 253_402_300_799  # 9999-12-31T23:59:59Z
Block = tuple[int, tuple[int, ...], tuple[timedelta, ...]]
_NOWHERE = Period(1, 0, 0, 0, 0)  # holds no second: the first question finds the real one
_NO_YEAR = (1, 0, b"")


@lru_cache(maxsize=8192)
def _day_times(expression: Expression) -> DayTimes:
    return DayTimes.of(expression)


class Cron(Schedule):
    """`Cron("0 2 * * *", "America/New_York")`: the ticks of a cron expression in a zone.

    Policies that are not given follow from the expression and can be read from the object, to be stored.
    `seed` (tenant/name) is what H stands on.
    """

    __slots__ = (
        "_days", "_every_day", "_flat", "_here", "_last_flat", "_times", "_year",
        "dst_fold", "dst_gap", "expression", "month_end", "parsed", "seed", "timezone", "zone",
    )  # fmt: skip

    def __init__(
        self,
        expression: str,
        timezone: str | Zone = "UTC",
        dst_gap: str | None = None,
        dst_fold: str | None = None,
        month_end: str | None = None,
        *,
        seed: str | None = None,
    ) -> None:
        if not isinstance(expression, str):
            raise ScheduleError(f"{expression!r} is not a cron expression", hint="pass a text such as '0 2 * * *'")
        self.parsed = parse(expression, seed)
        self.expression = self.parsed.text
        self.seed = seed
        self.zone = timezone if isinstance(timezone, Zone) else zone_named(timezone)
        self.timezone = self.zone.name
        self.dst_gap = policies.dst_gap(dst_gap, self.parsed)
        self.dst_fold = policies.dst_fold(dst_fold, self.parsed)
        self.month_end = policies.month_end(month_end)
        self._observe(matching_days(self.parsed, self.month_end == "clamp"), _day_times(self.parsed))
        if self.dst_gap == "skip" and self.after(self.zone.settled) is None:
            raise ScheduleError(
                f"'{self.expression}' never fires: all its times fall into the clock change of {self.timezone}",
                hint="with dst_gap=shift it runs when the clock has changed",
            )

    def _observe(self, chosen: DaySet, times: DayTimes) -> None:
        self._days = chosen
        self._every_day = chosen.every_day
        self._times = times
        self._flat = times.flat
        self._last_flat = times.last if times.flat else -1
        # Where the last question was asked: the period and the year. Time goes on slowly, so the next question is
        # mostly asked there too. Both are replaced whole, never changed, so threads may share a schedule.
        self._here: Period = _NOWHERE
        self._year: tuple[int, int, bytes] = _NO_YEAR

    def on_days(self, chosen: DaySet, only: int | None = None) -> "Cron":
        """The same times on other days, or one time alone: what a calendar makes of this schedule."""
        other = copy(self)
        other._observe(chosen, self._times if only is None else DayTimes.only(only))
        return other

    @property
    def days(self) -> DaySet:
        return self._days

    @property
    def times(self) -> DayTimes:
        return self._times

    # -- public, on datetimes; the loops of callers are hot, so these do not go through milliseconds

    def next_after(self, t: datetime) -> datetime | None:
        try:
            since = t - EPOCH
        except (TypeError, AttributeError):
            raise not_an_instant(t) from None
        second = self.after(since.days * DAY + since.seconds)
        return None if second is None else EPOCH + timedelta(0, second)

    def prev_before(self, t: datetime) -> datetime | None:
        try:
            since = t - EPOCH
        except (TypeError, AttributeError):
            raise not_an_instant(t) from None
        second = self.before(since.days * DAY + since.seconds + (since.microseconds > 0))
        return None if second is None else EPOCH + timedelta(0, second)

    def between(self, after: datetime, until: datetime, limit: int | None = None) -> Iterator[datetime]:
        try:
            low, high = after - EPOCH, until - EPOCH
        except (TypeError, AttributeError):
            raise not_an_instant(until if getattr(after, "tzinfo", None) else after) from None
        found = self._datetimes(low.days * DAY + low.seconds, high.days * DAY + high.seconds)
        return found if limit is None else islice(found, limit)

    def __eq__(self, other: object) -> bool:
        """Whether both have the same ticks for ever (or nearly: equal zones, policies, days and times of day)."""
        return isinstance(other, Cron) and other._key() == self._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def _key(self) -> tuple[object, ...]:
        chosen = tuple(self._days.mask(year) for year in _SAMPLE_YEARS)
        # Where the clock never changes, the policies decide nothing.
        dst = (self.dst_gap, self.dst_fold) if self.zone.changes else ()
        return self.zone.hash, dst, self._times.key(), chosen

    def __repr__(self) -> str:
        return f"Cron({self.expression!r}, {self.timezone!r}, {self.dst_gap!r}, {self.dst_fold!r}, {self.month_end!r})"

    def explain(self, after: datetime | None = None) -> "Explanation":
        from fleetcron.times.explain import explain

        return explain(self, after)

    # -- milliseconds, for the rooms above

    def next_ms(self, after: int) -> int | None:
        second = self.after(after // 1000)
        return None if second is None else second * 1000

    def prev_ms(self, before: int) -> int | None:
        second = self.before(-(-before // 1000))
        return None if second is None else second * 1000

    def ticks_ms(self, after: int, until: int) -> Iterator[int]:
        for base, steps, _ in self._blocks(after // 1000, until // 1000):
            for step in steps:
                yield (base + step) * 1000

    def count_ms(self, after: int, until: int) -> int:
        return self.count_seconds(after // 1000, until // 1000)

    def day_shape(self, day: int) -> object:
        here = self.zone.period_at(day * DAY)
        if day * DAY - 2 * DAY < here.start or day * DAY + 3 * DAY > here.end:
            return None  # a clock change is near
        first = (day * DAY + here.offset) // DAY
        return id(self._times), here.offset, first in self._days, first + 1 in self._days

    # -- seconds: the calculator

    def after(self, second: int) -> int | None:
        """The first tick later than `second`."""
        start, end, offset, low, high = self._here
        if not start <= second < end:
            start, end, offset, low, high = self._enter(second)
        local = second + offset
        if local < low:
            local = low - 1  # in the part of a fold that belongs to the period before
        elif local >= high:
            local = high - 1  # in the part of a fold that belongs to the period after, whole
        clock = local % DAY
        if self._every_day and clock < self._last_flat:
            # The common case: later today.
            flat = self._flat
            found = local - clock + flat[bisect_right(flat, clock)]
        else:
            match = self._match_after(local // DAY, clock)
            if match is None:
                return None
            found = match
        if found < high:
            found -= offset
            return found if FIRST <= found <= LAST else self._far_after(second)
        return self._cross_after(second, found)

    def before(self, second: int) -> int | None:
        """The last tick earlier than `second`."""
        second -= 1
        period = self._here
        if not period.start <= second < period.end:
            period = self._enter(second)
        local = min(second + period.offset, period.high - 1)
        if local < period.low:
            local = period.low - 1  # the local times of this part of a fold belong to the period before, whole
        found = self._match_before(local)
        if found is None:
            return None
        if found >= period.low:
            found -= period.offset
            return found if FIRST <= found <= LAST else self._far_before(second)
        return self._cross_before(second, found)

    def count_seconds(self, after: int, until: int) -> int:
        """How many ticks lie in (after, until]: days times times of day, period by period."""
        after, until = max(after, FIRST - 1), min(until, LAST)
        if until <= after:
            return 0
        periods = self.zone.periods(self.dst_fold, until)
        total = 0
        for at in range(periods.index(after), periods.index(until) + 1):
            start, end, offset, low, high = periods.all[at]
            if start > after and self._shifts_to(periods.all[at - 1], periods.all[at]):
                total += 1
            first = max(low, max(start, after + 1) + offset)
            last = min(high - 1, min(end - 1, until) + offset)
            total += self._count_matches(first, last)
        return total

    def local_times(self, second: int) -> list[int]:
        """The matching local times that make this tick: several when a gap moved them to one instant."""
        periods = self.zone.periods(self.dst_fold, second)
        at = periods.index(second)
        here = periods.all[at]
        found = []
        if here.start == second and at and self.dst_gap == "shift":
            found += self.local_matches(periods.all[at - 1].high, here.low - 1)
        local = second + here.offset
        if here.low <= local < here.high and self._count_matches(local, local):
            found.append(local)
        return found

    # -- matching local times

    def _match_after(self, day: int, clock: int) -> int | None:
        """The first matching local time later than this second of this day."""
        start, end, ahead = self._year
        if not start <= day < end:
            start, end, ahead = self._turn_to(day)
        wait = ahead[day - start]
        if wait == 0:
            flat = self._flat
            if flat:
                at = bisect_right(flat, clock)
                if at < len(flat):
                    return day * DAY + flat[at]
            else:
                time = self._times.after(clock)
                if time >= 0:
                    return day * DAY + time
            wait = 1 + ahead[day + 1 - start]
        if wait < FAR:
            return (day + wait) * DAY + self._times.first
        later = self._days.on_or_after(day + 1)
        return None if later is None else later * DAY + self._times.first

    def _match_before(self, local: int) -> int | None:
        """The last matching local time not later than `local`."""
        day, clock = divmod(local, DAY)
        if self._every_day or day in self._days:
            time = self._times.before(clock)
            if time >= 0:
                return day * DAY + time
        earlier = self._days.on_or_before(day - 1)
        return None if earlier is None else earlier * DAY + self._times.last

    def _count_matches(self, first: int, last: int) -> int:
        """How many matching local times lie in [first, last]."""
        if last < first:
            return 0
        first_day, first_clock = divmod(first, DAY)
        last_day, last_clock = divmod(last, DAY)
        times = self._times
        total = self._days.count(first_day, last_day) * times.count
        if total:
            if first_day in self._days:
                total -= times.count_to(first_clock - 1)
            if last_day in self._days:
                total -= times.count - times.count_to(last_clock)
        return total

    def local_matches(self, first: int, last: int) -> list[int]:
        """The matching local times in [first, last], whatever the zone makes of them."""
        found = []
        for day in range(first // DAY, last // DAY + 1):
            if day in self._days:
                low, high = max(first - day * DAY, 0), min(last - day * DAY, DAY - 1)
                found += [day * DAY + base + step for base, steps, _ in self._times.blocks(low, high) for step in steps]
        return found

    # -- from one period to another

    def _enter(self, second: int) -> Period:
        periods = self.zone.periods(self.dst_fold, second)
        self._here = here = periods.all[periods.index(second)]
        return here

    def _turn_to(self, day: int) -> tuple[int, int, bytes]:
        year = min(max(days.year_of(day), days.FIRST_YEAR), days.LAST_YEAR)
        start = days.year_start(year)
        table = self._days.ahead(year)
        self._year = turned = (start, start + len(table) - 1, table)
        return turned

    def _shifts_to(self, before: Period, here: Period) -> bool:
        """Whether the gap in front of a period makes a tick of its own at its start."""
        return (
            self.dst_gap == "shift"
            and before.high < here.low
            and self._count_matches(before.high, here.low - 1) > 0
            and not self._count_matches(here.low, here.low)
        )

    def _cross_after(self, second: int, found: int) -> int | None:
        """`found` is the next matching local time, and it lies beyond the period of `second`."""
        periods = self.zone.periods(self.dst_fold, second)
        at = periods.index(second)
        if at + 1 < len(periods.all) and periods.lows[at + 1] < periods.highs[at]:
            # A fold that runs twice: the clock goes back, and the local times since then come again.
            again = self._match_after(*divmod(periods.lows[at + 1] - 1, DAY))
            if again is not None and again < periods.highs[at]:
                return again - periods.all[at + 1].offset
        for _ in range(_MOST_GAPS):
            while found >= periods.highs[-1]:
                if periods.all[-1].end > LAST:
                    return None
                periods = self.zone.periods(self.dst_fold, periods.all[-1].end)
            at = bisect_right(periods.highs, found, at)
            here = periods.all[at]
            if found >= here.low:
                found -= here.offset
                return found if found <= LAST else None
            if self.dst_gap == "shift":
                return here.start
            maybe = self._match_after(*divmod(here.low - 1, DAY))
            if maybe is None:
                return None
            found = maybe
        return None

    def _cross_before(self, second: int, found: int) -> int | None:
        """`found` is the matching local time before, and it lies before the period of `second`."""
        periods = self.zone.periods(self.dst_fold, second)
        at = periods.index(second)
        if at and periods.highs[at - 1] > periods.lows[at]:
            again = self._match_before(periods.highs[at - 1] - 1)
            if again is not None and again >= periods.lows[at]:
                return again - periods.all[at - 1].offset
        for _ in range(_MOST_GAPS):
            at = bisect_right(periods.lows, found, 0, at + 1) - 1
            here = periods.all[at]
            if found < here.high:
                found -= here.offset
                return found if found >= FIRST else None
            if self.dst_gap == "shift":
                return periods.all[at + 1].start
            maybe = self._match_before(here.high - 1)
            if maybe is None:
                return None
            found = maybe
        return None

    def _far_after(self, second: int) -> int | None:
        """The answer lies outside the years 1 to 9999: nothing after them, and before them begin with the first."""
        return self.after(FIRST - 1) if second < FIRST - 1 else None

    def _far_before(self, second: int) -> int | None:
        return self.before(LAST + 1) if second > LAST else None

    # -- bulk

    def _blocks(self, after: int, until: int) -> Iterator[Block]:
        """The ticks in (after, until] as blocks: a start in UTC seconds and what to add to it."""
        after, until = max(after, FIRST - 1), min(until, LAST)
        if self._days.mask(2000).bit_count() * self._times.count < _SPARSE:
            # Walking every period of the zone would cost more than asking for each tick.
            tick = self.after(after)
            while tick is not None and tick <= until:
                yield tick, _ZERO, _ZERO_STEP
                tick = self.after(tick)
            return
        if until <= after:
            return
        periods = self.zone.periods(self.dst_fold, after)
        at = periods.index(after)
        while True:
            start, end, offset, low, high = periods.all[at]
            if start > after and self._shifts_to(periods.all[at - 1], periods.all[at]):
                yield start, _ZERO, _ZERO_STEP
            first = max(low, max(start, after + 1) + offset)
            last = min(high - 1, min(end - 1, until) + offset)
            if first <= last:
                local = self._year_blocks if self._times.count <= _FEW_A_DAY else self._day_blocks
                for base, steps, deltas in local(first, last):
                    yield base - offset, steps, deltas
            if end > until:
                return
            at += 1
            if at == len(periods.all):
                periods = self.zone.periods(self.dst_fold, end)

    def _day_blocks(self, first: int, last: int) -> Iterator[Block]:
        """The matching local times in [first, last], a block for each day."""
        last_day = last // DAY
        day = self._days.on_or_after(first // DAY)
        while day is not None and day <= last_day:
            low, high = max(first - day * DAY, 0), min(last - day * DAY, DAY - 1)
            for base, steps, deltas in self._times.blocks(low, high):
                yield day * DAY + base, steps, deltas
            day = day + 1 if self._every_day else self._days.on_or_after(day + 1)

    def _year_blocks(self, first: int, last: int) -> Iterator[Block]:
        """The same with a block for each year: for schedules with few times a day, where a day is too little work."""
        for year in range(days.year_of(first // DAY), days.year_of(last // DAY) + 1):
            base = days.year_start(year) * DAY
            steps, deltas = _year_steps(self._days.mask(year), self._flat)
            start, stop = bisect_left(steps, first - base), bisect_right(steps, last - base)
            yield base, steps[start:stop], deltas[start:stop]

    def _datetimes(self, after: int, until: int) -> Iterator[datetime]:
        for base, _, deltas in self._blocks(after, until):
            # one addition in C for each tick
            yield from map((EPOCH + timedelta(0, base)).__add__, deltas)


@lru_cache(maxsize=256)
def _year_steps(mask: int, times: tuple[int, ...]) -> tuple[tuple[int, ...], tuple[timedelta, ...]]:
    steps = tuple(day * DAY + time for day in range(mask.bit_length()) if mask >> day & 1 for time in times)
    return steps, tuple(timedelta(0, step) for step in steps)


_SPARSE = 24  # ticks a year
_FEW_A_DAY = 8
_ZERO = (0,)
_ZERO_STEP = (timedelta(0),)
# one year of each kind, and then some for calendars: days that agree on these are the same days
_SAMPLE_YEARS = tuple(range(2000, 2040))
# An expression can fall into a gap again and again (the last Sunday of March at 02:30 in Berlin, under skip); after
# 400 years the calendar repeats and so does the rule.
_MOST_GAPS = 1000
