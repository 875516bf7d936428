"""A fleet on one database whose clock a test moves, and beside it what is expected of every job.

Whatever is done here is done to both: to the store through the desk and the scheduler's steps, and to the model.
`check` reads runs and ledger and holds them against the model, tick by tick.
"""

import json
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import count
from typing import TypeAlias
from uuid import UUID

from fleetcron.errors import RefusedError
from fleetcron.model.almanac import Part
from fleetcron.model.calendar import CalendarDocument
from fleetcron.model.definition import Definition
from fleetcron.model.rules import MisfirePolicy, OnceEntry
from fleetcron.model.run import Run as StoredRun
from fleetcron.model.shard import Held, shard_of
from fleetcron.scheduler.adopt import Adopter
from fleetcron.scheduler.desk import Applied, Desk
from fleetcron.scheduler.gaps import GapRound, fill_gaps
from fleetcron.scheduler.tables import Tables
from fleetcron.scheduler.tick import Round, tick
from fleetcron.store.cursors import Advanced, Cursors, Move
from fleetcron.store.engine import Engine
from fleetcron.store.history import LedgerLine, Span
from fleetcron.store.job_pages import JobFilter
from fleetcron.store.store import Store
from fleetcron.store.written import Ok, Written
from fleetcron.times import zones
from fleetcron.times.zone import Zone
from tests.scheduler.enumerator import Book
from tests.scheduler.expected import ExpectedJob, Line, Piece, Run
from tests.store.engines import DatabaseClock, change, hand_cranked

SHARDS = 2
TENANT = "acme"
FOR_EVER_MS = 10**12
EVERYTHING = 10**6

Happening: TypeAlias = Callable[[], Awaitable[None]]

# every table but the ones that say who owns the shards: an example of its own costs a few deletes, not a database
_TABLES = (
    "jobs", "job_revisions", "timings", "timing_parts", "almanac", "almanac_bodies", "cursors", "runs", "upcoming",
    "ledger", "gaps", "events",
)  # fmt: skip


@dataclass
class World:
    store: Store
    clock: DatabaseClock
    held: list[Held]
    jobs: dict[str, ExpectedJob] = field(default_factory=dict)  # by name, those that are not deleted
    gone: list[ExpectedJob] = field(default_factory=list)
    book: Book = field(default_factory=Book)
    since: dict[Part, int] = field(default_factory=dict)  # the instant after which the tables of the fleet hold

    @classmethod
    async def begin(cls, store: Store, clock: DatabaseClock, held: list[Held], now_ms: int) -> "World":
        """An empty fleet at an instant, on a database that may have been used before."""
        text = ";\n".join(f"DELETE FROM {name}" for name in _TABLES)
        await change(store.engine, f"{text};\nUPDATE almanac_epoch SET epoch = 1;")
        await clock.set(now_ms)
        return cls(store, clock, held)

    def __post_init__(self) -> None:
        numbers = count(1)
        self.desk = Desk(
            self.store, actor="somebody", shards=SHARDS, new_id=lambda now_ms: str(UUID(int=next(numbers) << 64))
        )
        self.tables = Tables(self.store.almanac)
        self.adopter = Adopter(self.store.almanac, self.tables)
        self.releases = count(9001)
        self.stale = [replace(one, term=one.term - 1) for one in self.held]

    @property
    def now(self) -> int:
        return self.clock.now_ms()

    # -- the scheduler

    async def round(
        self, lookahead_ms: int, shards: Sequence[int] = range(SHARDS), before_writing: Happening | None = None
    ) -> Round:
        """Plan until nothing is due. `before_writing` happens between the first round's decision and its write."""
        held = [one for one in self.held if one.shard in shards]
        if before_writing is not None:
            await tick(Slow(self.store.engine, before_writing), self.tables, held, lookahead_ms=lookahead_ms)
        done = await tick(self.store.cursors, self.tables, held, lookahead_ms=lookahead_ms)
        first = done
        while done.jobs:
            done = await tick(self.store.cursors, self.tables, held, lookahead_ms=lookahead_ms)
        assert done.refused is None, done.refused
        self._without_conflicts(first)
        for job in self.jobs.values():
            if shard_of(job.job_id, SHARDS) in shards:
                job.round(self.now, lookahead_ms)
        return first

    async def fill(self, room: int = EVERYTHING) -> GapRound:
        done = await fill_gaps(self.store.gaps, self.tables, self.held, room=room)
        self._without_conflicts(done)
        if room == EVERYTHING:
            while done.gaps:
                done = await fill_gaps(self.store.gaps, self.tables, self.held, room=room)
            assert done == GapRound(), done
            for job in [*self.jobs.values(), *self.gone]:
                job.open.clear()
        return done

    def _without_conflicts(self, done: Round | GapRound) -> None:
        """S2-36: a tick is planned once, so nobody meets a run that is there already."""
        assert not done.conflicts

    async def stale_round(self, lookahead_ms: int) -> None:
        """A scheduler that was the owner once, and does not know that it is no longer."""
        planned = await tick(self.store.cursors, self.tables, self.stale, lookahead_ms=lookahead_ms)
        filled = await fill_gaps(self.store.gaps, self.tables, self.stale, room=EVERYTHING)
        assert not planned.jobs
        assert not filled.gaps

    # -- people

    async def apply(self, definition: Definition, *, strict: bool = False) -> Applied:
        """Create or edit."""
        name = definition.name
        now = await self._instant(name)
        known = self.jobs.get(name)
        if strict:
            try:
                applied = await (self.desk.edit(definition) if known else self.desk.create(definition))
            except RefusedError as error:
                applied = Applied(TENANT, name, "refused", reason=str(error))
        else:
            [applied] = await self.desk.apply([definition])
        if applied.done == "created":
            assert known is None
            assert applied.job is not None
            self.jobs[name] = self._created(applied.job.job_id, definition, now)
        elif applied.done == "changed":
            assert known is not None
            known.edit(definition, now, self.book)
        elif applied.done == "refused":
            self._is_right_to_refuse(definition, known, now, strict=strict)
        if applied.done in ("created", "changed"):
            self._meet(self._parts(definition), self.now)
        return applied

    def _created(self, job_id: str, definition: Definition, now: int) -> ExpectedJob:
        job = ExpectedJob(job_id, Piece(now, definition, now, self.book, {1}), now, changed=now)
        if job.piece.has_more(now) or not all(isinstance(entry, OnceEntry) for entry in definition.schedule):
            return job
        gone = None if definition.max_ticks else job.piece.when.prev(now + 1)
        if gone is not None and now - gone <= definition.misfire.grace_ms:  # clocks differ a little
            job.piece.begin = job.mark = gone - 1
        elif gone is not None:
            job.piece.begin = gone - 1
            job.mark = gone
            job.fates[gone] = Line("missed", frozenset({"in_the_past"}))
            job.revisions[gone], job.books[gone] = frozenset({1}), self.book
        return job

    def _is_right_to_refuse(self, definition: Definition, known: ExpectedJob | None, now: int, *, strict: bool) -> None:
        if known is not None and known.state == "ended":  # cancelled
            return
        piece = Piece(now, definition, known.piece.created_ms if known else now, self.book, set())
        if known and definition.max_ticks is not None and known.piece.definition.max_ticks is not None:
            piece.used = known.piece.used + len(known.piece.ticks(known.piece.begin, now))
        assert not piece.has_more(now), f"{definition} was refused, but has ticks"
        # where nobody is strict, a job that was over before it began is a finished one
        assert strict or definition.calendars or piece.when.prev(now + 1) is None, f"{definition} was refused"

    async def pause(self, name: str, on_resume: MisfirePolicy | None = None) -> bool:
        now = await self._instant(name)
        done = await self._steer(lambda: self.desk.pause(TENANT, name, on_resume))
        if done is not None:
            self.jobs[name].pause(now)
        return done is not None

    async def resume(self, name: str, policy: MisfirePolicy | None = None) -> bool:
        now = await self._instant(name)
        before = await self.store.jobs.find([(TENANT, name)])
        done = await self._steer(lambda: self.desk.resume(TENANT, name, policy))
        if done is not None and done.done == "resumed":
            chosen = before.standings[TENANT, name].job.on_resume
            self.jobs[name].resume(now, policy or chosen or "skip")
        return done is not None

    async def cancel(self, name: str) -> bool:
        return await self._end(name, "job_cancelled", lambda: self.desk.cancel(TENANT, name))

    async def delete(self, name: str) -> bool:
        done = await self._end(name, "job_deleted", lambda: self.desk.delete(TENANT, name))
        if done:
            self.gone.append(self.jobs.pop(name))
        return done

    async def _end(self, name: str, reason: str, wish: Callable[[], Awaitable[Applied]]) -> bool:
        now = await self._instant(name)
        job = self.jobs.get(name)
        answered = await self._answered(job) if job and job.open else []
        done = await self._steer(wish)
        if done is not None:
            assert job is not None
            job.end(now, reason, answered)
        return done is not None

    async def _answered(self, job: ExpectedJob) -> list[int]:
        runs, lines = await self._read()
        found = [run.scheduled_for_ms for run in runs if run.job_id == job.job_id]
        for each in lines:
            if each.job_id == job.job_id:
                found += [t for t in job.open if each.answer.from_ms <= t <= each.answer.to_ms]
        return found

    async def _steer(self, wish: Callable[[], Awaitable[Applied]]) -> Applied | None:
        try:
            return await wish()
        except RefusedError:
            return None

    async def claim(self, name: str) -> None:
        """A worker takes the next forecast a moment early: the run is no longer on its way, and stands."""
        job = self.jobs.get(name)
        if job is None:
            return
        coming = [t for t, fate in sorted(job.fates.items()) if t > self.now and isinstance(fate, Run)]
        if coming:
            job.claimed.add(coming[0])
            runs = f"SELECT run_id FROM runs WHERE job_id = '{job.job_id}' AND scheduled_for_ms = {coming[0]}"
            await change(self.store.engine, f"DELETE FROM upcoming WHERE run_id IN ({runs})")

    # -- tables

    async def put_calendar(self, document: CalendarDocument) -> None:
        await self.see_finished()
        adopted = await self.desk.put_calendar(document)
        if self.book.calendars.get(document.name) == document:
            assert not adopted.tables
            return
        known = {**self.book.calendars, document.name: document}
        await self._tables_changed(replace(self.book, calendars=known), Part("calendar", TENANT, document.name))

    async def adopt_zone(self, name: str, dump: str) -> None:
        """A node with newer zone data starts."""
        await self.see_finished()
        own = {name: dump}

        def source(wanted: str) -> Zone:
            return Zone.load(wanted, own.get(wanted) or self.book.zones[wanted])

        done = await self.adopter.zones("newer", str(next(self.releases)), source)
        if done.tables:
            assert [table.part.name for table in done.tables] == [name]
            known = {**self.book.zones, name: dump}
            await self._tables_changed(replace(self.book, zones=known), Part("zone", "", name))

    async def _tables_changed(self, book: Book, part: Part) -> None:
        self.book = book
        now = await self._adopted(part)
        coming = await self._coming(now)
        for job in self.jobs.values():
            if job.state not in ("active", "paused"):
                continue
            if part not in self._parts(job.piece.definition):
                job.piece.book = book  # nothing in it that the job asks has changed
                continue
            planned = {t for t in job.fates if t > now} - job.claimed
            left = coming.get(job.job_id, set()) - job.claimed
            kept = job.state == "active" and bool(planned) and left == planned
            assert kept or not left, "some forecasts were withdrawn, and others not"
            if job.state == "active" and not planned:
                # nothing tells whether the job was touched; it makes no difference
                kept = not job.piece.ticks(job.mark, now) and job.mark >= now
            job.tables(now, book, kept=kept)
            if kept:
                same = set(job.piece.ticks(now, max(planned, default=now))) - job.claimed
                assert planned == same, "forecasts stayed that are no ticks any more, or are not all"

    async def _adopted(self, part: Part) -> int:
        """The instant after which new tables hold: now, but never before what cannot be taken back."""
        _, tables = await self.store.almanac.all(part.kind)
        [now] = [table.since_ms for table in tables if table.part == part]
        asking = [job for job in self.jobs.values() if part in self._parts(job.piece.definition)]
        ahead = [job for job in asking if job.state in ("active", "paused") and job.mark > self.now]
        settled = max([self.now, *self.since.values(), *(job.settled() for job in ahead)])
        assert settled <= now <= max([settled, *(tick for job in ahead for tick in job.open)])
        self.since[part] = now
        if part.kind == "calendar":
            self._meet([Part("zone", "", name) for name in self.book.calendars[part.name].zones()], now)
        return now

    def _meet(self, parts: Sequence[Part], now: int) -> None:
        """Zones that are new to the fleet come with what asks them first."""
        for part in parts:
            self.since.setdefault(part, now)

    def _parts(self, definition: Definition) -> list[Part]:
        parts = definition.timing(0).parts()
        documents = [self.book.calendars[use.name] for use in definition.calendars]
        return parts + [Part("zone", "", name) for each in documents for name in each.zones()]

    # -- what there is

    async def _instant(self, name: str) -> int:
        """When a change of a job begins: now, but never before what cannot be taken back. Such is the change before
        it, also of its tables, a run that was claimed early, and, after a step back of the clock, every answer that was
        given before."""
        await self.see_finished()
        job = self.jobs.get(name)
        if job is None:
            return self.now
        if any(tick > self.now for tick in job.open):
            await self.fill()
        return max([self.now, job.settled(), *(self.since.get(part, 0) for part in self._parts(job.piece.definition))])

    async def see_finished(self) -> None:
        if all(job.state != "active" or job.piece.has_more(self.now) for job in self.jobs.values()):
            return  # nobody can be
        for each in await self.store.jobs.list(JobFilter(tenant=TENANT), 100):
            job = self.jobs.get(each.job.definition.name)
            if job is not None and each.job.state == "finished" and job.state == "active":
                changed = max(job.changed, each.job.updated_ms)
                job.finish(self.now)
                job.changed = changed  # it ended when the scheduler wrote so, not when we see it

    async def _coming(self, now: int) -> dict[str, set[int]]:
        """The forecasts, by job."""
        found: dict[str, set[int]] = {}
        for run in (await self._read())[0]:
            if run.scheduled_for_ms > now and run.lane == "live":
                found.setdefault(run.job_id, set()).add(run.scheduled_for_ms)
        return found

    async def _read(self) -> tuple[list[StoredRun], Sequence[LedgerLine]]:
        runs = await self.store.history.runs(Span(tenant=TENANT), limit=EVERYTHING)
        return [each.run for each in runs], await self.store.history.ledger(Span(tenant=TENANT), limit=EVERYTHING)

    async def quiesce(self, lookahead_ms: int = 0) -> None:
        await self.round(lookahead_ms)
        await self.fill()

    async def check(self, lookahead_ms: int = 0) -> None:
        """Everything up to now is decided: hold it against the model."""
        await self.quiesce(lookahead_ms)
        await self.see_finished()
        runs, lines = await self._read()
        for job in [*self.jobs.values(), *self.gone]:
            job.check(self.now)
            check_job(job, [r for r in runs if r.job_id == job.job_id], [x for x in lines if x.job_id == job.job_id])


def check_job(job: ExpectedJob, runs: list[StoredRun], lines: list[LedgerLine]) -> None:
    """Every tick has the fate that the model tells, once; and nothing else has one."""
    found: dict[int, list[object]] = {}
    for run in runs:
        found.setdefault(run.scheduled_for_ms, []).append(run)
        fate = job.fates.get(run.scheduled_for_ms)
        assert isinstance(fate, Run), f"a run at {run.scheduled_for_ms}, expected {fate}"
        assert (run.run_after_ms, run.lane, run.covers, run.window_ms) == (
            fate.run_after, fate.lane, fate.covers, fate.window,
        ), f"at {run.scheduled_for_ms}"  # fmt: skip
        assert run.revision in job.revisions[run.scheduled_for_ms]
    for each in lines:
        answer = each.answer
        meant = [
            t
            for t, fate in job.fates.items()
            if answer.from_ms <= t <= answer.to_ms and isinstance(fate, Line) and each.revision in job.revisions[t]
        ]
        assert len(meant) == answer.ticks, f"{answer} says {answer.ticks} ticks, expected {len(meant)}"
        assert (min(meant), max(meant)) == (answer.from_ms, answer.to_ms)
        for t in meant:
            found.setdefault(t, []).append(each)
            fate = job.fates[t]
            assert isinstance(fate, Line)
            assert (answer.answer, answer.covered_by_ms) == (fate.answer, fate.covered_by), f"at {t}"
            assert answer.reason in fate.reasons, f"at {t}"
    double = {t: answers for t, answers in found.items() if len(answers) > 1}
    assert not double, f"two answers: {double}"
    assert set(found) == set(job.fates), f"without an answer: {sorted(set(job.fates) - set(found))}"


class Slow(Cursors):
    """A scheduler that is slow: things happen between its decision and its write."""

    def __init__(self, engine: Engine, before_writing: Happening) -> None:
        super().__init__(engine)
        self._before_writing: Happening | None = before_writing

    async def advance(self, held: Sequence[Held], moves: Sequence[Move], **facts: int) -> Written[Advanced]:
        before, self._before_writing = self._before_writing, None
        if before is not None:
            await before()
        return await super().advance(held, moves, **facts)


@asynccontextmanager
async def opened_world(url: str, now_ms: int) -> AsyncIterator[tuple[Store, DatabaseClock, list[Held]]]:
    """A store with two shards that are ours; the terms before were somebody else's."""
    async with hand_cranked(url, now_ms) as (engine, clock):
        store = Store(engine)
        await store.shards.fix(SHARDS)
        former = await store.shards.take("*", range(SHARDS), "former", FOR_EVER_MS)
        assert isinstance(former, Ok)
        await store.shards.release("former", former.value)
        held = await store.shards.take("*", range(SHARDS), "node", FOR_EVER_MS)
        assert isinstance(held, Ok)
        assert [one.term for one in held.value] == [2, 2]
        yield store, clock, held.value


@cache
def zone_versions(name: str, around_ms: int) -> list[str]:
    """Tables of a zone that its makers may yet publish: as it is, the next change a day and a half later, no next
    change, and half an hour more for some hours."""
    raw = json.loads(zones.zone(name).dump())
    changes = [tuple(each) for each in raw["changes"]]
    now = around_ms // 1000
    at = next(i for i, (instant, _) in enumerate(changes) if instant > now)
    offset = changes[at - 1][1]
    later = [*changes[:at], (changes[at][0] + 129_600, changes[at][1]), *changes[at + 1 :]]
    none = [*changes[:at], *changes[at + 2 :]]
    soon = [*changes[:at], (now + 7_200, offset + 1800), (now + 28_800, offset), *changes[at:]]
    return [Zone.load(name, json.dumps(raw | {"changes": each})).dump() for each in (changes, later, none, soon)]
