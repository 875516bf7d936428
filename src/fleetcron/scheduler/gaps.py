"""One round of deciding the past: outages under `all`, paused windows, what edits left behind. A step.

Catch-up runs are created only as far as there is room for them, so that a long outage does not flood the store. But
what fills the room may stay there: runs wait for another job, whose own missed ticks wait for room; or for a handler
that nobody has; or for their next attempt. So now and then a job that has nothing on its way gets a few runs beside the
room. Then whoever waits for another job waits for one that goes on, and nobody's catch-up waits for that of others.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from fleetcron.model.shard import Held
from fleetcron.policy.misfire import decide, lane_of
from fleetcron.scheduler.tables import Tables
from fleetcron.scheduler.tick import MOST_ROWS
from fleetcron.steps import step
from fleetcron.store.gaps import Beside, Gaps, OpenGap, Settled
from fleetcron.store.written import Ok, Refused, Unknown

_PART: Final = 100  # a job has this part of the room for itself; of 1,000 runs 10


@dataclass(frozen=True, slots=True)
class GapRound:
    gaps: int = 0
    runs: int = 0
    conflicts: int = 0
    answered: int = 0
    refused: str | None = None
    unknown: str | None = None
    more: bool = False
    waiting: int = 0  # gaps that wait for room
    is_full: bool = False  # there is no room now; whoever runs what is caught up makes some
    last_id: int | None = None  # the last gap that was decided about


async def fill_gaps(
    gaps: Gaps, tables: Tables, held: Sequence[Held], *, room: int, rows: int = MOST_ROWS, beside: Beside | None = None
) -> GapRound:
    """Decide open gaps, as many as one transaction takes and there is room for; if there is none, those `beside`."""
    found = await gaps.open(held, most=max(1, rows // 5), room=room, beside=beside, without=tables.unreadable)
    is_full = room > 0 and found.room == 0
    if not found.gaps:
        return GapRound(is_full=is_full)
    left = min(found.room, rows)
    few = max(1, room // _PART) if beside is not None and is_full else 0
    by_epoch: dict[int, dict[int, None]] = {}
    for each in found.gaps:
        by_epoch.setdefault(each.almanac, {})[each.timing_id] = None
    known = {epoch: await tables.timetables(ids, epoch) for epoch, ids in by_epoch.items()}
    settled: list[Settled] = []
    written_rows = 0
    readable = [each for each in found.gaps if each.timing_id in known[each.almanac]]
    for each in readable:
        timing, timetable = known[each.almanac][each.timing_id]
        own = max(left, few if each.gap.trimmed else 0)
        if lane_of(timing, each.gap) == "live":  # the room is for the catch-up lane alone
            own = rows
        if own == 0 and each.gap.trimmed:
            continue  # it waits for room
        await asyncio.sleep(0)  # a worker in this process may have something to start
        made = decide(timing, timetable, each.gap, found.now_ms, room=own, kept=each.kept)
        if _is_nothing(each, made.rest, made.runs, made.answers):
            continue  # it waits for room
        settled.append(Settled(each, made.runs, made.answers, made.rest))
        left -= sum(run.lane == "catchup" for run in made.runs)
        written_rows += 1 + len(made.runs) + len(made.answers)
        if written_rows >= rows:
            break
    waiting = len(readable) - len(settled)
    # what a newer release has written waits for a node that can read it, and is left out from now on
    again = len(readable) < len(found.gaps)
    if not settled:
        return GapRound(waiting=waiting, is_full=is_full, more=again)
    step("gaps.decided")
    match await gaps.settle(held, settled, epoch=found.epoch, now_ms=found.now_ms):
        case Ok(done):
            more = again or (done.gaps > 0 and (waiting > 0 or any(s.rest for s in settled)))
            filled = GapRound(done.gaps, done.runs, done.conflicts, done.answered)
            return replace(filled, more=more, waiting=waiting, is_full=is_full, last_id=settled[-1].of.gap_id)
        case Refused(reason):
            return GapRound(refused=reason)
        case Unknown(why):
            return GapRound(unknown=why)


def _is_nothing(gap: OpenGap, rest: object, runs: Sequence[object], answers: Sequence[object]) -> bool:
    return rest is not None and not runs and not answers and gap.gap.trimmed
