"""Every minute of a year, in a zone, and which of them match: slow, and obviously right.

It knows nothing of the rooms under test: local times come from the standard library, values from the test itself.
"""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import NamedTuple

from tests.times.reference import tzdata_zone

YEAR = datetime(2027, 1, 1, tzinfo=UTC), datetime(2028, 1, 1, tzinfo=UTC)


class Minute(NamedTuple):
    at: datetime
    minute: int
    hour: int
    day: int
    month: int
    weekday: int  # Sunday is 0


@cache
def minutes(zone: str) -> list[Minute]:
    """A minute that comes twice is there twice, one that does not exist is not there: skip, and both."""
    here = UTC if zone == "UTC" else tzdata_zone(zone)
    found = []
    at = YEAR[0]
    while at < YEAR[1]:
        local = at.astimezone(here)  # the zones of these tests change at full hours only
        assert local.minute == 0
        for minute in range(60):
            moment = at + timedelta(minutes=minute)
            found.append(Minute(moment, minute, local.hour, local.day, local.month, local.isoweekday() % 7))
        at += timedelta(hours=1)
    return found


def matching(zone: str, rule: Callable[[Minute], bool]) -> Iterator[datetime]:
    return (each.at for each in minutes(zone) if rule(each))
