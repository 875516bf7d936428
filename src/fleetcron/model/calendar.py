"""A named calendar: days on which a job may or may not run, or windows in which nothing may start.

Days are holidays (dates), or business days (weekdays without the holidays). Windows are fixed, or repeat with a cron
expression. A calendar is one or the other.
"""

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from fleetcron.errors import ScheduleError
from fleetcron.model.almanac import Almanac, Calendar, Part
from fleetcron.model.tenant import DEFAULT_TENANT
from fleetcron.model.writing import duration_text, instant_text
from fleetcron.times import zones
from fleetcron.times.calendars import business_days, holidays
from fleetcron.times.cron import Cron
from fleetcron.times.instants import from_ms
from fleetcron.times.windows import blackout
from fleetcron.times.zone import Zone

WEEKDAYS = ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT")


@dataclass(frozen=True, slots=True, order=True)
class RepeatedWindow:
    """A window that begins at every tick of a cron expression and lasts for a while."""

    cron: str
    timezone: str
    for_ms: int


@dataclass(frozen=True, slots=True)
class CalendarDocument:
    """`holidays` are dates, `2026-12-25` or `12-25` for every year; `windows` are [from, to) in milliseconds.

    `timezone` is where the days are counted; None: where the job is. Lists are kept in one order without repetition,
    so that equal calendars are equal.
    """

    name: str
    tenant: str = DEFAULT_TENANT
    timezone: str | None = None
    weekdays: tuple[str, ...] = ()
    holidays: tuple[str, ...] = ()
    windows: tuple[tuple[int, int], ...] = ()
    repeated: tuple[RepeatedWindow, ...] = ()

    def __post_init__(self) -> None:
        weekdays = {weekday.upper() for weekday in self.weekdays}
        known = [weekday for weekday in WEEKDAYS if weekday in weekdays]
        for name, ordered in (
            ("weekdays", (*known, *sorted(weekdays - set(WEEKDAYS)))),
            ("holidays", tuple(sorted(set(self.holidays)))),
            ("windows", tuple(sorted(set(self.windows)))),
            ("repeated", tuple(sorted(set(self.repeated)))),
        ):
            object.__setattr__(self, name, ordered)

    @property
    def is_of_days(self) -> bool:
        return bool(self.weekdays or self.holidays)

    @property
    def is_of_windows(self) -> bool:
        return bool(self.windows or self.repeated)

    def as_document(self) -> dict[str, Any]:
        """The canonical document: what stands under `calendars:`."""
        return {
            "name": self.name,
            "tenant": self.tenant,
            "timezone": self.timezone,
            "weekdays": list(self.weekdays),
            "holidays": list(self.holidays),
            "windows": [{"from": instant_text(start), "to": instant_text(end)} for start, end in self.windows],
            "repeated": [
                {"cron": each.cron, "timezone": each.timezone, "for": duration_text(each.for_ms)}
                for each in self.repeated
            ],
        }

    def body(self) -> str:
        """The canonical text without tenant and name: equal contents have equal texts, and one hash."""
        whole = {
            "timezone": self.timezone,
            "weekdays": self.weekdays,
            "holidays": self.holidays,
            "windows": self.windows,
            "repeated": [(each.cron, each.timezone, each.for_ms) for each in self.repeated],
        }
        return json.dumps({k: v for k, v in whole.items() if v}, sort_keys=True, separators=(",", ":"))

    @classmethod
    def from_body(cls, tenant: str, name: str, body: str) -> "CalendarDocument":
        raw = json.loads(body)
        return cls(
            name,
            tenant,
            raw.get("timezone"),
            tuple(raw.get("weekdays", ())),
            tuple(raw.get("holidays", ())),
            tuple((start, end) for start, end in raw.get("windows", ())),
            tuple(RepeatedWindow(*each) for each in raw.get("repeated", ())),
        )

    def zones(self) -> list[str]:
        """The zones that it needs, sorted. UTC is in no table: it never changes."""
        named = {self.timezone, *(each.timezone for each in self.repeated)}
        return sorted(name for name in named if name is not None and name != "UTC")

    def build(self, zone: Callable[[str], Zone]) -> Calendar:
        """The calendar, with the zone tables that `zone` gives; a ScheduleError if it cannot be."""
        if self.is_of_days and self.is_of_windows:
            raise ScheduleError(
                f"calendar {self.name} has both days and windows", hint="make two calendars, and use both in the job"
            )
        table = None if self.timezone is None else _table(self.timezone, zone)
        if self.weekdays:
            return business_days(self.name, self.weekdays, self.holidays, table)
        if self.holidays:
            return holidays(self.name, self.holidays, table)
        if not self.is_of_windows:
            raise ScheduleError(
                f"calendar {self.name} is empty", hint="give it holidays, weekdays, windows or repeated windows"
            )
        return blackout(
            self.name,
            [(from_ms(start), from_ms(end)) for start, end in self.windows],
            [
                (Cron(each.cron, _table(each.timezone, zone)), timedelta(milliseconds=each.for_ms))
                for each in self.repeated
            ],
        )


def _table(name: str, zone: Callable[[str], Zone]) -> Zone | str:
    return name if name == "UTC" else zone(name)


def local_almanac(parts: Iterable[Part], calendars: Iterable[CalendarDocument] = ()) -> Almanac:
    """The tables for these parts from the node's own zones and the given calendars: to check and to preview.

    What the fleet plans with is in the database. A zone or calendar that does not exist is a ScheduleError.
    """
    known = {(calendar.tenant, calendar.name): calendar for calendar in calendars}
    wanted = list(parts)
    built: dict[tuple[str, str], Calendar] = {}
    for part in wanted:
        document = known.get((part.tenant, part.name)) if part.kind == "calendar" else None
        if document is not None:  # one that is missing is missed by whoever asks the almanac for it
            built[part.tenant, part.name] = document.build(zones.zone)
    return Almanac(0, {part.name: zones.zone(part.name) for part in wanted if part.kind == "zone"}, built)
