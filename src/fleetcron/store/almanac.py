"""Zone tables and calendars in the database: read by epoch, changed only together with the jobs that they move."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from fleetcron.events import Event
from fleetcron.model.almanac import Part
from fleetcron.model.standing import Position
from fleetcron.model.states import JobState
from fleetcron.steps import step
from fleetcron.store.engine import Engine, Row, Script
from fleetcron.store.events import note_all
from fleetcron.store.rows import rows
from fleetcron.store.written import Refused, Written


@dataclass(frozen=True, slots=True)
class Table:
    """The content of a zone or calendar. `release` is the release of the zone data; empty for calendars."""

    part: Part
    hash: str
    release: str
    body: str
    since_ms: int = field(default=0, compare=False)  # it holds after this instant; 0 if the fleet has not met it


@dataclass(frozen=True, slots=True)
class Standpoint:
    """All jobs of one timing at one position, in one state."""

    timing_id: int
    at: Position
    state: JobState
    next_due_ms: int | None
    jobs: int


@dataclass(frozen=True, slots=True)
class Affected:
    """What a change of tables touches: the timings that ask them, and where their jobs stand."""

    now_ms: int
    epoch: int
    timings: dict[int, str]
    standpoints: Sequence[Standpoint]


@dataclass(frozen=True, slots=True)
class Rewind:
    """Jobs stand at the instant of the change again, under the new tables."""

    standpoint: Standpoint
    to_ticks_used: int
    next_due_ms: int | None
    undecided: tuple[int, int] | None
    problem: str | None = None


@dataclass(frozen=True, slots=True)
class Adopted:
    epoch: int
    jobs: int
    withdrawn: int
    stuck: int = 0  # jobs that have no tick left


class AlmanacTables:
    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    async def read(self, parts: Iterable[Part], epoch: int) -> list[Table]:
        """What held at an epoch; what the fleet has not met is left out."""
        text = _part_rows(parts)

        def script() -> Script[list[Table]]:
            return [_table(row) for row in (yield "almanac_read", {"rows": text, "epoch": epoch})]

        return await self._engine.read(script)

    async def all(self, kind: str) -> tuple[int, list[Table]]:
        """The epoch, and every zone or calendar that the fleet knows."""

        def script() -> Script[tuple[int, list[Table]]]:
            [facts] = yield "fleet_now", {}
            found = yield "almanac_list", {"kind": kind, "epoch": facts["epoch"]}
            return facts["epoch"], [_table(row) for row in found]

        return await self._engine.read(script)

    async def timings(self, ids: Iterable[int]) -> dict[int, str]:
        text = "[" + ",".join(str(each) for each in ids) + "]"

        def script() -> Script[dict[int, str]]:
            return {row["timing_id"]: row["body"] for row in (yield "timings_read", {"ids": text})}

        return await self._engine.read(script)

    async def job_of(self, timing_id: int) -> str:
        """The first job of a timing, to name it; `?` if it is gone."""

        def script() -> Script[str]:
            found = yield "jobs_of_timing", {"timing_id": timing_id}
            return f"{found[0]['name']} of {found[0]['tenant']}" if found else "?"

        return await self._engine.read(script)

    async def affected(self, parts: Iterable[Part]) -> Affected:
        """What a change of these tables would touch, to prepare for it."""
        text = _part_rows(parts)

        def script() -> Script[Affected]:
            [facts] = yield "fleet_now", {}
            return (yield from _affected(text, facts["now_ms"], facts["epoch"]))

        return await self._engine.read(script)

    async def adopt(
        self,
        tables: Sequence[Table],
        asked: Sequence[Part],
        decide: Callable[[Affected], Sequence[Rewind]],
        *,
        epoch: int,
        events: Sequence[Event],
    ) -> Written[Adopted]:
        """Begin a new epoch with these tables, and rewind the jobs that they move, in one transaction.

        `asked` are the parts by which the moved jobs are found: these tables, and calendars that stand on them.
        `decide` is pure; it is asked inside, while nobody plans, so that it sees exactly what is changed. Refused if
        somebody else has begun a new epoch first.
        """
        text = _part_rows(asked)

        def script() -> Script[Adopted | Refused]:
            step("adopt.begin")
            [held] = yield "almanac_lock", {}
            if held["epoch"] != epoch:
                return Refused("the zone tables or calendars have changed")
            yield "almanac_bodies_insert", {"rows": rows({"hash": t.hash, "body": t.body} for t in tables)}
            [facts] = yield "fleet_now", {}
            affected = yield from _affected(text, facts["now_ms"], epoch)
            rewinds = decide(affected)
            groups = rows(_rewind_row(g, rewind, affected.now_ms) for g, rewind in enumerate(rewinds))
            [done] = yield "cursors_rewind", {"groups": groups, "at_ms": affected.now_ms, "epoch": epoch}
            moved = rows({"timing_id": key} for key in sorted({each.standpoint.timing_id for each in rewinds}))
            if rewinds and (yield "runs_overtaken", {"rows": moved, "at_ms": affected.now_ms}):
                raise _Queued
            [begun] = yield "almanac_advance", {}
            inserted = {"rows": _table_rows(tables), "epoch": begun["epoch"], "at_ms": affected.now_ms}
            yield "almanac_insert", inserted
            yield from note_all(events)
            if done["withdrawn"]:
                yield from note_all([Event("runs_withdrawn", count=done["withdrawn"], detail={"by": "tables"})])
            stuck = [r for r in rewinds if r.problem]
            yield from note_all(
                Event("job_stuck", count=r.standpoint.jobs, detail={"timing": r.standpoint.timing_id, "why": r.problem})
                for r in stuck
            )
            yield "notify", {"topic": "jobs"}
            step("adopt.written")
            return Adopted(begun["epoch"], done["jobs"], done["withdrawn"], sum(r.standpoint.jobs for r in stuck))

        try:
            return await self._engine.write(script)
        except _Queued:
            return Refused("a run was queued that is later than the change")


class _Queued(Exception):
    """Roll back: a run that cannot be withdrawn any more stands, so the new tables have to hold from after it on."""


def add_tables(tables: Sequence[Table], epoch: int) -> Script[Refused | None]:
    """Part of another verb: let the fleet know zones that it has not met. Refused if it has met them otherwise."""
    if not tables:
        return None
    yield "almanac_bodies_insert", {"rows": rows({"hash": t.hash, "body": t.body} for t in tables)}
    yield "almanac_insert_if_absent", {"rows": _table_rows(tables), "epoch": epoch}
    found = yield "almanac_read", {"rows": _part_rows(t.part for t in tables), "epoch": epoch}
    known = {(row["kind"], row["tenant"], row["name"]): row["hash"] for row in found}
    if any(known.get((t.part.kind, t.part.tenant, t.part.name)) != t.hash for t in tables):
        return Refused("another node has brought another table of a zone")
    return None


def _affected(text: str, now_ms: int, epoch: int) -> Script[Affected]:
    """New tables hold from now on, but never before what cannot be taken back: a run that a worker has claimed a moment
    early, the tables before them, and, if the database's clock went back, what was decided before it did."""
    timings = yield "timings_using", {"rows": text}
    ids = rows({"timing_id": row["timing_id"]} for row in timings)
    [last] = yield "almanac_settled", {"rows": ids, "now_ms": now_ms}
    now_ms = max(now_ms, last["settled_ms"] or 0)
    found = yield "cursors_standing", {"rows": ids}
    standpoints = [
        Standpoint(
            row["timing_id"],
            Position(row["cursor_ms"], row["ticks_used"]),
            row["state"],
            row["next_due_ms"],
            row["jobs"],
        )
        for row in found
    ]
    return Affected(now_ms, epoch, {row["timing_id"]: row["body"] for row in timings}, standpoints)


def _rewind_row(g: int, rewind: Rewind, now_ms: int) -> dict[str, Any]:
    standpoint = rewind.standpoint
    undecided = rewind.undecided or (None, None)
    return {
        "g": g,
        "timing_id": standpoint.timing_id,
        "cursor_ms": standpoint.at.cursor_ms,
        "ticks_used": standpoint.at.ticks_used,
        "state": standpoint.state,
        "to_ticks_used": rewind.to_ticks_used,
        "next_due_ms": rewind.next_due_ms,
        "gap_from_ms": undecided[0],
        "gap_to_ms": undecided[1],
        "noticed_ms": None if standpoint.state == "paused" else now_ms,
        "problem": rewind.problem,
    }


def _part_rows(parts: Iterable[Part]) -> str:
    return rows({"kind": part.kind, "tenant": part.tenant, "name": part.name} for part in parts)


def _table_rows(tables: Iterable[Table]) -> str:
    return rows(
        {"kind": t.part.kind, "tenant": t.part.tenant, "name": t.part.name, "hash": t.hash, "release": t.release}
        for t in tables
    )


def _table(row: Row) -> Table:
    part = Part(row["kind"], row["tenant"], row["name"])
    return Table(part, row["hash"], row["release"], row["body"], row["noted_ms"])
