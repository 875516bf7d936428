"""Instants for people: in UTC, in a job's zone, and how far away; and those that people write."""

from contextlib import suppress

from fleetcron.clock import utc_now
from fleetcron.errors import ScheduleError
from fleetcron.model.definition import Definition
from fleetcron.model.rules import CronEntry, OnceEntry
from fleetcron.times import zones
from fleetcron.times.durations import duration_ms
from fleetcron.times.instants import from_ms, iso, to_ms
from fleetcron.times.once import Once
from fleetcron.times.preview import local_time
from fleetcron.times.zone import Zone

_UNITS = (("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1000))


def utc(ms: int) -> str:
    """2026-11-16T05:00:00Z, with milliseconds where there are some."""
    return from_ms(ms).isoformat(timespec="milliseconds" if ms % 1000 else "seconds").replace("+00:00", "Z")


def local(ms: int, zone: Zone) -> str:
    """2026-11-16 00:00-05:00, or 2026-11-16 05:00Z; without seconds where there are none."""
    precision = "milliseconds" if ms % 1000 else "seconds" if ms % 60_000 else "minutes"
    text = local_time(zone, ms).isoformat(" ", precision)
    return text.replace("+00:00", "Z") if zone.name == "UTC" else text


def distance(ms: int, now_ms: int) -> str:
    """in 12m, 3h ago, now."""
    away = abs(ms - now_ms)
    for unit, size in _UNITS:
        if away >= 2 * size or (unit == "s" and away >= size):
            return f"in {away // size}{unit}" if ms > now_ms else f"{away // size}{unit} ago"
    return "now"


def as_json(ms: int | None) -> str | None:
    return None if ms is None else iso(from_ms(ms))


def zone_of(definition: Definition) -> Zone:
    """Where the people of a job look at the clock: the zone of its first entry that has one."""
    for entry in definition.schedule:
        if isinstance(entry, CronEntry | OnceEntry) and entry.timezone:
            with suppress(ScheduleError):  # a zone that only a newer node knows
                return zones.zone(entry.timezone)
    return zones.zone("UTC")


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
