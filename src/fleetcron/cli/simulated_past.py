"""What really happened, as a simulation plays it again: how long every attempt of a period took, and how it ended.

The codes of the faults are those that were written down, so that the same retry rule makes the same of them. What is
not written down is not played: what the other side asked for (Retry-After).
"""

import re
from collections.abc import Sequence
from itertools import zip_longest
from typing import Final

from fleetcron.cli.simulated_fleet import Fleet, was_cut
from fleetcron.model.outcome import Cancelled, Failed, Fault, Lost, Snoozed, TimedOut
from fleetcron.model.run import RunLine
from fleetcron.model.states import RunState
from fleetcron.simulate.durations import BY_OVERLAP, Lasting, Stopping
from fleetcron.store.attempts import PastAttempt
from fleetcron.store.history import Span
from fleetcron.store.store import Store

_SUCCESSOR: Final = re.compile(re.escape(BY_OVERLAP) + r"run (\d+)")
_PAGE: Final = 500
_BEYOND_MS: Final = 1_000  # of a period is who has not stopped in it
_SNOOZE_MS: Final = 60_000  # of one that is not over, and of which nobody knows when it will be


async def remember(store: Store, fleet: Fleet, from_ms: int, to_ms: int) -> int:
    """All runs of ticks in a period. The number of attempts."""
    timeouts = {each.seed: each.timeout_ms for each in fleet.definitions}
    looked, before = 0, None
    due: dict[int, int] = {}  # by run
    while True:
        span = Span(from_ms=from_ms, to_ms=to_ms, before_id=before)
        page = await store.history.runs(span, limit=_PAGE, later=False)
        for line in page:
            if line.run.kind == "manual":  # the instant at which somebody asked for it is no tick
                continue
            due[line.run.run_id] = line.run.run_after_ms
            successor = _SUCCESSOR.search(line.run.reason or line.cancel or "")
            asked_ms = None if successor is None else due.get(int(successor[1]))  # the younger one came before it
            attempts = played(line, await _attempts(store, line), to_ms, timeouts.get(line.job), asked_ms)
            looked += len(attempts)
            if attempts:
                fleet.past[line.job, line.run.scheduled_for_ms] = attempts
        if len(page) < _PAGE:
            return looked
        before = page[-1].run.run_id


async def _attempts(store: Store, line: RunLine) -> Sequence[PastAttempt]:
    run = line.run
    if run.attempt == 0 or run.started_ms is None:
        return []
    if run.attempt == 1 and run.state is RunState.SUCCEEDED and run.finished_ms is not None:  # most of them
        return [PastAttempt(1, "", run.started_ms, run.finished_ms, "succeeded")]
    return await store.past_attempts.of_run(run.run_id)


def played(
    line: RunLine,
    attempts: Sequence[PastAttempt],
    to_ms: int,
    timeout_ms: int | None,
    asked_ms: int | None = None,
) -> list[Lasting]:
    """The attempts of one run; the period ends at `to_ms`. `asked_ms`: when the next tick asked it to stop. Pure."""
    found = []
    for each, following in zip_longest(attempts, attempts[1:]):
        again_ms = line.next_ms if following is None else following.started_ms
        found.append(_played(each, to_ms, timeout_ms, again_ms, asked_ms))
    if found and line.run.state is RunState.CANCELLED and BY_OVERLAP not in (line.run.reason or ""):
        found[-1] = Lasting(found[-1].ms, Cancelled(line.run.reason or ""))  # by people, also between two attempts
    return found


def _played(
    attempt: PastAttempt, to_ms: int, timeout_ms: int | None, again_ms: int | None, asked_ms: int | None
) -> Lasting:
    ms, fault = attempt.lasted_ms, attempt.error or Fault(attempt.outcome or "")
    if ms is None or attempt.finished_ms is None:  # it still runs
        left = _stopping(attempt.started_ms, to_ms + _BEYOND_MS, asked_ms)
        return Lasting(max(0, to_ms - attempt.started_ms), None, left)
    match attempt.outcome:
        case "failed":
            return Lasting(ms, Failed(fault))
        case "timed_out":
            return Lasting(ms, TimedOut(fault))
        case "lost":
            # Its end is when somebody noticed, which may be hours later. It was within its timeout when it was lost.
            return Lasting(ms if timeout_ms is None else min(ms, timeout_ms * 9 // 10), Lost(fault))
        case "snoozed":
            asked_ms = _SNOOZE_MS if again_ms is None else max(0, again_ms - attempt.finished_ms)
            return Lasting(ms, Snoozed(asked_ms / 1000))
        case "cancelled" if was_cut(attempt):  # the simulated overlap policy decides again
            return Lasting(ms, None, _stopping(attempt.started_ms, attempt.finished_ms, asked_ms))
        case "cancelled":
            return Lasting(ms, Cancelled(fault.text))
    return Lasting(ms)


def _stopping(started_ms: int, finished_ms: int, asked_ms: int | None) -> Stopping | None:
    """Nobody has written down when it heard that it was asked: at the instant of the next tick, if there was a slot to
    start that one in, and never later than its own end."""
    if asked_ms is None:
        return None
    return Stopping(max(0, finished_ms - max(started_ms, asked_ms)), finished_ms - started_ms)
