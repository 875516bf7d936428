"""Instants for people: in UTC, in a job's zone, and how far away; and those that people write."""

from datetime import datetime

from fleetcron.clock import SystemClock, utc_now
from fleetcron.errors import ScheduleError
from fleetcron.times.durations import duration_ms
from fleetcron.times.instants import to_ms
from fleetcron.times.once import Once
from fleetcron.views.instants import as_json, local, utc, zone_of

__all__ = ["as_json", "distance", "instant_ms", "local", "ms_of", "now_ms", "shown", "utc", "zone_of"]
_UNITS = (("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1000))


def ms_of(text: str) -> int:
    """An instant of a document."""
    return to_ms(datetime.fromisoformat(text))


def shown(text: str | None) -> str:
    """The same as people read it; nothing if there is none."""
    return "" if text is None else utc(ms_of(text))


def now_ms() -> int:
    """For how far away something is, where nobody has asked a database what time it is."""
    return SystemClock().now_ms()


def distance(ms: int, now_ms: int) -> str:
    """in 12m, 3h ago, now."""
    away = abs(ms - now_ms)
    for unit, size in _UNITS:
        if away >= 2 * size or (unit == "s" and away >= size):
            return f"in {away // size}{unit}" if ms > now_ms else f"{away // size}{unit} ago"
    return "now"


def instant_ms(text: str | None, option: str) -> int | None:
    """An instant as somebody wrote it: RFC 3339 (UTC without an offset), a duration for so long ago, or now."""
    if text is None:
        return None
    now_ms = to_ms(utc_now())
    if text == "now":
        return now_ms
    try:
        return now_ms - duration_ms(text)
    except ScheduleError:
        pass
    try:
        return to_ms(Once(text, "UTC", "shift", "first").at)
    except ScheduleError:
        hint = "write it as 2027-01-01T09:00:00Z or 2027-01-01, as 2h for two hours ago, or now"
        raise ScheduleError(f"{option}: '{text}' is not an instant", hint=hint) from None
