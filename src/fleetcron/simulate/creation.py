"""When the jobs of a rehearsal were made: at its start. Pure.

In truth they are made a second before it, so that a tick at the start is one. An interval that has no anchor counts
from the creation of its job: it would count from that second, and tick at 00:14:59 where people expect 00:15.
"""

from dataclasses import replace
from typing import Final

from fleetcron.model.definition import Definition
from fleetcron.model.rules import EveryEntry

BEFORE_MS: Final = 1_000


def made_at(definition: Definition, start_ms: int) -> Definition:
    """The job with the ticks of one that is made at `start_ms`: the first tick of an interval is a whole one later."""
    anchor_ms = start_ms - start_ms % 1000  # as the creation of a job is taken (model/definition)
    entries = tuple(
        replace(entry, anchor_ms=anchor_ms) if isinstance(entry, EveryEntry) and entry.anchor_ms is None else entry
        for entry in definition.schedule
    )
    if entries == definition.schedule:
        return definition
    made = replace(definition, schedule=entries)
    if all(isinstance(entry, EveryEntry) and entry.anchor_ms is None for entry in definition.schedule):
        first_ms = anchor_ms + 1000  # no interval is shorter
        made = replace(made, starts_ms=max(first_ms, made.starts_ms or first_ms))
    return made
