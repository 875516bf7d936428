"""Read a compiled zone file (TZif, RFC 9636) and the rule at its end (a POSIX TZ string). Only offsets matter to us."""

import re
import struct
from dataclasses import dataclass
from typing import Any

from fleetcron.times import days

_HEADER = struct.Struct(">4s1s15x6I")


def read_tzif(data: bytes) -> tuple[int, list[tuple[int, int]], str]:
    """The first offset, the changes as (UTC second, offset from then on), and the rule for all time after them."""
    magic, version, isut, isstd, leaps, times, types, letters = _HEADER.unpack_from(data)
    if magic != b"TZif" or version < b"2":
        raise ValueError("not a TZif file of version 2 or later")
    # Version 1 data (32 bits) comes first; the full data follows it.
    at = _HEADER.size + times * 5 + types * 6 + letters + leaps * 8 + isstd + isut
    _, _, isut, isstd, leaps, times, types, letters = _HEADER.unpack_from(data, at)
    at += _HEADER.size
    instants = struct.unpack_from(f">{times}q", data, at)
    at += 8 * times
    kinds = data[at : at + times]
    at += times
    offsets = [struct.unpack_from(">l", data, at + 6 * i)[0] for i in range(types)]
    at += 6 * types + letters + leaps * 12 + isstd + isut
    changes = [(instant, offsets[kind]) for instant, kind in zip(instants, kinds, strict=True)]
    return offsets[0], changes, data[at:].strip(b"\n").decode("ascii")


@dataclass(frozen=True, slots=True)
class RuleDay:
    """One change of the yearly rule: M3.2.0/2 is the second (5: last) Sunday of March at 02:00 local time."""

    form: str  # M, J (1-365, never February 29th) or N (0-365)
    month: int
    week: int
    day: int
    second: int

    def __post_init__(self) -> None:
        in_month = 1 <= self.month <= 12 and 1 <= self.week <= 5 and 0 <= self.day <= 6
        fits = {"M": in_month, "J": 1 <= self.day <= 365, "N": 0 <= self.day <= 365}
        if not fits.get(self.form, False) or abs(self.second) > 7 * 86400:
            raise ValueError(f"not a day of a yearly rule: {self.dump()}")

    def dump(self) -> list[str | int]:
        return [self.form, self.month, self.week, self.day, self.second]

    def local_second(self, year: int) -> int:
        first = days.year_start(year)
        leap = days.is_leap(year)
        if self.form == "M":
            first += days.MONTH_STARTS[leap][self.month - 1]
            day = first + (self.day - days.weekday_of(first)) % 7 + 7 * (self.week - 1)
            if day - first >= days.MONTH_LENGTHS[leap][self.month - 1]:
                day -= 7
        elif self.form == "J":
            day = first + self.day - 1 + (leap and self.day > 59)
        else:
            day = first + self.day
        return day * 86400 + self.second


@dataclass(frozen=True, slots=True)
class Rule:
    """What repeats every year after the last listed change."""

    standard: int
    summer: int
    begins: RuleDay | None  # None: no change ever again
    ends: RuleDay | None

    def __post_init__(self) -> None:
        if max(abs(self.standard), abs(self.summer)) >= 100_000:
            raise ValueError(f"an offset of more than a day: {self.standard}, {self.summer}")
        for year in range(2000, 2028) if self.begins else ():  # all kinds of year
            (first, _), (second, _) = self.changes(year)
            if min(second - first, 365 * 86400 - second + first) <= 2 * abs(self.summer - self.standard):
                raise ValueError(f"the changes of a year are too close to each other: {self.dump()}")

    def dump(self) -> list[object]:
        ends = [] if self.begins is None or self.ends is None else [self.begins.dump(), self.ends.dump()]
        return [self.standard, self.summer, *ends]

    @classmethod
    def load(cls, data: list[Any]) -> "Rule":
        if len(data) == 2:
            return cls(int(data[0]), int(data[1]), None, None)
        standard, summer, begins, ends = data
        return cls(int(standard), int(summer), RuleDay(*begins), RuleDay(*ends))

    def changes(self, year: int) -> list[tuple[int, int]]:
        if self.begins is None or self.ends is None:
            return []
        return sorted(
            (
                (self.begins.local_second(year) - self.standard, self.summer),
                (self.ends.local_second(year) - self.summer, self.standard),
            )
        )


_NAME = r"(?:[A-Za-z]{3,}|<[A-Za-z0-9+-]+>)"
_TIME = r"[+-]?[0-9]{1,3}(?::[0-9]{2}){0,2}"
_DAY = rf"(?:M[0-9]+\.[0-9]\.[0-9]|J[0-9]+|[0-9]+)(?:/{_TIME})?"
_RULE = re.compile(rf"{_NAME}(?P<std>{_TIME})(?:{_NAME}(?P<dst>{_TIME})?,(?P<begins>{_DAY}),(?P<ends>{_DAY}))?")


# how RFC 9636 writes summer time all year round
_ALL_YEAR = {("0/0", "J365/25"), ("0/0", "J365/23")}


def read_rule(text: str) -> Rule:
    """Parse `EST5EDT,M3.2.0,M11.1.0`. The sign of POSIX offsets is turned round: west is positive there."""
    parts = _RULE.fullmatch(text)
    if parts is None:
        raise ValueError(f"not a POSIX time zone rule: {text!r}")
    standard = -_seconds(parts["std"])
    if parts["begins"] is None:
        return Rule(standard, standard, None, None)
    summer = -_seconds(parts["dst"]) if parts["dst"] else standard + 3600
    if (parts["begins"], parts["ends"]) in _ALL_YEAR:
        return Rule(summer, summer, None, None)
    return Rule(standard, summer, _rule_day(parts["begins"]), _rule_day(parts["ends"]))


def _rule_day(text: str) -> RuleDay:
    date, _, time = text.partition("/")
    second = _seconds(time) if time else 7200
    if date[0] == "M":
        month, week, day = map(int, date[1:].split("."))
        return RuleDay("M", month, week, day, second)
    if date[0] == "J":
        return RuleDay("J", 0, 0, int(date[1:]), second)
    return RuleDay("N", 0, 0, int(date), second)


def _seconds(text: str) -> int:
    sign = -1 if text[0] == "-" else 1
    parts = [int(part) for part in text.lstrip("+-").split(":")]
    return sign * sum(part * unit for part, unit in zip(parts, (3600, 60, 1), strict=False))
