"""Ticks that were planned in time, and that nobody was there to queue when they were due. Pure.

Whoever restarts a node, or its database, finds the minute that was planned before. The misfire rule of the job holds
for it as for the ticks that were never planned: what is late is skipped, covered by the newest one, or caught up. A
tick that waits in a queue is not late in this sense: somebody was there, and it waits for its turn. Nor is one that was
late when it was planned: whoever planned it knew that, and decided that it is to run.

After a day without workers a job has more of them than should be read and answered at once. So its first ones can be
decided alone, with the newest ones in view: these say which run stands for all the others, and that there are enough
others. What could still hang on those that nobody has looked at is left open.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import TypeAlias

from fleetcron.model.queued import Close, Late, Unqueued
from fleetcron.model.rules import MisfireRule
from fleetcron.model.states import RunState

_Missed: TypeAlias = tuple[Unqueued, int]  # and when it was missed


def late(ticks: Sequence[Unqueued], rule: MisfireRule, now_ms: int, newest: Sequence[Unqueued] | None = None) -> Late:
    """`ticks` are those of one job that are due, in their order. With `newest` they are only the first of them: any
    number may lie between them and the newest, which may be none."""
    missed, behind = _missed(ticks, rule, now_ms), _missed(newest or (), rule, now_ms)
    if newest is not None:
        missed = [each for each in missed if each[0] is not ticks[-1]]  # its grace ends with a tick that is not known
    elif not missed:
        return Late()
    kept = _kept([each.run_id for each, _ in missed + behind if each.due_ms >= now_ms - rule.window_ms], rule)
    runs = frozenset(kept)
    if newest is None:
        closes = [_close(each, rule, now_ms, kept) for each in missed if each[0].run_id not in runs]
        return Late(closes, kept if rule.lane == "catchup" else [])
    # Whoever would run as far as is known may have to give way to others. From there on all is left open: what follows
    # a tick ends its grace.
    decided = next((number for number, each in enumerate(ticks) if each.run_id in runs), len(ticks) - 1)
    first = {each.run_id for each in ticks[:decided]}
    return Late([_close(each, rule, now_ms, kept) for each in missed if each[0].run_id in first], [], decided)


def _missed(ticks: Sequence[Unqueued], rule: MisfireRule, now_ms: int) -> list[_Missed]:
    """The late ones, and when each of them was missed: after its grace, which ends with the next tick."""
    ends = [min(rule.grace_ms, following.due_ms - each.due_ms) for each, following in pairwise(ticks)]
    spans = zip(ticks, [*ends, rule.grace_ms], strict=False)
    ends_ms = [(each, each.due_ms + grace_ms) for each, grace_ms in spans]
    return [(each, end_ms) for each, end_ms in ends_ms if each.planned_ms <= end_ms < now_ms]


def _kept(fresh: Sequence[int], rule: MisfireRule) -> Sequence[int]:
    """Which of them are run."""
    match rule.policy:
        case "skip":
            return []
        case "latest":
            return fresh[-1:]
        case "all":
            return fresh[-rule.limit :]


def _close(missed: _Missed, rule: MisfireRule, now_ms: int, kept: Sequence[int]) -> Close:
    tick, at_ms = missed
    if rule.policy == "skip":
        return _left_out(tick, at_ms, "nobody was there to start it")
    if tick.due_ms < now_ms - rule.window_ms:
        return _left_out(tick, at_ms, "older than its window")
    return _left_out(tick, at_ms, "over its limit") if rule.policy == "all" else _covered(tick, at_ms, kept[-1])


def _left_out(tick: Unqueued, at_ms: int, why: str) -> Close:
    return Close(tick.run_id, RunState.SKIPPED, f"misfire: {why}", at_ms=at_ms)


def _covered(tick: Unqueued, at_ms: int, by: int) -> Close:
    reason = f"misfire: nobody was there to start it, and run {by} stands for it"
    return Close(tick.run_id, RunState.MERGED, reason, covered_by=by, at_ms=at_ms)
