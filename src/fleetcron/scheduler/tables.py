"""The fleet's zone tables and calendars, and the timetables made from them: once for all jobs that share them."""

import asyncio
from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass, field, replace

from fleetcron.errors import ScheduleError
from fleetcron.model.almanac import Almanac, Calendar, Part
from fleetcron.model.calendar import CalendarDocument
from fleetcron.model.entry import ANY_SEED, is_hashed
from fleetcron.model.kept import UNREADABLE
from fleetcron.model.timing import Timing
from fleetcron.store.almanac import AlmanacTables, Table
from fleetcron.times import zones
from fleetcron.times.timetable import Timetable
from fleetcron.times.zone import Zone

# A timetable takes a few kilobytes; jobs that share one share the place.
MOST_KEPT = 10_000
_GIVEN = 1_000


class Never(Timetable):
    """A schedule that cannot be under the present tables: it has no ticks, and says why."""

    def __init__(self, why: str) -> None:
        self.why = why

    def __repr__(self) -> str:
        return f"Never({self.why!r})"

    def next_ms(self, after: int) -> None:  # noqa: ARG002
        return None

    def prev_ms(self, before: int) -> None:  # noqa: ARG002
        return None

    def ticks_ms(self, after: int, until: int) -> Iterable[int]:  # type: ignore[override]  # noqa: ARG002
        return iter(())

    def count_ms(self, after: int, until: int) -> int:  # noqa: ARG002
        return 0

    def start_ms(self, tick: int) -> int:
        return tick


@dataclass(frozen=True, slots=True)
class Known:
    """Tables for some parts, and those that the fleet has not met: this node brings its own."""

    almanac: Almanac
    brought: list[Table] = field(default_factory=list)
    since_ms: int = 0  # all of them hold after this instant


class Tables:
    """`unreadable` are timings that a newer release has written, for as long as this program runs: a timing is kept by
    content. `unplanned` are these, and those that have no ticks under the tables of the present epoch. Whoever asks for
    what is to be done leaves them out; a page of the oldest would be theirs for ever."""

    def __init__(self, stored: AlmanacTables) -> None:
        self.unreadable: set[int] = set()
        self._stored = stored
        self._never: tuple[int, set[int]] = 0, set()
        self._timings: dict[int, Timing] = {}
        self._timetables: dict[tuple[int, int], Timetable] = {}
        self._given: dict[tuple[Timing, int], Timetable] = {}
        self._built: dict[tuple[Timing, int], Timetable] = {}
        self._zones: dict[tuple[str, str], Zone] = {}
        self._known: tuple[int, dict[tuple[Part, ...], Known]] | None = None

    @property
    def unplanned(self) -> Set[int]:
        return self.unreadable | self._never[1]

    def pass_over(self, timing_id: int, epoch: int) -> None:
        """It cannot be planned as long as this epoch lasts."""
        self.forgive(epoch)
        self._never[1].add(timing_id)

    def forgive(self, epoch: int) -> bool:
        """Other tables may give ticks to those who had none. Whether there is somebody to be looked at again."""
        before, never = self._never
        if before == epoch:
            return False
        self._never = epoch, set()
        return bool(never)

    async def timetables(self, ids: Iterable[int], epoch: int) -> Mapping[int, tuple[Timing, Timetable]]:
        """Timings by id, with their ticks under the tables of an epoch; without those that a newer release has written
        and this one cannot read. Old and new nodes plan side by side while a fleet is renewed."""
        wanted = list(ids)
        missing = [each for each in wanted if (each, epoch) not in self._timetables]
        if missing and len(self._timetables) + len(missing) > MOST_KEPT:
            self._timetables.clear()
            self._timings.clear()
            missing = wanted
        if missing:
            await self._make(missing, epoch)
        readable = (each for each in wanted if each not in self.unreadable)
        return {each: (self._timings[each], self._timetables[each, epoch]) for each in readable}

    async def timetable(self, timing: Timing, epoch: int) -> tuple[Timetable, list[Table]]:
        """The ticks of a timing that may be new to the fleet. A ScheduleError if it cannot be."""
        known = await self.known(timing.parts(), epoch)
        if known.brought:
            return timing.timetable(known.almanac), known.brought
        found = self._given.get((timing, epoch))  # jobs that are made together often share one
        if found is None:
            if len(self._given) >= _GIVEN:
                self._given.clear()
            found = self._given[timing, epoch] = timing.timetable(known.almanac)
        return found, []

    async def built(self, timing: Timing, epoch: int) -> Timetable:
        """The ticks of a timing that the fleet has already; without any, if the tables leave none."""
        found = self._built.get((timing, epoch))
        if found is None:
            known = await self.known(timing.parts(), epoch)
            if len(self._built) >= _GIVEN:
                self._built.clear()
            found = self._built[timing, epoch] = build(timing, known.almanac)
        return found

    async def known(self, parts: Iterable[Part], epoch: int, instead: Mapping[Part, Table] | None = None) -> Known:
        """The tables that hold at an epoch; `instead` has those that are to hold from the next one on."""
        wanted = sorted(set(parts))
        if instead:
            return await self._find(wanted, epoch, instead)
        if self._known is None or self._known[0] != epoch:
            self._known = epoch, {}  # what holds at an epoch holds for ever, but nobody asks for old ones again
        kept, key = self._known[1], tuple(wanted)
        if key not in kept:
            found = await self._find(wanted, epoch, {})
            if found.brought:  # not of the fleet yet: somebody else may be faster
                return found
            kept[key] = found
        return kept[key]

    async def _find(self, wanted: list[Part], epoch: int, instead: Mapping[Part, Table]) -> Known:
        found = await self._read(wanted, epoch, instead)
        documents = {
            part: CalendarDocument.from_body(part.tenant, part.name, table.body)
            for part, table in found.items()
            if part.kind == "calendar"
        }
        more = {Part("zone", "", name) for document in documents.values() for name in document.zones()}
        found |= await self._read(sorted(more - found.keys()), epoch, instead)
        brought = [_own(part) for part in sorted({*wanted, *more} - found.keys()) if part.kind == "zone"]
        found |= {table.part: table for table in brought}
        named = {part.name: self._zone(table) for part, table in found.items() if part.kind == "zone"}
        calendars: dict[tuple[str, str], Calendar] = {
            (part.tenant, part.name): document.build(named.__getitem__) for part, document in documents.items()
        }
        since_ms = max((table.since_ms for table in found.values()), default=0)
        return Known(Almanac(epoch, named, calendars), brought, since_ms)

    async def _read(self, parts: list[Part], epoch: int, instead: Mapping[Part, Table]) -> dict[Part, Table]:
        stored = await self._stored.read([part for part in parts if part not in instead], epoch) if parts else []
        return {table.part: table for table in stored} | {part: instead[part] for part in parts if part in instead}

    async def _make(self, ids: list[int], epoch: int) -> None:
        unread = [each for each in ids if each not in self._timings and each not in self.unreadable]
        if unread:
            bodies = await self._stored.timings(unread)
            for each in unread:
                try:
                    self._timings[each] = Timing.from_body(bodies[each])
                except UNREADABLE:
                    self.unreadable.add(each)
        ids = [each for each in ids if each not in self.unreadable]
        known = await self.known((part for each in ids for part in self._timings[each].parts()), epoch)
        shapes: dict[str, Timetable] = {}
        for number, each in enumerate(ids):
            if number % 16 == 15:
                await asyncio.sleep(0)  # some calendars take a while: heartbeats come first
            try:
                self._timetables[each, epoch] = _shaped(self._timings[each], known.almanac, shapes)
            except UNREADABLE:
                self.unreadable.add(each)

    def _zone(self, table: Table) -> Zone:
        key = table.part.name, table.hash
        if key not in self._zones:
            self._zones[key] = Zone.load(table.part.name, table.body)
        return self._zones[key]


def _shaped(timing: Timing, almanac: Almanac, shapes: dict[str, Timetable]) -> Timetable:
    if timing.seed is None or any(map(is_hashed, timing.entries)):
        return build(timing, almanac)
    # the seed only delays the start: jobs that differ in nothing else share all the rest
    shape = replace(timing, seed=ANY_SEED).body()
    if shape not in shapes:
        shapes[shape] = build(timing, almanac)
    made = shapes[shape]
    return made if isinstance(made, Never) else made.seeded(timing.seed)


def build(timing: Timing, almanac: Almanac) -> Timetable:
    """The ticks, or Never: new tables can take every tick from a schedule that once had some.

    An entry that cannot be under these tables has no ticks; the others keep theirs.
    """
    try:
        return timing.timetable(almanac)
    except ScheduleError as error:
        why = str(error)
    left = tuple(entry for entry in timing.entries if _can_be(replace(timing, entries=(entry,)), almanac))
    return replace(timing, entries=left).timetable(almanac) if left else Never(why)


def _can_be(timing: Timing, almanac: Almanac) -> bool:
    try:
        timing.timetable(almanac)
    except ScheduleError:
        return False
    return True


def _own(part: Part) -> Table:
    own = zones.zone(part.name)
    return Table(part, own.hash, zones.release(), own.dump())
