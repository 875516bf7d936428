"""The coming ticks as rows for people: UTC, local time with its offset, start with jitter, and the reasons."""

from dataclasses import dataclass
from datetime import datetime, timedelta, timezone

from fleetcron.times.instants import from_ms, iso, to_ms
from fleetcron.times.notes import notes, zone_of
from fleetcron.times.schedule import Schedule
from fleetcron.times.timetable import Timetable
from fleetcron.times.zone import Zone


@dataclass(frozen=True, slots=True)
class Row:
    """One tick. `starts` differs from `scheduled_for` by the jitter only."""

    scheduled_for: datetime
    local: datetime
    starts: datetime
    notes: tuple[str, ...]

    def as_json(self) -> dict[str, object]:
        row: dict[str, object] = {
            "scheduled_for": iso(self.scheduled_for),
            "local": self.local.isoformat(),
            "notes": list(self.notes),
        }
        if self.starts != self.scheduled_for:
            row["starts"] = iso(self.starts)
        return row


def preview(schedule: Schedule, after: datetime, count: int = 10, zone: Zone | None = None) -> list[Row]:
    """The next `count` ticks later than `after`, fewer where the schedule ends; local times in `zone` or its own."""
    zone = zone or zone_of(schedule)
    rows: list[Row] = []
    tick = schedule.next_ms(to_ms(after))
    while tick is not None and len(rows) < count:
        starts = schedule.start_ms(tick) if isinstance(schedule, Timetable) else tick
        rows.append(Row(from_ms(tick), local_time(zone, tick), from_ms(starts), tuple(notes(schedule, tick))))
        tick = schedule.next_ms(tick)
    return rows


def local_time(zone: Zone, tick: int) -> datetime:
    """The instant as the zone's clocks show it, with its offset."""
    try:
        return from_ms(tick).astimezone(timezone(timedelta(seconds=zone.offset_at(tick // 1000))))
    except OverflowError:
        return from_ms(tick)  # the local time is in the year 0 or 10000, which a datetime cannot hold
