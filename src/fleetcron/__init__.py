"""fleetcron: a distributed cron and job scheduler."""

from typing import TYPE_CHECKING

from fleetcron.errors import FleetcronError, LeaseLost, ScheduleError
from fleetcron.times import Cron, Every, Once

if TYPE_CHECKING:
    from fleetcron.app import Fleetcron
    from fleetcron.app.guarded import fenced, guarded
    from fleetcron.client import AsyncClient, Client

__version__ = "0.1.0.dev0"
__all__ = [
    "AsyncClient",
    "Client",
    "Cron",
    "Every",
    "Fleetcron",
    "FleetcronError",
    "LeaseLost",
    "Once",
    "ScheduleError",
    "__version__",
    "fenced",
    "guarded",
]


def __getattr__(name: str) -> object:
    """Who only computes ticks does not wait for the rest."""
    if name == "Fleetcron":
        from fleetcron.app import Fleetcron

        return Fleetcron
    if name in ("AsyncClient", "Client"):
        from fleetcron import client

        return getattr(client, name)
    if name in ("guarded", "fenced"):
        from fleetcron.app import guarded as room

        return getattr(room, name)
    raise AttributeError(f"module 'fleetcron' has no attribute '{name}'")
