"""What people do to runs: cancel, replay, discard, one or many; and the dead letters."""

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Annotated, Any, Final, TypeAlias

from fastapi import Body, Query
from pydantic import Field

from fleetcron.api import run_shapes as shapes
from fleetcron.api.access import Caller, Tenant, TheCaller, TheContext
from fleetcron.api.context import Context
from fleetcron.api.parameters import Asked, Cursor, Instant, Limit, RunId, Words, cursor_of, from_cursor, instant_ms
from fleetcron.api.problems import Problem, not_found
from fleetcron.api.routing import needs, router
from fleetcron.model.access import Role
from fleetcron.store.steering import BATCH, DeadFilter, Steered
from fleetcron.store.written import Written
from fleetcron.views.asking import answer
from fleetcron.views.past import dead_json
from fleetcron.views.replaying import replay
from fleetcron.views.runs import steered_json

routes = router("runs")
MOST: Final = 1_000  # runs of one call: one transaction
Verb: TypeAlias = Callable[[Sequence[int]], Awaitable[list[Steered]]]  # asked until its answer is known
RunIds = Annotated[
    list[Annotated[int, Field(ge=1, le=2**63 - 1)]],
    Field(min_length=1, max_length=MOST, description="numbers of runs"),
]
Reason = Annotated[Words, Field(min_length=1, max_length=300, description="what the history says")]


class Cancel(Asked):
    reason: Reason | None = None


class Discard(Asked):
    reason: Reason


class CancelMany(Cancel):
    run_ids: RunIds


class ReplayMany(Asked):
    run_ids: RunIds


class DiscardMany(Discard):
    run_ids: RunIds


class ReplayDead(Asked):
    """Which dead letters: all that are like that, the oldest first."""

    job: Words | None = Field(default=None, max_length=200)
    type: Words | None = Field(default=None, max_length=200)
    error: Words | None = Field(default=None, max_length=200, description="the code of the last error")
    from_: Words | None = Field(default=None, alias="from", description="that died from this instant on")
    to: Words | None = Field(default=None, description="that died before this instant")
    limit: int = Field(default=10_000, ge=1, le=100_000)
    dry_run: bool = False


@routes.post(
    "/runs/{run_id:number}/cancel", response_model=shapes.SteeredRun, summary="Cancel a run", **needs(Role.OPERATOR)
)
async def cancel_run(
    context: TheContext, caller: TheCaller, run_id: RunId, body: Annotated[Cancel, Body(default_factory=Cancel)]
) -> dict[str, Any]:
    """At once, if it does not run; a running one is asked to stop."""
    verb = _asked(partial(context.store.steering.cancel, reason=body.reason, actor=caller.actor))
    return await _one(context, caller, run_id, verb)


@routes.post(
    "/runs/{run_id:number}/replay", response_model=shapes.SteeredRun, summary="Replay a run", **needs(Role.OPERATOR)
)
async def replay_run(context: TheContext, caller: TheCaller, run_id: RunId) -> dict[str, Any]:
    """A dead or cancelled run is opened again: the same run with the same idempotency key, in the catch-up lane."""
    return await _one(context, caller, run_id, partial(replay, context.store.steering, actor=caller.actor))


@routes.post(
    "/runs/{run_id:number}/discard",
    response_model=shapes.SteeredRun,
    summary="Discard a dead run",
    **needs(Role.OPERATOR),
)
async def discard_run(context: TheContext, caller: TheCaller, run_id: RunId, body: Discard) -> dict[str, Any]:
    """It stays dead and in the history, and leaves the list of dead letters."""
    verb = _asked(partial(context.store.steering.discard, reason=body.reason, actor=caller.actor))
    return await _one(context, caller, run_id, verb)


@routes.post("/runs/cancel", response_model=shapes.SteeredRuns, summary="Cancel many runs", **needs(Role.OPERATOR))
async def cancel_runs(context: TheContext, caller: TheCaller, body: CancelMany) -> dict[str, Any]:
    verb = _asked(partial(context.store.steering.cancel, reason=body.reason, actor=caller.actor))
    return {"runs": await _many(context, caller, body.run_ids, verb)}


@routes.post("/runs/replay", response_model=shapes.SteeredRuns, summary="Replay many runs", **needs(Role.OPERATOR))
async def replay_runs(context: TheContext, caller: TheCaller, body: ReplayMany) -> dict[str, Any]:
    verb = partial(replay, context.store.steering, actor=caller.actor)
    return {"runs": await _many(context, caller, body.run_ids, verb)}


@routes.post(
    "/runs/discard", response_model=shapes.SteeredRuns, summary="Discard many dead runs", **needs(Role.OPERATOR)
)
async def discard_runs(context: TheContext, caller: TheCaller, body: DiscardMany) -> dict[str, Any]:
    verb = _asked(partial(context.store.steering.discard, reason=body.reason, actor=caller.actor))
    return {"runs": await _many(context, caller, body.run_ids, verb)}


@routes.get("/dead", response_model=shapes.DeadPage, summary="List dead letters", **needs(Role.VIEWER))
async def list_dead_letters(
    context: TheContext,
    caller: TheCaller,
    tenant: Tenant = None,
    job: Annotated[str | None, Query(max_length=200)] = None,
    type: str | None = None,  # noqa: A002 - the name of the parameter
    error: Annotated[str | None, Query(description="the code of the last error")] = None,
    from_: Annotated[str | None, Query(alias="from", max_length=64)] = None,
    to: Instant = None,
    limit: Limit = 100,
    cursor: Cursor = None,
) -> dict[str, Any]:
    """Runs that have failed for good and that nobody has discarded, the newest first."""
    own = caller.tenants(tenant) if job is None else caller.tenant(tenant)
    wanted = DeadFilter(own, job, type, error, instant_ms("from", from_), instant_ms("to", to))
    after = from_cursor(cursor, int)
    found = await context.store.steering.dead(wanted, limit=limit + 1, before_id=after[0] if after else None)
    letters = found[:limit]
    return {
        "dead": [dead_json(each) for each in letters],
        "next": cursor_of(letters[-1].run_id) if len(found) > limit else None,
    }


@routes.post("/dead/replay", response_model=shapes.ReplayedMany, summary="Replay dead letters", **needs(Role.OPERATOR))
async def replay_dead_letters(
    context: TheContext, caller: TheCaller, body: ReplayDead, tenant: Tenant = None
) -> dict[str, Any]:
    """All that are like that, some hundred at a time. Safe to repeat: what was replayed is not met again."""
    own = caller.tenants(tenant) if body.job is None else caller.tenant(tenant)
    wanted = DeadFilter(own, body.job, body.type, body.error, instant_ms("from", body.from_), instant_ms("to", body.to))
    count = await context.store.steering.count_dead(wanted)
    until_now = wanted.until(count.now_ms)
    done, after_id = 0, 0
    while not body.dry_run and done < body.limit:
        most = min(BATCH, body.limit - done)
        batch = await answer(
            partial(context.store.steering.replay_many, until_now, actor=caller.actor, after_id=after_id, limit=most)
        )
        done += batch.runs
        if batch.after_id is None:
            break
        after_id = batch.after_id
    return {"dead": count.runs, "can_be_replayed": count.open, "replayed": done, "dry_run": body.dry_run}


def _asked(verb: Callable[[Sequence[int]], Awaitable[Written[list[Steered]]]]) -> Verb:
    async def ask(run_ids: Sequence[int]) -> list[Steered]:
        return await answer(lambda: verb(run_ids))

    return ask


async def _one(context: Context, caller: Caller, run_id: int, verb: Verb) -> dict[str, Any]:
    await _check(context, caller, [run_id])
    [done] = await verb([run_id])
    if done.done == "refused":
        raise Problem(409, f"run {run_id}: {done.reason}")
    return steered_json(done)


async def _many(context: Context, caller: Caller, run_ids: Sequence[int], verb: Verb) -> list[dict[str, Any]]:
    """One answer for each; for what does not exist for whoever asks, that there is no such run."""
    mine = await _mine(context, caller, run_ids)
    done = {each.run_id: each for each in (await verb(mine) if mine else [])}
    return [
        steered_json(done.get(run_id) or Steered(run_id, "refused", reason="there is no such run"))
        for run_id in dict.fromkeys(run_ids)
    ]


async def _check(context: Context, caller: Caller, run_ids: Sequence[int]) -> None:
    mine = await _mine(context, caller, run_ids)
    for run_id in run_ids:
        if run_id not in mine:
            raise not_found(f"run {run_id}")


async def _mine(context: Context, caller: Caller, run_ids: Sequence[int]) -> list[int]:
    """A job never changes its tenant, so this cannot change before the verb."""
    tenants = await context.store.history.tenants(run_ids)
    return [run_id for run_id in dict.fromkeys(run_ids) if run_id in tenants and caller.sees(tenants[run_id])]
