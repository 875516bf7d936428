"""A node of a version that comes after this one: it knows one more migration, and brings it when it starts."""

from collections.abc import Mapping
from typing import Any, Final

from fleetcron.store import migrations
from fleetcron.store.migrations import Migration, known
from tests.faults import work_node

VERSION: Final = "99.0"
MORE: Final = (
    "ALTER TABLE runs ADD COLUMN colour TEXT;\n"
    "ALTER TABLE leases ADD COLUMN colour TEXT;\n"
    "CREATE TABLE colours (name TEXT PRIMARY KEY);\n"
    "CREATE INDEX runs_by_colour ON runs (colour) WHERE colour IS NOT NULL"
)


def knows(engine: str) -> tuple[Migration, ...]:
    own = known(engine)
    return (*own, Migration(len(own) + 1, "colours", MORE))


def live(given: Mapping[str, Any]) -> None:
    migrations.known = knows  # type: ignore[assignment]
    migrations.__version__ = VERSION  # type: ignore[attr-defined]
    work_node.live(given)
