"""Runs for the ticks of a job in a stretch of the past, as somebody asked for them. Piece by piece, and repeatable.

The ticks are those of the job's timetable as it is now, also before the job was created. A tick that has a run is left
as it is, and so is one that the old scheduler had; one that the ledger has answered otherwise gets its run all the
same, and the ledger says so no more; one that is still to be decided is left to the scheduler.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Final

from fleetcron.errors import RefusedError, StoreUnavailable
from fleetcron.model.past import Filling, Past
from fleetcron.model.standing import Standing
from fleetcron.policy.supersede import fill
from fleetcron.scheduler.tables import Tables
from fleetcron.steps import step
from fleetcron.store.jobs import Found
from fleetcron.store.steering import IN_SHADOW
from fleetcron.store.store import Store
from fleetcron.store.written import Ok, Refused, Unknown
from fleetcron.times.timetable import Timetable

LIMIT: Final = 10_000
PIECE: Final = 300  # ticks: a run, its place on the way and a split line of the ledger each fit into 1,000 rows
_TRIES: Final = 20


@dataclass(frozen=True, slots=True)
class Backfilled:
    """`superseded` of the created runs had a line in the ledger; `existing` ticks had a run; `undecided` are still to
    be decided by the scheduler; `shadowed` were run by the old scheduler."""

    ticks: int = 0
    created: int = 0
    superseded: int = 0
    existing: int = 0
    undecided: int = 0
    shadowed: int = 0

    def plus(self, filling: Filling) -> "Backfilled":
        return Backfilled(
            self.ticks + len(filling.runs) + filling.existing + filling.undecided + filling.shadowed,
            self.created + len(filling.runs),
            self.superseded + filling.taken,
            self.existing + filling.existing,
            self.undecided + filling.undecided,
            self.shadowed + filling.shadowed,
        )


@dataclass(frozen=True, slots=True)
class _Stretch:
    """What a backfill is about: the ticks of this timetable in (after, until]."""

    standing: Standing
    epoch: int
    timetable: Timetable
    after_ms: int
    until_ms: int

    @property
    def job_id(self) -> str:
        return self.standing.job.job_id


async def backfill(
    store: Store,
    tenant: str,
    name: str,
    from_ms: int,
    to_ms: int,
    *,
    actor: str,
    limit: int = LIMIT,
    dry_run: bool = False,
    tables: Tables | None = None,
    progress: Callable[[int, int], None] = lambda _done, _all: None,
) -> Backfilled:
    """Runs for the ticks in [from, to) that are in the past. `progress` hears how many ticks of how many are done.

    A RefusedError if there is no such job, if it is cancelled, or if there are more ticks than `limit`.
    """
    own = tables or Tables(store.almanac)
    stretch = await _stretch(store, own, tenant, name, from_ms, to_ms)
    total = stretch.timetable.count_ms(stretch.after_ms, stretch.until_ms)
    if total > limit:
        raise RefusedError(f"{total:,} ticks lie there, and the limit is {limit:,}; ask for less, or raise the limit")
    done = Backfilled()
    for _ in range(-(-total // PIECE) + _TRIES):
        ticks = list(islice(stretch.timetable.ticks_ms(stretch.after_ms, stretch.until_ms), PIECE))
        if not ticks:
            return done
        made = await _piece(store, own, stretch, ticks, actor, dry_run=dry_run)
        if made is None:  # the tables have changed: the ticks that are left may be others
            stretch = await _again(store, own, stretch)
            continue
        done = done.plus(made)
        progress(done.ticks, total)
        stretch = _after(stretch, ticks[-1])
    raise StoreUnavailable(f"{tenant}/{name}: the zone tables or calendars change all the time", hint="try again")


async def _stretch(store: Store, tables: Tables, tenant: str, name: str, from_ms: int, to_ms: int) -> _Stretch:
    if to_ms <= from_ms:
        raise RefusedError(
            "the stretch ends before it begins: its end is now if none is given, and what is to come is planned anyway"
        )
    found = await store.jobs.find([(tenant, name)])
    standing = found.standings.get((tenant, name))
    if standing is None:
        raise RefusedError(f"there is no job {name} of tenant {tenant}")
    if standing.job.state == "cancelled":
        raise RefusedError(f"{tenant}/{name} is cancelled: it never runs again")
    if (standing.job.definition.shadow_ms or 0) > found.now_ms:
        raise RefusedError(f"{tenant}/{name} {IN_SHADOW}")
    until_ms = min(to_ms - 1, found.now_ms)
    if standing.job.state == "finished":  # max_ticks may have ended it: what would come after is no tick of it
        until_ms = min(until_ms, standing.at.cursor_ms)
    return await _with_timetable(tables, standing, found, from_ms - 1, until_ms)


async def _with_timetable(tables: Tables, standing: Standing, found: Found, after_ms: int, until_ms: int) -> _Stretch:
    timing_id = standing.timing.timing_id
    _, timetable = (await tables.timetables([timing_id], found.epoch))[timing_id]
    return _Stretch(standing, found.epoch, timetable, after_ms, until_ms)


async def _again(store: Store, tables: Tables, stretch: _Stretch) -> _Stretch:
    """The rest of it under the tables that hold now. Another definition is another question."""
    job = stretch.standing.job
    name = job.definition.tenant, job.definition.name
    found = await store.jobs.find([name])
    standing = found.standings.get(name)
    if standing is None or (standing.job.job_id, standing.job.revision) != (job.job_id, job.revision):
        raise RefusedError(f"{'/'.join(name)} was changed meanwhile; what was created stands, ask again for the rest")
    return await _with_timetable(tables, standing, found, stretch.after_ms, stretch.until_ms)


def _after(stretch: _Stretch, tick: int) -> _Stretch:
    return _Stretch(stretch.standing, stretch.epoch, stretch.timetable, tick, stretch.until_ms)


async def _piece(
    store: Store, tables: Tables, stretch: _Stretch, ticks: Sequence[int], actor: str, *, dry_run: bool
) -> Filling | None:
    """None if the job's revision or tables are not those of the stretch any more."""
    why = "the ledger changes all the time"
    for _ in range(_TRIES):
        past = await store.backfills.look(stretch.job_id, ticks[0], ticks[-1])
        if past is None:
            return None
        known = await _timetables(tables, past)
        if dry_run:
            return fill(past, stretch.timetable, ticks, known)
        step("backfill.looked")

        def decide(now: Past, known: Mapping[tuple[int, int], Timetable] = known) -> Filling:
            if not {(each.timing_id, each.almanac) for each in now.entries} <= known.keys():
                raise _Unread
            return fill(now, stretch.timetable, ticks, known)

        try:
            written = await store.backfills.write(
                stretch.job_id, ticks[0], ticks[-1], decide,
                epoch=stretch.epoch, revision=stretch.standing.job.revision, actor=actor,
            )  # fmt: skip
        except _Unread:
            continue  # somebody has answered ticks in between, with a timetable that we have not read
        match written:
            case Ok(filling):
                return filling
            case Refused():
                return None
            case Unknown(why):
                pass  # what was written is found the next time
    raise StoreUnavailable(f"the ticks could not be filled: {why}", hint="try again")


class _Unread(Exception):
    """Roll back."""


async def _timetables(tables: Tables, past: Past) -> dict[tuple[int, int], Timetable]:
    by_epoch: dict[int, set[int]] = {}
    for each in past.entries:
        by_epoch.setdefault(each.almanac, set()).add(each.timing_id)
    found: dict[tuple[int, int], Timetable] = {}
    for epoch, timing_ids in sorted(by_epoch.items()):
        for timing_id, (_, timetable) in (await tables.timetables(sorted(timing_ids), epoch)).items():
            found[timing_id, epoch] = timetable
    return found
