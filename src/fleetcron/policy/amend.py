"""What a change of a job does to its ticks. Pure.

A timing holds from the instant after its job was created or edited up to and including the instant of the next change.
So a change never fires at once, and every tick belongs to exactly one timing: what was planned after the change is
taken back, what nobody planned before it is a gap, to be decided under the rules that held then.
"""

from dataclasses import dataclass, replace
from typing import Final

from fleetcron.errors import RefusedError
from fleetcron.model.amendment import Action, Amendment
from fleetcron.model.answer import Answer, Gap
from fleetcron.model.definition import Definition
from fleetcron.model.job import Job
from fleetcron.model.rules import MisfirePolicy, OnceEntry
from fleetcron.model.standing import Position, Standing
from fleetcron.model.timing import Timing
from fleetcron.policy.bounds import last_allowed, next_tick, used
from fleetcron.times.instants import LAST_MS, from_ms, iso
from fleetcron.times.timetable import Timetable

DEFAULT_ON_RESUME: MisfirePolicy = "skip"
_OPEN: Final = ("active", "paused")


@dataclass(frozen=True, slots=True)
class Left:
    """What a timing leaves behind when it ends: the job stands there, and these ticks are not decided."""

    at: Position
    undecided: tuple[int, int] | None


def leave(timing: Timing, timetable: Timetable, at: Position, now_ms: int) -> Left:
    """End a timing now."""
    if at.cursor_ms >= now_ms:
        return Left(Position(now_ms, at.ticks_used - used(timing, timetable, now_ms, at.cursor_ms)), None)
    until = min(now_ms, last_allowed(timing, timetable, at))
    first = timetable.next_ms(at.cursor_ms)
    if first is None or first > until:
        return Left(Position(now_ms, at.ticks_used), None)
    return Left(Position(now_ms, at.ticks_used + used(timing, timetable, at.cursor_ms, until)), (at.cursor_ms, until))


def _left(before: Standing, timetable: Timetable, now_ms: int) -> Left:
    """A job that has ended leaves nothing, whatever ticks other tables would have given it since."""
    if before.job.state in ("cancelled", "finished"):
        return Left(Position(now_ms, before.at.ticks_used), None)
    return leave(before.timing, timetable, before.at, now_ms)


def create(job: Job, timing: Timing, timetable: Timetable, shard: int, now_ms: int, *, strict: bool) -> Amendment:
    begun = _begin(timing, timetable, Position(now_ms), now_ms, strict=strict, is_new=True)
    after = _standing(job, timing, shard, begun)
    return Amendment("create", job.created_by, now_ms, None, after, answers=begun.answers)


def edit(
    before: Standing,
    definition: Definition,
    old: Timetable,
    timing: Timing,
    new: Timetable,
    now_ms: int,
    actor: str,
    *,
    strict: bool,
) -> Amendment:
    """Nothing fires at once, nothing is lost or doubled. A finished job that has ticks again is active again."""
    job = before.job
    if job.state == "cancelled":
        raise RefusedError(f"{job.definition.seed} is cancelled, which is final; delete it and create it anew")
    paused = job.state == "paused"
    if paused:
        _can_catch_up(definition, job.on_resume)
    left = _left(before, old, now_ms)
    if _same_so_far(timing, before.timing, now_ms) and before.at.cursor_ms <= now_ms and job.state in _OPEN:
        left = Left(before.at, None)  # the same rules: what is undecided is decided as if nothing had happened
    counted = timing.max_ticks is not None and before.timing.max_ticks is not None
    at = left.at if counted else replace(left.at, ticks_used=0)
    begun = _Begun(at, None) if paused else _begin(timing, new, at, now_ms, strict=strict)
    amended = _amended(job, now_ms, definition=definition, problem=None)
    after = _standing(replace(amended, state="paused" if paused else "active"), timing, before.shard, begun)
    gaps = _gap(left, "pause" if paused else "edit", None, None if paused else now_ms)
    return Amendment("edit", actor, now_ms, before, after, gaps, begun.answers)


def hand_over(before: Standing, timetable: Timetable, at_ms: int, now_ms: int, actor: str) -> Amendment | None:
    """End the shadow at an instant: every tick before it stays the old scheduler's, the others are ours. None if that
    was said before. No tick is answered ahead of its time in shadow, so there is nothing to take back."""
    job, shadow_ms = before.job, before.job.definition.shadow_ms
    if shadow_ms == at_ms:
        return None
    if shadow_ms is None or shadow_ms <= now_ms:
        when = "" if shadow_ms is None else f": it was handed over at {iso(from_ms(shadow_ms))}"
        raise RefusedError(f"{job.definition.seed} is not in shadow{when}")
    if at_ms <= now_ms:
        raise RefusedError(f"{iso(from_ms(at_ms))} has passed: the old scheduler had those ticks; say a later instant")
    return _with_shadow(before, timetable, at_ms, now_ms, actor, "hand_over")


def take_back(before: Standing, timetable: Timetable, now_ms: int, actor: str) -> Amendment | None:
    """Into shadow, from now on; what is due already is ours, and stands. None if it is in shadow without an end."""
    if before.job.definition.shadow_ms == LAST_MS:
        return None
    return _with_shadow(before, timetable, LAST_MS, now_ms, actor, "shadow")


def _with_shadow(
    before: Standing, timetable: Timetable, shadow_ms: int, now_ms: int, actor: str, action: Action
) -> Amendment:
    if before.job.state not in _OPEN:
        raise RefusedError(f"{before.job.definition.seed} is {before.job.state}: it has no ticks to come")
    definition = replace(before.job.definition, shadow_ms=shadow_ms)
    timing = replace(before.timing, shadow_ms=shadow_ms)  # the ticks are the same
    made = edit(before, definition, timetable, timing, timetable, now_ms, actor, strict=False)
    return replace(made, action=action)


def _same_so_far(new: Timing, old: Timing, now_ms: int) -> bool:
    """Whether both say the same about every tick up to now."""
    new_ms, old_ms = (min(timing.shadow_ms or 0, now_ms + 1) for timing in (new, old))
    return new_ms == old_ms and replace(new, shadow_ms=None) == replace(old, shadow_ms=None)


def pause(before: Standing, timetable: Timetable, now_ms: int, actor: str, on_resume: MisfirePolicy) -> Amendment:
    job = before.job
    if job.state not in _OPEN:
        raise RefusedError(f"{job.definition.seed} is {job.state}; only an active job can be paused")
    _can_catch_up(job.definition, on_resume)
    amended = _amended(job, now_ms, state="paused", on_resume=on_resume)
    if job.state == "paused":  # only another choice about the paused window
        return Amendment("pause", actor, now_ms, before, replace(before, job=amended))
    left = leave(before.timing, timetable, before.at, now_ms)
    after = replace(before, job=amended, at=left.at, next_due_ms=None)
    return Amendment("pause", actor, now_ms, before, after, _gap(left, "outage", None, now_ms))


def resume(
    before: Standing, timetable: Timetable, now_ms: int, actor: str, policy: MisfirePolicy | None = None
) -> Amendment | None:
    """Always re-arms. None if there is nothing to do: the job is active and looks at its next tick already."""
    job = before.job
    if job.state not in _OPEN:
        raise RefusedError(f"{job.definition.seed} is {job.state}; only a paused job can be resumed")
    if job.state == "active" and job.problem is None and before.next_due_ms is not None:
        return None
    paused = job.state == "paused"
    chosen = (policy or job.on_resume or DEFAULT_ON_RESUME) if paused else None
    _can_catch_up(job.definition, chosen)
    left = leave(before.timing, timetable, before.at, now_ms)
    begun = _begin(before.timing, timetable, left.at, now_ms, strict=False)
    stuck = job.problem if begun.finished else None  # it waits for tables that give it ticks again, and is not over
    if stuck and not paused:
        return None
    begun = _Begun(left.at, None) if stuck else begun
    amended = _amended(job, now_ms, state="active", on_resume=None, problem=stuck)
    after = _standing(amended, before.timing, before.shard, begun)
    gaps = _gap(left, "pause" if paused else "outage", chosen, now_ms)
    return Amendment("resume", actor, now_ms, before, after, gaps, notice=chosen)


def cancel(before: Standing, timetable: Timetable, now_ms: int, actor: str) -> Amendment:
    job = before.job
    if job.state not in _OPEN:
        raise RefusedError(f"{job.definition.seed} is {job.state}; only an active or paused job can be cancelled")
    left = leave(before.timing, timetable, before.at, now_ms)
    amended = _amended(job, now_ms, state="cancelled", on_resume=None, problem=None)
    after = replace(before, job=amended, at=left.at, next_due_ms=None)
    return Amendment("cancel", actor, now_ms, before, after, _gap(left, "cancel", "cancel", now_ms), notice="cancel")


def delete(before: Standing, timetable: Timetable, now_ms: int, actor: str) -> Amendment:
    """The name is free again. Runs, ledger and revisions stay."""
    job = before.job
    left = _left(before, timetable, now_ms)
    amended = _amended(job, now_ms, deleted_ms=now_ms)
    after = replace(before, job=amended, at=left.at, next_due_ms=None)
    return Amendment("delete", actor, now_ms, before, after, _gap(left, "delete", "cancel", now_ms), notice="cancel")


def _can_catch_up(definition: Definition, policy: MisfirePolicy | None) -> None:
    """As `misfire: all` is refused beside cancel_previous: only the latest counts there."""
    if policy == "all" and definition.overlap.policy == "cancel_previous":
        raise RefusedError(
            f"not all the ticks of {definition.seed} can be caught up after a pause: with overlap cancel_previous only "
            "the latest counts; pause or resume it with latest or skip"
        )


@dataclass(frozen=True, slots=True)
class _Begun:
    at: Position
    next_due_ms: int | None
    finished: bool = False
    answers: tuple[Answer, ...] = ()


def _begin(
    timing: Timing, timetable: Timetable, at: Position, now_ms: int, *, strict: bool, is_new: bool = False
) -> _Begun:
    """Begin a timing after `at`. For a new job an instant that has just passed counts within its grace: clocks differ.
    An instant that an existing job is given belongs to what it was before: it may have its answer already."""
    coming = next_tick(timing, timetable, at)
    if coming is not None:
        return _Begun(at, coming)
    only_once = all(isinstance(entry, OnceEntry) for entry in timing.entries) and timing.max_ticks is None
    gone = timetable.prev_ms(now_ms + 1) if only_once else None
    if is_new and gone is not None and now_ms - gone <= timing.misfire.grace_ms:
        return _Begun(replace(at, cursor_ms=gone - 1), gone)
    if strict:
        what = "its only instant has passed" if gone is not None else "its bounds leave no tick"
        raise RefusedError(f"the schedule never fires after {iso(from_ms(now_ms))}: {what}")
    answers = () if gone is None or not is_new else (Answer(gone, gone, 1, "missed", "in_the_past"),)
    return _Begun(at, None, True, answers)


def _standing(job: Job, timing: Timing, shard: int, begun: _Begun) -> Standing:
    state = "finished" if begun.finished else job.state
    active = state == "active"
    return Standing(replace(job, state=state), timing, begun.at, shard, begun.next_due_ms if active else None)


def _gap(left: Left, cause: str, policy: str | None, noticed_ms: int | None) -> tuple[Gap, ...]:
    if left.undecided is None:
        return ()
    return (Gap(*left.undecided, cause, policy, noticed_ms),)  # type: ignore[arg-type]


def _amended(job: Job, now_ms: int, **fields: object) -> Job:
    return replace(job, revision=job.revision + 1, updated_ms=now_ms, **fields)  # type: ignore[arg-type]
