"""How workers in any language get work: what is due now, as far as they have room for it.

Only what is due is claimed, so nobody has to hold a run until its instant. What a run needs and this worker cannot have
ends the attempt here, with the reason, as it does in a worker of our own: a secret is never sent, only its name.
"""

import asyncio
from collections.abc import Sequence
from typing import Any, NamedTuple

from fleetcron.api import worker_shapes as shapes
from fleetcron.api.access import Caller, TheCaller, TheContext, require_still
from fleetcron.api.context import Context
from fleetcron.api.problems import Problem, wrong
from fleetcron.api.routing import needs, router
from fleetcron.api.workers import WorkerId, own
from fleetcron.errors import RefusedError
from fleetcron.executors.assignment import Assignment
from fleetcron.model.access import Role
from fleetcron.model.outcome import Failed, Fault
from fleetcron.model.pool import lendable
from fleetcron.model.secret import names_in
from fleetcron.model.target import handler_key, target_document
from fleetcron.policy.choose import choose
from fleetcron.store.claims import Claim, Claimed, Taken
from fleetcron.store.ends import Ended
from fleetcron.views.asking import answer
from fleetcron.views.instants import as_json as instant_json
from fleetcron.worker.assigning import assignment
from fleetcron.worker.intake import NOTHING, unreadable
from fleetcron.worker.settling import settling

routes = router("workers")


class _Work(NamedTuple):
    """A run that was claimed; `fault`: why it cannot be given to this worker."""

    run: Claimed
    made: Assignment
    secrets: Sequence[str]
    fault: Fault | None


@routes.post("/workers/{worker_id}/claim", response_model=shapes.Claimed, summary="Get work", **needs(Role.WORKER))
async def claim_runs(context: TheContext, caller: TheCaller, worker_id: WorkerId, body: shapes.Claim) -> dict[str, Any]:
    """Runs that are due now, for their next attempt. 409 if the worker was declared lost: stop everything, and join
    anew. Secrets are never sent: a run that names some is given to a worker that says `resolves_secrets`; for others
    its attempt fails with the code `secret_missing`."""
    slots = await _slots(context, caller, worker_id, body.pool)
    loop = asyncio.get_running_loop()
    until_s = loop.time() + body.wait_s
    if body.batch is not None and body.wait_s:  # a claim under an id is made once: asked again, it answers the same
        await _has_come(context, caller, body.pool, until_s)
        until_s = 0
    while True:
        batch = body.batch or context.new_id()
        taken = await _taken(context, worker_id, slots, body, batch)
        if taken.runs or not await _has_come(context, caller, body.pool, until_s):
            break
    work = await _work(context, taken, body)
    await _fail(context, worker_id, [each for each in work if each.fault is not None], taken.now_ms)
    return {
        "now": instant_json(taken.now_ms),
        "batch": batch,
        "runs": [_shown(each, body.pool) for each in work if each.fault is None],
    }


async def _slots(context: Context, caller: Caller, worker_id: str, pool: str) -> int:
    """How many of the pool's runs it may hold in all, as it said when it joined."""
    own(caller, worker_id)
    if not caller.may_claim(pool):
        raise Problem(403, f"this key may not claim from the pool {pool}")
    for worker in (await context.store.workers.list()).workers:
        if worker.node_id == worker_id:
            if pool not in worker.pools:
                raise wrong("/pool", f"this worker did not say that it serves {pool}", "join with all its pools")
            return worker.pools[pool]
    raise RefusedError("this worker was declared lost, or has left: stop its work, and join anew")


async def _has_come(context: Context, caller: Caller, pool: str, until_s: float) -> bool:
    """Wait until there may be something to claim; false when the time is over. Whoever has waited shows that his key
    still holds, before anything is claimed for him: a run that is claimed and not handed out waits for its lease."""
    if until_s <= asyncio.get_running_loop().time():
        return False
    has_come = await context.arrivals.come(pool, until_s)
    await require_still(context, caller)
    return has_come


async def _taken(context: Context, worker_id: str, slots: int, body: shapes.Claim, batch: str) -> Taken:
    """Queue what is due (whoever claims does it; it may be the only worker), then claim."""
    await context.arrivals.queue_due()
    lanes = [held.lane for held in (await context.store.workers.begun(worker_id)).held if held.pool == body.pool]
    room = max(0, min(body.room, slots - len(lanes)))
    is_turn = context.turns.is_of_catchup(worker_id, body.pool)
    wish = Claim(
        worker_id,
        batch,
        body.pool,
        room,
        lendable(slots, room, lanes.count("catchup")),
        lacks=tuple(body.lacks),
        early_room=0,
        catchup_first=slots == 1 and is_turn,
        catchup_turn=is_turn,
        is_kept=body.batch is not None,  # the first sending may arrive after the second, which found nothing
    )
    taken = await answer(lambda: context.store.claims.claim(wish, choose))
    if taken.runs:
        context.turns.note(worker_id, body.pool, taken.runs[-1].lane)
    return taken


async def _work(context: Context, taken: Taken, body: shapes.Claim) -> list[_Work]:
    versions = {(run.job_id, run.revision) for run in taken.runs}
    errands = await context.store.definitions.read(sorted(versions)) if versions else {}
    found = []
    for run in taken.runs:
        errand = errands.get((run.job_id, run.revision))
        made = assignment(run, errand or NOTHING, taken.now_ms)
        secrets = sorted(names_in(made.target, made.payload))
        fault = None
        if errand is None:
            fault = unreadable(run.revision)
        elif secrets and not body.resolves_secrets:
            fault = Fault("secret_missing", _no_secrets(secrets, run.tenant))
        found.append(_Work(run, made, secrets, fault))
    return found


def _no_secrets(names: Sequence[str], tenant: str) -> str:
    return (
        f"a worker over HTTP gets no secrets, and the job names {', '.join(names)} of the tenant {tenant}: let the "
        "worker put them in itself and claim with resolves_secrets, or run the job in a pool of fleetcron's own workers"
    )


async def _fail(context: Context, worker_id: str, work: Sequence[_Work], now_ms: int) -> None:
    """Safe to repeat: whoever asks again under the same batch finds them gone, or has them fail then."""
    if not work:
        return
    errands = await context.store.definitions.held_by(worker_id)
    ended = [
        Ended(each.run.run_id, each.run.attempt, Failed(each.fault), now_ms, now_ms)
        for each in work
        if each.fault is not None
    ]
    settle = settling(errands, context.chance)
    await answer(lambda: context.store.attempts.finish(worker_id, ended, settle, again=True))


def _shown(work: _Work, pool: str) -> dict[str, Any]:
    made = work.made
    window = made.window_ms or (None, None)
    return {
        "run_id": made.run_id,
        "attempt": made.attempt,
        "batch": work.run.batch,
        "fence": made.fence,
        "tenant": made.tenant,
        "job": made.job,
        "job_id": made.job_id,
        "pool": pool,
        "lane": work.run.lane,
        "handler": handler_key(made.target),
        "run": target_document(made.target),
        "payload": dict(made.payload),
        "secrets": list(work.secrets),
        "scheduled_for": instant_json(made.scheduled_for_ms),
        "covers": made.covers,
        "window_from": instant_json(window[0]),
        "window_to": instant_json(window[1]),
        "idempotency_key": made.idempotency_key,
        "timeout_ms": made.timeout_ms,
    }
