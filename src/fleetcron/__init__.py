"""fleetcron: a distributed cron and job scheduler."""

from fleetcron.errors import FleetcronError, ScheduleError
from fleetcron.times import Cron, Every, Once

__version__ = "0.1.0.dev0"
__all__ = ["Cron", "Every", "FleetcronError", "Once", "ScheduleError", "__version__"]
