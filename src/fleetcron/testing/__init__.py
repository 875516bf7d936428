"""For tests of your jobs: `with world(app, start="2027-03-13") as w:` is a fleet on virtual time, in this process.

The scheduler, the worker and the tables are the real ones, with SQLite in memory. Nothing sleeps, and the same calls
give the same story every time. docs/learn/testing.md shows how to use it.

pytest imports this package in every run, for its plugin; so the rest comes only when somebody asks for it.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fleetcron.testing.results import Answered, Ran
    from fleetcron.testing.worlds import World, world

__all__ = ["Answered", "Ran", "World", "world"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from fleetcron.testing import results, worlds

    return getattr(worlds if hasattr(worlds, name) else results, name)
