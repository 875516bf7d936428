"""The end of attempts: one transaction for many, each guarded by run, attempt and owner.

What becomes of a run is decided by pure code inside (`settle`), so that it sees the database's time. What is free then
(a key, a tenant's place) goes to the next run that waits for it in the same transaction. A write that finds its lease
gone was too late: it is counted, and changes nothing.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, TypeAlias, assert_never

from fleetcron.events import Event
from fleetcron.model.outcome import Cancelled, Failed, Fault, Lost, Outcome, Snoozed, Succeeded, TimedOut
from fleetcron.model.queued import Control, too_late
from fleetcron.model.states import RunState
from fleetcron.model.transition import Budget, Transition
from fleetcron.steps import step
from fleetcron.store.closing import close_runs, is_shared, release, release_downstream, release_former, release_keys
from fleetcron.store.counting import control_rows
from fleetcron.store.engine import Engine, Row, Script
from fleetcron.store.events import note_all
from fleetcron.store.rows import ids, rows
from fleetcron.store.stopping import stop
from fleetcron.store.written import Refused, Written


class Ended(NamedTuple):
    """An attempt that has ended, by the database's time as its worker knows it."""

    run_id: int
    attempt: int
    outcome: Outcome
    started_ms: int
    finished_ms: int
    result_json: str | None = None
    log_bytes: int = 0


class Held(NamedTuple):
    """What is known of a held run when its attempt ends."""

    run_id: int
    attempt: int
    tenant: str
    type: str
    scheduled_for_ms: int
    budget: Budget
    cancel: str | None  # why it was asked to stop


@dataclass(frozen=True, slots=True)
class Ends:
    """What was written. `late` are attempts that were no longer held; `due_ms` is when the next one may be tried."""

    now_ms: int
    transitions: dict[int, Transition]
    late: tuple[int, ...] = ()
    due_ms: int | None = None


Settle: TypeAlias = Callable[[Held, Outcome, Sequence[Control], int], Transition]


class Attempts:
    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    async def finish(
        self, node_id: str, ended: Sequence[Ended], settle: Settle, *, again: bool = False
    ) -> Written[Ends]:
        """Write how attempts ended. Safe to repeat: what was written is no longer held, and changes nothing. `again`:
        the reply to the first time was lost, so what is not held may be so by our own hand, and is no event."""
        by_attempt = {(each.run_id, each.attempt): each for each in ended}
        text = rows({"run_id": each.run_id, "attempt": each.attempt} for each in ended)

        def script() -> Script[Ends | Refused]:
            step("finish.begin")
            found = yield "leases_mine", {"rows": text, "node_id": node_id}
            done = yield from end_leases(found, lambda row: by_attempt[row["run_id"], row["attempt"]], settle)
            mine = {(row["run_id"], row["attempt"]) for row in found}
            late = tuple(each.run_id for each in ended if (each.run_id, each.attempt) not in mine)
            if late and not again:
                detail = {"runs": list(late[:20])}
                yield from note_all([Event("finish_refused", node_id=node_id, count=len(late), detail=detail)])
            step("finish.written")
            return Ends(done.now_ms, done.transitions, late, done.due_ms)

        return await self._engine.write(script)

    async def hand_back(self, node_id: str, held: Sequence[tuple[int, int, str]]) -> Written[int]:
        """Held runs that were never started (run, attempt, batch of the claim): they cost nothing, and others may take
        them at once. Whoever takes one next has the same number of attempt: only the batch tells a request that comes
        late, or twice, from one about a run that the same worker has taken again meanwhile."""
        text = rows({"run_id": run_id, "attempt": attempt, "batch": batch} for run_id, attempt, batch in held)

        def script() -> Script[int | Refused]:
            step("hand_back.begin")
            found = yield "leases_hand_back", {"rows": text, "node_id": node_id}
            yield from _return([row for row in found if row["cancel"] is None])
            yield from _stop([row for row in found if row["cancel"] is not None])
            step("hand_back.written")
            return len(found)

        return await self._engine.write(script)


def end_leases(found: Sequence[Row], end_of: Callable[[Row], Ended], settle: Settle) -> Script[Ends]:
    """Part of a verb that has locked these leases: write the ends of their attempts."""
    [facts] = yield "fleet_now", {}
    now_ms = facts["now_ms"]
    if not found:
        return Ends(now_ms, {})
    pairs = [(row, end_of(row)) for row in found]
    failed = any(not isinstance(end.outcome, Succeeded) for _, end in pairs)
    controls = (yield from control_rows(now_ms)) if failed else []
    settled = [(row, end, _not_early(row, settle(_held(row), end.outcome, controls, now_ms))) for row, end in pairs]
    final = [(row, end, become) for row, end, become in settled if become.state is not RunState.RETRYING]
    again = [(row, end, become) for row, end, become in settled if become.state is RunState.RETRYING]
    if final:
        yield "attempts_finish", {"rows": rows(_end_row(*each) for each in final), "now_ms": now_ms}
    if again:
        yield from _try_again(again)
    answered = [(str(row["job_id"]), row["scheduled_for_ms"]) for row, _, _ in final]
    yield from _free([row for row, _, _ in settled], [row for row, _, _ in final], now_ms, answered)
    yield from note_all(_dead(settled))
    due = [become.due_ms for _, _, become in again if become.due_ms is not None]
    return Ends(now_ms, {row["run_id"]: become for row, _, become in settled}, due_ms=min(due, default=None))


def _not_early(row: Row, become: Transition) -> Transition:
    """What was claimed a moment early and lost before its instant is not tried again before that instant either."""
    if become.due_ms is None or become.due_ms >= row["due_ms"]:
        return become
    return replace(become, due_ms=row["due_ms"])


def _try_again(again: Sequence[tuple[Row, Ended, Transition]]) -> Script[None]:
    ended = rows(_end_row(*each) for each in again)
    yield "attempts_insert", {"rows": ended}
    yield "runs_note", {"rows": ended}
    resting = rows(_rest_row(row, row["attempt"], become.due_ms, become.budget) for row, _, become in again)
    yield "leases_rest", {"rows": resting}
    coming = [
        {"run_after_ms": become.due_ms, "run_id": row["run_id"], "job_id": str(row["job_id"]), "lane": row["lane"]}
        for row, _, become in again
    ]
    yield "upcoming_insert", {"rows": rows(coming)}


def _free(
    ended: Sequence[Row], final: Sequence[Row], now_ms: int, answered: Sequence[tuple[str, int]] = ()
) -> Script[None]:
    """Whoever waited for what these held, or for these jobs and ticks. A new statement sees what was parked behind the
    leases meanwhile."""
    gates = {row["gate"] for row in (yield "queue_gates", {})}
    if not gates:
        return
    keys = Counter(row["claim_key"] for row in final if row["claim_key"] is not None)
    over = {row["run_id"] for row in final}
    # who rests keeps its key; but nobody leaves a shared one to others because of it any more (policy/turns)
    keys.update(
        {row["claim_key"]: 1 for row in ended if row["run_id"] not in over and is_shared(row["claim_key"] or "")}
    )
    places = Counter(place for row in ended for place in _places(row) if place[0] in gates)
    freed: set[str] = set()
    # as many may go on as places were freed; too many are parked again
    if keys and "key" in gates:
        freed |= yield from release_keys(sorted(keys), max(keys.values()), now_ms)
    if places:
        freed |= yield from release(sorted(places), most=max(places.values()))
    if "former" in gates:
        freed |= yield from release_former(str(row["job_id"]) for row in final)
    if "upstream" in gates:
        freed |= yield from release_downstream(answered)
    if freed:
        yield "notify", {"topic": "work"}


def _places(row: Row) -> Iterable[tuple[str, str]]:
    yield "tenant", row["tenant"]
    yield "quota_tenant", f"{row['pool']}:{row['tenant']}"
    yield "quota_type", f"{row['pool']}:{row['type']}"


def _return(found: Sequence[Row]) -> Script[None]:
    """A run that has started before keeps its lease, and with it its key; one that has not gives both back.

    They are queued in the same transaction: between two, a later run of a job that queues could pass them.
    """
    if not found:
        return
    back = yield "queue_return", {"ids": ids(row["run_id"] for row in found)}
    queues = sorted({(row["pool"], row["lane"], row["priority"]) for row in back})
    shares = [{"pool": p, "lane": lane, "priority": n, "tenant": "", "rank": 0} for p, lane, n in queues]
    yield "shares_write", {"rows": rows(shares)}  # the job may have moved to a queue that is new
    fresh = [row for row in found if row["started_ms"] is None]
    rested = [row for row in found if row["started_ms"] is not None]
    if rested:
        text = rows(
            _rest_row(row, row["attempt"] - 1, row["due_ms"], Budget(row["failures"], row["losses"])) for row in rested
        )
        yield "leases_rest", {"rows": text}
    yield "leases_delete", {"ids": ids(row["run_id"] for row in fresh)}
    [facts] = yield "fleet_now", {}
    now_ms = facts["now_ms"]
    yield from _free(found, fresh, now_ms)
    # It had its place until now, for all that anybody could know: ticks were skipped for it. So it ends now, and not at
    # its deadline, when somebody looks at it again.
    late = [row["run_id"] for row in back if row["deadline_ms"] is not None and row["deadline_ms"] < now_ms]
    yield from close_runs([too_late(run_id) for run_id in late], now_ms)
    yield "notify", {"topic": "work"}


def _stop(found: Sequence[Row]) -> Script[None]:
    """Whoever was asked to stop and comes back without a start has stopped."""
    if not found:
        return
    [facts] = yield "fleet_now", {}
    for row in found:
        yield from stop([row["run_id"]], f"cancelled: {row['cancel']}"[:500], facts["now_ms"])
    yield from _free(found, found, facts["now_ms"])
    yield "notify", {"topic": "work"}


def _held(row: Row) -> Held:
    budget = Budget(row["failures"], row["losses"])
    return Held(
        row["run_id"], row["attempt"], row["tenant"], row["type"], row["scheduled_for_ms"], budget, row["cancel"]
    )  # fmt: skip


def _end_row(row: Row, end: Ended, become: Transition) -> dict[str, Any]:
    """Of the attempt and of its run: one text for both tables. What is not there is left out: it is most of it."""
    found = {
        "run_id": row["run_id"],
        "attempt": row["attempt"],
        "node_id": row["node_id"],
        "started_ms": end.started_ms,
        "finished_ms": end.finished_ms,
        "outcome": _name(end.outcome),
        "log_bytes": end.log_bytes,
        "state": become.state.value,
        "failures": become.budget.failures,
        "losses": become.budget.losses,
    }
    if end.result_json is not None:
        found["result"] = end.result_json
    if (fault := _fault(end.outcome)) is not None:
        found |= {"error_code": fault.code, "error_text": fault.text, "trace": fault.trace}
    if become.error is not None:
        found["reason"] = f"{become.error.code}: {become.error.text}".removesuffix(": ")[:500]
    return found


def _rest_row(row: Row, attempt: int, due_ms: int | None, budget: Budget) -> dict[str, Any]:
    """`due_ms` is when it may be tried again: people ask for it, and `upcoming` is not found by run."""
    return {
        "run_id": row["run_id"],
        "attempt": attempt,
        "due_ms": due_ms,
        "failures": budget.failures,
        "losses": budget.losses,
    }


def _dead(settled: Sequence[tuple[Row, Ended, Transition]]) -> Iterable[Event]:
    for row, _, become in settled:
        if become.state is RunState.DEAD:
            code = become.error.code if become.error else ""
            detail = {"run": row["run_id"], "attempt": row["attempt"], "error": code}
            yield Event("run_dead", job_id=str(row["job_id"]), node_id=row["node_id"], detail=detail)


def _name(outcome: Outcome) -> str:
    match outcome:
        case Succeeded():
            return "succeeded"
        case Failed():
            return "failed"
        case TimedOut():
            return "timed_out"
        case Lost():
            return "lost"
        case Cancelled():
            return "cancelled"
        case Snoozed():
            return "snoozed"
        case never:
            assert_never(never)


def _fault(outcome: Outcome) -> Fault | None:
    match outcome:
        case Failed(error) | TimedOut(error) | Lost(error):
            return error
        case Cancelled(reason):
            return Fault("cancelled", reason)
    return None
