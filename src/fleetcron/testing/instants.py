"""Instants as tests write them: `"02:00"`, `"2027-03-14 02:30"`, a datetime."""

import re
from datetime import date, datetime, timedelta
from typing import Final, TypeAlias

from fleetcron.errors import ScheduleError
from fleetcron.times.instants import to_ms
from fleetcron.times.once import Once
from fleetcron.times.preview import local_time
from fleetcron.times.zone import Zone

When: TypeAlias = str | datetime | date

_DAYTIME: Final = re.compile(r"\d{1,2}:\d{2}(:\d{2})?")
_HINT: Final = "write 02:00 for the next time that it is two o'clock, 2027-03-14 02:00, or an aware datetime"


def instant_ms(when: When, zone: Zone, base_ms: int, *, same: bool = False, of_tick: bool = False) -> int:
    """Without an offset it is local in the zone. A time of day is the next one after `base_ms` (or the `same`).

    A local time that a clock change leaves out is refused: nothing happens then, and whoever writes it has counted on
    it. `of_tick`: a schedule may well say such a time, and its tick comes when the clock has changed.
    """
    if isinstance(when, str) and _DAYTIME.fullmatch(when.strip()):
        return _next(when.strip().rjust(5, "0"), zone, base_ms, same, of_tick)
    if isinstance(when, date) and not isinstance(when, datetime):
        when = datetime(when.year, when.month, when.day)  # noqa: DTZ001 - local in the zone
    if not isinstance(when, str | datetime):
        raise ScheduleError(f"{when!r} is not an instant", hint=_HINT)
    try:
        meant = Once(when, zone, "shift", "first")
    except ScheduleError as error:
        raise ScheduleError(error.mistake, hint=_HINT) from None
    return to_ms(meant.at) if of_tick else _existing(meant, str(when))


def _next(daytime: str, zone: Zone, base_ms: int, same: bool, of_tick: bool) -> int:
    """A day that leaves it out is refused, and not passed over: it is the one that was meant."""
    day = local_time(zone, base_ms).date()
    for ahead in range(4):
        meant = Once(f"{day + timedelta(days=ahead)} {daytime}", zone, "shift", "first")
        found = to_ms(meant.at)
        if found > base_ms or (same and found == base_ms and _exists(meant)):
            return found if of_tick else _existing(meant, f"{day + timedelta(days=ahead)} {daytime}")
    raise AssertionError(daytime)


def _existing(meant: Once, written_as: str) -> int:
    after_ms = to_ms(meant.at)
    if not _exists(meant):
        told = f"{written_as} does not exist in {meant.zone.name}: the clock goes forward"
        raise ScheduleError(told, hint=f"write {shown(after_ms, meant.zone)}")
    return after_ms


def _exists(meant: Once) -> bool:
    instant = meant.instants_ms[0]
    return instant + meant.zone.offset_at(instant // 1000) * 1000 == meant.local_ms


def shown(ms: int, zone: Zone) -> str:
    """2027-03-14 03:00, with seconds where there are some: as a test would write it."""
    return written(local_time(zone, ms).replace(tzinfo=None))


def texts_of(moment: datetime) -> set[str]:
    """Every way to write it that means nothing else: with or without the day, with or without the offset."""
    local = written(moment.replace(tzinfo=None))
    offset = moment.strftime("%z")
    offset = f"{offset[:3]}:{offset[3:5]}"
    found = {local, local[11:], local + offset, local[11:] + offset}
    if offset == "+00:00":
        found |= {f"{local}Z", f"{local[11:]}Z"}
    return found


def written(moment: datetime) -> str:
    """With seconds, or milliseconds, where there are some: a text that a test may compare with."""
    precision = "milliseconds" if moment.microsecond else "seconds" if moment.second else "minutes"
    return moment.isoformat(" ", precision)
