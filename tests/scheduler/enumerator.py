"""Which ticks a definition has, and when each may start: slow, plain, and with nothing of the scheduler in it.

Local times come from the reference of tests/times; zones are the changes of a table, calendars their documents. Days
are enumerated whole and remembered, because a story asks for the same ones again and again.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cache, cached_property, lru_cache
from hashlib import sha256
from json import loads

from fleetcron.model.calendar import CalendarDocument
from fleetcron.model.definition import Definition
from fleetcron.model.rules import CronEntry, Entry, EveryEntry, OnceEntry
from tests.times.reference import naive_times

DAY_MS = 86_400_000
FAR = 1000  # days in which to look for another tick


@dataclass(frozen=True)
class Book:
    """The zone tables (as `Zone.dump` writes them) and the calendars that hold at one time."""

    zones: Mapping[str, str] = field(default_factory=dict)
    calendars: Mapping[str, CalendarDocument] = field(default_factory=dict)


@cache
def table(text: str) -> tuple[list[int], list[int]]:
    """The instants of a zone's changes, in seconds, and the offsets: one more than instants."""
    raw = loads(text)
    return [at for at, _ in raw["changes"]], [raw["first"], *(offset for _, offset in raw["changes"])]


UTC_TABLE = '{"first":0,"changes":[]}'


def offset_at(text: str, second: int) -> int:
    instants, offsets = table(text)
    return offsets[bisect_right(instants, second)]


def resolve(text: str, local: int, dst_gap: str, dst_fold: str) -> list[int]:
    """The instants at which the wall shows a local second."""
    instants, offsets = table(text)
    near = offsets[bisect_right(instants, local - 93_600) : bisect_right(instants, local + 93_600) + 1]
    shown = sorted({local - offset for offset in near if offset_at(text, local - offset) == offset})
    if not shown:
        at = next(n for n in range(len(instants)) if instants[n] + offsets[n] <= local < instants[n] + offsets[n + 1])
        return [instants[at]] if dst_gap == "shift" else []
    if len(shown) == 2 and dst_fold != "both":
        return shown[:1] if dst_fold == "first" else shown[1:]
    return shown


@dataclass(frozen=True)
class Ticks:
    """The ticks of entries under calendars, without the bounds; `windows` are blackouts."""

    entries: tuple[tuple[Entry, str], ...]  # each with its zone table
    holidays: tuple[tuple[frozenset[str], str], ...] = ()  # dates, and the table in which they are counted
    windows: tuple[tuple[int, int], ...] = ()
    defer: bool = False

    @cached_property
    def known(self) -> dict[int, list[int]]:
        return {}

    @cached_property
    def days(self) -> range:
        """Where ticks can be."""
        if any(not isinstance(entry, OnceEntry) for entry, _ in self.entries):
            return range(-(10**6), 10**6)
        found = [t // DAY_MS for entry, zone in self.entries for t in entry_ticks(entry, zone, 0, 10**14)]
        return range(min(found, default=0), max(found, default=0) + 4)  # deferred by three days at most

    def of_day(self, day: int) -> list[int]:
        if day not in self.known:
            low, high = day * DAY_MS, (day + 1) * DAY_MS - 1
            found = {t for t in self.outside_days(low - 1, high) if not any(a <= t < b for a, b in self.windows)}
            if self.defer:
                found |= {b for a, b in self.windows if low <= b <= high and self.outside_days(a - 1, b - 1)}
            self.known[day] = sorted(found)
        return self.known[day]

    def outside_days(self, after: int, until: int) -> set[int]:
        found = {tick for entry, zone in self.entries for tick in entry_ticks(entry, zone, after, until)}
        return {t for t in found if not any(_date(t, zone) in dates for dates, zone in self.holidays)}

    def between(self, after: int, until: int) -> list[int]:
        if until <= after:
            return []
        found = [t for day in range((after + 1) // DAY_MS, until // DAY_MS + 1) for t in self.of_day(day)]
        return found[bisect_right(found, after) : bisect_right(found, until)]

    def next(self, after: int) -> int | None:
        first = (after + 1) // DAY_MS
        for day in range(max(first, self.days.start), min(first + FAR, self.days.stop)):
            found = self.of_day(day)
            at = bisect_right(found, after)
            if at < len(found):
                return found[at]
        return None

    def prev(self, before: int) -> int | None:
        last = (before - 1) // DAY_MS
        for day in range(min(last, self.days.stop), max(last - FAR, self.days.start - 1), -1):
            found = self.of_day(day)
            at = bisect_left(found, before)
            if at:
                return found[at - 1]
        return None


@dataclass(frozen=True)
class When:
    """The ticks of a definition under the tables of a book."""

    ticks: Ticks
    starts_ms: int
    ends_ms: int
    jitter_ms: int
    seed: str

    def between(self, after: int, until: int) -> list[int]:
        return self.ticks.between(max(after, self.starts_ms - 1), min(until, self.ends_ms - 1))

    def prev(self, before: int) -> int | None:
        found = self.ticks.prev(min(before, self.ends_ms))
        return found if found is not None and found >= self.starts_ms else None

    def next(self, after: int) -> int | None:
        found = self.ticks.next(max(after, self.starts_ms - 1))
        return found if found is not None and found < self.ends_ms else None

    def start(self, tick: int) -> int:
        """When the run of a tick may start: delayed by less than the jitter, before the next tick and blackout."""
        if not self.jitter_ms:
            return tick
        following = self.ticks.next(tick)
        room = [self.jitter_ms, *(a - tick for a, _ in self.ticks.windows if a > tick)]
        room += [] if following is None else [following - tick]
        return tick + int.from_bytes(sha256(self.seed.encode()).digest()[:8], "big") % min(room)


def when(definition: Definition, created_ms: int, book: Book) -> When:
    return When(
        ticks_of(definition, created_ms, book),
        -(10**15) if definition.starts_ms is None else definition.starts_ms,
        10**15 if definition.ends_ms is None else definition.ends_ms,
        definition.jitter_ms,
        f"{definition.tenant}/{definition.name}",
    )


def ticks_of(definition: Definition, created_ms: int, book: Book) -> Ticks:
    def zone(name: str | None) -> str:
        return UTC_TABLE if name in (None, "UTC") else book.zones[name]

    entries: list[tuple[Entry, str]] = []
    for entry in definition.schedule:
        if isinstance(entry, EveryEntry):
            anchor = created_ms if entry.anchor_ms is None else entry.anchor_ms
            entries.append((EveryEntry(entry.every_ms, anchor), UTC_TABLE))
        else:
            entries.append((entry, zone(entry.timezone)))
    used = [(book.calendars[use.name], use.on) for use in definition.calendars]
    return remembered(
        tuple(entries),
        tuple((frozenset(each.holidays), zone(each.timezone)) for each, _ in used if each.holidays),
        tuple(window for each, _ in used for window in each.windows),
        any(on == "defer" for _, on in used),
    )


remembered = lru_cache(maxsize=4096)(Ticks)


def entry_ticks(entry: Entry, zone: str, after: int, until: int) -> list[int]:
    """The ticks in (after, until]."""
    match entry:
        case EveryEntry(every_ms, anchor):
            assert anchor is not None
            first = anchor + ((after - anchor) // every_ms + 1) * every_ms
            return list(range(first, until + 1, every_ms))
        case OnceEntry(at, _, dst_gap, dst_fold):
            moment = datetime.fromisoformat(at)
            if moment.tzinfo is not None:
                found = [round(moment.timestamp() * 1000)]
            else:
                found = [s * 1000 for s in resolve(zone, _second(moment), dst_gap, dst_fold)]
        case CronEntry(cron, _, dst_gap, dst_fold, month_end):
            low, high = after // 1000, until // 1000 + 1
            instants, offsets = table(zone)
            around = offsets[bisect_right(instants, low - 93_600) : bisect_right(instants, high + 93_600) + 1]
            times = naive_times(cron, _naive(low + min(around)), _naive(high + max(around)), month_end)
            found = sorted({s * 1000 for time in times for s in resolve(zone, _second(time), dst_gap, dst_fold)})
    return [tick for tick in found if after < tick <= until]


def _second(naive: datetime) -> int:
    return round(naive.replace(tzinfo=UTC).timestamp())


def _naive(second: int) -> datetime:
    return datetime(1970, 1, 1) + timedelta(seconds=second)  # noqa: DTZ001 (a local time)


def _date(tick: int, zone: str) -> str:
    return _naive(tick // 1000 + offset_at(zone, tick // 1000)).strftime("%Y-%m-%d")
