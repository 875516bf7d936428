"""Why a tick is where it is: moved out of a gap, one of two, clamped, rolled, deferred."""

from fleetcron.times import days
from fleetcron.times.calendars import ObservedDays
from fleetcron.times.cron import Cron
from fleetcron.times.localtimes import DAY
from fleetcron.times.merged import Merged
from fleetcron.times.once import Once
from fleetcron.times.schedule import Schedule
from fleetcron.times.timetable import Timetable
from fleetcron.times.without import Without
from fleetcron.times.zone import Zone
from fleetcron.times.zones import zone as zone_named


def zone_of(schedule: Schedule) -> Zone:
    """The zone in which people read this schedule's ticks: its first one, or UTC."""
    if isinstance(schedule, Cron | Once):
        return schedule.zone
    if isinstance(schedule, Timetable | Merged):
        return zone_of(schedule.entries[0])
    if isinstance(schedule, Without):
        return zone_of(schedule.inner)
    return zone_named("UTC")


def notes(schedule: Schedule, tick: int) -> list[str]:
    """The reasons for one tick, in milliseconds, as short sentences."""
    if isinstance(schedule, Timetable):
        return notes(schedule.whole, tick)
    if isinstance(schedule, Merged):
        found = [note for entry in schedule.entries if entry.next_ms(tick - 1) == tick for note in notes(entry, tick)]
        return list(dict.fromkeys(found))
    if isinstance(schedule, Without):
        return _deferred(schedule, tick)
    if isinstance(schedule, Cron):
        return _cron(schedule, tick // 1000)
    if isinstance(schedule, Once):
        return _once(schedule, tick)
    return []


def clock_text(local: int) -> str:
    """The time of day of a local second, without seconds where they are 0."""
    hour, rest = divmod(local % DAY, 3600)
    minute, second = divmod(rest, 60)
    return f"{hour:02}:{minute:02}" + (f":{second:02}" if second else "")


def date_text(day: int) -> str:
    year, month, date = days.split(day)
    return f"{year:04}-{month:02}-{date:02}"


def _deferred(schedule: Without, tick: int) -> list[str]:
    before = schedule.windows.starting_before(tick)
    if before is None or before[1] != tick:
        return notes(schedule.inner, tick)
    count = schedule.deferred(before)
    own = notes(schedule.inner, tick) if schedule.inner.next_ms(tick - 1) == tick else []
    return [*own, f"deferred to the end of a blackout (stands for {count})"] if count else own


def _cron(schedule: Cron, second: int) -> list[str]:
    found = []
    local_times = schedule.local_times(second)
    shown = second + schedule.zone.offset_at(second)
    moved = [local for local in local_times if local != shown]
    if moved:
        found.append(f"moved from {clock_text(moved[0])}: does not exist")
    if len(local_times) > 1:
        found.append(f"collapsed {len(local_times)}")
    twice = schedule.zone.resolve(shown, "skip", "both")
    if len(twice) == 2:
        found.append("first of two" if twice[0] == second else "second of two")
    for day in sorted({local // DAY for local in local_times}):
        found += _days(schedule, day)
    return found


def _days(schedule: Cron, day: int) -> list[str]:
    """What calendars and the end of the month did to this day."""
    chosen, found, origins = schedule.days, [], [day]
    if isinstance(chosen, ObservedDays) and (sources := chosen.sources(day)):
        if day in chosen.base:
            found.append(f"collapsed {len(sources) + 1}")
        else:
            found += [f"rolled from {date_text(source)}" for source in sources]
            origins = sources
    for origin in origins if schedule.month_end == "clamp" else ():
        found += _clamped(schedule, origin)
    return found


def _clamped(schedule: Cron, day: int) -> list[str]:
    year, _, date = days.split(day)
    mask = schedule.parsed.day_mask(days.kind_of(year), clamp=False)
    if mask >> day - days.year_start(year) & 1:
        return []
    written = schedule.parsed.day.clampable >> date + 1
    gone = [date + 1 + bit for bit in range(written.bit_length()) if written >> bit & 1]
    gone = gone or sorted(n for n in schedule.parsed.day.nearest if n > date)
    return [f"clamped from {', '.join(map(str, gone))}"] if gone else []


def _once(schedule: Once, tick: int) -> list[str]:
    second = tick // 1000
    local = schedule.local_ms // 1000
    rolled = [] if schedule.rolled_from is None else [f"rolled from {date_text(schedule.rolled_from)}"]
    return rolled + _once_in_zone(schedule, second, local)


def _once_in_zone(schedule: Once, second: int, local: int) -> list[str]:
    if second + schedule.zone.offset_at(second) != local:
        return [f"moved from {clock_text(local)}: does not exist"]
    twice = schedule.zone.resolve(local, "skip", "both")
    if len(twice) == 2:
        return ["first of two" if twice[0] == second else "second of two"]
    return []
