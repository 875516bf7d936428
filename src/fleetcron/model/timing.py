"""Everything that decides the ticks of a job and what happens to late ones: the whole input of a plan.

A timing is kept by content. A million jobs with the same expression, zone and rules share one timing, and a plan is
computed once for all of them that stand at the same cursor. Where ticks depend on the job itself (`H`, jitter), the
seed is part of the content, and the job has a timing of its own.
"""

import json
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import lru_cache
from hashlib import sha256
from typing import Any

from fleetcron.model.almanac import Almanac, Part
from fleetcron.model.entry import is_hashed
from fleetcron.model.kept import UNREADABLE, made
from fleetcron.model.rules import CalendarUse, CronEntry, Entry, EveryEntry, MisfireRule, OnceEntry
from fleetcron.times.blackouts import BlackoutRule
from fleetcron.times.calendars import DayCalendar, DayRule
from fleetcron.times.cron import Cron
from fleetcron.times.every import Every
from fleetcron.times.instants import from_ms
from fleetcron.times.once import Once
from fleetcron.times.schedule import Schedule
from fleetcron.times.timetable import Timetable


@dataclass(frozen=True, slots=True)
class Timing:
    entries: tuple[Entry, ...]
    tenant: str = ""  # whose calendars; empty without calendars
    calendars: tuple[CalendarUse, ...] = ()
    starts_ms: int | None = None
    ends_ms: int | None = None
    max_ticks: int | None = None
    jitter_ms: int = 0
    seed: str | None = None
    misfire: MisfireRule = field(default_factory=MisfireRule)
    start_deadline_ms: int | None = None
    shadow_ms: int | None = None  # ticks before this instant are noted and never run

    def body(self) -> str:
        """The canonical text: equal timings have equal texts."""
        return _body(self)

    @property
    def timing_id(self) -> int:
        return timing_id(self.body())

    @classmethod
    def from_body(cls, body: str) -> "Timing":
        """A ValueError if a newer release has written it, with something that this one does not know."""
        try:
            return _from_body(body)
        except UNREADABLE as error:
            raise ValueError(f"written by a newer release: {error}") from error

    def parts(self) -> list[Part]:
        """The zones and calendars that it asks, sorted. UTC is in no table: it never changes."""
        names = {entry.timezone for entry in self.entries if isinstance(entry, CronEntry | OnceEntry)}
        zones = [Part("zone", "", name) for name in names if name not in (None, "UTC")]
        return sorted(zones + [Part("calendar", self.tenant, use.name) for use in self.calendars])

    def timetable(self, almanac: Almanac) -> Timetable:
        """The ticks, with the fleet's tables. `max_ticks` is not in it: it is counted with the cursor."""
        return Timetable(
            [_schedule(entry, self.seed, almanac) for entry in self.entries],
            calendars=[_rule(self.tenant, use, almanac) for use in self.calendars],
            starts_at=None if self.starts_ms is None else from_ms(self.starts_ms),
            ends_at=None if self.ends_ms is None else from_ms(self.ends_ms),
            jitter=timedelta(milliseconds=self.jitter_ms) if self.jitter_ms else None,
            seed=self.seed,
        )


@lru_cache(1024)  # jobs that are made together often share one
def _body(timing: Timing) -> str:
    whole = _plain(timing) | {
        "entries": [_plain(entry) for entry in timing.entries],
        "calendars": [_plain(use) for use in timing.calendars],
        "misfire": _plain(timing.misfire),
    }
    kept = {name: value for name, value in whole.items() if value not in (None, [], "", 0)}
    return json.dumps(kept, sort_keys=True, separators=(",", ":"))


@lru_cache(1024)
def _from_body(body: str) -> Timing:
    raw = json.loads(body)
    raw["entries"] = tuple(_entry(entry) for entry in raw["entries"])
    raw["calendars"] = tuple(made(CalendarUse, use) for use in raw.get("calendars", ()))
    raw["misfire"] = made(MisfireRule, raw["misfire"])
    return made(Timing, raw)


def timing_id(body: str) -> int:
    """63 bits of the content. The store compares the text too, so that a collision is an error and not a wrong plan."""
    return int.from_bytes(sha256(body.encode()).digest()[:8], "big") >> 1


def _plain(value: Any) -> dict[str, Any]:
    """The fields of one of our dataclasses. (`asdict` copies deeply, which took most of the time of a creation.)"""
    plain = {name: getattr(value, name) for name in value.__slots__ if name != "chosen"}
    return {name: each for name, each in plain.items() if each is not None}


def _entry(raw: dict[str, Any]) -> Entry:
    """Also its text is looked at: what is merely unknown here must not pass for a schedule without ticks."""
    if "cron" in raw:
        cron = made(CronEntry, raw)
        is_hashed(cron)
        return cron
    if "every_ms" in raw:
        return made(EveryEntry, raw)
    once = made(OnceEntry, raw)
    datetime.fromisoformat(once.at)
    return once


def _schedule(entry: Entry, seed: str | None, almanac: Almanac) -> Schedule:
    match entry:
        case CronEntry():
            zone = "UTC" if entry.timezone == "UTC" else almanac.zone(entry.timezone)
            return Cron(entry.cron, zone, entry.dst_gap, entry.dst_fold, entry.month_end, seed=seed)
        case EveryEntry():
            return Every(timedelta(milliseconds=entry.every_ms), from_ms(entry.anchor_ms or 0))
        case OnceEntry():
            if entry.timezone is None or entry.timezone == "UTC":
                return Once(entry.at, entry.timezone, entry.dst_gap, entry.dst_fold)
            return Once(entry.at, almanac.zone(entry.timezone), entry.dst_gap, entry.dst_fold)


def _rule(tenant: str, use: CalendarUse, almanac: Almanac) -> DayRule | BlackoutRule:
    calendar = almanac.calendar(tenant, use.name)
    if isinstance(calendar, DayCalendar):
        return DayRule(calendar, use.use == "require", use.on)  # type: ignore[arg-type]
    return BlackoutRule(calendar, use.on)  # type: ignore[arg-type]
