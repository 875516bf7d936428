"""Stretches of the past that are not decided yet. They shrink from their beginning and vanish."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from fleetcron.events import Event
from fleetcron.model.answer import Answer, Forecast, Gap
from fleetcron.model.shard import Held
from fleetcron.steps import step
from fleetcron.store.cursors import answer_row, fence, forecast_row
from fleetcron.store.engine import Engine, Row, Script
from fleetcron.store.events import note
from fleetcron.store.rows import held_rows, ids, rows
from fleetcron.store.written import Refused, Written

_SHARE: Final = 4  # there is room when so much of it is free


@dataclass(frozen=True, slots=True)
class OpenGap:
    """A gap of a job, with the rules that held then: the revision, its timing and the almanac's epoch. `kept` are the
    ticks in it that have a run, which people cancelled ahead of its time: they are decided."""

    gap_id: int
    job_id: str
    revision: int
    timing_id: int
    almanac: int
    gap: Gap
    kept: tuple[int, ...] = ()


class Beside(NamedTuple):
    """Which jobs get something although there is no room: so many, those whose gaps come after a certain one first."""

    most: int
    after_id: int = 0


@dataclass(frozen=True, slots=True)
class OpenGaps:
    now_ms: int
    epoch: int
    gaps: tuple[OpenGap, ...]
    room: int  # for runs of the catch-up lane; those that are on their way are counted


@dataclass(frozen=True, slots=True)
class Settled:
    """What was decided about a gap; `rest` is what is left of it."""

    of: OpenGap
    runs: Sequence[Forecast]
    answers: Sequence[Answer]
    rest: Gap | None


@dataclass(frozen=True, slots=True)
class Filled:
    gaps: int
    runs: int
    conflicts: int
    answered: int


class Gaps:
    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    async def open(
        self,
        held: Sequence[Held],
        most: int,
        room: int,
        *,
        beside: Beside | None = None,
        without: Collection[int] = (),
    ) -> OpenGaps:
        """The gaps of these shards that are to be decided, the oldest first. `beside`: if there is no room, also some
        of jobs that have nothing to catch up on its way. `without` are timings that cannot be read here."""
        call = {"held": held_rows(held), "without": ids(without)}

        def script() -> Script[OpenGaps]:
            [facts] = yield "fleet_now", {}
            [busy] = yield "upcoming_catchup_count", {"most": room}
            left = room - busy["runs"]
            if left < room // _SHARE:  # to decide a gap costs the same for one of its ticks and for a hundred
                left = 0
            found = yield "gaps_open", {**call, "most": most, "room": left}
            if not left and beside is not None:
                found += yield "gaps_beside", {**call, **beside._asdict()}
            kept = (yield from _kept(found)) if found else {}
            gaps = tuple(_gap_of(row, kept.get(row["gap_id"], [])) for row in found)
            return OpenGaps(facts["now_ms"], facts["epoch"], gaps, max(0, left))

        return await self._engine.read(script)

    async def settle(
        self, held: Sequence[Held], settled: Sequence[Settled], *, epoch: int, now_ms: int
    ) -> Written[Filled]:
        """Write decisions about gaps, fenced. A gap that somebody else has shrunk or closed meanwhile is left alone."""

        def script() -> Script[Filled | Refused]:
            step("gaps.fence")
            refusal = yield from fence(held, epoch)
            if refusal is not None:
                return refusal
            step("gaps.write")
            closed = yield "gaps_close_if_unmoved", {"rows": rows(_seen(s) for s in settled if s.rest is None)}
            shrunk = yield (
                "gaps_shrink_if_unmoved",
                {
                    "rows": rows(
                        _seen(s) | {"rest_from_ms": s.rest.from_ms, "rest_to_ms": s.rest.to_ms}
                        for s in settled
                        if s.rest is not None
                    )
                },
            )
            mine = {row["gap_id"] for row in [*closed, *shrunk]}
            return (yield from _fill([s for s in settled if s.of.gap_id in mine], now_ms))

        return await self._engine.write(script)


def _fill(settled: Sequence[Settled], now_ms: int) -> Script[Filled]:
    wanted = [
        forecast_row(run)
        | {"job_id": s.of.job_id, "revision": s.of.revision, "almanac": s.of.almanac}
        | {"created_ms": now_ms, "kind": "tick"}
        for s in settled
        for run in s.runs
    ]
    [made] = yield "runs_insert_if_absent", {"rows": rows(wanted)}
    if made["runs"]:
        yield "notify", {"topic": "work"}
    answers = [
        answer_row(answer)
        | {"job_id": s.of.job_id, "revision": s.of.revision, "almanac": s.of.almanac, "noted_ms": now_ms}
        for s in settled
        for answer in s.answers
    ]
    yield "ledger_insert", {"rows": rows(answers)}
    conflicts = len(wanted) - made["runs"]
    if conflicts:
        yield from note(Event("run_conflict", count=conflicts))
    return Filled(len(settled), made["runs"], conflicts, sum(answer["ticks"] for answer in answers))


def _seen(settled: Settled) -> dict[str, object]:
    gap = settled.of.gap
    return {
        "gap_id": settled.of.gap_id,
        "from_ms": gap.from_ms,
        "trimmed": int(gap.trimmed),
        "noticed_ms": gap.noticed_ms,  # another one, if the job was ended meanwhile
    }


def _kept(found: Sequence[Row]) -> Script[dict[int, list[int]]]:
    text = rows(
        {"gap_id": row["gap_id"], "job_id": str(row["job_id"]), "from_ms": row["from_ms"], "to_ms": row["to_ms"]}
        for row in found
    )
    kept: dict[int, list[int]] = {}
    for row in (yield "runs_kept_in_gaps", {"rows": text}):
        kept.setdefault(row["gap_id"], []).append(row["scheduled_for_ms"])
    return kept


def _gap_of(row: Row, kept: Sequence[int]) -> OpenGap:
    gap = Gap(row["from_ms"], row["to_ms"], row["cause"], row["policy"], row["noticed_ms"], bool(row["trimmed"]))
    return OpenGap(
        row["gap_id"], str(row["job_id"]), row["revision"], row["timing_id"], row["almanac"], gap, tuple(kept)
    )
