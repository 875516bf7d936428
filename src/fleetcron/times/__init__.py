"""WHEN: schedules as sets of instants. Pure: no clock, no I/O beyond the zone files of the `tzdata` package."""

from fleetcron.times.cron import Cron
from fleetcron.times.every import Every
from fleetcron.times.once import Once

__all__ = ["Cron", "Every", "Once"]
