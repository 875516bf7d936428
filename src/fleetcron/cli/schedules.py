"""The schedule of a job in one line."""

from typing import Final

from fleetcron.cli.tables import shortened
from fleetcron.model.definition import Definition
from fleetcron.views.schedules import short

__all__ = ["IN_A_TABLE", "in_a_table", "short"]
IN_A_TABLE: Final = 60  # characters


def in_a_table(definition: Definition) -> str:
    """The same where many stand below each other: `jobs show` has all of it."""
    return shortened(short(definition), IN_A_TABLE)
