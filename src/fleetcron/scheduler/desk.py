"""The desk: where people and programs change jobs. Reads the facts, asks the pure policy, writes, and tries again when
somebody else was faster."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal, TypeAlias

from fleetcron.errors import RefusedError, ScheduleError, StoreUnavailable
from fleetcron.ids import uuid7
from fleetcron.model.amendment import Amendment
from fleetcron.model.calendar import CalendarDocument
from fleetcron.model.definition import Definition
from fleetcron.model.job import Job
from fleetcron.model.rules import MisfirePolicy
from fleetcron.model.shard import shard_of
from fleetcron.model.standing import Standing
from fleetcron.model.target import unserved
from fleetcron.policy import amend
from fleetcron.scheduler import dependencies
from fleetcron.scheduler.adopt import Adopter, Adoption
from fleetcron.scheduler.tables import Tables
from fleetcron.steps import step
from fleetcron.store.admission import RefusedJobs
from fleetcron.store.almanac import Table
from fleetcron.store.jobs import Found
from fleetcron.store.store import Store
from fleetcron.store.upstreams import Around
from fleetcron.store.written import Ok, Refused, Unknown
from fleetcron.times.instants import LAST_MS, from_ms
from fleetcron.times.timetable import Timetable

_TRIES = 20
BATCH = 500

Done = Literal[
    "created", "changed", "unchanged", "refused", "paused", "resumed", "cancelled", "deleted", "handed_over", "shadowed"
]
_DONE: dict[str, Done] = {
    "create": "created", "edit": "changed", "pause": "paused",
    "resume": "resumed", "cancel": "cancelled", "delete": "deleted",
    "hand_over": "handed_over", "shadow": "shadowed",
}  # fmt: skip
CANCELLED: Final = (
    "cancelled, and will never run: choose another name, or run `fleetcron jobs delete` first and apply it again"
)
IN_SHADOW: Final = (
    "in shadow: another scheduler runs it, and nothing of it runs here until `fleetcron shadow --hand-over`"
)
Name: TypeAlias = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Applied:
    """What became of one wish."""

    tenant: str
    name: str
    done: Done
    job: Job | None = None
    next_due_ms: int | None = None
    reason: str | None = None

    @property
    def warning(self) -> str | None:
        """What was accepted and will not work. Of what never runs again it is said each time, as long as somebody
        writes it."""
        if self.job is None:
            return None
        if self.done == "unchanged" and self.job.state == "cancelled":
            return CANCELLED
        if self.job.definition.shadow_ms == LAST_MS and self.done in ("created", "changed", "unchanged"):
            return IN_SHADOW
        return unserved(self.job.definition.run) if self.done in ("created", "changed") else None


@dataclass(frozen=True, slots=True)
class Decided:
    """An amendment to write, or an answer without one; and the zones that the fleet has not met."""

    amendment: Amendment | None = None
    applied: Applied | None = None
    brought: tuple[Table, ...] = ()


Wish: TypeAlias = Callable[[Found, Name, str], Awaitable[Decided]]
Refusal: TypeAlias = Callable[[Job], str | None]  # why this job is not to be changed, asked at the moment of the change
Condition: TypeAlias = Callable[[Job], bool]  # what must hold at that moment; otherwise the job is left unchanged


class Desk:
    """`shards` is the number of shards of the fleet, if nobody has fixed it yet; `new_id(now_ms)` the id of a job."""

    def __init__(self, store: Store, *, actor: str, shards: int, new_id: Callable[[int], str] = uuid7) -> None:
        self._jobs = store.jobs
        self._shards = store.shards
        self._tables = Tables(store.almanac)
        self._adopter = Adopter(store.almanac, self._tables)
        self._actor = actor
        self._number = shards
        self._new_id = new_id

    async def apply(
        self,
        definitions: Sequence[Definition],
        *,
        strict: bool = False,
        refuse: Refusal | None = None,
        beside: Sequence[Definition] = (),
    ) -> list[Applied]:
        """Create the jobs that do not exist and edit the others. One answer for each, in order.

        Strict refuses what can never fire; otherwise such a job is finished at once and the ledger says what it missed.
        Jobs may depend on each other in any order, and on those `beside`, which a dry run has applied before.
        """
        ordered = dependencies.upstream_first(definitions)
        answers: dict[Name, Applied] = {}
        for start in range(0, len(ordered), BATCH):
            for each in await self._apply(ordered[start : start + BATCH], strict, refuse, beside):
                answers[each.tenant, each.name] = each
        return [answers[_name_of(definition)] for definition in definitions]

    async def create(self, definition: Definition) -> Applied:
        """Create a job; a RefusedError if its name is taken or it can never fire."""

        async def wish(found: Found, name: Name, job_id: str) -> Decided:
            before = found.standings.get(name)
            if before is not None and before.job.job_id != job_id:
                return Decided(applied=Applied(*name, "refused", reason="the name is taken"))
            return await self._wish_definition(definition, found, job_id, strict=True)

        return _checked((await self._settle([_name_of(definition)], {_name_of(definition): wish}))[0])

    async def edit(self, definition: Definition, *, refuse: Refusal | None = None) -> Applied:
        """Change a job that exists; a RefusedError if there is none or the new definition can never fire."""

        async def wish(found: Found, name: Name, job_id: str) -> Decided:
            before = found.standings.get(name)
            if before is None:
                return Decided(applied=_missing(name))
            if refuse is not None and (reason := refuse(before.job)):
                return Decided(applied=Applied(*name, "refused", before.job, reason=reason))
            return await self._wish_definition(definition, found, job_id, strict=True)

        return _checked((await self._settle([_name_of(definition)], {_name_of(definition): wish}))[0])

    async def pause(
        self, tenant: str, name: str, on_resume: MisfirePolicy | None = None, *, only_if: Condition | None = None
    ) -> Applied:
        """Stop planning. `on_resume` says what is to become of the ticks meanwhile: skip (the default), latest, all."""
        chosen = on_resume or amend.DEFAULT_ON_RESUME
        return await self._steer(
            (tenant, name), lambda before, table, now: amend.pause(before, table, now, self._actor, chosen), only_if
        )

    async def resume(
        self, tenant: str, name: str, policy: MisfirePolicy | None = None, *, only_if: Condition | None = None
    ) -> Applied:
        return await self._steer(
            (tenant, name), lambda before, table, now: amend.resume(before, table, now, self._actor, policy), only_if
        )

    async def cancel(self, tenant: str, name: str) -> Applied:
        return await self._steer(
            (tenant, name), lambda before, table, now: amend.cancel(before, table, now, self._actor)
        )

    async def delete(
        self,
        tenant: str,
        name: str,
        *,
        only_if: Condition | None = None,
        needs: dependencies.Needs | None = None,
    ) -> Applied:
        """`needs`: what other jobs depend on, where a dry run has changed that."""
        return await self._steer(
            (tenant, name), lambda before, table, now: amend.delete(before, table, now, self._actor), only_if, needs
        )

    async def hand_over(self, tenant: str, name: str, at_ms: int) -> Applied:
        """The ticks of a job in shadow are ours from this instant on. Safe to repeat."""
        return await self._steer(
            (tenant, name), lambda before, table, now: amend.hand_over(before, table, at_ms, now, self._actor)
        )

    async def take_back(self, tenant: str, name: str) -> Applied:
        """Into shadow from now on: another scheduler has the ticks."""
        return await self._steer(
            (tenant, name), lambda before, table, now: amend.take_back(before, table, now, self._actor)
        )

    async def put_calendar(self, document: CalendarDocument) -> Adoption:
        return await self._adopter.calendar(document, self._actor)

    async def _apply(
        self, definitions: Sequence[Definition], strict: bool, refuse: Refusal | None, beside: Sequence[Definition]
    ) -> list[Applied]:
        async def wish(found: Found, name: Name, job_id: str) -> Decided:
            before = found.standings.get(name)
            if refuse is not None and before is not None and (reason := refuse(before.job)):
                return Decided(applied=Applied(*name, "refused", before.job, reason=reason))
            return await self._wish_definition(wanted[name], found, job_id, strict=strict)

        wanted = {_name_of(definition): definition for definition in definitions}
        return await self._settle(list(wanted), dict.fromkeys(wanted, wish), beside)

    async def _wish_definition(self, definition: Definition, found: Found, job_id: str, *, strict: bool) -> Decided:
        name = _name_of(definition)
        before = found.standings.get(name)
        try:
            if before is None:
                return await self._creation(definition, found, job_id, strict=strict)
            # A file that still says `shadow: true`, or that never did, must neither stop a job nor start one twice.
            definition = replace(definition, shadow_ms=before.job.definition.shadow_ms)
            if before.job.definition.as_document() == definition.as_document():
                done: Done = "created" if before.job.job_id == job_id else "unchanged"
                return Decided(applied=Applied(*name, done, before.job, before.next_due_ms))
            timing = definition.timing(before.job.created_ms)
            new, brought = await self._tables.timetable(timing, found.epoch)
            new.check(from_ms(found.now_ms))
            old = await self._timetable(before, found.epoch)
            made = amend.edit(before, definition, old, timing, new, found.now_ms, self._actor, strict=strict)
            return Decided(made, brought=tuple(brought))
        except (RefusedError, ScheduleError) as error:
            return Decided(applied=Applied(*name, "refused", reason=str(error)))

    async def _creation(self, definition: Definition, found: Found, job_id: str, *, strict: bool) -> Decided:
        timing = definition.timing(found.now_ms)
        timetable, brought = await self._tables.timetable(timing, found.epoch)
        timetable.check(from_ms(found.now_ms))
        job = Job(job_id, definition, "active", 1, None, None, found.now_ms, self._actor, found.now_ms)
        shard = shard_of(job_id, found.shards or self._number)
        made = amend.create(job, timing, timetable, shard, found.now_ms, strict=strict)
        return Decided(made, brought=tuple(brought))

    async def _steer(
        self,
        name: Name,
        decide: Callable[[Standing, Timetable, int], Amendment | None],
        only_if: Condition | None = None,
        needs: dependencies.Needs | None = None,
    ) -> Applied:
        async def wish(found: Found, name: Name, job_id: str) -> Decided:  # noqa: ARG001
            before = found.standings.get(name)
            if before is None:
                return Decided(applied=_missing(name))
            if only_if is not None and not only_if(before.job):
                return Decided(applied=Applied(*name, "unchanged", before.job, before.next_due_ms))
            try:
                made = decide(before, await self._timetable(before, found.epoch), found.now_ms)
            except RefusedError as error:
                return Decided(applied=Applied(*name, "refused", before.job, reason=str(error)))
            if made is None:
                return Decided(applied=Applied(*name, "unchanged", before.job, before.next_due_ms))
            return Decided(made)

        return _checked((await self._settle([name], {name: wish}, needs=needs))[0])

    async def _timetable(self, standing: Standing, epoch: int) -> Timetable:
        return await self._tables.built(standing.timing, epoch)

    async def _as_of(self, found: Found, name: Name) -> Found:
        """A change begins now, but never before what cannot be taken back: the change before it, its tables (which know
        nothing of the ticks before them), a run that a worker has claimed a moment early, and, if the database's clock
        went back, whatever was answered before it did."""
        standing = found.standings.get(name)
        if standing is None:
            return found
        tables = await self._tables.known(standing.timing.parts(), found.epoch)
        latest = max(standing.job.updated_ms, tables.since_ms, standing.settled_ms or 0)
        return replace(found, now_ms=max(found.now_ms, latest))

    async def _settle(
        self,
        names: Sequence[Name],
        wishes: dict[Name, Wish],
        beside: Sequence[Definition] = (),
        needs: dependencies.Needs | None = None,
    ) -> list[Applied]:
        """Read, decide, write; again for those whose job has moved meanwhile."""
        answers: dict[Name, Applied] = {}
        ids: dict[Name, str] = {}
        why = "other changes of the same jobs do not end"
        for _ in range(_TRIES):
            open_names = [name for name in names if name not in answers]
            if not open_names:
                break
            found = await self._jobs.find(open_names)
            if found.shards is None:
                await self._shards.fix(self._number)
                continue
            ids |= {name: self._new_id(found.now_ms) for name in open_names if name not in ids}
            decided = {name: await wishes[name](await self._as_of(found, name), name, ids[name]) for name in open_names}
            answers |= {name: each.applied for name, each in decided.items() if each.applied is not None}
            amendments = {name: each.amendment for name, each in decided.items() if each.amendment is not None}
            around, refused = await self._around(amendments, beside, needs)
            for name, reason in refused.items():
                answers[name] = _refused(name, amendments.pop(name), reason)
            if not amendments:
                continue
            brought = {table.part: table for each in decided.values() for table in each.brought}
            step("desk.decided")
            match await self._jobs.amend(
                list(amendments.values()),
                epoch=found.epoch,
                shards=found.shards,
                tables=[brought[part] for part in sorted(brought)],
                around=around,
            ):
                case Ok(written):
                    for name, made in amendments.items():
                        if made.after.job.job_id in written:
                            answers[name] = _applied(name, made)
                case RefusedJobs(jobs=denied):  # the others are asked for again, without these
                    for name, made in amendments.items():
                        if (denial := denied.get(made.after.job.job_id)) is not None:
                            answers[name] = _refused(name, made, denial)
                case Refused(reason):
                    why = reason
                case Unknown(reason):  # to wish it again would be refused, or done twice, if it was done
                    why = reason
                    for name, made in amendments.items():
                        if await self._was_written(made):
                            answers[name] = _applied(name, made)
        missing = [name for name in names if name not in answers]
        if missing:
            raise StoreUnavailable(f"{'/'.join(missing[0])} could not be changed: {why}", hint="try again")
        return [answers[name] for name in names]

    async def _around(
        self, amendments: dict[Name, Amendment], beside: Sequence[Definition], needs: dependencies.Needs | None
    ) -> tuple[Around | None, dict[Name, str]]:
        """The dependencies that these changes touch, and what they refuse."""
        starts, ends = dependencies.asked(amendments)
        if not starts and not ends:
            return None, {}
        around = await self._jobs.around(starts, ends)
        return around, dependencies.refusals(amendments, around, beside, needs)

    async def _was_written(self, made: Amendment) -> bool:
        """Is this one of the job's latest revisions? One of somebody else would have another actor or instant."""
        job = made.after.job
        wanted = job.revision, made.action, made.actor, made.at_ms
        found = await self._jobs.revisions(job.job_id, _TRIES)
        return wanted in [(each.revision, each.action, each.actor, each.at_ms) for each in found]


def _applied(name: Name, made: Amendment) -> Applied:
    done = _DONE[made.action]
    return Applied(*name, done, made.after.job, made.after.next_due_ms)


def _refused(name: Name, made: Amendment, reason: str) -> Applied:
    return Applied(*name, "refused", None if made.before is None else made.before.job, reason=reason)


def _missing(name: Name) -> Applied:
    return Applied(*name, "refused", reason=f"there is no job {name[1]} of tenant {name[0]}")


def _checked(applied: Applied) -> Applied:
    if applied.done == "refused":
        raise RefusedError(applied.reason or "refused")
    return applied


def _name_of(definition: Definition) -> Name:
    return definition.tenant, definition.name
