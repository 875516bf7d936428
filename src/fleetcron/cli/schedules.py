"""The schedule of a job in one line."""

from typing import Final

from fleetcron.cli.tables import shortened
from fleetcron.model.definition import Definition
from fleetcron.views.schedules import short

__all__ = ["IN_A_TABLE", "in_a_table"]
IN_A_TABLE: Final = 60  # characters


def in_a_table(schedule: Definition | str) -> str:
    """The same where many stand below each other: `jobs show` has all of it."""
    return shortened(schedule if isinstance(schedule, str) else short(schedule), IN_A_TABLE)
