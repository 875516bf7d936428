"""Where jobs stand, and the one transaction that moves them on."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from fleetcron.events import Event
from fleetcron.model.answer import Answer, Forecast, Gap
from fleetcron.model.shard import Held
from fleetcron.model.standing import Position
from fleetcron.steps import step
from fleetcron.store.engine import Engine, Row, Script
from fleetcron.store.events import note
from fleetcron.store.rows import held_rows, ids, rows
from fleetcron.store.written import Refused, Written

# Workers look at what is planned every few seconds (`worker.poll` may be 8 s). Whoever plans for sooner tells them.
SOON_MS: Final = 10_000


@dataclass(frozen=True, slots=True)
class Group:
    """All due jobs of one timing that stand at the same position."""

    timing_id: int
    at: Position
    jobs: int


@dataclass(frozen=True, slots=True)
class Due:
    now_ms: int
    epoch: int
    groups: tuple[Group, ...]
    next_due_ms: int | None  # of all jobs of these shards, due ones included; but for those left out


@dataclass(frozen=True, slots=True)
class Move:
    """What to write for every job of a group. What is said about ticks up to `late_to_ms` holds for those that have no
    run there: who has one, because people cancelled it ahead of its time, gets a gap instead."""

    group: Group
    to: Position
    next_due_ms: int | None
    runs: Sequence[Forecast] = ()
    answers: Sequence[Answer] = ()
    gap: Gap | None = None
    late_to_ms: int | None = None
    finished: bool = False


@dataclass(frozen=True, slots=True)
class Advanced:
    """What was written. A conflict is a run that existed already, and not because people have cancelled or replayed it
    ahead of its time: such a one is the answer of its tick, whatever is changed around it."""

    jobs: int
    runs: int
    conflicts: int
    answered: int


class Cursors:
    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    async def due(self, held: Sequence[Held], lookahead_ms: int, most: int, without: Collection[int] = ()) -> Due:
        """The jobs of these shards that are due within the lookahead, about `most` of them, the oldest of each.
        `without` are timings that cannot be planned here: they stay the oldest, and would leave no room for others."""
        call = {"held": held_rows(held), "without": ids(without)}

        def script() -> Script[Due]:
            [facts] = yield "fleet_now", {}
            now_ms = facts["now_ms"]
            horizon_ms, per_shard = now_ms + lookahead_ms, -(-most // len(held))
            found = yield "cursors_due", {**call, "horizon_ms": horizon_ms, "per_shard": per_shard}
            [first] = yield "cursors_next", call
            groups = tuple(
                Group(row["timing_id"], Position(row["cursor_ms"], row["ticks_used"]), row["jobs"]) for row in found
            )
            return Due(now_ms, facts["epoch"], groups, first["next_due_ms"])

        return await self._engine.read(script)

    async def advance(
        self,
        held: Sequence[Held],
        moves: Sequence[Move],
        *,
        epoch: int,
        now_ms: int,
        horizon_ms: int,
        most: int,
        without: Collection[int] = (),
    ) -> Written[Advanced]:
        """Write plans, fenced by the terms and the epoch they were made under.

        Only jobs that still stand where their plan began are moved, about `most` of the due ones, as `due` finds them
        (`without` some timings); the others are found again by the next round. Safe to repeat: whoever was moved no
        longer stands there.
        """
        call = _advance_parameters(held, moves) | {
            "epoch": epoch, "now_ms": now_ms, "horizon_ms": horizon_ms, "per_shard": -(-most // len(held)),
            "without": ids(without),
        }  # fmt: skip
        soonest = min((run.run_after_ms for move in moves for run in move.runs), default=0)

        def script() -> Script[Advanced | Refused]:
            step("advance.fence")
            refusal = yield from fence(held, epoch)
            if refusal is not None:
                return refusal
            step("advance.write")
            [done] = yield "cursors_advance_if_unmoved", call
            conflicts = done["wanted"] - done["runs"] - done["kept"]
            if conflicts:
                yield from note(Event("run_conflict", count=conflicts))
            if done["runs"] and soonest <= now_ms + SOON_MS:
                yield "notify", {"topic": "work"}
            return Advanced(done["jobs"], done["runs"], conflicts, int(done["answered"]))

        return await self._engine.write(script)


def fence(held: Sequence[Held], epoch: int) -> Script[Refused | None]:
    """Part of a script: None if every shard is still held under the writer's term, and the epoch is valid."""
    found: list[Row] = yield "shards_fence", {"held": held_rows(held)}
    if len(found) == len(held) and all(row["epoch"] == epoch for row in found):
        return None
    lost = [h for h in held if not any((r["region"], r["shard"]) == (h.region, h.shard) for r in found)]
    detail: dict[str, Any] = {"lost": [[h.region, h.shard, h.term] for h in lost], "epoch": epoch}
    yield from note(Event("plan_refused", node_id=held[0].owner if held else None, detail=detail))
    return Refused("the shard has another owner" if lost else "the zone tables or calendars have changed")


def _advance_parameters(held: Sequence[Held], moves: Sequence[Move]) -> dict[str, Any]:
    return {
        "held": held_rows(held),
        "plans": rows(_plan_row(g, move) for g, move in enumerate(moves)),
        "ticks": rows(forecast_row(run) | {"g": g} for g, move in enumerate(moves) for run in move.runs),
        "answers": rows(answer_row(answer) | {"g": g} for g, move in enumerate(moves) for answer in move.answers),
        "gaps": rows(
            {"g": g, "from_ms": move.gap.from_ms, "to_ms": move.gap.to_ms, "cause": move.gap.cause}
            for g, move in enumerate(moves)
            if move.gap
        ),
    }


def _plan_row(g: int, move: Move) -> Mapping[str, Any]:
    return {
        "g": g,
        "timing_id": move.group.timing_id,
        "cursor_ms": move.group.at.cursor_ms,
        "ticks_used": move.group.at.ticks_used,
        "to_cursor_ms": move.to.cursor_ms,
        "to_ticks_used": move.to.ticks_used,
        "next_due_ms": move.next_due_ms,
        "late_to_ms": move.late_to_ms,
        "finished": int(move.finished),
    }


def forecast_row(run: Forecast) -> dict[str, Any]:
    window = run.window_ms or (None, None)
    return {
        "scheduled_for_ms": run.scheduled_for_ms,
        "run_after_ms": run.run_after_ms,
        "lane": run.lane,
        "covers": run.covers,
        "window_from_ms": window[0],
        "window_to_ms": window[1],
    }


def answer_row(answer: Answer) -> dict[str, Any]:
    return {
        "from_ms": answer.from_ms,
        "to_ms": answer.to_ms,
        "ticks": answer.ticks,
        "answer": answer.answer,
        "reason": answer.reason,
        "covered_by_ms": answer.covered_by_ms,
    }
