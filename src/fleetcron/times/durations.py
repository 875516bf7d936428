"""Durations: `30s`, `15m`, `1h`, `7d`, sums of these (`1h30m`), a number of seconds, or a timedelta."""

import re
from datetime import timedelta

from fleetcron.errors import ScheduleError

_UNITS_MS = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000, "w": 604_800_000}
_PART = re.compile(r"([0-9]{1,12}(?:\.[0-9]{1,3})?) *(ms|s|m|h|d|w)")
_LONGEST_MS = 100 * 366 * 86_400_000


def duration_ms(value: str | int | float | timedelta, name: str = "duration") -> int:
    """The duration in milliseconds; a ScheduleError unless it is positive and below 100 years."""
    if isinstance(value, timedelta):
        ms = round(value / timedelta(milliseconds=1))
    elif isinstance(value, bool):
        raise _bad(value, name)
    elif isinstance(value, int | float):
        ms = round(value * 1000) if abs(value) < _LONGEST_MS else _LONGEST_MS + 1
    elif isinstance(value, str):
        ms = _read(value, name)
    else:
        raise _bad(value, name)
    if ms <= 0:
        raise ScheduleError(f"{name}: {value} is not longer than 0", hint="write it as 30s, 15m, 1h or 7d")
    if ms > _LONGEST_MS:
        raise ScheduleError(f"{name}: {value} is longer than 100 years")
    return ms


def duration_text(ms: int) -> str:
    """The shortest way to write it: 90000 is 90s, 3600000 is 1h."""
    for unit in ("w", "d", "h", "m", "s"):
        if unit != "w" and ms % _UNITS_MS[unit] == 0:
            return f"{ms // _UNITS_MS[unit]}{unit}"
    return f"{ms}ms"


def rough_text(ms: int) -> str:
    """How long it took, for people: 45ms, 2.3s, 3m20s, 2h5m, 3d4h."""
    if ms < 1000:
        return f"{ms}ms"
    if ms < 60_000:
        return f"{ms // 100 / 10:g}s"
    for unit, below in (("d", "h"), ("h", "m"), ("m", "s")):
        whole, rest = divmod(ms, _UNITS_MS[unit])
        if whole:
            part = rest // _UNITS_MS[below]
            return f"{whole}{unit}{part}{below}" if part else f"{whole}{unit}"
    raise AssertionError(ms)


def _read(text: str, name: str) -> int:
    wanted = text.strip().lower()
    if wanted.isascii() and wanted.isdigit() and len(wanted) <= 12:
        return int(wanted) * 1000
    at, total = 0, 0.0
    while at < len(wanted):
        part = _PART.match(wanted, at)
        if part is None:
            raise _bad(text, name)
        total += float(part[1]) * _UNITS_MS[part[2]]
        at = part.end()
        while at < len(wanted) and wanted[at] == " ":
            at += 1
    if not wanted:
        raise _bad(text, name)
    return round(total)


def _bad(value: object, name: str) -> ScheduleError:
    return ScheduleError(f"{name}: {value!r} is not a duration", hint="write it as 30s, 15m, 1h, 7d or 1h30m")
