"""What became of ticks, to be read: runs and ledger lines, and what left the normal path."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fleetcron.model.answer import Answer
from fleetcron.model.run import Run
from fleetcron.model.states import RunState
from fleetcron.store.engine import Engine, Row, Script


@dataclass(frozen=True, slots=True)
class Span:
    """Which ticks are meant: of one job or of a tenant, in [from, to), on one page."""

    tenant: str | None = None
    name: str | None = None
    from_ms: int | None = None
    to_ms: int | None = None
    before_id: int | None = None  # the last id of the page before


@dataclass(frozen=True, slots=True)
class RunLine:
    tenant: str
    name: str
    run: Run


@dataclass(frozen=True, slots=True)
class LedgerLine:
    entry_id: int
    tenant: str
    name: str
    job_id: str
    answer: Answer
    revision: int
    almanac: int
    noted_ms: int


@dataclass(frozen=True, slots=True)
class EventLine:
    """An event with the name of its job, if it has one. Its kind may be one that only a newer program knows."""

    event_id: int
    at_ms: int
    kind: str
    count: int
    tenant: str | None
    name: str | None
    node_id: str | None
    actor: str | None
    detail: Mapping[str, Any]


class History:
    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    async def runs(self, span: Span, *, state: str | None = None, limit: int = 100) -> Sequence[RunLine]:
        """The newest first."""

        def script() -> Script[list[RunLine]]:
            found = yield "runs_list", _parameters(span) | {"state": state, "most": limit}
            return [RunLine(row["tenant"], row["name"], _run(row)) for row in found]

        return await self._engine.read(script)

    async def ledger(self, span: Span, *, answer: str | None = None, limit: int = 100) -> Sequence[LedgerLine]:
        """The newest first."""

        def script() -> Script[list[LedgerLine]]:
            found = yield "ledger_list", _parameters(span) | {"answer": answer, "most": limit}
            return [_ledger_line(row) for row in found]

        return await self._engine.read(script)

    async def events(self, span: Span, *, kind: str | None = None, limit: int = 100) -> Sequence[EventLine]:
        """The newest first. Of the span only the job and the page count."""

        def script() -> Script[list[EventLine]]:
            page = {"tenant": span.tenant, "name": span.name, "before_id": span.before_id}
            found = yield "events_told", page | {"kind": kind, "most": limit}
            return [_event_line(row) for row in found]

        return await self._engine.read(script)


def _parameters(span: Span) -> dict[str, object]:
    return {
        "tenant": span.tenant,
        "name": span.name,
        "from_ms": span.from_ms,
        "to_ms": span.to_ms,
        "before_id": span.before_id,
    }


def _run(row: Row) -> Run:
    window = None if row["window_from_ms"] is None else (row["window_from_ms"], row["window_to_ms"])
    return Run(
        run_id=row["run_id"],
        job_id=str(row["job_id"]),
        scheduled_for_ms=row["scheduled_for_ms"],
        run_after_ms=row["run_after_ms"],
        created_ms=row["created_ms"],
        finished_ms=row["finished_ms"],
        window_ms=window,
        almanac=row["almanac"],
        covers=row["covers"],
        revision=row["revision"],
        kind=row["kind"],
        lane=row["lane"],
        state=RunState(row["state"]),
    )


def _ledger_line(row: Row) -> LedgerLine:
    answer = Answer(row["from_ms"], row["to_ms"], row["ticks"], row["answer"], row["reason"], row["covered_by_ms"])
    return LedgerLine(
        row["entry_id"],
        row["tenant"],
        row["name"],
        str(row["job_id"]),
        answer,
        row["revision"],
        row["almanac"],
        row["noted_ms"],
    )


def _event_line(row: Row) -> EventLine:
    return EventLine(
        row["event_id"],
        row["at_ms"],
        row["kind"],
        row["count"],
        row["tenant"],
        row["name"],
        row["node_id"],
        row["actor"],
        json.loads(row["detail"]),
    )
