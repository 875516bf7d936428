"""Fields of other crons, read by their own rules and written so that ours means the same.

Expressions look alike and differ where it hurts: whether `*/2` counts as unrestricted in a day field, whether `5/15`
runs on to the end, what `22-3` is. So a field is read into the set of its values by the rules of its own cron, and the
text is kept only if our parser reads the same sets and the same day rule out of it. Otherwise the sets are written out.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

from fleetcron.errors import ScheduleError
from fleetcron.imports.plan import Document
from fleetcron.model.entry import ANY_SEED
from fleetcron.times import policies
from fleetcron.times.expression import FIVE, SIX, Expression, parse
from fleetcron.times.fields import DAY, HOUR, WEEKDAY, FieldKind, listed

_ITEM: Final = re.compile(r"(?P<first>\*|\?|[A-Za-z0-9]+)(?:-(?P<last>[A-Za-z0-9]+))?(?:/(?P<step>[0-9]{1,6}))?")
_UTC: Final = frozenset(("UTC", "Etc/UTC", "Etc/UCT", "Etc/Universal", "Etc/Zulu", "GMT", "Etc/GMT", "Zulu", "UCT"))


class Unreadable(ValueError):
    """A field that its own cron refuses, or never matches. `hint` says what may be meant."""

    def __init__(self, text: str, hint: str | None = None) -> None:
        self.hint = hint
        super().__init__(text)


@dataclass(frozen=True, slots=True)
class Rules:
    """How a cron reads fields."""

    name: str
    backwards: Literal["empty", "refused", "wraps"]  # 22-3
    question_mark: bool = False
    sunday_is_7: bool = True
    open_step: bool = False  # 5/15 is 5-59/15
    step_keeps_star: bool = True  # */2 in a day field still counts as unrestricted


@dataclass(frozen=True, slots=True)
class Read:
    """The values of a field as bits, and whether the day rule takes it for unrestricted."""

    bits: int
    star: bool


# Debian's cron 3.0pl1-162. What its syntax is was tried with its own checker (crontab -n): 22-3 is accepted, 5/15 is
# refused. That 22-3 matches nothing was not watched in a daemon: Vixie's cron counts from the first value to the last.
DEBIAN: Final = Rules("cron", backwards="empty")
# the library that Kubernetes reads schedules with (robfig/cron, its standard parser); no cluster was asked
KUBERNETES: Final = Rules(
    "Kubernetes", backwards="refused", question_mark=True, sunday_is_7=False, open_step=True, step_keeps_star=False
)
CELERY: Final = Rules("Celery", backwards="wraps", sunday_is_7=False)


def read_field(kind: FieldKind, text: str, rules: Rules) -> Read:
    bits, star = 0, False
    for item in text.split(","):
        found = _ITEM.fullmatch(item)
        if found is None:
            raise Unreadable(f"{kind.name}: {rules.name} does not read '{item}'")
        values, wild = _read_item(kind, found, rules)
        bits |= values
        star |= wild
    if not bits:
        raise Unreadable(f"{kind.name}: '{text}' matches nothing: {rules.name} never runs it", "turn the range around")
    if rules.step_keeps_star:
        star = text[0] in "*?"
    return Read(bits, star)


def _read_item(kind: FieldKind, found: re.Match[str], rules: Rules) -> tuple[int, bool]:
    first, last, step = found["first"], found["last"], int(found["step"] or 1)
    if step == 0:
        raise Unreadable(f"{kind.name}: a step of 0 in '{found[0]}'")
    if first in "*?":
        if last is not None or (first == "?" and not rules.question_mark):
            raise Unreadable(f"{kind.name}: {rules.name} does not read '{found[0]}'")
        return _bits(kind, kind.low, kind.low + kind.cycle - 1, step), step == 1
    low = _value(kind, first, rules)
    if last is not None:
        high = _value(kind, last, rules)
    elif found["step"] is None:
        high = low
    elif rules.open_step:
        high = kind.hash_high if kind is WEEKDAY else kind.high
    else:
        end = kind.hash_high if kind is WEEKDAY else kind.high
        raise Unreadable(f"{kind.name}: {rules.name} refuses '{found[0]}'", f"perhaps {first}-{end}/{step} is meant")
    if high < low:
        if rules.backwards == "refused":
            raise Unreadable(f"{kind.name}: {rules.name} refuses '{found[0]}', which runs backwards")
        if rules.backwards == "empty":
            return 0, False
        high += kind.cycle
    return _bits(kind, low, high, step), False


def _value(kind: FieldKind, text: str, rules: Rules) -> int:
    name = text.upper()[:3] if len(text) >= 3 and rules is CELERY else text.upper()
    if name in kind.names:
        return kind.names.index(name) + kind.names_from
    highest = 6 if kind is WEEKDAY and not rules.sunday_is_7 else kind.high
    if not text.isdecimal() or not kind.low <= int(text) <= highest:
        raise Unreadable(f"{kind.name}: '{text}' is not a value")
    return int(text)


def _bits(kind: FieldKind, low: int, high: int, step: int) -> int:
    bits = 0
    for value in range(low, high + 1, step):
        bits |= 1 << (value - kind.low) % kind.cycle + kind.low
    return bits


# -- written as ours


def expression(fields: Sequence[Read], both_days: bool, text: str | None = None) -> str:
    """Five or six fields as an expression of ours: `text` itself, if it means the same here.

    `both_days`: a day must match both day fields.
    """
    if text is not None and _means(text, fields, both_days):
        return parse(text, ANY_SEED).text
    kinds = SIX if len(fields) == 6 else FIVE
    words = [_written(kind, read.bits) for kind, read in zip(kinds, fields, strict=True)]
    *_, day, month, weekday = fields
    if both_days or _is_full(DAY, day.bits) or _is_full(WEEKDAY, weekday.bits):
        every_day = not both_days
        words[-3] = "*" if every_day or _is_full(DAY, day.bits) else words[-3]
        words[-1] = "*" if every_day or _is_full(WEEKDAY, weekday.bits) else words[-1]
        if "*" not in (words[-3], words[-1]):
            words[-1] = f"+{words[-1]}"
    words[-2] = "*" if _is_full(FIVE[3], month.bits) else words[-2]
    # in the fields of time a * is how people write all, or every fifth; it makes a clock job of ours, as it should
    for at in range(len(words) - 3):
        words[at] = _starred(kinds[at], fields[at].bits) or words[at]
    return " ".join(words)


def _means(text: str, fields: Sequence[Read], both_days: bool) -> bool:
    try:
        ours = parse(text, ANY_SEED)
    except ScheduleError:
        return False
    alike = len(ours.fields) == len(fields) and all(
        mine.values == read.bits and not _has_forms(ours) for mine, read in zip(ours.fields, fields, strict=True)
    )
    *_, day, _month, weekday = fields
    every_day = _is_full(DAY, day.bits) and _is_full(WEEKDAY, weekday.bits)
    return alike and (ours.both_days == both_days or every_day)


def _has_forms(ours: Expression) -> bool:
    day, weekday = ours.day, ours.weekday
    return bool(day.last or day.nearest or day.last_workday or weekday.nth or weekday.last_weekday)


def _is_full(kind: FieldKind, bits: int) -> bool:
    return bits == _bits(kind, kind.low, kind.low + kind.cycle - 1, 1)


def _written(kind: FieldKind, bits: int) -> str:
    """`5`, `1-5`, `0-45/15`, `1,5-7`: never a `*`, which would say more than the values."""
    values = listed(bits)
    if len(values) > 2:
        step = values[1] - values[0]
        if values == list(range(values[0], values[-1] + 1, step)):
            return f"{values[0]}-{values[-1]}" + (f"/{step}" if step > 1 else "")
    runs: list[list[int]] = []
    for value in values:
        if runs and runs[-1][-1] == value - 1:
            runs[-1].append(value)
        else:
            runs.append([value])
    assert kind.low <= values[0], "bits of a field are its values"
    return ",".join(f"{run[0]}-{run[-1]}" if len(run) > 1 else str(run[0]) for run in runs)


def _starred(kind: FieldKind, bits: int) -> str | None:
    """`*`, or `*/15`, if the values are that."""
    values = listed(bits)
    step = values[1] - values[0] if len(values) > 1 else 0
    if not step or bits != _bits(kind, kind.low, kind.high, step):
        return None
    return "*" if step == 1 else f"*/{step}"


def cron_document(cron: str, timezone: str, dst_gap: str | None = None, dst_fold: str | None = None) -> Document:
    """As it stands under `schedule:`. Policies are written only where they differ from what follows from the text."""
    document: Document = {"cron": cron}
    if timezone != "UTC":
        document["timezone"] = timezone
    if not is_utc(timezone):
        ours = parse(cron, ANY_SEED)
        if dst_gap is not None and dst_gap != policies.dst_gap(None, ours):
            document["dst_gap"] = dst_gap
        if dst_fold is not None and dst_fold != policies.dst_fold(None, ours):
            document["dst_fold"] = dst_fold
    return document


def is_utc(timezone: str) -> bool:
    return timezone in _UTC


def all_hours(read: Read) -> bool:
    return _is_full(HOUR, read.bits)
