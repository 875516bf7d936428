"""A schedule under its day calendars: ticks on days that are not allowed are dropped or moved.

Where the calendar looks at dates of the schedule's own zone, only the days of the schedule change and everything else
stays as it is. A calendar with a zone of its own cuts the schedule's day at an odd hour: what it refuses becomes a row
of windows, and what it moves is moved for each time of day.
"""

from functools import partial

from fleetcron.errors import ScheduleError
from fleetcron.times import days
from fleetcron.times.calendars import FARTHEST_ROLL, DayRule, ObservedDays
from fleetcron.times.cron import Cron
from fleetcron.times.instants import from_ms
from fleetcron.times.localtimes import DAY
from fleetcron.times.merged import Merged
from fleetcron.times.once import Once
from fleetcron.times.schedule import Schedule
from fleetcron.times.windows import DaysAsWindows
from fleetcron.times.without import Without
from fleetcron.times.zone import Zone
from fleetcron.times.zones import zone as zone_named

MOST_TIMES_ACROSS_ZONES = 24


def observe(entry: Schedule, rules: list[DayRule]) -> Schedule:
    """The schedule under its day calendars."""
    rolls = any(rule.on != "skip" for rule in rules)
    if isinstance(entry, Cron):
        foreign = [rule for rule in rules if rule.calendar.zone not in (None, entry.zone)]
        if foreign and rolls:
            return _across_zones(entry, rules)
        own = [(rule.allowed, rule.on) for rule in rules if rule not in foreign]
        found: Schedule = entry.on_days(ObservedDays(entry.days, own)) if own else entry
        for rule in foreign:
            found = Without(found, DaysAsWindows(rule.refused_days(), _zone(rule, entry.zone)))
        return found
    if isinstance(entry, Once):
        return _moved_once(entry, rules) if rolls else _kept_once(entry, rules)
    if rolls:
        raise ScheduleError(
            "an interval has no local time of day to move", hint="use on: skip, or write a cron schedule instead"
        )
    utc = zone_named("UTC")
    found = entry
    for rule in rules:
        found = Without(found, DaysAsWindows(rule.refused_days(), _zone(rule, utc)))
    return found


def _zone(rule: DayRule, otherwise: Zone) -> Zone:
    return rule.calendar.zone or otherwise


def _across_zones(entry: Cron, rules: list[DayRule]) -> Schedule:
    times = entry.times.flat
    if not 0 < len(times) <= MOST_TIMES_ACROSS_ZONES:
        raise ScheduleError(
            f"'{entry.expression}' has {entry.times.count} times a day; a calendar of another zone moves at most "
            f"{MOST_TIMES_ACROSS_ZONES}",
            hint=f"give the calendar the zone {entry.timezone}, or use on: skip",
        )
    parts = []
    for time in times:
        allowed = [(partial(_allowed_at, rule, entry.zone, time), rule.on) for rule in rules]
        parts.append(entry.on_days(ObservedDays(entry.days, allowed), only=time))
    return parts[0] if len(parts) == 1 else Merged(parts)


def _allowed_at(rule: DayRule, zone: Zone, time: int, year: int) -> int:
    """The days of a year in the job's zone that a calendar of another zone allows, for one time of day."""
    allowed, calendar_zone = rule.allowed_days(), _zone(rule, zone)
    start = days.year_start(year)
    mask = 0
    for day in range(days.YEAR_LENGTHS[days.is_leap(year)]):
        instant = zone.resolve((start + day) * DAY + time, "shift", "first")[0]
        if (instant + calendar_zone.offset_at(instant)) // DAY in allowed:
            mask |= 1 << day
    return mask


def _kept_once(entry: Once, rules: list[DayRule]) -> Schedule:
    found: Schedule = entry
    for rule in rules:
        found = Without(found, DaysAsWindows(rule.refused_days(), _zone(rule, entry.zone)))
    return found


def _moved_once(entry: Once, rules: list[DayRule]) -> Schedule:
    """The one instant, moved day by day until every calendar allows it."""
    local, rest = divmod(entry.local_ms, 1000)
    for _ in range(FARTHEST_ROLL):
        instants = entry.zone.resolve(local, entry.dst_gap, entry.dst_fold)
        refusing = next((rule for rule in rules if not _allows(rule, entry.zone, instants)), None)
        if refusing is None:
            return Once(from_ms(instants[0] * 1000 + rest), entry.zone) if instants else entry
        if refusing.on == "skip":
            break
        local += DAY if refusing.on == "next" else -DAY
    raise ScheduleError(f"{entry!r} never fires: the calendars leave no day for it")


def _allows(rule: DayRule, zone: Zone, instants: list[int]) -> bool:
    calendar_zone = _zone(rule, zone)
    return not instants or (instants[0] + calendar_zone.offset_at(instants[0])) // DAY in rule.allowed_days()
