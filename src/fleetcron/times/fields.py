"""Read one field of a cron expression: lists of values, ranges, steps, and the day forms L, W and #.

Every mistake is a ScheduleError that names the field, the mistake and its place.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from difflib import get_close_matches
from hashlib import sha256

from fleetcron.errors import ScheduleError

MAX_ITEMS = 64


@dataclass(frozen=True, slots=True)
class FieldKind:
    """What may stand in a field."""

    name: str
    low: int
    high: int
    cycle: int  # a wrap-around range such as 22-3 comes back to `low` after this many values
    names: tuple[str, ...] = ()  # three-letter names, from `names_from` on
    names_from: int = 0
    long_names: tuple[str, ...] = ()
    question_mark: bool = False
    hash_high: int = 0  # the last value that H may choose, where it is not `high`


_MONTHS = ("January", "February", "March", "April", "May", "June", "July",
           "August", "September", "October", "November", "December")  # fmt: skip
_WEEKDAYS = ("Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday")


def _short(names: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(name[:3].upper() for name in names)


SECOND = FieldKind("second", 0, 59, 60)
MINUTE = FieldKind("minute", 0, 59, 60)
HOUR = FieldKind("hour", 0, 23, 24)
# H stays within 1-28, so that a hashed day exists in every month
DAY = FieldKind("day-of-month", 1, 31, 31, question_mark=True, hash_high=28)
MONTH = FieldKind("month", 1, 12, 12, _short(_MONTHS), 1, _MONTHS)
# 7 is Sunday too; H chooses from 0-6
WEEKDAY = FieldKind("day-of-week", 0, 7, 7, _short(_WEEKDAYS), 0, _WEEKDAYS, question_mark=True, hash_high=6)


@dataclass(slots=True)
class Values:
    """What a field allows. `values` has a bit for each value that was written plainly."""

    text: str
    values: int = 0
    clampable: int = 0  # days of the month written as a number or a plain range: `month_end` may clamp these
    last: set[int] = field(default_factory=set)  # L, L-n: n days before the last one
    nearest: set[int] = field(default_factory=set)  # nW
    last_workday: set[int] = field(default_factory=set)  # LW, L-nW
    nth: set[tuple[int, int]] = field(default_factory=set)  # 5#2: (weekday, 2)
    last_weekday: set[int] = field(default_factory=set)  # 5L

    @property
    def starred(self) -> bool:
        """Whether the field begins with `*`: what Debian's and Red Hat's cron call unrestricted."""
        return self.text[0] in "*?"

    def listed(self) -> list[int]:
        return listed(self.values)


def listed(bits: int) -> list[int]:
    """The numbers of the bits that are set."""
    return [bit for bit in range(bits.bit_length()) if bits >> bit & 1]


def slot(seed: str, name: str, size: int) -> int:
    """A stable number below `size` for this seed: the choice that H stands for."""
    return int.from_bytes(sha256(f"{seed}\n{name}".encode()).digest()[:8], "big") % size


_ITEM = re.compile(r"(?P<body>[^/]*)(?P<slash>/(?P<step>.*))?", re.DOTALL)
_HASHED = re.compile(r"H(?:\((?P<low>[^()-]*)-(?P<high>[^()-]*)\))?")
_LAST = re.compile(r"L(?:-(?P<back>[0-9]{1,9}))?(?P<workday>W)?")
_NEAREST = re.compile(r"(?P<day>[0-9]{1,9})W")
_LAST_WEEKDAY = re.compile(r"(?P<day>[^/#]+)L")
_NTH = re.compile(r"(?P<day>[^/#]+)#(?P<nth>[0-9]{1,9})")
_NUMBER = re.compile(r"[0-9]{1,9}")

Refuse = Callable[..., ScheduleError]


def parse_field(kind: FieldKind, text: str, *, seed: str | None, source: str, at: int) -> Values:
    """Read `text`, which stands at position `at` of the whole expression `source`."""
    found = Values(text.upper())
    items = found.text.split(",")
    if len(items) > MAX_ITEMS:
        raise ScheduleError(
            f"{kind.name}: {len(items)} items, {MAX_ITEMS} at most",
            hint="write ranges or steps",
            source=source,
            start=at,
            end=at + len(text),
        )
    for number, item in enumerate(items):
        # an empty item is shown by its comma: the one before it, unless it comes first
        low = at - 1 if not item and number else at

        def refuse(
            mistake: str, hint: str | None = None, start: int = low, end: int = max(low + 1, at + len(item))
        ) -> ScheduleError:
            return ScheduleError(f"{kind.name}: {mistake}", hint=hint, source=source, start=start, end=end)

        _read_item(kind, item, found, seed, refuse)
        at += len(item) + 1
    return found


def _read_item(kind: FieldKind, item: str, found: Values, seed: str | None, refuse: Refuse) -> None:
    if not item:
        raise refuse("an item of the list is empty", "remove the comma that has nothing on one side")
    if kind is DAY and _read_day_form(item, found, refuse):
        return
    if kind is WEEKDAY and _read_weekday_form(item, found, refuse):
        return
    parts = _ITEM.fullmatch(item)
    assert parts is not None, "the pattern matches every text"
    body, step = parts["body"], 1
    if parts["slash"]:
        step = _read_step(kind, parts["step"], item, refuse)
    if kind is DAY and parts["slash"] and (_LAST.fullmatch(body) or _NEAREST.fullmatch(body)):
        raise refuse(f"bad '{item}'", "L and W take no step")
    if hashed := _HASHED.fullmatch(body):
        _read_hashed(kind, hashed, step, bool(parts["slash"]), found, seed, refuse)
    elif body == "*" or (body == "?" and kind.question_mark):
        found.values |= _spread(kind, kind.low, kind.low + kind.cycle - 1, step)
    else:
        _read_range(kind, body, step, bool(parts["slash"]), found, refuse)


def _read_step(kind: FieldKind, text: str, item: str, refuse: Refuse) -> int:
    if not _NUMBER.fullmatch(text):
        raise refuse(f"bad '{item}'" if not text else f"'{text}' is not a step", "a step is a number, as in */15")
    step = int(text)
    if step == 0:
        raise refuse("a step of 0 never moves on", "the smallest step is 1")
    if step > kind.high:
        hint = "for the first Monday of a month write MON#1" if kind is DAY else "write the one value that is left"
        raise refuse(f"step {step} is larger than the field ({kind.high})", hint)
    return step


def _read_range(kind: FieldKind, body: str, step: int, stepped: bool, found: Values, refuse: Refuse) -> None:
    first, dash, last = body.partition("-")
    low = _read_value(kind, first, body, refuse)
    open_end = kind.high if stepped else low
    high = _read_value(kind, last, body, refuse) if dash else open_end
    if kind is WEEKDAY and low == 7 and high != 7:
        low = 0  # SUN-FRI may be written 7-5
    if high < low:
        high += kind.cycle
    bits = _spread(kind, low, high, step)
    found.values |= bits
    if kind is DAY and not stepped:
        found.clampable |= bits


def _spread(kind: FieldKind, low: int, high: int, step: int) -> int:
    bits = 0
    for value in range(low, high + 1, step):
        bits |= 1 << (value - kind.low) % kind.cycle + kind.low
    return bits


def _read_value(kind: FieldKind, text: str, body: str, refuse: Refuse) -> int:
    if _NUMBER.fullmatch(text):
        value = int(text)
        if not kind.low <= value <= kind.high:
            raise refuse(f"{value} is outside {kind.low}-{kind.high}", _range_hint(kind, value))
        return value
    if text in kind.names:
        return kind.names.index(text) + kind.names_from
    if not body:
        raise refuse("a value is missing in front of the step", "write */15")
    if not text:
        raise refuse(f"bad '{body}'", "a range needs both ends, as in 1-5")
    raise refuse(f"'{text}' is not a value", _value_hint(kind, text))


def _range_hint(kind: FieldKind, value: int) -> str | None:
    if kind is HOUR and value == 24:
        return "midnight is hour 0"
    if kind in (SECOND, MINUTE) and value == 60:
        return "the full hour or minute is 0"
    if kind in (DAY, MONTH) and value == 0:
        return "this field counts from 1"
    return None


def _value_hint(kind: FieldKind, text: str) -> str | None:
    if text == "?":
        return "? stands for * in the two day fields only"
    for short, long in zip(kind.names, kind.long_names, strict=True):
        if text.lower() == long.lower():
            return f"write {short}"
    swapped = [name for name in kind.names if sorted(name) == sorted(text)]
    if near := swapped or get_close_matches(text, kind.names, n=1, cutoff=0.5):
        return f"did you mean {near[0]}?"
    if kind is DAY and text.startswith("W"):
        return f"W follows the day, as in {text[1:] or 15}W"
    if kind is WEEKDAY and (last := re.fullmatch(r"L([0-6])", text)):
        return f"write {last[1]}L"
    if kind is WEEKDAY and "-" in text:
        return "L and # take one weekday, so list them: MON#1,TUE#1"
    return None


def _read_hashed(
    kind: FieldKind, hashed: re.Match[str], step: int, stepped: bool, found: Values, seed: str | None, refuse: Refuse
) -> None:
    if seed is None:
        raise refuse("H needs a job id", "give the job's tenant/name: --job on the command line, seed= in Python")
    low, high = kind.low, kind.hash_high or kind.high
    if hashed["low"] is not None:
        low = _read_value(kind, hashed["low"], hashed[0], refuse)
        high = _read_value(kind, hashed["high"], hashed[0], refuse)
        if high < low:
            raise refuse(f"bad '{hashed[0]}'", "the range of H runs upwards")
    if not stepped:
        chosen = low + slot(seed, kind.name, high - low + 1)
        found.values |= _spread(kind, chosen, chosen, 1)
        return
    first = low + slot(seed, kind.name, min(step, high - low + 1))
    found.values |= _spread(kind, first, kind.high if hashed["low"] is None else high, step)


def _read_day_form(item: str, found: Values, refuse: Refuse) -> bool:
    if last := _LAST.fullmatch(item):
        back = int(last["back"] or 0)
        if back > 30:
            raise refuse(f"L-{back} is before every month's first day", "L-30 is the farthest")
        (found.last_workday if last["workday"] else found.last).add(back)
        return True
    if nearest := _NEAREST.fullmatch(item):
        found.nearest.add(_read_value(DAY, nearest["day"], item, refuse))
        return True
    return False


def _read_weekday_form(item: str, found: Values, refuse: Refuse) -> bool:
    if (last := _LAST_WEEKDAY.fullmatch(item)) and item not in WEEKDAY.names:
        found.last_weekday.add(_read_value(WEEKDAY, last["day"], item, refuse) % 7)
        return True
    if nth := _NTH.fullmatch(item):
        count = int(nth["nth"])
        day = _read_value(WEEKDAY, nth["day"], item, refuse)
        if not 1 <= count <= 5:
            raise refuse(f"#{count} is outside #1-#5", "a month has at most five of a weekday")
        found.nth.add((day % 7, count))
        return True
    return False
