"""What a tick does that is due while its job still runs. Pure, and decided by facts: the same whoever asks, and when.

A live tick overlaps if a live run before it was not final at the tick's due instant. Before that instant nothing is
decided: the run is parked and looked at again when it is due, or when the one before it ends. Catch-up, backfill,
replayed and manual runs are never skipped and cancel nothing: they wait for the key.

An answer carries the instant at which facts decided it, not the one at which somebody looked: a tick that was skipped
at its due instant does not stand in the way of the next one, even if both are looked at an hour later.

The key of a job changes when somebody edits it, and a run holds the key that it was claimed with until it is final.
Such a run is in the way of its job all the same: the others wait at a gate of their own, which the end of that run
opens.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Final, NamedTuple

from fleetcron.model.queued import Close, Facts, Holder, Park, Previous, Queued, Waiting
from fleetcron.model.states import RunState

LOOK_FOR_FORMER_MS: Final = 30_000  # the end of the run lets them go on; a program before this gate did not know of it


class Overlapped(NamedTuple):
    """What becomes of a run that may have to wait for others of its job. All empty: it may start if the key is free."""

    park: Park | None = None
    cancel: int | None = None  # the held run that it asks to stop
    close: Close | None = None  # the run that it ends at once: it rests between two attempts
    undecided: bool = False  # what it depends on was decided a moment ago: look again


FREE = Overlapped()
UNDECIDED = Overlapped(undecided=True)


def answers(
    run: Queued, facts: Facts, left_out: Mapping[int, int], undecided: Collection[int]
) -> Sequence[Close] | None:
    """Runs of its job that will never start, itself included. They hang on nothing that can still change.

    `left_out` are runs that this claim has closed, with their instants; `undecided` are runs of which it cannot be
    said yet. None: nor of this one.
    """
    if run.claim_key is None:
        return ()
    if run.leased:
        return _replaced(run, facts)
    match run.overlap:
        case "skip":
            return _skipped(run, facts, left_out, undecided)
        case "collapse" | "cancel_previous":
            return _succeeded(run, facts)
        case "queue" | "allow":
            return ()
    return ()  # type: ignore[unreachable]  # a newer release knows; it waits, see below


def behind(
    run: Queued, facts: Facts, holders: Sequence[Holder], gone: Collection[int], former: Sequence[Holder] = ()
) -> Overlapped:
    """`holders` are those of its key now, `former` are runs of its job under another key; `gone` are runs that left the
    queue while this claim was decided."""
    if run.claim_key is None or run.leased:
        return FREE
    match run.overlap:
        case "skip":
            return _until_it_is_known(run, facts)
        case "queue":
            return _in_order(run, facts, holders, gone)
        case "collapse":
            held = bool(holders or former)
            return _before_it_is_due(run, facts, _is_tick(run) and (held or _earlier(run, facts, gone)))
        case "cancel_previous":
            return _instead_of_former(run, facts, former) or _instead(run, facts, holders, gone)
        case "allow":
            return FREE
    # A newer release has written its rule: it leaves its place to others, and whoever comes first looks at it again.
    return Overlapped(park=behind_former(run, facts))  # type: ignore[unreachable]


class _NotKnown(Exception):
    """It hangs on what this claim has just closed, or cannot say yet."""


def _skipped(
    run: Queued, facts: Facts, left_out: Mapping[int, int], undecided: Collection[int]
) -> Sequence[Close] | None:
    if not run.is_live_tick or facts.now_ms <= run.due_ms:
        return ()
    try:
        before = _met(run.run_id, run.due_ms, facts, left_out, undecided)
    except _NotKnown:
        return None
    if before is None or _was_final(before, run.due_ms):
        return ()
    reason = f"overlap: run {before.run_id} {'was not finished' if before.has_started else 'had not started'}"
    return (Close(run.run_id, RunState.SKIPPED, reason, at_ms=run.due_ms),)


def _met(
    run_id: int, due_ms: int, facts: Facts, left_out: Mapping[int, int], undecided: Collection[int]
) -> Previous | None:
    """The live run before it that counts at its due instant: one that was left out by then does not, nor one that is
    going to be."""
    before = facts.previous.get(run_id)
    is_first = True  # which was not left out: the database has looked
    while before is not None:
        if before.run_id in undecided:
            raise _NotKnown
        if left_out.get(before.run_id, due_ms + 1) > due_ms:
            is_left_out = not is_first and before.is_left_out_by(due_ms)
            is_known = before.run_id in facts.previous  # what is before that one
            if is_left_out and not is_known and left_out:
                raise _NotKnown
            if not is_known or not (is_left_out or _will_be_skipped(before, facts, left_out, undecided)):
                return before
        before, is_first = facts.previous.get(before.run_id), False
    return None


def _will_be_skipped(waits: Previous, facts: Facts, left_out: Mapping[int, int], undecided: Collection[int]) -> bool:
    """A run behind a gate is not looked at, and has its answer all the same: it overlapped when it was due, or not."""
    at_ms = waits.skips_at_ms
    if at_ms is None or waits.has_started or facts.now_ms <= at_ms:
        return False
    before = _met(waits.run_id, at_ms, facts, left_out, undecided)
    return before is not None and not _was_final(before, at_ms)


def _was_final(before: Previous, at_ms: int) -> bool:
    return before.finished_ms is not None and before.finished_ms <= at_ms


def _succeeded(run: Queued, facts: Facts) -> Sequence[Close]:
    """Of the ticks that wait only the newest that is due stays. Each gives way when the next one is due, unless it was
    too late by then. The newest takes the place of the oldest in the queue: with a place of its own it would stand
    behind all that came before it, and in a pool that never empties one after the other would give way and none run."""
    due = [each for each in _of_its_kind(run, facts) if each.due_ms <= facts.now_ms]
    closes: list[Close] = []
    stands: int | None = None  # the run that the one behind gives way to
    for each, following in zip(reversed(due[:-1]), reversed(due[1:]), strict=True):
        if each.deadline_ms is not None and each.deadline_ms < following.due_ms:
            stands = None  # it is too late by itself
            continue
        stands = following.run_id if stands is None else stands
        heir = due[-1].run_id if each.lane == due[-1].lane else None  # each lane has an order of its own
        closes.append(_giving_way(run, each, following, stands)._replace(heir=heir))
    return closes


def _replaced(run: Queued, facts: Facts) -> Sequence[Close]:
    """A run that rests between two attempts is not tried again when the tick that cancels it is there."""
    if run.overlap != "cancel_previous" or run.kind != "tick" or run.lane != "live" or run.round > 0:
        return ()
    for each in facts.waiting.get(run.job_id, ()):
        if each.lane == "live" and each.scheduled_for_ms > run.scheduled_for_ms and each.due_ms <= facts.now_ms:
            return (_cancelled(run.run_id, each.run_id),)
    return ()


def _cancelled(run_id: int, by: int, at_ms: int | None = None) -> Close:
    return Close(run_id, RunState.CANCELLED, f"cancel_previous: run {by} takes its place", at_ms=at_ms)


def _giving_way(run: Queued, each: Waiting, following: Waiting, stands: int) -> Close:
    if run.overlap == "collapse":
        reason = f"collapse: run {stands} stands for it"
        at_ms = following.due_ms if each.lane == "live" else None  # what is caught up comes long after that
        return Close(each.run_id, RunState.MERGED, reason, covered_by=stands, at_ms=at_ms)
    return _cancelled(each.run_id, following.run_id, following.due_ms)


def _of_its_kind(run: Queued, facts: Facts) -> Sequence[Waiting]:
    """Whom it can give way to, or that can give way to it, in the order of their ticks."""
    if not _is_tick(run):
        return ()
    all_ = facts.waiting.get(run.job_id, ())
    if run.overlap == "collapse":
        return all_
    return [each for each in all_ if each.lane == "live"] if run.is_live_tick else ()


def _is_tick(run: Queued) -> bool:
    return run.kind == "tick" and run.is_fresh


def _earlier(run: Queued, facts: Facts, gone: Collection[int]) -> bool:
    of_its_kind = [each.run_id for each in _of_its_kind(run, facts)]
    before = of_its_kind[: of_its_kind.index(run.run_id)] if run.run_id in of_its_kind else []
    return any(each not in gone for each in before)


def _before_it_is_due(run: Queued, facts: Facts, others: bool) -> Overlapped:
    """Nothing is decided before it is due, so it is not claimed early past others."""
    if not others or facts.now_ms >= run.due_ms:
        return FREE
    return Overlapped(park=_at_the_key(run, run.due_ms))


def _until_it_is_known(run: Queued, facts: Facts) -> Overlapped:
    """The one before it may still end at the very instant at which it is due: that is no overlap."""
    before = facts.previous.get(run.run_id)
    if before is None or before.finished_ms is not None or facts.now_ms > run.due_ms or not run.is_live_tick:
        return FREE
    return Overlapped(park=_at_the_key(run, run.due_ms + 1))


def _in_order(run: Queued, facts: Facts, holders: Sequence[Holder], gone: Collection[int]) -> Overlapped:
    earlier = facts.earlier.get(run.run_id)
    if earlier is None:
        return FREE
    if earlier not in gone:
        return Overlapped(park=_at_the_key(run))
    is_held = any(each.run_id == earlier for each in holders)
    return FREE if is_held else UNDECIDED  # there may be another one behind the one that was closed


def _instead(run: Queued, facts: Facts, holders: Sequence[Holder], gone: Collection[int]) -> Overlapped:
    if not run.is_live_tick:
        return FREE
    held = next((each for each in holders if each.job_id == run.job_id and each.is_live_tick), None)
    if facts.now_ms < run.due_ms:
        return _before_it_is_due(run, facts, held is not None or _earlier(run, facts, gone))
    if held is None:
        return FREE
    if _is_newer(held, run):
        return _giving_way_to(run, facts, held, _at_the_key(run, held.due_ms))
    if held.node_id is None:
        return Overlapped(close=_cancelled(held.run_id, run.run_id))
    return Overlapped(park=_at_the_key(run), cancel=held.run_id)


def _instead_of_former(run: Queued, facts: Facts, former: Sequence[Holder]) -> Overlapped | None:
    held = next((each for each in former if each.is_live_tick), None)
    if held is None or not run.is_live_tick:
        return None
    if facts.now_ms < run.due_ms:
        return _before_it_is_due(run, facts, others=True)
    if _is_newer(held, run):
        return _giving_way_to(run, facts, held, behind_former(run, facts))
    if held.node_id is None:
        return Overlapped(close=_cancelled(held.run_id, run.run_id))
    return Overlapped(park=behind_former(run, facts), cancel=held.run_id)


def _is_newer(held: Holder, run: Queued) -> bool:
    return held.scheduled_for_ms > run.scheduled_for_ms


def _giving_way_to(run: Queued, facts: Facts, held: Holder, until: Park) -> Overlapped:
    """A tick may come after a newer one: a stretch that an edit has left undecided is decided when the ticks after it
    are planned. It would have been asked to stop when the newer one was due, and stops nobody. One that was claimed
    early has not begun before its instant."""
    if held.node_id is not None and facts.now_ms < held.due_ms:
        return Overlapped(park=until)
    return Overlapped(close=_cancelled(run.run_id, held.run_id))


def behind_former(run: Queued, facts: Facts) -> Park:
    return Park(run.run_id, "former", run.job_id, facts.now_ms + LOOK_FOR_FORMER_MS)


def _at_the_key(run: Queued, look_ms: int | None = None) -> Park:
    assert run.claim_key is not None
    return Park(run.run_id, "key", run.claim_key, look_ms)
