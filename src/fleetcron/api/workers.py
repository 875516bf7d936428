"""Workers in any language: join, heartbeat, log, finish, leave. Batched, and safe to repeat.

The same verbs and the same guards as a worker of our own has: a lease that is renewed, an attempt number with every
write, a batch id with every claim (`worker_claims.py`). A worker belongs to the key that joined it: its id says so, and
another key does not know it.
"""

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Annotated, Any

from fastapi import Path

from fleetcron.api import worker_shapes as shapes
from fleetcron.api.access import Caller, TheCaller, TheContext
from fleetcron.api.context import Context
from fleetcron.api.problems import Problem, not_found, wrong
from fleetcron.api.routing import needs, router
from fleetcron.errors import DefinitionError, Mistake
from fleetcron.executors.verdicts import written
from fleetcron.model.access import Role
from fleetcron.model.outcome import (
    WORKER_STOPPED,
    Cancelled,
    Failed,
    Fault,
    Lost,
    Outcome,
    Snoozed,
    Succeeded,
    TimedOut,
)
from fleetcron.store.ends import Ended, Ends
from fleetcron.views.asking import answer
from fleetcron.views.instants import as_json as instant_json
from fleetcron.worker.settling import settling

routes = router("workers")
WorkerId = Annotated[str, Path(max_length=200, description="what POST /workers gave")]


@routes.post("/workers", response_model=shapes.Joined, status_code=201, summary="A worker begins", **needs(Role.WORKER))
async def join_worker(context: TheContext, caller: TheCaller, body: shapes.Join) -> dict[str, Any]:
    """With the pools that it serves, which its key must allow."""
    for pool in body.pools:
        if not caller.may_claim(pool):
            raise Problem(403, f"this key may not claim from the pool {pool}")
    worker_id = f"{body.name}~{caller.key_id}~{context.new_id()[-8:]}"
    ttl_ms = context.worker_ttl_ms
    await answer(lambda: context.store.workers.join(worker_id, "http", body.pools, ttl_ms))
    return {
        "worker_id": worker_id,
        "now": instant_json(await context.now_ms()),
        "lease_ms": ttl_ms,
        "heartbeat_ms": ttl_ms // 4,
    }


@routes.post("/workers/{worker_id}/heartbeat", response_model=shapes.Renewed, summary="It lives", **needs(Role.WORKER))
async def renew_worker(context: TheContext, caller: TheCaller, worker_id: WorkerId) -> dict[str, Any]:
    """Keeps all its runs, and hears which of them somebody asked to stop. 409 if it was declared lost: others have its
    runs now. A worker that cannot send one in time stops its work before the lease ends."""
    own(caller, worker_id)
    done = await answer(lambda: context.store.workers.renew(worker_id, context.worker_ttl_ms))
    return {
        "now": instant_json(done.now_ms),
        "expires_at": instant_json(done.expires_ms),
        "cancels": [
            {"run_id": run_id, "attempt": attempt, "reason": why} for (run_id, attempt), why in done.cancels.items()
        ],
    }


@routes.post("/workers/{worker_id}/log", response_model=shapes.Logged, summary="What it printed", **needs(Role.WORKER))
async def write_log(context: TheContext, caller: TheCaller, worker_id: WorkerId, body: shapes.Output) -> dict[str, Any]:
    """Pieces of output and marks of progress, of any of its attempts. The first text that comes under a seq stays: the
    same piece again is fine, another one changes nothing. A worker that was declared lost may still send what its own
    attempts printed: it stays with that attempt, and says what happened until then. Its progress counts no more."""
    own(caller, worker_id)
    _refuse(_wrong_pieces(body.pieces))
    done = await answer(lambda: context.store.output.append(worker_id, body.pieces, body.progress))
    return {"stored": done.pieces, "refused": done.refused}


@routes.post("/workers/{worker_id}/finish", response_model=shapes.Finished, summary="It is done", **needs(Role.WORKER))
async def finish_runs(
    context: TheContext, caller: TheCaller, worker_id: WorkerId, body: shapes.Finish
) -> dict[str, Any]:
    """How attempts ended. What becomes of their runs is decided here, by the rules of each run's own revision.
    A run that was asked to stop is cancelled, unless its attempt succeeded all the same."""
    own(caller, worker_id)
    _refuse(_wrong_ends(body.ends))
    begun = await context.store.workers.begun(worker_id)
    earliest = {(held.run_id, held.attempt): held.earliest_ms for held in begun.held}
    errands = await context.store.definitions.held_by(worker_id)
    ended = []
    for at, end in enumerate(body.ends):
        outcome, result = _outcome(end, at)
        earliest_ms = earliest.get((end.run_id, end.attempt), begun.now_ms)
        started_ms = max(begun.now_ms - end.duration_ms, earliest_ms)
        finished_ms = max(started_ms, begun.now_ms)
        ended.append(Ended(end.run_id, end.attempt, outcome, started_ms, finished_ms, result, end.log_bytes))
    settle = settling(errands, context.chance)
    done = await answer(lambda: context.store.attempts.finish(worker_id, ended, settle, again=body.again))
    states = await _states(context, worker_id, body.ends, done)
    return {
        "now": instant_json(done.now_ms),
        "ends": [
            {"run_id": end.run_id, "attempt": end.attempt, "accepted": state is not None, "state": state}
            for end, state in zip(body.ends, states, strict=True)
        ],
    }


async def _states(context: Context, worker_id: str, ends: Sequence[shapes.End], done: Ends) -> list[str | None]:
    """What became of the run of each end; None if that end was refused. `done` knows runs and no attempts: of several
    attempts of one run it is looked up which of them was written."""
    times = Counter(end.run_id for end in ends)
    return [
        become.state.value
        if times[end.run_id] == 1 and (become := done.transitions.get(end.run_id)) is not None
        else await _accepted_before(context, worker_id, end)
        for end in ends
    ]


async def _accepted_before(context: Context, worker_id: str, end: shapes.End) -> str | None:
    """The state of the run now, if this very end was written: by this call, or when it was sent the first time."""
    for past in await context.store.past_attempts.of_run(end.run_id):
        is_stop = past.outcome == "lost" and past.error is not None and past.error.code == WORKER_STOPPED
        said = "stopped" if is_stop else past.outcome
        if (past.attempt, past.node_id, said) == (end.attempt, worker_id, end.outcome):
            found = await context.store.history.run(end.run_id)
            return None if found is None else found.line.run.state.value
    return None


@routes.post(
    "/workers/{worker_id}/return", response_model=shapes.GivenBack, summary="It cannot do that", **needs(Role.WORKER)
)
async def return_runs(
    context: TheContext, caller: TheCaller, worker_id: WorkerId, body: shapes.GiveBack
) -> dict[str, Any]:
    """Runs that were claimed and never started go back at once, and cost no attempt. Each says the `batch` that
    it came with: a request that arrives late or twice takes nothing away that was claimed again meanwhile. `lacks`
    names handlers that this worker has not; send them with the next claims too."""
    own(caller, worker_id)
    if body.lacks:
        await answer(lambda: context.store.workers.lack(worker_id, body.lacks))
    held = [(each.run_id, each.attempt, each.batch) for each in body.runs]
    done = await answer(lambda: context.store.attempts.hand_back(worker_id, held)) if held else 0
    return {"runs": done}


@routes.delete("/workers/{worker_id}", response_model=shapes.Left, summary="A worker ends", **needs(Role.WORKER))
async def remove_worker(context: TheContext, caller: TheCaller, worker_id: WorkerId) -> dict[str, Any]:
    """409 while it holds runs: finish them or return them first."""
    own(caller, worker_id)
    await answer(lambda: context.store.workers.leave(worker_id))
    return {"worker_id": worker_id, "left": True}


def own(caller: Caller, worker_id: str) -> None:
    parts = worker_id.split("~")
    if len(parts) != 3 or parts[1] != caller.key_id:
        raise not_found("such worker of this key")


def _wrong_ends(ends: Sequence[shapes.End]) -> Iterator[Mistake]:
    """An attempt ends once: of two ends nobody knows which one is meant. And whoever snoozes says for how long, or its
    run would come back every second, for ever."""
    for at, first, (run_id, attempt) in _repeated([(end.run_id, end.attempt) for end in ends]):
        told = f"attempt {attempt} of run {run_id} ends in /ends/{first} already"
        yield Mistake(f"/ends/{at}", told, "send one end of it")
    for at, end in enumerate(ends):
        if end.outcome == "snoozed" and end.snooze_ms is None:
            hint = "say after how many milliseconds to try again, such as 60000"
            yield Mistake(f"/ends/{at}/snooze_ms", "is missing", hint)


def _wrong_pieces(pieces: Sequence[shapes.Piece]) -> Iterator[Mistake]:
    """One of them would be kept, and both be counted."""
    for at, first, (_, _, seq) in _repeated([(each.run_id, each.attempt, each.seq) for each in pieces]):
        yield Mistake(f"/pieces/{at}/seq", f"{seq} is that of /pieces/{first} too", "number them on: 0, 1, 2 …")


def _repeated(keys: Sequence[tuple[int, ...]]) -> Iterator[tuple[int, int, tuple[int, ...]]]:
    """Where a key comes again, where it was first, and the key."""
    first: dict[tuple[int, ...], int] = {}
    for at, key in enumerate(keys):
        if first.setdefault(key, at) != at:
            yield at, first[key], key


def _refuse(mistakes: Iterator[Mistake]) -> None:
    if found := list(mistakes):
        raise DefinitionError(found)


def _outcome(end: shapes.End, at: int) -> tuple[Outcome, str | None]:
    error = end.error
    fault = (
        Fault("failed") if error is None else Fault(error.code, _clean(error.text), error.trace and _clean(error.trace))
    )
    match end.outcome:
        case "succeeded":
            result = None if end.result is None else written(end.result)
            if isinstance(result, Failed):
                raise wrong(f"/ends/{at}/result", result.error.text)
            return Succeeded(None if result is None else json.loads(result)), result
        case "failed":
            return Failed(fault, end.retry_after_ms or None, is_exact=True), None
        case "timed_out":
            return TimedOut(Fault("timeout", fault.text, fault.trace) if error is None else fault), None
        case "cancelled":
            return Cancelled("" if error is None else _clean(error.text)), None
        case "snoozed":
            return Snoozed((end.snooze_ms or 0) / 1000), None  # never None here: `_wrong_ends`
        case "stopped":
            return Lost(Fault(WORKER_STOPPED, fault.text or "the worker was stopped", fault.trace)), None


def _clean(text: str) -> str:
    return text.replace("\0", "\ufffd")
