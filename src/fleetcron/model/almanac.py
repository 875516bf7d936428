"""The zone tables and calendars that the whole fleet plans with, at one epoch.

They live in the database, so that every node computes the same ticks whatever its own image has. A change of any of
them is a new epoch; runs and ledger rows name the epoch they were computed with.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from fleetcron.errors import ScheduleError
from fleetcron.times.calendars import DayCalendar
from fleetcron.times.windows import Blackout
from fleetcron.times.zone import Zone

Calendar: TypeAlias = DayCalendar | Blackout


@dataclass(frozen=True, slots=True, order=True)
class Part:
    """A zone or a calendar by name. Zones belong to nobody: their tenant is empty."""

    kind: Literal["zone", "calendar"]
    tenant: str
    name: str


@dataclass(frozen=True, slots=True)
class Almanac:
    epoch: int
    zones: Mapping[str, Zone] = field(default_factory=dict)
    calendars: Mapping[tuple[str, str], Calendar] = field(default_factory=dict)

    def zone(self, name: str) -> Zone:
        try:
            return self.zones[name]
        except KeyError:
            raise ScheduleError(f"the zone {name} is not in the fleet's almanac") from None

    def calendar(self, tenant: str, name: str) -> Calendar:
        try:
            return self.calendars[tenant, name]
        except KeyError:
            raise ScheduleError(f"there is no calendar {name}", hint="define it under calendars: first") from None
