"""Runs for ticks of the past that have none. One transaction for a stretch.

The lock of the job's cursor keeps edits and other backfills away. The scheduler may decide gaps meanwhile. So what is
undecided is read before the ledger and the runs: a tick that gets its answer in between is left alone.
"""

from collections.abc import Callable
from typing import Any

from fleetcron.events import Event
from fleetcron.model.answer import Answer
from fleetcron.model.past import Entry, Filling, Past, Superseded
from fleetcron.steps import step
from fleetcron.store.cursors import answer_row, forecast_row
from fleetcron.store.engine import Engine, Row, Script
from fleetcron.store.events import note_all
from fleetcron.store.rows import ids, rows
from fleetcron.store.written import Refused, Written


class Backfills:
    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    async def look(self, job_id: str, from_ms: int, to_ms: int) -> Past | None:
        """What there is about the ticks in [from, to]; None if the job is gone."""

        def script() -> Script[Past | None]:
            [facts] = yield "fleet_now", {}
            found = yield "cursors_of_job", {"job_id": job_id}
            return (yield from _past(found[0], job_id, from_ms, to_ms, facts["now_ms"])) if found else None

        return await self._engine.read(script)

    async def write(
        self,
        job_id: str,
        from_ms: int,
        to_ms: int,
        decide: Callable[[Past], Filling],
        *,
        epoch: int,
        revision: int,
        actor: str,
    ) -> Written[Filling]:
        """Write what `decide` (pure) makes of the ticks in [from, to]. Refused if the job or the tables have changed
        since. Safe to repeat: ticks that have a run are left."""

        def script() -> Script[Filling | Refused]:
            step("backfill.begin")
            [held] = yield "almanac_hold", {}
            if held["epoch"] != epoch:
                return Refused("the zone tables or calendars have changed")
            yield "cursors_lock", {"job_id": job_id}
            found = yield "cursors_of_job", {"job_id": job_id}
            if not found or found[0]["revision"] != revision:
                return Refused("the job was changed meanwhile")
            [facts] = yield "fleet_now", {}
            past = yield from _past(found[0], job_id, from_ms, to_ms, facts["now_ms"])
            filling = decide(past)
            yield from _write(filling, job_id, facts, revision, actor)
            step("backfill.written")
            return filling

        return await self._engine.write(script)


def _past(cursor: Row, job_id: str, from_ms: int, to_ms: int, now_ms: int) -> Script[Past]:
    call = {"job_id": job_id, "from_ms": from_ms, "to_ms": to_ms}
    gaps = yield "gaps_between", call
    entries = yield "ledger_between", call
    ticks = yield "runs_between", call
    return Past(
        now_ms,
        cursor["cursor_ms"],
        [(row["from_ms"], row["to_ms"]) for row in gaps],
        [_entry(row) for row in entries],
        frozenset(row["scheduled_for_ms"] for row in ticks),
    )


def _write(filling: Filling, job_id: str, facts: Row, revision: int, actor: str) -> Script[None]:
    if not filling.runs:
        return
    now_ms = facts["now_ms"]
    if filling.superseded:
        yield "ledger_delete", {"ids": ids(each.entry.entry_id for each in filling.superseded)}
        yield "ledger_insert", {"rows": rows(row for each in filling.superseded for row in _rest_rows(each, job_id))}
    made = {"job_id": job_id, "created_ms": now_ms, "almanac": facts["epoch"], "revision": revision}
    more = {"kind": "backfill", "asked_by": actor}
    text = rows(forecast_row(run) | made | more for run in filling.runs)
    yield "runs_insert_asked", {"rows": text, "now_ms": now_ms}
    ticks = [run.scheduled_for_ms for run in filling.runs]
    detail = {"from_ms": ticks[0], "to_ms": ticks[-1]}
    events = [Event("runs_backfilled", job_id=job_id, actor=actor, count=len(ticks), detail=detail)]
    yield from note_all([*events, *(_superseded(each, job_id, actor) for each in filling.superseded)])
    yield "notify", {"topic": "work"}


def _rest_rows(each: Superseded, job_id: str) -> list[dict[str, Any]]:
    entry = each.entry
    kept = {"job_id": job_id, "revision": entry.revision, "almanac": entry.almanac, "noted_ms": entry.noted_ms}
    return [answer_row(answer) | kept for answer in each.rest]


def _superseded(each: Superseded, job_id: str, actor: str) -> Event:
    entry = each.entry
    kept = {"entry_id": entry.entry_id, "revision": entry.revision, "almanac": entry.almanac}
    detail = answer_row(entry.answer) | kept | {"noted_ms": entry.noted_ms, "taken": [each.taken[0], each.taken[-1]]}
    return Event("ledger_superseded", job_id=job_id, actor=actor, count=len(each.taken), detail=detail)


def _entry(row: Row) -> Entry:
    answer = Answer(row["from_ms"], row["to_ms"], row["ticks"], row["answer"], row["reason"], row["covered_by_ms"])
    return Entry(row["entry_id"], answer, row["revision"], row["timing_id"], row["almanac"], row["noted_ms"])
