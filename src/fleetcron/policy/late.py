"""Ticks that were planned in time, and that nobody was there to queue when they were due. Pure.

Whoever restarts a node, or its database, finds the minute that was planned before. The misfire rule of the job holds
for it as for the ticks that were never planned: what is late is skipped, covered by the newest one, or caught up. A
tick that waits in a queue is not late in this sense: somebody was there, and it waits for its turn. Nor is one that was
late when it was planned: whoever planned it knew that, and decided that it is to run.
"""

from collections.abc import Sequence
from itertools import pairwise

from fleetcron.model.queued import Close, Late, Unqueued
from fleetcron.model.rules import MisfireRule
from fleetcron.model.states import RunState


def late(ticks: Sequence[Unqueued], rule: MisfireRule, now_ms: int) -> Late:
    """`ticks` are those of one job, in their order; some of them may be still to come."""
    missed = list(_missed(ticks, rule, now_ms))
    if not missed:
        return Late()
    if rule.policy == "skip":
        return Late([_left_out(each, at_ms, "nobody was there to start it") for each, at_ms in missed])
    fresh = [(each, at_ms) for each, at_ms in missed if each.due_ms >= now_ms - rule.window_ms]
    closes = [_left_out(each, at_ms, "older than its window") for each, at_ms in missed[: len(missed) - len(fresh)]]
    if rule.policy == "all":
        surplus = max(0, len(fresh) - rule.limit)
        closes += [_left_out(each, at_ms, "over its limit") for each, at_ms in fresh[:surplus]]
        kept = fresh[surplus:]
    else:
        kept = fresh[-1:]
        closes += [_covered(each, at_ms, kept[0][0].run_id) for each, at_ms in fresh[:-1]]
    return Late(closes, [each.run_id for each, _ in kept] if rule.lane == "catchup" else [])


def _missed(ticks: Sequence[Unqueued], rule: MisfireRule, now_ms: int) -> Sequence[tuple[Unqueued, int]]:
    """The late ones, and when each of them was missed: after its grace, which ends with the next tick."""
    ends = [min(rule.grace_ms, following.due_ms - each.due_ms) for each, following in pairwise(ticks)]
    spans = zip(ticks, [*ends, rule.grace_ms], strict=False)
    ends_ms = [(each, each.due_ms + grace_ms) for each, grace_ms in spans]
    return [(each, end_ms) for each, end_ms in ends_ms if each.planned_ms <= end_ms < now_ms]


def _left_out(tick: Unqueued, at_ms: int, why: str) -> Close:
    return Close(tick.run_id, RunState.SKIPPED, f"misfire: {why}", at_ms=at_ms)


def _covered(tick: Unqueued, at_ms: int, by: int) -> Close:
    reason = f"misfire: nobody was there to start it, and run {by} stands for it"
    return Close(tick.run_id, RunState.MERGED, reason, covered_by=by, at_ms=at_ms)
