"""One round of planning: read who is due, plan once for all that stand alike, write. A step; the loop is elsewhere."""

import asyncio
from collections.abc import Sequence, Set
from dataclasses import dataclass, replace

from fleetcron.model.shard import Held
from fleetcron.scheduler.plan import Plan, plan
from fleetcron.scheduler.tables import Never, Tables
from fleetcron.steps import step
from fleetcron.store.cursors import Cursors, Due, Group, Move
from fleetcron.store.written import Ok, Refused, Unknown

MOST_ROWS = 5_000  # in one transaction
_LIGHT = 2  # rows for a job; more of them are written apart, so that one heavy job does not make all batches small


@dataclass(frozen=True, slots=True)
class Round:
    """What a round did. `more` says that there is work left that could be done at once."""

    now_ms: int
    next_due_ms: int | None
    jobs: int = 0
    runs: int = 0
    conflicts: int = 0
    answered: int = 0
    refused: str | None = None
    unknown: str | None = None
    stuck: tuple[str, ...] = ()  # why some jobs are passed over from now on
    more: bool = False

    def __add__(self, other: "Round") -> "Round":
        """Two rounds on different shards, as one."""
        earliest = [each for each in (self.next_due_ms, other.next_due_ms) if each is not None]
        return Round(
            max(self.now_ms, other.now_ms),
            min(earliest, default=None),
            self.jobs + other.jobs,
            self.runs + other.runs,
            self.conflicts + other.conflicts,
            self.answered + other.answered,
            self.refused or other.refused,
            self.unknown or other.unknown,
            self.stuck + other.stuck,
            self.more or other.more,
        )


async def tick(
    cursors: Cursors, tables: Tables, held: Sequence[Held], *, lookahead_ms: int, rows: int = MOST_ROWS
) -> Round:
    """Plan the jobs of the held shards that are due within the lookahead, as many as one transaction takes."""
    due = await cursors.due(held, lookahead_ms, rows, tables.unplanned)
    again = tables.forgive(due.epoch)
    if not due.groups:
        return Round(due.now_ms, due.next_due_ms, more=again)
    step("tick.due")
    known = await tables.timetables(dict.fromkeys(group.timing_id for group in due.groups), due.epoch)
    moves: list[tuple[Move, int]] = []
    stuck: dict[str, None] = {}
    for number, group in enumerate(due.groups):
        if number % 8 == 7:  # heartbeats come first, and what a worker in this process has to start
            await asyncio.sleep(0)
        if group.timing_id not in known:
            stuck[f"its schedule or misfire rule (timing {group.timing_id}) was written by a newer release"] = None
            continue
        timing, timetable = known[group.timing_id]
        if isinstance(timetable, Never):
            tables.pass_over(group.timing_id, due.epoch)
            stuck[timetable.why] = None
            continue
        made = plan(timing, timetable, group.at, due.now_ms, lookahead_ms)
        moves.append((_move(group, made), made.rows))
    step("tick.planned")
    done = await _write(cursors, held, due, lookahead_ms, moves, rows, tables.unplanned)
    return replace(done, stuck=tuple(stuck), more=done.more or again or bool(stuck))  # those behind them come next


async def _write(
    cursors: Cursors,
    held: Sequence[Held],
    due: Due,
    lookahead_ms: int,
    moves: list[tuple[Move, int]],
    rows: int,
    without: Set[int],
) -> Round:
    jobs = runs = conflicts = answered = 0
    refused = unknown = None
    for batch in (
        [(move, size) for move, size in moves if size <= _LIGHT],
        [(move, size) for move, size in moves if size > _LIGHT],
    ):
        if not batch:
            continue
        most = max(1, rows // max(size for _, size in batch))
        written = await cursors.advance(
            held,
            [move for move, _ in batch],
            epoch=due.epoch,
            now_ms=due.now_ms,
            horizon_ms=due.now_ms + lookahead_ms,
            most=most,
            without=without,
        )
        step("tick.written")
        match written:
            case Ok(done):
                jobs, runs = jobs + done.jobs, runs + done.runs
                conflicts, answered = conflicts + done.conflicts, answered + done.answered
            case Refused(reason):
                refused = reason
            case Unknown(why):  # the next round finds what stands where, whatever became of this one
                unknown = why
    seen = sum(group.jobs for group in due.groups)
    more = refused is None and (jobs < seen or seen >= rows) and jobs > 0
    return Round(due.now_ms, due.next_due_ms, jobs, runs, conflicts, answered, refused, unknown, more=more)


def _move(group: Group, made: Plan) -> Move:
    return Move(group, made.to, made.next_due_ms, made.runs, made.answers, made.gap, made.late_to_ms, made.finished)
