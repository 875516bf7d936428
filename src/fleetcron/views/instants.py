"""Instants as documents have them: RFC 3339 in UTC, and local time with its offset."""

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from fleetcron.errors import ScheduleError
from fleetcron.model.definition import Definition
from fleetcron.model.rules import CronEntry, OnceEntry
from fleetcron.times import zones
from fleetcron.times.instants import from_ms, iso
from fleetcron.times.preview import local_time
from fleetcron.times.zone import Zone


def utc(ms: int) -> str:
    """2026-11-16T05:00:00Z, with milliseconds where there are some."""
    return from_ms(ms).isoformat(timespec="milliseconds" if ms % 1000 else "seconds").replace("+00:00", "Z")


def local(ms: int, zone: Zone) -> str:
    """2026-11-16 00:00-05:00, or 2026-11-16 05:00Z; without seconds where there are none."""
    precision = "milliseconds" if ms % 1000 else "seconds" if ms % 60_000 else "minutes"
    text = local_time(zone, ms).isoformat(" ", precision)
    return text.replace("+00:00", "Z") if zone.name == "UTC" else text


def as_json(ms: int | None) -> str | None:
    return None if ms is None else iso(from_ms(ms))


def zone_of(definition: Definition) -> Zone:
    """Where the people of a job look at the clock: the zone of its first entry that has one."""
    for entry in definition.schedule:
        if isinstance(entry, CronEntry | OnceEntry) and entry.timezone:
            with suppress(ScheduleError):  # a zone that only a newer node knows
                return zones.zone(entry.timezone)
    return zones.zone("UTC")


def zone_name(definition: Mapping[str, Any]) -> str:
    """The name of the same, of a document."""
    named = [entry["timezone"] for entry in definition["schedule"] if entry.get("timezone") and "every" not in entry]
    return next((name for name in named if _is_known(name)), "UTC")


def _is_known(name: str) -> bool:
    try:
        zones.zone(name)
    except ScheduleError:
        return False
    return True
