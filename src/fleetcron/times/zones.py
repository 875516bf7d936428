"""The zones of the world, by IANA name, from the pinned `tzdata` package only.

A machine's own zone files can be older than the package and would silently win with `zoneinfo.ZoneInfo(name)`: two
nodes would then compute different ticks. So the machine's files, PYTHONTZPATH and TZ are never looked at.
"""

import re
from difflib import get_close_matches
from functools import cache, lru_cache
from importlib import import_module
from os.path import dirname, join

from fleetcron.errors import ScheduleError
from fleetcron.times.zone import Zone

# What people write for a zone, and where they mostly mean. Every one of these is used by several countries or
# leaves open whether summer time applies.
ABBREVIATIONS = {
    "ACST": "Australia/Darwin", "ADT": "America/Halifax", "AEDT": "Australia/Sydney", "AEST": "Australia/Sydney",
    "AKST": "America/Anchorage", "AST": "America/Halifax", "AWST": "Australia/Perth", "BRT": "America/Sao_Paulo",
    "BST": "Europe/London", "CAT": "Africa/Maputo", "CDT": "America/Chicago", "CEST": "Europe/Berlin",
    "CET": "Europe/Berlin", "CST": "America/Chicago", "EAT": "Africa/Nairobi", "EDT": "America/New_York",
    "EEST": "Europe/Athens", "EET": "Europe/Athens", "EST": "America/New_York", "GST": "Asia/Dubai",
    "HKT": "Asia/Hong_Kong", "HST": "Pacific/Honolulu", "IDT": "Asia/Jerusalem", "IST": "Asia/Kolkata",
    "JST": "Asia/Tokyo", "KST": "Asia/Seoul", "MDT": "America/Denver", "MEST": "Europe/Berlin",
    "MET": "Europe/Berlin", "MSK": "Europe/Moscow", "MST": "America/Denver", "NZDT": "Pacific/Auckland",
    "NZST": "Pacific/Auckland", "PDT": "America/Los_Angeles", "PKT": "Asia/Karachi", "PST": "America/Los_Angeles",
    "SAST": "Africa/Johannesburg", "SGT": "Asia/Singapore", "WAT": "Africa/Lagos", "WEST": "Europe/Lisbon",
    "WET": "Europe/Lisbon", "WIB": "Asia/Jakarta",
}  # fmt: skip
_ALSO = {
    "CST": "Asia/Shanghai or America/Havana",
    "IST": "Asia/Jerusalem or Europe/Dublin",
    "BST": "Asia/Dhaka",
    "EST": "America/Panama, which has no summer time",
    "MST": "America/Phoenix, which has no summer time",
}
_OFFSET = re.compile(r"(?:UTC|GMT|Z)?\s*[+-]\d{1,2}(?::?\d{2})?", re.IGNORECASE)


@cache
def names() -> tuple[str, ...]:
    """Every zone that may be used."""
    with open(join(_folder(), "zones"), encoding="ascii") as file:
        listed = file.read().split()
    return tuple(sorted(name for name in listed if name != "Factory" and name not in ABBREVIATIONS))


@cache
def release() -> str:
    """The release of the zone data, such as 2026a."""
    return str(import_module("tzdata").IANA_VERSION)


def zone(name: str) -> Zone:
    """The zone of this name; a ScheduleError with near names if there is none."""
    if not isinstance(name, str):
        raise ScheduleError(f"Invalid timezone: {name!r}. Use IANA format (e.g., America/New_York)")
    return _load(name)


@lru_cache(maxsize=1024)
def _load(name: str) -> Zone:
    if name not in _known():
        raise ScheduleError(_mistake(name), hint=_hint(name), source=name[:64], end=min(len(name), 64))
    with open(join(_folder(), "zoneinfo", *name.split("/")), "rb") as file:
        return Zone.from_tzif(name, file.read())


def _folder() -> str:
    """Where the package lies. Plain paths: importlib.resources alone takes 13 ms of a command's start."""
    return dirname(str(import_module("tzdata").__file__))


@cache
def _known() -> frozenset[str]:
    return frozenset(names())


def _mistake(name: str) -> str:
    if usual := ABBREVIATIONS.get(name.upper()):
        return f"{name} is ambiguous: use {usual}"
    return f"Invalid timezone: {name[:64] or 'an empty name'}. Use IANA format (e.g., America/New_York)"


def _hint(name: str) -> str | None:
    if name.upper() in ABBREVIATIONS:
        also = _ALSO.get(name.upper())
        return f"or {also}" if also else None
    if _OFFSET.fullmatch(name):
        return "an offset is not a zone: it knows no summer time"
    near = near_names(name)
    return f"did you mean {' or '.join(near)}?" if near else None


def near_names(name: str) -> list[str]:
    """Names that somebody may have meant: another case, a city alone, a typo."""
    wanted = name.strip().lower().replace(" ", "_")
    if not wanted or len(wanted) > 64:
        return []
    by_lower = {known.lower(): known for known in names()}
    if wanted in by_lower:
        return [by_lower[wanted]]
    cities = [known for lower, known in by_lower.items() if lower.rpartition("/")[2] == wanted]
    if cities:
        return cities[:3]
    near = [by_lower[match] for match in get_close_matches(wanted, by_lower, n=3, cutoff=0.75)]
    if near:
        return near
    by_city: dict[str, str] = {}
    for lower, known in by_lower.items():
        by_city.setdefault(lower.rpartition("/")[2], known)
    return [by_city[match] for match in get_close_matches(wanted.rpartition("/")[2], by_city, n=3, cutoff=0.8)]
