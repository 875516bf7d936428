"""Workers in any language: join, claim, heartbeat, log, finish, leave. Batched, and safe to repeat.

The same verbs and the same guards as a worker of our own has: a lease that is renewed, an attempt number with every
write, a batch id with every claim. Here only what is due is claimed, so nobody has to hold a run until its instant. A
worker belongs to the key that joined it: its id says so, and another key does not know it.
"""

import asyncio
import json
from contextlib import suppress
from typing import Annotated, Any, Final

from fastapi import Path

from fleetcron.api import worker_shapes as shapes
from fleetcron.api.access import Caller, TheCaller, TheContext
from fleetcron.api.context import Context
from fleetcron.api.problems import Problem, not_found, wrong
from fleetcron.api.routing import needs, router
from fleetcron.errors import RefusedError
from fleetcron.executors.verdicts import written
from fleetcron.model.access import Role
from fleetcron.model.errand import Errand
from fleetcron.model.outcome import Cancelled, Failed, Fault, Outcome, Snoozed, Succeeded, TimedOut
from fleetcron.model.target import handler_key, target_document
from fleetcron.policy.choose import choose
from fleetcron.policy.late import late
from fleetcron.store.claims import Claim, Claimed, Taken
from fleetcron.store.ends import Ended
from fleetcron.views.asking import answer
from fleetcron.views.instants import as_json as instant_json
from fleetcron.worker.assigning import assignment
from fleetcron.worker.loop import ranked
from fleetcron.worker.pool import LIVE_SHARE
from fleetcron.worker.settling import settling

routes = router("workers")
_PROMOTED: Final = 2_000
_LOOK_EVERY_S: Final = 0.25
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


@routes.post("/workers/{worker_id}/claim", response_model=shapes.Claimed, summary="Get work", **needs(Role.WORKER))
async def claim_runs(context: TheContext, caller: TheCaller, worker_id: WorkerId, body: shapes.Claim) -> dict[str, Any]:
    """Runs that are due now, for their next attempt. 409 if the worker was declared lost: stop everything, and join
    anew."""
    slots = await _slots(context, caller, worker_id, body.pool)
    loop = asyncio.get_running_loop()
    until_s = loop.time() + body.wait_s
    if body.batch is not None and body.wait_s:  # a claim under an id is made once: asked again, it answers the same
        await _has_come(context, body.pool, until_s)
        until_s = 0
    while True:
        batch = body.batch or context.new_id()
        taken = await _taken(context, worker_id, slots, body, batch)
        if taken.runs or not await _has_come(context, body.pool, until_s):
            break
    versions = {(run.job_id, run.revision) for run in taken.runs}
    errands = await context.store.definitions.read(sorted(versions)) if versions else {}
    known = [(run, errands[run.job_id, run.revision]) for run in taken.runs if (run.job_id, run.revision) in errands]
    return {
        "now": instant_json(taken.now_ms),
        "batch": batch,
        "runs": [_work(run, errand, body.pool, taken.now_ms) for run, errand in known],
    }


@routes.post("/workers/{worker_id}/heartbeat", response_model=shapes.Renewed, summary="It lives", **needs(Role.WORKER))
async def renew_worker(context: TheContext, caller: TheCaller, worker_id: WorkerId) -> dict[str, Any]:
    """Keeps all its runs, and hears which of them somebody asked to stop. 409 if it was declared lost: others have its
    runs now. A worker that cannot send one in time stops its work before the lease ends."""
    _own(caller, worker_id)
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
    """Pieces of output and marks of progress, of any of its attempts."""
    _own(caller, worker_id)
    done = await answer(lambda: context.store.output.append(worker_id, body.pieces, body.progress))
    return {"stored": done.pieces, "refused": done.refused}


@routes.post("/workers/{worker_id}/finish", response_model=shapes.Finished, summary="It is done", **needs(Role.WORKER))
async def finish_runs(
    context: TheContext, caller: TheCaller, worker_id: WorkerId, body: shapes.Finish
) -> dict[str, Any]:
    """How attempts ended. What becomes of their runs is decided here, by the rules of each run's own revision."""
    _own(caller, worker_id)
    begun = await context.store.workers.begun(worker_id)
    errands = await context.store.definitions.held_by(worker_id)
    ended = []
    for at, end in enumerate(body.ends):
        outcome, result = _outcome(end, at)
        earliest_ms = begun.earliest.get((end.run_id, end.attempt), begun.now_ms)
        started_ms = max(begun.now_ms - end.duration_ms, earliest_ms)
        finished_ms = max(started_ms, begun.now_ms)
        ended.append(Ended(end.run_id, end.attempt, outcome, started_ms, finished_ms, result, end.log_bytes))
    settle = settling(errands, context.chance)
    done = await answer(lambda: context.store.attempts.finish(worker_id, ended, settle, again=body.again))
    return {
        "now": instant_json(done.now_ms),
        "ends": [
            {
                "run_id": end.run_id,
                "attempt": end.attempt,
                "accepted": end.run_id in done.transitions,
                "state": done.transitions[end.run_id].state.value if end.run_id in done.transitions else None,
            }
            for end in body.ends
        ],
    }


@routes.post(
    "/workers/{worker_id}/return", response_model=shapes.GivenBack, summary="It cannot do that", **needs(Role.WORKER)
)
async def return_runs(
    context: TheContext, caller: TheCaller, worker_id: WorkerId, body: shapes.GiveBack
) -> dict[str, Any]:
    """Runs that were claimed and never started go back at once, and cost no attempt. `lacks` names handlers that this
    worker has not; send them with the next claims too."""
    _own(caller, worker_id)
    if body.lacks:
        await answer(lambda: context.store.workers.lack(worker_id, body.lacks))
    keys = [(each.run_id, each.attempt) for each in body.runs]
    done = await answer(lambda: context.store.attempts.hand_back(worker_id, keys)) if keys else 0
    return {"runs": done}


@routes.delete("/workers/{worker_id}", response_model=shapes.Left, summary="A worker ends", **needs(Role.WORKER))
async def remove_worker(context: TheContext, caller: TheCaller, worker_id: WorkerId) -> dict[str, Any]:
    """409 while it holds runs: finish them or return them first."""
    _own(caller, worker_id)
    await answer(lambda: context.store.workers.leave(worker_id))
    return {"worker_id": worker_id, "left": True}


def _own(caller: Caller, worker_id: str) -> None:
    parts = worker_id.split("~")
    if len(parts) != 3 or parts[1] != caller.key_id:
        raise not_found("such worker of this key")


async def _slots(context: Context, caller: Caller, worker_id: str, pool: str) -> int:
    """How many of the pool's runs it may hold in all, as it said when it joined."""
    _own(caller, worker_id)
    if not caller.may_claim(pool):
        raise Problem(403, f"this key may not claim from the pool {pool}")
    for worker in (await context.store.workers.list()).workers:
        if worker.node_id == worker_id:
            if pool not in worker.pools:
                raise wrong("/pool", f"this worker did not say that it serves {pool}", "join with all its pools")
            return worker.pools[pool]
    raise RefusedError("this worker was declared lost, or has left: stop its work, and join anew")


async def _has_come(context: Context, pool: str, until_s: float) -> bool:
    """Wait until there may be something to claim; false when the time is over. It takes no lock: many may wait."""
    loop = asyncio.get_running_loop()
    while not context.closing.is_set() and (left_s := until_s - loop.time()) > 0:
        with suppress(TimeoutError):
            async with asyncio.timeout(min(_LOOK_EVERY_S, left_s)):
                await context.closing.wait()
        await context.store.queue.promote(0, _PROMOTED, ranked, late)
        if await context.store.queue.has_work(pool):
            return True
    return False


async def _taken(context: Context, worker_id: str, slots: int, body: shapes.Claim, batch: str) -> Taken:
    """Queue what is due (whoever claims does it; it may be the only worker), then claim."""
    await context.store.queue.promote(0, _PROMOTED, ranked, late)
    held = len((await context.store.workers.begun(worker_id)).earliest)
    room = min(body.room, slots - held)
    # which of the held ones are catch-up is not looked up: as if all were, so live work always finds its share free
    spare = slots if slots == 1 else slots - max(1, slots // LIVE_SHARE)
    wish = Claim(
        worker_id,
        batch,
        body.pool,
        max(0, room),
        max(0, min(room, spare - held)),
        lacks=tuple(body.lacks),
        early_room=0,
    )
    return await answer(lambda: context.store.claims.claim(wish, choose))


def _work(run: Claimed, errand: Errand, pool: str, now_ms: int) -> dict[str, Any]:
    made = assignment(run, errand, now_ms)
    window = made.window_ms or (None, None)
    return {
        "run_id": made.run_id,
        "attempt": made.attempt,
        "fence": made.fence,
        "tenant": made.tenant,
        "job": made.job,
        "job_id": made.job_id,
        "pool": pool,
        "lane": run.lane,
        "handler": handler_key(made.target),
        "run": target_document(made.target),
        "payload": dict(made.payload),
        "scheduled_for": instant_json(made.scheduled_for_ms),
        "covers": made.covers,
        "window_from": instant_json(window[0]),
        "window_to": instant_json(window[1]),
        "idempotency_key": made.idempotency_key,
        "timeout_ms": made.timeout_ms,
    }


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
            return Failed(fault, end.retry_after_ms), None
        case "timed_out":
            return TimedOut(Fault("timeout", fault.text, fault.trace) if error is None else fault), None
        case "cancelled":
            return Cancelled("" if error is None else _clean(error.text)), None
        case "snoozed":
            return Snoozed((end.snooze_ms or 0) / 1000), None


def _clean(text: str) -> str:
    return text.replace("\0", "\ufffd")
