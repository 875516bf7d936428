"""WHEN: schedules as sets of instants. Pure: no clock, no I/O beyond the zone files of the `tzdata` package."""

from fleetcron.times.cron import Cron

__all__ = ["Cron"]
