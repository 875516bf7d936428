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


def observe(entry: Schedule, rules: list[DayRule]) -> Schedule | None:
    """The schedule under its day calendars; None when they leave nothing of it."""
    rolls = any(rule.on != "skip" for rule in rules)
    if isinstance(entry, Cron):
        foreign = [rule for rule in rules if _is_foreign(rule, entry.zone)]
        if foreign and rolls:
            return _across_zones(entry, rules)
        own = [rule for rule in rules if rule not in foreign]
        if own:
            entry = entry.on_days(ObservedDays(entry.days, [(rule.allowed, rule.on) for rule in own], _own_years(own)))
        return _keep_out(entry, foreign, entry.zone)
    if isinstance(entry, Once):
        return _moved_once(entry, rules)
    if rolls:
        raise ScheduleError(
            "an interval has no local time of day to move", hint="use on: skip, or write a cron schedule instead"
        )
    return _keep_out(entry, rules, zone_named("UTC"))


def _is_foreign(rule: DayRule, zone: Zone) -> bool:
    return rule.calendar.zone not in (None, zone)


def _keep_out(schedule: Schedule, rules: list[DayRule], zone: Zone) -> Schedule:
    for rule in rules:
        schedule = Without(schedule, DaysAsWindows(rule.refused_days(), rule.calendar.zone or zone))
    return schedule


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
        allowed = [
            (partial(_allowed_at, rule, entry, time) if _is_foreign(rule, entry.zone) else rule.allowed, rule.on)
            for rule in rules
        ]
        # what another zone allows changes with its clocks, too
        years = [*_own_years(rules), *(_clock_years(zone) for zone in (entry.zone, *_zones(rules)))]
        parts.append(entry.on_days(ObservedDays(entry.days, allowed, years), only=time))
    return parts[0] if len(parts) == 1 else Merged(parts)


def _own_years(rules: list[DayRule]) -> list[tuple[int, int] | None]:
    return [rule.calendar.own_years for rule in rules]


def _zones(rules: list[DayRule]) -> list[Zone]:
    return [zone for rule in rules if (zone := rule.calendar.zone) is not None]


def _clock_years(zone: Zone) -> tuple[int, int] | None:
    if not zone.changes:
        return None
    first, last = zone.changes[0][0], zone.changes[-1][0]
    return days.year_of(first // DAY), days.year_of(last // DAY) + 1


def _allowed_at(rule: DayRule, entry: Cron, time: int, year: int) -> int:
    """The days of a year in the schedule's zone that a calendar of another zone allows, for one time of day."""
    start, length = days.year_start(year), days.YEAR_LENGTHS[days.is_leap(year)]
    zone = rule.calendar.zone or entry.zone
    first, last = start * DAY + time, (start + length) * DAY + time
    # Between two changes of either clock the other zone is always as many dates ahead: only around a change of one of
    # them each day is asked by itself.
    changes = [
        after.start // DAY
        for each in (entry.zone, zone)
        for _, after in each.changes_between(first - 3 * DAY, last + 3 * DAY)
    ]
    odd = {day - start for change in changes for day in range(change - 2, change + 3) if 0 <= day - start < length}
    allowed, origin = _years_around(rule, year)
    mask, day = 0, 0
    for edge in [*sorted(odd), length]:
        if edge > day:
            local = (start + day) * DAY + time
            ahead = (local - entry.zone.offset_at(local) + zone.offset_at(local)) // DAY - (start + day)
            mask |= (allowed >> start + day + ahead - origin & (1 << edge - day) - 1) << day
        if edge < length and _allows(rule, entry, (start + edge) * DAY + time):
            mask |= 1 << edge
        day = edge + 1
    return mask


def _years_around(rule: DayRule, year: int) -> tuple[int, int]:
    """The allowed days of three years as one row of bits, and the day of its first bit."""
    years = [each for each in (year - 1, year, year + 1) if days.FIRST_YEAR <= each <= days.LAST_YEAR]
    origin = days.year_start(years[0]) - 2  # another zone may be a date behind, on the very first day too
    row = 0
    for each in years:
        row |= rule.allowed(each) << days.year_start(each) - origin
    return row, origin


def _allows(rule: DayRule, entry: Cron | Once, local: int) -> bool:
    """Whether a calendar allows a local time: by its date, or by the date that another zone has at that instant."""
    if not _is_foreign(rule, entry.zone):
        return local // DAY in rule.allowed_days()
    if isinstance(entry, Once) and local == entry.local_ms // 1000:
        instant = entry.instants_ms[0] // 1000  # given as an instant, it may be the second of two
    else:
        instant = entry.zone.resolve(local, "shift", entry.dst_fold)[0]
    zone = rule.calendar.zone or entry.zone
    return (instant + zone.offset_at(instant)) // DAY in rule.allowed_days()


def _moved_once(entry: Once, rules: list[DayRule]) -> Schedule | None:
    """The one local time, moved day by day until every calendar allows it."""
    local, rest = divmod(entry.local_ms, 1000)
    refusing = next((rule for rule in rules if not _allows(rule, entry, local)), None)
    if refusing is None:
        return entry
    if refusing.on == "skip":
        return None
    # The first rule that refuses decides the way; then it goes on until all are content.
    step = DAY if refusing.on == "next" else -DAY
    for days_moved in range(1, FARTHEST_ROLL + 1):
        moved = local + step * days_moved
        if all(_allows(rule, entry, moved) for rule in rules):
            if not entry.zone.resolve(moved, entry.dst_gap, entry.dst_fold):
                return None
            at = from_ms(moved * 1000 + rest).replace(tzinfo=None)
            found = Once(at, entry.zone, entry.dst_gap, entry.dst_fold)
            found.rolled_from = local // DAY
            return found
    return None
