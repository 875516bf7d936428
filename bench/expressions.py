"""Fuzzed schedules, the same for a seed: what people write, nearly write, and what falls on the keyboard.

The benchmark `fuzz` times them, tests/times/test_fuzz.py holds the calculator to its laws with them.
"""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone
from functools import cache
from pathlib import Path
from random import Random

from fleetcron.times import days
from fleetcron.times.cron import Cron
from fleetcron.times.expression import MACROS
from fleetcron.times.zones import zone

ORACLES = Path(__file__).parent.parent / "tests" / "oracles"
# one or two of every kind: no change at all, changes in both halves of the year, of 30 minutes, of two hours, of a
# whole day, at midnight, negative summer time, by the moon (Casablanca), and odd offsets
ZONES = (
    "UTC", "Asia/Kathmandu", "America/New_York", "Europe/Berlin", "Europe/Dublin", "America/Sao_Paulo",
    "America/Havana", "America/Santiago", "Australia/Lord_Howe", "Pacific/Apia", "Pacific/Chatham", "Antarctica/Troll",
    "Africa/Casablanca", "Asia/Amman", "Asia/Gaza", "America/Scoresbysund",
)  # fmt: skip
# Only these are asked about far centuries: a zone that is spelled out up to the year 9999 has 50,000 periods in memory.
FAR_ZONES = ("UTC", "Asia/Kathmandu", "Europe/Berlin", "Australia/Lord_Howe")
_GAPS = (None, "skip", "shift")
_FOLDS = (None, "first", "second", "both")
_ENDS = (None, "skip", "clamp")
_SECONDS_MINUTES, _HOURS, _DAYS, _MONTHS, _WEEKDAYS = (0, 59), (0, 23), (1, 31), (1, 12), (0, 7)
_MONTH_NAMES = ("JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC")
_WEEKDAY_NAMES = ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT")
_LETTERS = "0123456789*,-/?#LWH+()@ \t"
_PRINTABLE = "".join(map(chr, range(32, 127)))
_SPOILS = (
    "60", "24", "32", "13", "8", "0", "-1", "*/0", "*/61", "5-", "-5", "1--2", "1-2-3", "1/2/3", "//", "L-31", "L-99",
    "0W", "32W", "LW/2", "5#0", "5#6", "8L", "MON-", "FOO", "MONDAY", "JANUARY", "H(5-2)", "H()", "H(1-99)", "h(2-1)/3",
    "1,,2", ",", ",1", "1,", "+", "++", "+*", "?/2", "**", "*5", "5*", "1.5", "1e3", "99999999999", "٣", "¼", "L5", "W",
    "15w-16", "MON#1-FRI#1", "L,L-1,LW", "@daily", "TZ=UTC", "CRON_TZ=Europe/Berlin", "",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Case:
    """A schedule that may or may not be one, and a moment to ask it about."""

    expression: str
    zone: str
    dst_gap: str | None
    dst_fold: str | None
    month_end: str | None
    seed: str | None
    at: datetime

    def cron(self) -> Cron:
        return Cron(self.expression, self.zone, self.dst_gap, self.dst_fold, self.month_end, seed=self.seed)


def fuzzed(seed: int, count: int, zones: tuple[str, ...] = ZONES) -> Iterator[Case]:
    rng = Random(seed)
    writer = _Writer(rng)
    pick = rng.choice
    for _ in range(count):
        name = pick(zones)
        job = f"tenant/job-{int(rng.random() * 1000)}" if rng.random() < 0.9 else None
        yield Case(writer.expression(), name, pick(_GAPS), pick(_FOLDS), pick(_ENDS), job, _moment(rng, name))


class _Writer:
    def __init__(self, rng: Random) -> None:
        self._rng = rng
        self._chance = rng.random
        self._oracles = oracle_expressions()

    def expression(self) -> str:
        roll = self._chance()
        if roll < 0.35:
            return self._join(self._fields())
        if roll < 0.5:
            return self._nearly()
        if roll < 0.7:
            return self._mutated(self._pick(self._oracles))
        return self._noise()

    # -- small dice: `Random.choice` and `randint` cost more than all else here

    def _pick(self, options: tuple[str, ...] | str) -> str:
        return options[int(self._chance() * len(options))]

    def _number(self, low: int, high: int) -> int:
        return low + int(self._chance() * (high - low + 1))

    # -- (a) what the grammar allows, and nearly

    def _fields(self) -> list[str]:
        if self._chance() < 0.03:
            return [self._pick(tuple(MACROS))]
        fields = [
            self._list(self._plain, _SECONDS_MINUTES, 0.1),
            self._list(self._plain, _HOURS, 0.15),
            self._list(self._day, _DAYS, 0.45),
            self._list(self._named, _MONTHS, 0.6),
            self._list(self._weekday, _WEEKDAYS, 0.45),
        ]
        if self._chance() < 0.1:
            fields[4] = "+" + fields[4]
        if self._chance() < 0.25:
            fields.insert(0, self._list(self._plain, _SECONDS_MINUTES, 0.3))
        return fields

    def _join(self, fields: list[str]) -> str:
        text = " ".join(fields) if self._chance() < 0.9 else self._pick(("  ", "\t", " \t ")).join(fields)
        return text if self._chance() < 0.9 else self._pick((text.lower(), f" {text}", f"{text} ", f"{text}\n"))

    def _list(self, item: Callable[[tuple[int, int]], str], limits: tuple[int, int], star: float) -> str:
        roll = self._chance()
        if roll < star:
            return "*"
        if roll < star + (1 - star) * 0.7:
            return item(limits)
        if roll < 0.995:
            return ",".join([item(limits) for _ in range(self._number(2, 5))])
        return ",".join([item(limits) for _ in range(self._number(10, 70))])

    def _plain(self, limits: tuple[int, int]) -> str:
        low, high = limits
        roll = self._chance()
        if roll < 0.45:
            return str(self._number(low, high))
        if roll < 0.6:
            return f"{self._number(low, high)}-{self._number(low, high)}"  # half of them wrap around
        if roll < 0.7:
            return f"{self._number(low, high)}-{self._number(low, high)}/{self._number(1, high)}"
        if roll < 0.85:
            return f"*/{self._number(1, high)}"
        if roll < 0.9:
            return f"{self._number(low, high)}/{self._number(1, high)}"
        hashed = "H"
        if roll > 0.94:
            first = self._number(low, high)
            hashed = f"H({first}-{self._number(first, high)})"
        return hashed if roll < 0.96 else f"{hashed}/{self._number(1, high)}"

    def _named(self, limits: tuple[int, int]) -> str:
        if self._chance() < 0.5:
            return self._plain(limits)
        names = _MONTH_NAMES if limits is _MONTHS else _WEEKDAY_NAMES
        name = self._pick(names)
        return name if self._chance() < 0.6 else f"{name}-{self._pick(names)}"

    def _day(self, limits: tuple[int, int]) -> str:
        roll = self._chance()
        if roll < 0.5:
            return self._plain(limits)
        if roll < 0.6:
            return str(self._number(28, 31))
        if roll < 0.9:
            n = self._number(0, 30)
            return self._pick(("L", "LW", f"L-{n}", f"L-{n}W", f"{n + 1}W", f"{n + 1}W"))
        return "?"

    def _weekday(self, limits: tuple[int, int]) -> str:
        roll = self._chance()
        if roll < 0.5:
            return self._named(limits)
        day = str(self._number(*limits)) if roll < 0.75 else self._pick(_WEEKDAY_NAMES)
        if self._chance() < 0.45:
            return f"{day}L"
        return f"{day}#{self._number(1, 5)}" if self._chance() < 0.9 else "?"

    def _nearly(self) -> str:
        """One thing wrong: a field that cannot be, one too many or one too few, or a fault in a list."""
        fields = self._fields()
        at = self._number(0, len(fields) - 1)
        roll = self._chance()
        if roll < 0.5:
            fields[at] = self._pick(_SPOILS)
        elif roll < 0.7:
            fields[at] += "," + self._pick(_SPOILS)
        elif roll < 0.8:
            fields.insert(at, self._pick(_SPOILS))
        elif roll < 0.9:
            del fields[at]
        else:
            fields[at] = ",".join([fields[at]] * self._number(60, 70))
        return self._join(fields)

    # -- (b) expressions of other projects' tests, damaged

    def _mutated(self, text: str) -> str:
        for _ in range(self._number(1, 3)):
            at = self._number(0, len(text))
            roll = self._chance()
            if roll < 0.3:
                text = text[:at] + text[at + 1 :]
            elif roll < 0.6:
                text = text[:at] + self._letter() + text[at:]
            elif roll < 0.8:
                text = text[:at] + self._letter() + text[at + 1 :]
            elif roll < 0.95:
                text = text[:at] + text[at + 1 : at + 2] + text[at : at + 1] + text[at + 2 :]
            else:
                text = text[:at] + text[self._number(0, at) :]
        return text

    def _letter(self) -> str:
        roll = self._chance()
        return self._pick(_LETTERS) if roll < 0.9 else self._pick(_PRINTABLE) if roll < 0.97 else self._any()

    # -- (c) noise

    def _noise(self) -> str:
        letter = self._pick_noise()
        return "".join([letter() for _ in range(int(self._chance() ** 4 * 401))])

    def _pick_noise(self) -> Callable[[], str]:
        roll = self._chance()
        if roll < 0.4:
            return lambda: self._pick(_LETTERS)
        if roll < 0.6:
            return lambda: self._pick(_PRINTABLE)
        return self._letter if roll < 0.8 else self._any

    def _any(self) -> str:
        roll = self._chance()
        if roll < 0.4:
            return chr(self._number(0, 255))
        return chr(self._number(0, 0x10FFFF)) if roll < 0.7 else self._pick("٣¼Ⅷ²ﬁİıßΩ−–’ ​\u202e\u00a0\ud800\U0001f552")


@cache
def oracle_expressions() -> tuple[str, ...]:
    found = set()
    for path in sorted(ORACLES.glob("*.jsonl")):
        for line in path.read_text("utf-8").splitlines():
            case = json.loads(line)
            found.update(text for key in ("expr", "a", "b", "other") if isinstance(text := case.get(key), str))
    return tuple(sorted(found))


# -- moments


@cache
def _changes(name: str) -> tuple[datetime, ...]:
    epoch = datetime(1970, 1, 1, tzinfo=UTC)
    low, high = (days.year_start(year) * 86400 for year in (1975, 2060))
    return tuple(epoch + timedelta(0, after.start) for _, after in zone(name).changes_between(low, high))


_FIRST, _LAST = datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)
_EDGES = (_FIRST, _LAST, _FIRST + timedelta(days=1, microseconds=1), _LAST - timedelta(days=1))
_SPAN_S = int((_LAST - _FIRST).total_seconds())
_USUAL = datetime(1975, 1, 1, tzinfo=UTC)


def _moment(rng: Random, name: str) -> datetime:
    """Mostly near a change of the zone, sometimes anywhere in the years 1 to 9999, at times not on a second."""
    roll = rng.random()
    changes = _changes(name)
    if roll < 0.6 and changes:
        at = changes[int(rng.random() * len(changes))] + timedelta(seconds=int(rng.random() * 200_000) - 100_000)
    elif roll < 0.9 or name not in FAR_ZONES:
        at = _USUAL + timedelta(seconds=int(rng.random() * 4_000_000_000))
    elif roll < 0.98:
        at = _FIRST + timedelta(seconds=int(rng.random() * _SPAN_S))
    else:
        return _EDGES[int(rng.random() * len(_EDGES))]
    if roll * 10 % 1 < 0.1:
        at += timedelta(microseconds=int(rng.random() * 1_000_000))
    if 0.1 < roll * 10 % 1 < 0.2 and 2 < at.year < 9998:
        at = at.astimezone(timezone(timedelta(minutes=int(rng.random() * 2_800) - 1_400)))
    return at
