"""New zone tables and calendars for the whole fleet, in one transaction with the jobs whose ticks they move.

A node whose zone data is newer than the stored tables brings its own; a node whose data is older plans with the stored
ones. So every node computes the same ticks, whatever its image has.

Whoever brings tables has to say what they do to every job that asks them. So where a newer release has written one of
these jobs, and this one cannot read it, the tables stay as they are: a node that can read it may bring them.
"""

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import TypeAlias

from fleetcron.errors import ScheduleError, SchemaError, StoreUnavailable
from fleetcron.events import Event
from fleetcron.model.almanac import Part
from fleetcron.model.calendar import CalendarDocument
from fleetcron.model.timing import Timing
from fleetcron.policy.adopt import moved
from fleetcron.scheduler.tables import Never, Tables, build
from fleetcron.store.almanac import Affected, AlmanacTables, Rewind, Standpoint, Table
from fleetcron.store.written import Ok, Refused, Unknown
from fleetcron.times import zones
from fleetcron.times.timetable import Timetable
from fleetcron.times.zone import Zone

_TRIES = 20


@dataclass(frozen=True, slots=True)
class Adoption:
    """What was adopted, and how many jobs it moved."""

    tables: tuple[Table, ...] = ()
    jobs: int = 0
    withdrawn: int = 0
    stuck: int = 0  # jobs that have no tick left


class Adopter:
    def __init__(self, stored: AlmanacTables, tables: Tables) -> None:
        self._stored = stored
        self._tables = tables

    async def zones(
        self, node_id: str, own_release: str | None = None, own: Callable[[str], Zone] = zones.zone
    ) -> Adoption:
        """Bring this node's zone tables to the fleet where they are newer and different. For a node's start."""
        release = own_release or zones.release()
        is_cautious = False
        for _ in range(_TRIES):
            epoch, stored = await self._stored.all("zone")
            newer = [_newer(table, release, own) for table in stored if table.release < release]
            tables = [table for table in newer if table is not None]
            if is_cautious:
                tables = [table for table in tables if await self._is_readable(table)]
            if not tables:
                return Adoption()
            events = [
                Event(
                    "zone_adopted", node_id=node_id, detail={"zone": t.part.name, "hash": t.hash, "release": t.release}
                )
                for t in tables
            ]
            try:
                adoption = await self._adopt(tables, epoch, events)
            except _Unreadable:
                is_cautious = True
                continue
            if adoption is not None:
                return adoption
        return Adoption()

    async def calendar(self, document: CalendarDocument, actor: str) -> Adoption:
        """Create or change a calendar. A ScheduleError if it cannot be, a SchemaError if it would move a job that only
        a newer release can read."""
        document.build(zones.zone)
        body = document.body()
        part = Part("calendar", document.tenant, document.name)
        table = Table(part, sha256(body.encode()).hexdigest(), "", body)
        detail = {"tenant": document.tenant, "calendar": document.name, "hash": table.hash}
        for _ in range(_TRIES):
            epoch, stored = await self._stored.all("calendar")
            if any(each.part == part and each.hash == table.hash for each in stored):
                return Adoption()
            event = Event("calendar_changed", actor=actor, detail=detail)
            known = await self._tables.known([Part("zone", "", name) for name in document.zones()], epoch)
            try:
                adoption = await self._adopt([*known.brought, table], epoch, [event])
            except _Unreadable as error:
                job = await self._stored.job_of(error.timing_id)
                raise SchemaError(
                    f"calendar {document.name} was not written: a newer release has written the job {job}, "
                    "and this one cannot say what would become of its ticks",
                    hint="use the newer release",
                ) from error
            if adoption is not None:
                return adoption
        raise StoreUnavailable(f"others change calendars too: {document.name} was not written", hint="try again")

    async def _adopt(self, tables: Sequence[Table], epoch: int, events: Sequence[Event]) -> Adoption | None:
        """None: somebody else was faster, or nobody knows; look again."""
        changed = {table.part: table for table in tables}
        asked = await self._asked(changed)
        prepared = await self._prepare(asked, changed, epoch)

        def decide(facts: Affected) -> list[Rewind]:
            return [rewind for each in facts.standpoints if (rewind := _rewind(each, prepared, facts.now_ms))]

        try:
            written = await self._stored.adopt(tables, asked, decide, epoch=epoch, events=events)
        except KeyError:  # a job with a new timing came in between
            return None
        match written:
            case Ok(done):
                return Adoption(tuple(tables), done.jobs, done.withdrawn, done.stuck)
            case Refused() | Unknown():
                return None

    async def _is_readable(self, table: Table) -> bool:
        """Whether this node can say what a table does to all jobs that ask it."""
        try:
            _timings_of(await self._stored.affected(await self._asked([table.part])))
        except _Unreadable:
            return False
        return True

    async def _asked(self, changed: Collection[Part]) -> list[Part]:
        """The changed parts, and the calendars that stand on a changed zone."""
        _, calendars = await self._stored.all("calendar")
        on_zones = [
            table.part
            for table in calendars
            for document in [CalendarDocument.from_body(table.part.tenant, table.part.name, table.body)]
            if any(Part("zone", "", name) in changed for name in document.zones())
        ]
        return sorted({*changed, *on_zones})

    async def _prepare(self, asked: Sequence[Part], changed: Mapping[Part, Table], epoch: int) -> "Prepared":
        facts = await self._stored.affected(asked)
        made = _timings_of(facts)
        parts = [part for timing in made.values() for part in timing.parts()]
        old = (await self._tables.known(parts, epoch)).almanac
        new = (await self._tables.known(parts, epoch, instead=changed)).almanac
        prepared = {}
        for key, timing in made.items():
            prepared[key] = timing, build(timing, old), build(timing, new)
            await asyncio.sleep(0)  # heartbeats come first
        for each in facts.standpoints:  # for what it computes: inside the transaction, others wait for us
            _rewind(each, prepared, facts.now_ms)
            await asyncio.sleep(0)
        return prepared


class _Unreadable(Exception):
    def __init__(self, timing_id: int) -> None:
        self.timing_id = timing_id


def _timings_of(facts: Affected) -> dict[int, Timing]:
    """Of the jobs that there are: a timing stays when its last job is gone."""
    made: dict[int, Timing] = {}
    for timing_id in {each.timing_id: None for each in facts.standpoints}:
        try:
            made[timing_id] = Timing.from_body(facts.timings[timing_id])
        except ValueError as error:
            raise _Unreadable(timing_id) from error
    return made


Prepared: TypeAlias = Mapping[int, tuple[Timing, Timetable, Timetable]]


def _rewind(standpoint: Standpoint, prepared: Prepared, now_ms: int) -> Rewind | None:
    timing, old, new = prepared[standpoint.timing_id]
    found = moved(timing, old, new, standpoint.at, standpoint.state, standpoint.next_due_ms, now_ms)
    if found is None:
        return None
    why = new.why if isinstance(new, Never) else "the zone tables and calendars leave no tick to come"
    return Rewind(
        standpoint,
        found.left.at.ticks_used,
        found.next_due_ms,
        found.left.undecided,
        why if found.stuck or (isinstance(new, Never) and standpoint.state == "paused") else None,
    )


def _newer(stored: Table, release: str, zone: Callable[[str], Zone]) -> Table | None:
    """This node's table of a zone, if its ticks can differ from the stored one."""
    try:
        own = zone(stored.part.name)
    except ScheduleError:
        return None  # the zone is gone from the newer data: the fleet keeps what it has
    return None if own.hash == stored.hash else Table(stored.part, own.hash, release, own.dump())
