"""Runs: by time and state, one with everything about it, why it stands where it stands."""

from typing import Annotated, Any

from fastapi import Query

from fleetcron.api import run_shapes as shapes
from fleetcron.api.access import Caller, Tenant, TheCaller, TheContext
from fleetcron.api.context import Context
from fleetcron.api.job_names import Name
from fleetcron.api.parameters import Cursor, Instant, Limit, RunId, cursor_of, from_cursor, instant_ms
from fleetcron.api.problems import not_found
from fleetcron.api.routing import needs, router
from fleetcron.model.access import Role
from fleetcron.model.states import RunState
from fleetcron.store.history import RunShown, Span
from fleetcron.views.runs import attempt_json, line_json, run_json
from fleetcron.views.sentence import sentence
from fleetcron.views.why import of_run, of_tick, why_json

routes = router("runs")
From = Annotated[str | None, Query(alias="from", max_length=64, description="ticks from this instant on (RFC 3339)")]
JobName = Annotated[str | None, Query(max_length=200, description="of this job")]


@routes.get("/runs", response_model=shapes.RunPage, summary="List runs", **needs(Role.VIEWER))
async def list_runs(
    context: TheContext,
    caller: TheCaller,
    tenant: Tenant = None,
    job: JobName = None,
    state: RunState | None = None,
    from_: From = None,
    to: Instant = None,
    planned: Annotated[bool, Query(description="also runs that are planned for later")] = False,
    limit: Limit = 100,
    cursor: Cursor = None,
) -> dict[str, Any]:
    """The newest first: of the fleet, a tenant or a job, with a tick in [from, to), in a state."""
    own = caller.tenants(tenant) if job is None else caller.tenant(tenant)
    return await _page(context, own, job, state, from_, to, planned, limit, cursor)


@routes.get("/jobs/{name}/runs", response_model=shapes.RunPage, summary="The runs of a job", **needs(Role.VIEWER))
async def list_job_runs(
    context: TheContext,
    caller: TheCaller,
    name: Name,
    tenant: Tenant = None,
    state: RunState | None = None,
    from_: From = None,
    to: Instant = None,
    planned: bool = False,
    limit: Limit = 50,
    cursor: Cursor = None,
) -> dict[str, Any]:
    """S1-35: its history, also of jobs of this name that were deleted."""
    own = caller.tenant(tenant)
    if not await context.store.jobs.named(own, name, 1):
        raise not_found(f"job {name} of tenant {own}")
    return await _page(context, own, name, state, from_, to, planned, limit, cursor)


async def _page(
    context: Context,
    tenant: str | None,
    name: str | None,
    state: RunState | None,
    from_: str | None,
    to: str | None,
    planned: bool,
    limit: int,
    cursor: str | None,
) -> dict[str, Any]:
    after = from_cursor(cursor, int)
    from_ms, to_ms = instant_ms("from", from_), instant_ms("to", to)
    now_ms = await context.now_ms()
    span = Span(tenant, name, from_ms, to_ms, after[0] if after else None)
    ahead = planned or to_ms is not None or (from_ms or 0) > now_ms
    found = await context.store.history.runs(span, state=state and state.value, limit=limit + 1, later=ahead)
    lines = found[:limit]
    merged = [line.run.run_id for line in lines if line.run.state is RunState.MERGED]
    workers = await context.store.history.covering(merged) if merged else {}
    return {
        "runs": [line_json(line, now_ms, workers) for line in lines],
        "next": cursor_of(lines[-1].run.run_id) if len(found) > limit else None,
        "planned_later": 0 if ahead else await context.store.history.later(span),
    }


@routes.get("/runs/{run_id:number}", response_model=shapes.FullRun, summary="Show a run", **needs(Role.VIEWER))
async def get_run(context: TheContext, caller: TheCaller, run_id: RunId) -> dict[str, Any]:
    """With its attempts, its payload, and why it stands where it stands."""
    found = await the_run(context, caller, run_id)
    situation = await context.store.situations.of_run(run_id)
    if situation is None:
        raise not_found(f"run {run_id}")
    attempts = await context.store.past_attempts.of_run(run_id)
    return run_json(found, attempts, sentence(situation, found), situation.now_ms)


@routes.get(
    "/runs/{run_id:number}/attempts", response_model=shapes.Attempts, summary="Its attempts", **needs(Role.VIEWER)
)
async def list_attempts(context: TheContext, caller: TheCaller, run_id: RunId) -> dict[str, Any]:
    """The first one first; the one that runs stands at the end."""
    found = await the_run(context, caller, run_id)
    made = await context.store.past_attempts.of_run(run_id)
    return {"attempts": [attempt_json(each, found) for each in made]}


@routes.get(
    "/runs/{run_id:number}/why", response_model=shapes.Why, summary="Why a run is as it is", **needs(Role.VIEWER)
)
async def explain_run(context: TheContext, caller: TheCaller, run_id: RunId) -> dict[str, Any]:
    """One sentence, and what it stands on."""
    await the_run(context, caller, run_id)
    found = await of_run(context.store, run_id)
    if found is None:
        raise not_found(f"run {run_id}")
    return why_json(found)


@routes.get("/jobs/{name}/why", response_model=shapes.Why, summary="What became of a tick", **needs(Role.VIEWER))
async def explain_tick(
    context: TheContext,
    caller: TheCaller,
    name: Name,
    at: Annotated[str, Query(max_length=64, description="the tick (RFC 3339)")],
    tenant: Tenant = None,
) -> dict[str, Any]:
    """Also if it has no run."""
    own = caller.tenant(tenant)
    at_ms = instant_ms("at", at)
    assert at_ms is not None
    found = await of_tick(context.store, own, name, at_ms)
    if found is None:
        raise not_found(f"job {name} of tenant {own}")
    return why_json(found)


async def the_run(context: Context, caller: Caller, run_id: int) -> RunShown:
    """A run that does not exist for whoever asks is not found, whether there is one or not."""
    found = await context.store.history.run(run_id)
    if found is None or not caller.sees(found.line.tenant):
        raise not_found(f"run {run_id}")
    return found
