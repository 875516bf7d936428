"""What became of ticks, to be read: runs and ledger lines, and what left the normal path."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from fleetcron.events import OF_KEYS
from fleetcron.model.answer import Answer
from fleetcron.model.run import Run, RunKind, RunLine, Waiting
from fleetcron.model.states import RunState
from fleetcron.store.engine import Call, Engine, Row, Script
from fleetcron.store.rows import ids, rows

_LAST_ID: Final = 2**63 - 1
_LATER: Final = 1000  # as far as people count what is planned
_NOTED: Final = 100


@dataclass(frozen=True, slots=True)
class Span:
    """Which ticks are meant: of one job or of a tenant, in [from, to), on one page."""

    tenant: str | None = None
    name: str | None = None
    from_ms: int | None = None
    to_ms: int | None = None
    before_id: int | None = None  # the last id of the page before


@dataclass(frozen=True, slots=True)
class OpenRun:
    """`started`: a worker has it, or it rests between two attempts."""

    run_id: int
    started: bool


@dataclass(frozen=True, slots=True)
class Discarded:
    at_ms: int
    why: str
    by: str | None  # None: the event that says so is gone


@dataclass(frozen=True, slots=True)
class RunShown:
    """A run with its payload as its job had it (templates are filled in when it starts), and the next tick's run.

    `kept` has the bytes of output that the store has, by attempt. `way` are the runs that a merged one was merged into,
    one after the other; `worker` is the last of them, which does the work.
    """

    line: RunLine
    payload: Mapping[str, Any]
    next: RunLine | None
    kept: Mapping[int, int] = field(default_factory=dict)
    discarded: Discarded | None = None
    way: Sequence[int] = ()
    worker: RunLine | None = None


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

    async def runs(
        self, span: Span, *, state: str | None = None, limit: int = 100, later: bool = True
    ) -> Sequence[RunLine]:
        """The newest first. Which runs make the page is found in the smallest table that knows; then all is joined.
        Without `later`, runs whose tick is still to come are left out, unless they have ended or a state is named."""

        def script() -> Script[list[RunLine]]:
            [facts] = yield "fleet_now", {}
            found = yield _page(span, state, facts["now_ms"], limit, later)
            return (yield from run_lines((row["run_id"] for row in found), facts["now_ms"]))

        return await self._engine.read(script)

    async def later(self, span: Span) -> int | None:
        """How many runs of a job, a tenant or the fleet are planned for later; None: too many to count."""

        def script() -> Script[int | None]:
            [facts] = yield "fleet_now", {}
            asked = {"tenant": span.tenant, "name": span.name, "now_ms": facts["now_ms"], "most": _LATER}
            [row] = yield "runs_later_count", asked
            return row["runs"] or 0 if row["looked"] < _LATER else None

        return await self._engine.read(script)

    async def open(self, job_id: str, *, kind: RunKind | None = None, limit: int) -> Sequence[OpenRun]:
        """The runs of a job that have not ended, the oldest first."""

        def script() -> Script[list[OpenRun]]:
            found = yield "runs_open_of_job", {"job_id": job_id, "kind": kind, "most": limit}
            return [OpenRun(row["run_id"], bool(row["held"])) for row in found]

        return await self._engine.read(script)

    async def tenants(self, run_ids: Iterable[int]) -> Mapping[int, str]:
        """Whose these runs are. What does not exist is left out."""

        def script() -> Script[dict[int, str]]:
            return {row["run_id"]: row["tenant"] for row in (yield "runs_steered", {"ids": ids(run_ids)})}

        return await self._engine.read(script)

    async def covering(self, run_ids: Iterable[int]) -> Mapping[int, int]:
        """For each of these that was merged, the run that does its work: the last one on its way."""

        def script() -> Script[dict[int, int]]:
            wanted = sorted(run_ids)
            into = yield from _into(wanted)
            return {run_id: _way(into, run_id)[-1] for run_id in wanted if run_id in into}

        return await self._engine.read(script)

    async def run(self, run_id: int) -> RunShown | None:
        def script() -> Script[RunShown | None]:
            [facts] = yield "fleet_now", {}
            lines = yield from run_lines([run_id], facts["now_ms"])
            if not lines:
                return None
            [line] = lines
            version = rows([{"job_id": line.run.job_id, "revision": line.run.revision}])
            found = yield "definitions_read", {"rows": version}
            own = yield "runs_payload", {"run_id": run_id}
            after = yield "runs_next_of_job", {"run_id": run_id}
            following = yield from run_lines((row["run_id"] for row in after), facts["now_ms"])
            payload = json.loads(own[0]["payload"] if own else found[0]["definition"])
            sizes = yield "attempt_logs_sizes", {"run_id": run_id}
            noted = yield "runs_discarded", {"run_id": run_id, "most": _NOTED}
            way = _way((yield from _into([run_id])), run_id)
            workers = yield from run_lines(way[-1:], facts["now_ms"])
            return RunShown(
                line,
                payload if own else payload["payload"],
                following[0] if following else None,
                {row["attempt"]: int(row["bytes"]) for row in sizes},
                _discarded(run_id, noted),
                way,
                workers[0] if workers else None,
            )

        return await self._engine.read(script)

    async def ledger(self, span: Span, *, answer: str | None = None, limit: int = 100) -> Sequence[LedgerLine]:
        """The newest first."""

        def script() -> Script[list[LedgerLine]]:
            found = yield "ledger_list", _parameters(span) | {"answer": answer, "most": limit}
            return [ledger_line(row) for row in found]

        return await self._engine.read(script)

    async def events(self, span: Span, *, kind: str | None = None, limit: int = 100) -> Sequence[EventLine]:
        """The newest first. Of the span only the job and the page count. Of one tenant: what is about its jobs, and
        about its keys and their sessions."""

        def script() -> Script[list[EventLine]]:
            page = {"tenant": span.tenant, "name": span.name, "before_id": span.before_id}
            found = yield "events_told", page | {"kind": kind, "most": limit}
            if span.tenant is None or span.name is not None or kind not in (None, *OF_KEYS):
                return [_event_line(row) for row in found]
            # Apart, not with an OR: the statement above finds the events of a tenant by its jobs.
            call = {"tenant": span.tenant, "before_id": span.before_id, "kind": kind, "most": limit}
            of_keys = yield "events_told_of_keys", call
            lines = [_event_line(row) for row in (*found, *of_keys)]
            return sorted(lines, key=lambda line: line.event_id, reverse=True)[:limit]

        return await self._engine.read(script)


def _parameters(span: Span) -> dict[str, object]:
    return {
        "tenant": span.tenant,
        "name": span.name,
        "from_ms": span.from_ms,
        "to_ms": span.to_ms,
        "before_id": span.before_id,
    }


def _page(span: Span, state: str | None, now_ms: int, limit: int, later: bool) -> Call:
    """Where to look for a page of runs. All filters hold everywhere; each statement has those that its place needs."""
    page = {"before_id": span.before_id or _LAST_ID, "from_ms": span.from_ms, "to_ms": span.to_ms, "most": limit}
    past: dict[str, object] = {"state": state, "due_ms": None if later or state is not None else now_ms}
    tenant: dict[str, object] = {"tenant": span.tenant}
    job = tenant | {"name": span.name}
    match state:
        case "running" | "retrying":
            return "runs_page_held", page | job | {"state": state, "now_ms": now_ms}
        case "waiting":
            return "runs_page_waiting", page | job
    if span.name is not None:
        return "runs_page_of_job", page | job | past | {"now_ms": now_ms}
    match state:
        case "planned":
            return "runs_page_planned", page | tenant | {"now_ms": now_ms}
        case "dead":
            return "runs_page_dead", page | tenant
    if span.tenant is not None:
        return "runs_page_of_tenant", page | tenant | past
    return "runs_page", page | past


def run_lines(run_ids: Iterable[int], now_ms: int) -> Script[list[RunLine]]:
    """Part of another script: these runs, the newest first."""
    text = ids(run_ids)
    if text == "[]":
        return []
    return [_run_line(row) for row in (yield "runs_told", {"ids": text, "now_ms": now_ms})]


def _into(run_ids: Sequence[int]) -> Script[dict[int, int]]:
    """Which run each was merged into, of these and of all on their way."""
    if not run_ids:
        return {}
    return {row["run_id"]: row["covered_by"] for row in (yield "runs_covering", {"ids": ids(run_ids)})}


def _way(into: Mapping[int, int], run_id: int) -> list[int]:
    """A run is merged into one of a later tick, so this ends; a damaged table must not keep us either."""
    way: list[int] = []
    while run_id in into and len(way) < len(into):
        run_id = into[run_id]
        way.append(run_id)
    return way


def _discarded(run_id: int, noted: Sequence[Row]) -> Discarded | None:
    if not noted:
        return None
    who = (row["actor"] for row in noted if row["detail"] and run_id in json.loads(row["detail"]).get("runs", ()))
    return Discarded(noted[0]["discarded_ms"], noted[0]["discarded_why"] or "", next(who, None))


def _run_line(row: Row) -> RunLine:
    is_final, is_held = row["finished_ms"] is not None, row["node_id"] is not None
    resting = not is_held and row["try_ms"] is not None
    waits = not is_final and row["gate"] is not None
    return RunLine(
        tenant=row["tenant"],
        name=row["name"],
        pool=row["pool"],
        run=_run(row),
        node_id=row["node_id"],
        begun_ms=row["begun_ms"] if is_held else None,
        next_ms=row["try_ms"] if resting else None,
        progress=row["progress"],
        note=row["note"],
        cancel=row["cancel"],
        queued=row["queued_id"] is not None,
        waiting=Waiting(row["gate"], row["key"], row["since_ms"], row["look_ms"]) if waits else None,
    )


def _run(row: Row) -> Run:
    window = None if row["window_from_ms"] is None else (row["window_from_ms"], row["window_to_ms"])
    state = RunState(row["state"])
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
        state=state,
        started_ms=row["begun_ms"] if row["started_ms"] is None and state is RunState.RUNNING else row["started_ms"],
        attempt=row["attempt"],
        failures=row["failures"],
        losses=row["losses"],
        round=row["round"],
        reason=row["reason"],
        covered_by=row["covered_by"],
        asked_by=row["asked_by"],
    )


def ledger_line(row: Row) -> LedgerLine:
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
    detail = json.loads(row["detail"])
    return EventLine(
        row["event_id"],
        row["at_ms"],
        row["kind"],
        row["count"],
        detail.get("tenant") if row["kind"] in OF_KEYS else row["tenant"],
        row["name"],
        row["node_id"],
        row["actor"],
        detail,
    )
