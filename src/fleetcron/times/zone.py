"""A time zone as a table of offsets, with a hash. No clock and no file: two nodes with one table agree on every tick.

The table lists the changes of offset up to the end of 2037 (later where a zone has announced more, as Morocco has up
to 2087) and the rule that repeats after them, so that the hash does not depend on how much of the rule a file spells
out. Times before the first change use the first offset.
"""

import json
import struct
from bisect import bisect_right
from dataclasses import dataclass
from hashlib import sha256
from typing import NamedTuple

from fleetcron.errors import ScheduleError
from fleetcron.times import days
from fleetcron.times.tzif import Rule, read_rule, read_tzif

LISTED_UNTIL = 2037
# How far the periods are spelled out, step by step as somebody asks for later times.
_REACHES = (2060, 2200, 2600, days.LAST_YEAR + 2)
# Beyond the years 1 and 9999, which is all that a datetime can hold.
FAR_PAST, FAR_FUTURE = -(1 << 40), 1 << 40


class Period(NamedTuple):
    """A stretch of one offset, and the local times that belong to it under one fold policy.

    In UTC it is [start, end). The local times [low, high) are those for which this period answers; between one
    period's `high` and the next one's `low` lies a gap.
    """

    start: int
    end: int
    offset: int
    low: int
    high: int


@dataclass(frozen=True, slots=True)
class Periods:
    """All periods of a zone under one fold policy, up to a reach, with the columns that are searched."""

    all: tuple[Period, ...]
    starts: tuple[int, ...]
    lows: tuple[int, ...]
    highs: tuple[int, ...]

    def index(self, second: int) -> int:
        return bisect_right(self.starts, second) - 1


class Zone:
    """A named table. Equal tables are equal whatever their names: the hash is over the offsets alone."""

    __slots__ = ("_known", "changes", "first", "hash", "name", "rule")

    def __init__(self, name: str, first: int, changes: tuple[tuple[int, int], ...], rule: Rule) -> None:
        _check(name, first, changes)
        self.name = name
        self.first = first
        self.changes = changes
        self.rule = rule
        self.hash = sha256(self.dump().encode()).hexdigest()
        # How far the periods are spelled out, and the periods by fold policy: one tuple, replaced whole by a longer
        # one, so that threads may share a zone.
        self._known: tuple[int, dict[str, Periods]] = (FAR_PAST, {})

    @classmethod
    def from_tzif(cls, name: str, data: bytes) -> "Zone":
        try:
            first, listed, footer = read_tzif(data)
            rule = read_rule(footer)
        except (ValueError, LookupError, struct.error) as error:
            raise ScheduleError(f"the zone file of {name} cannot be read: {error}") from error
        return cls(name, first, tuple(_real(first, listed + _repeat(rule, listed, LISTED_UNTIL))), rule)

    @classmethod
    def load(cls, name: str, table: str) -> "Zone":
        """The zone that `dump` wrote."""
        try:
            data = json.loads(table)
            changes = tuple((int(instant), int(offset)) for instant, offset in data["changes"])
            return cls(name, int(data["first"]), changes, Rule.load(data["rule"]))
        except ScheduleError:
            raise
        except (ValueError, KeyError, TypeError, OverflowError, RecursionError) as error:
            raise ScheduleError(f"the zone table of {name} cannot be read: {error}") from error

    def dump(self) -> str:
        """The table as text, to be stored under its hash. It has no names: abbreviations do not make ticks."""
        table = {"first": self.first, "changes": self.changes, "rule": self.rule.dump()}
        return json.dumps(table, separators=(",", ":"))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Zone) and other.hash == self.hash

    def __hash__(self) -> int:
        return hash(self.hash)

    def __repr__(self) -> str:
        return f"Zone({self.name!r}, hash={self.hash[:12]!r})"

    @property
    def settled(self) -> int:
        """From this second on nothing but the yearly rule changes the offset."""
        return max(self.changes[-1][0], days.year_start(LISTED_UNTIL + 1) * 86400) if self.changes else 0

    def period_at(self, second: int) -> Period:
        periods = self.periods("both", second)
        return periods.all[periods.index(second)]

    def offset_at(self, second: int) -> int:
        return self.period_at(second).offset

    def periods(self, fold: str, until: int = FAR_PAST) -> Periods:
        """The periods under a fold policy, spelled out beyond the second `until`."""
        known_until, periods = self._known
        while until >= known_until:
            known_until, periods = self._spelled_out(known_until)
            if known_until > self._known[0]:
                self._known = known_until, periods
        return periods[fold]

    def changes_between(self, after: int, until: int) -> list[tuple[Period, Period]]:
        """The changes of offset in (after, until], as the periods on either side."""
        periods = self.periods("both", until)
        first, last = periods.index(after), periods.index(until)
        return [(periods.all[at], periods.all[at + 1]) for at in range(first, last)]

    def resolve(self, local: int, gap: str, fold: str) -> list[int]:
        """The instants at which this zone's clocks show a local second, under the policies."""
        periods = self.periods(fold, local + 2 * 86400)
        at = bisect_right(periods.highs, local)
        here = periods.all[at]
        if local < here.low:
            return [here.start] if gap == "shift" else []
        found = [local - here.offset]
        if at + 1 < len(periods.all) and periods.lows[at + 1] <= local:
            found.append(local - periods.all[at + 1].offset)
        return found

    def day_start(self, day: int) -> int:
        """The first instant of a local date (of the next one, if the zone skipped it)."""
        return self.resolve(day * 86400, "shift", "first")[0]

    def _spelled_out(self, beyond: int) -> tuple[int, dict[str, Periods]]:
        """The periods with the yearly rule written out to the first reach beyond an instant."""
        reach = next(year for year in _REACHES if days.year_start(year) * 86400 > beyond)
        endless = self.rule.begins is None or reach == _REACHES[-1]
        end = FAR_FUTURE if endless else days.year_start(reach) * 86400
        changes = list(self.changes)
        offset = changes[-1][1] if changes else self.first
        changes += _real(offset, _repeat(self.rule, changes, min(reach - 1, days.LAST_YEAR)))
        return end, {fold: _periods(self.first, changes, fold, end) for fold in ("first", "second", "both")}


def _repeat(rule: Rule, changes: list[tuple[int, int]], last_year: int) -> list[tuple[int, int]]:
    """What the rule adds after the listed changes, up to the end of a year."""
    if rule.begins is None:
        return []
    after = changes[-1][0] if changes else FAR_PAST
    first_year = days.year_of(after // 86400) if changes else 1970
    return [change for year in range(first_year, last_year + 1) for change in rule.changes(year) if change[0] > after]


def _real(offset: int, changes: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Leave out changes of name or of DST flag that keep the offset."""
    real = []
    for instant, after in changes:
        if after != offset:
            real.append((instant, after))
            offset = after
    return real


def _periods(first: int, changes: list[tuple[int, int]], fold: str, end: int) -> Periods:
    rows = []
    start, offset, low = FAR_PAST, first, FAR_PAST
    for instant, after in changes:
        # A fold makes the local times [instant + after, instant + offset) exist twice. Who answers for them?
        high, next_low = instant + offset, instant + after
        if after < offset and fold == "first":
            next_low = high
        elif after < offset and fold == "second":
            high = next_low
        rows.append(Period(start, instant, offset, low, high))
        start, offset, low = instant, after, next_low
    rows.append(Period(start, end, offset, low, end + offset))
    columns = tuple(zip(*rows, strict=True))
    return Periods(tuple(rows), columns[0], columns[3], columns[4])


def _check(name: str, first: int, changes: tuple[tuple[int, int], ...]) -> None:
    """Changes must be real, ordered and far enough apart that a local time is touched by one change only.

    Every zone of the world satisfies this for all its history (a test looks); a made-up table may not.
    """
    if not -100_000 < first < 100_000:
        raise ScheduleError(f"the zone table of {name} begins with a bad offset: {first}")
    before, shift, offset = FAR_PAST, 0, first
    for instant, after in changes:
        if after == offset or not -100_000 < after < 100_000:
            raise ScheduleError(f"the zone table of {name} has a bad change at {instant}")
        if instant - before < abs(after - offset) + shift:
            raise ScheduleError(f"the zone table of {name} has changes too close to each other at {instant}")
        before, shift, offset = instant, abs(after - offset), after
