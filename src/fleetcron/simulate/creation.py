"""When the jobs of a rehearsal were made: at its start, so that a tick of that instant is one and no earlier one is.

In truth they are made a second before it, so that everybody is there when it comes. Nobody is to see that second: a job
is written down as made a millisecond before the start, and has no ticks up to then. An interval that has no anchor
counts from the start, and its first tick is a whole one later: the start itself is a tick only if another entry of the
job says so. If none does, the job is made at the very start.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Final, TypeGuard

from fleetcron.errors import ScheduleError
from fleetcron.model.definition import Definition
from fleetcron.model.rules import Entry, EveryEntry
from fleetcron.scheduler.desk import Decided, Desk
from fleetcron.scheduler.tables import build
from fleetcron.store.jobs import Found
from fleetcron.store.store import Store

BEFORE_MS: Final = 1_000


class OpeningDesk(Desk):
    """A desk at which whatever is made before `start_ms` is made at `start_ms`."""

    def __init__(self, store: Store, start_ms: int, *, actor: str, shards: int, new_id: Callable[[int], str]) -> None:
        super().__init__(store, actor=actor, shards=shards, new_id=new_id)
        self._start_ms = start_ms

    async def _wish_definition(self, definition: Definition, found: Found, job_id: str, *, strict: bool) -> Decided:
        before = found.standings.get((definition.tenant, definition.name))
        created_ms = found.now_ms if before is None else before.job.created_ms
        if created_ms <= self._start_ms:
            if before is None:
                found = replace(found, now_ms=await self._made_ms(definition, found.epoch))
            definition = _anchored(definition, self._start_ms)
        return await super()._wish_definition(definition, found, job_id, strict=strict)

    async def _made_ms(self, definition: Definition, epoch: int) -> int:
        own = tuple(entry for entry in definition.schedule if not _counts_from_creation(entry))
        if len(own) == len(definition.schedule):
            return self._start_ms - 1
        timing = replace(definition, schedule=own).timing(self._start_ms)
        try:
            known = await self._tables.known(timing.parts(), epoch)
            first_ms = build(timing, known.almanac).next_ms(self._start_ms - 1) if own else None
        except ScheduleError:
            first_ms = None  # whoever makes it says what is wrong with it
        return self._start_ms - 1 if first_ms == self._start_ms else self._start_ms


def _anchored(definition: Definition, start_ms: int) -> Definition:
    anchor_ms = start_ms - start_ms % 1000  # as the creation of a job is taken (model/definition)
    return replace(
        definition,
        schedule=tuple(
            replace(entry, anchor_ms=anchor_ms) if _counts_from_creation(entry) else entry
            for entry in definition.schedule
        ),
    )


def _counts_from_creation(entry: Entry) -> TypeGuard[EveryEntry]:
    return isinstance(entry, EveryEntry) and entry.anchor_ms is None
