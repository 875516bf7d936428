"""The tick calculator for cron expressions.

Let M be the local times that match (`localtimes.py`). A zone is a row of periods, each with one offset, and each period
answers for a stretch [low, high) of local times (`zone.py`, which is where the fold policy lives). The ticks inside a
period are then simply M within that stretch, minus the offset. Between one period's `high` and the next one's `low`
lies a gap: if M has a time there, `shift` puts one tick at the instant of the change and `skip` puts none. That is all;
every change of offset of every zone, of whatever size, is the same case.

All arithmetic is on whole seconds, UTC or local; no datetime is made except the answer.
"""

from bisect import bisect_right
from collections.abc import Iterator
from copy import copy
from datetime import datetime, timedelta
from itertools import islice
from typing import TYPE_CHECKING

from fleetcron.errors import ScheduleError
from fleetcron.times import policies
from fleetcron.times.daysets import DaySet, matching_days
from fleetcron.times.daytimes import DayTimes
from fleetcron.times.expression import parse
from fleetcron.times.instants import EPOCH, not_an_instant
from fleetcron.times.jitter import checked_seed
from fleetcron.times.localtimes import DAY, Block, LocalTimes
from fleetcron.times.schedule import Schedule, checked_limit
from fleetcron.times.zone import Period, Periods, Zone
from fleetcron.times.zones import zone as zone_named

if TYPE_CHECKING:
    from fleetcron.times.explain import Explanation

FIRST = -62_135_596_800  # 0001-01-01T00:00:00Z
LAST = 253_402_300_799  # 9999-12-31T23:59:59Z
_NOWHERE = Period(1, 0, 0, 0, 0)  # holds no second: the first question finds the real one
_ZERO = (0,)
_ZERO_STEP = (timedelta(0),)
_SPARSE = 24  # ticks a year
# An expression can fall into a gap again and again (the last Sunday of March at 02:30 in Berlin, under skip). A yearly
# rule has one gap a year, and all 14 kinds of year have come within 40 years; the listed changes are fewer than 300.
_MOST_GAPS = 400


class Cron(Schedule):
    """`Cron("0 2 * * *", "America/New_York")`: the ticks of a cron expression in a zone.

    Policies that are not given follow from the expression and can be read from the object, to be stored.
    `seed` (tenant/name) is what H stands on.
    """

    __slots__ = (
        "_here", "dst_fold", "dst_gap", "expression", "matching", "month_end", "parsed", "seed", "timezone", "zone",
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
        self.parsed = parse(expression, checked_seed(seed))
        self.expression = self.parsed.text
        self.seed = seed
        self.zone = timezone if isinstance(timezone, Zone) else zone_named(timezone)
        self.timezone = self.zone.name
        self.dst_gap = policies.dst_gap(dst_gap, self.parsed)
        self.dst_fold = policies.dst_fold(dst_fold, self.parsed)
        self.month_end = policies.month_end(month_end)
        chosen = matching_days(self.parsed, self.month_end == "clamp")
        self.matching = LocalTimes(chosen, DayTimes.of(self.parsed))
        # The period of the last question, as in LocalTimes: replaced whole, never changed.
        self._here: Period = _NOWHERE
        if self.dst_gap == "skip" and self.zone.changes and self.after(self.zone.settled) is None:
            raise ScheduleError(
                f"'{self.expression}' never fires: all its times fall into the clock change of {self.timezone}",
                hint="with dst_gap=shift it runs when the clock has changed",
            )

    def on_days(self, chosen: DaySet, only: int | None = None) -> "Cron":
        """The same times on other days, or one time alone: what a calendar makes of this schedule."""
        other = copy(self)
        other.matching = LocalTimes(chosen, self.times if only is None else DayTimes.only(only))
        other._here = _NOWHERE
        return other

    @property
    def days(self) -> DaySet:
        return self.matching.days

    @property
    def times(self) -> DayTimes:
        return self.matching.times

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
        return found if limit is None else islice(found, checked_limit(limit))

    def explain(self, after: datetime | None = None) -> "Explanation":
        """Words, next ticks and dated notes for the coming clock changes; `after` is now unless given."""
        from fleetcron.times.explain import explain

        return explain(self, after)

    def __eq__(self, other: object) -> bool:
        """Whether both have the same ticks: equal zone tables, policies, days and times of day."""
        return isinstance(other, Cron) and other._key() == self._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def _key(self) -> tuple[object, ...]:
        # Where the clock never changes, the policies decide nothing.
        dst = (self.dst_gap, self.dst_fold) if self.zone.changes else ()
        return self.zone.hash, dst, self.matching.key()

    def __repr__(self) -> str:
        seed = f", seed={self.seed!r}" if self.seed is not None else ""
        policies = f"{self.dst_gap!r}, {self.dst_fold!r}, {self.month_end!r}"
        return f"Cron({self.expression!r}, {self.timezone!r}, {policies}{seed})"

    # -- milliseconds, for the rooms above

    def next_ms(self, after: int) -> int | None:
        second = self.after(after // 1000)
        return None if second is None else second * 1000

    def prev_ms(self, before: int) -> int | None:
        second = self.before(-(-before // 1000))
        return None if second is None else second * 1000

    def ticks_ms(self, after: int, until: int) -> Iterator[int]:
        if self._is_sparse():
            for tick in self._one_by_one(after // 1000, until // 1000):
                yield tick * 1000
            return
        for base, steps, _ in self._blocks(after // 1000, until // 1000):
            for step in steps:
                yield (base + step) * 1000

    def count_ms(self, after: int, until: int) -> int:
        return self._count(after // 1000, until // 1000)

    def day_shape(self, day: int) -> object:
        here = self.zone.period_at(day * DAY)
        if day * DAY - 2 * DAY < here.start or day * DAY + 3 * DAY > here.end:
            return None  # a clock change is near
        first = (day * DAY + here.offset) // DAY
        return id(self.times), here.offset, first in self.days, first + 1 in self.days

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
        matching = self.matching
        clock = local % DAY
        if clock < matching.flat_until:
            # The common case, later today, without a call.
            found = local - clock + matching.flat[bisect_right(matching.flat, clock)]
        else:
            match = matching.after(local)
            if match is None:
                return None
            found = match
        if found < high:
            found -= offset
            return found if FIRST <= found <= LAST else self._from_outside_after(second)
        return self._cross_after(second, found)

    def before(self, second: int) -> int | None:
        """The last tick earlier than `second`."""
        second -= 1
        here = self._here
        if not here.start <= second < here.end:
            here = self._enter(second)
        local = min(second + here.offset, here.high - 1)
        if local < here.low:
            local = here.low - 1  # the local times of this part of a fold belong to the period before, whole
        found = self.matching.up_to(local)
        if found is None:
            return None
        if found >= here.low:
            found -= here.offset
            return found if FIRST <= found <= LAST else self._from_outside_before(second)
        return self._cross_before(second, found)

    def local_times(self, second: int) -> list[int]:
        """The matching local times that make this tick: several when a gap moved them to one instant."""
        periods = self.zone.periods(self.dst_fold, second)
        at = periods.index(second)
        here = periods.all[at]
        found = []
        if here.start == second and at and self.dst_gap == "shift":
            found += self.matching.listed(periods.all[at - 1].high, here.low - 1)
        local = second + here.offset
        if here.low <= local < here.high and local in self.matching:
            found.append(local)
        return found

    def _enter(self, second: int) -> Period:
        periods = self.zone.periods(self.dst_fold, second)
        self._here = here = periods.all[periods.index(second)]
        return here

    def _cross_after(self, second: int, found: int) -> int | None:
        """`found` is the next matching local time, and it lies beyond the period of `second`."""
        periods = self.zone.periods(self.dst_fold, second)
        at = periods.index(second)
        if at + 1 < len(periods.all) and periods.lows[at + 1] < periods.highs[at]:
            # A fold that runs twice: the clock goes back, and the local times since then come again.
            again = self.matching.after(periods.lows[at + 1] - 1)
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
            match = self.matching.after(here.low - 1)
            if match is None:
                return None
            found = match
        return None

    def _cross_before(self, second: int, found: int) -> int | None:
        """`found` is the matching local time before, and it lies before the period of `second`."""
        periods = self.zone.periods(self.dst_fold, second)
        at = periods.index(second)
        if at and periods.highs[at - 1] > periods.lows[at]:
            again = self.matching.up_to(periods.highs[at - 1] - 1)
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
            match = self.matching.up_to(here.high - 1)
            if match is None:
                return None
            found = match
        return None

    def _from_outside_after(self, second: int) -> int | None:
        """The answer lies outside the years 1 to 9999: from before them go on with the first, after them is nothing."""
        return self.after(FIRST - 1) if second < FIRST - 1 else None

    def _from_outside_before(self, second: int) -> int | None:
        return self.before(LAST + 1) if second > LAST else None

    # -- bulk

    def _count(self, after: int, until: int) -> int:
        total = 0
        for periods, at, first, last in self._stretches(after, until):
            total += self._shifts_to(periods, at, after) + self.matching.count(first, last)
        return total

    def _blocks(self, after: int, until: int) -> Iterator[Block]:
        """The ticks in (after, until] as blocks: a start in UTC seconds and what to add to it."""
        for periods, at, first, last in self._stretches(after, until):
            here = periods.all[at]
            if self._shifts_to(periods, at, after):
                yield here.start, _ZERO, _ZERO_STEP
            for base, steps, deltas in self.matching.blocks(first, last):
                yield base - here.offset, steps, deltas

    def _is_sparse(self) -> bool:
        """Whether walking every period of the zone would cost more than asking for each tick."""
        return self.days.mask(2000).bit_count() * self.times.count < _SPARSE

    def _one_by_one(self, after: int, until: int) -> Iterator[int]:
        tick = self.after(after)
        while tick is not None and tick <= until:
            yield tick
            tick = self.after(tick)

    def _stretches(self, after: int, until: int) -> Iterator[tuple[Periods, int, int, int]]:
        """The periods that (after, until] touches, each with the local times [first, last] for which it answers."""
        after, until = max(after, FIRST - 1), min(until, LAST)
        if until <= after:
            return
        periods = self.zone.periods(self.dst_fold, after)
        at = periods.index(after)
        while True:
            start, end, offset, low, high = periods.all[at]
            first = max(low, max(start, after + 1) + offset)
            yield periods, at, first, min(high - 1, min(end - 1, until) + offset)
            if end > until:
                return
            at += 1
            if at == len(periods.all):
                periods = self.zone.periods(self.dst_fold, end)

    def _shifts_to(self, periods: Periods, at: int, after: int) -> bool:
        """Whether the gap in front of a period makes a tick of its own at its start, later than `after`."""
        here = periods.all[at]
        if self.dst_gap == "skip" or here.start <= after or periods.highs[at - 1] >= here.low:
            return False
        return here.low not in self.matching and self.matching.count(periods.highs[at - 1], here.low - 1) > 0

    def _datetimes(self, after: int, until: int) -> Iterator[datetime]:
        if self._is_sparse():
            for tick in self._one_by_one(after, until):
                yield EPOCH + timedelta(0, tick)
            return
        for base, _, deltas in self._blocks(after, until):
            # one addition in C for each tick
            yield from map((EPOCH + timedelta(0, base)).__add__, deltas)
