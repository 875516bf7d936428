"""What people do to a job between two edits: pause, resume, cancel, trigger, backfill."""

import secrets
from typing import Annotated, Any

from fastapi import Body, Header
from pydantic import Field

from fleetcron.api import job_shapes as shapes
from fleetcron.api.access import Caller, Tenant, TheCaller, TheContext
from fleetcron.api.context import digest
from fleetcron.api.job_names import Name
from fleetcron.api.jobs import ended_json, the_job
from fleetcron.api.parameters import Asked, Words, instant_ms
from fleetcron.api.problems import Problem, wrong
from fleetcron.api.routing import needs, router
from fleetcron.model.access import Role
from fleetcron.model.rules import MisfirePolicy
from fleetcron.scheduler.backfill import LIMIT
from fleetcron.scheduler.backfill import backfill as fill
from fleetcron.store.steering import LONGEST_KEY
from fleetcron.views.asking import answer
from fleetcron.views.jobs import steered_json
from fleetcron.views.runs import backfilled_json, triggered_json

routes = router("jobs")


class Pause(Asked):
    on_resume: MisfirePolicy | None = Field(default=None, description="what becomes of the ticks meanwhile: skip")


class Resume(Asked):
    missed: MisfirePolicy | None = Field(default=None, description="what becomes of the paused ticks: as paused")


class Trigger(Asked):
    payload: dict[str, Any] | None = Field(default=None, description="instead of the job's own")
    key: Annotated[Words, Field(min_length=1, max_length=LONGEST_KEY)] | None = Field(
        default=None,
        description="the same key for the same job is the same run, whoever asks, for as long as the run is kept",
    )


class Backfill(Asked):
    from_: Words = Field(alias="from", description="ticks from this instant on")
    to: Words | None = Field(default=None, description="ticks before this instant; now unless given")
    limit: int = Field(default=LIMIT, ge=1, le=LIMIT, description="more ticks are refused")
    dry_run: bool = Field(default=False, description="say what would happen, and write nothing")


@routes.post("/jobs/{name}/pause", response_model=shapes.SteeredJob, summary="Pause a job", **needs(Role.OPERATOR))
async def pause_job(
    context: TheContext,
    caller: TheCaller,
    name: Name,
    body: Annotated[Pause, Body(default_factory=Pause)],
    tenant: Tenant = None,
) -> dict[str, Any]:
    """Stop planning it until it is resumed."""
    own = caller.tenant(tenant)
    await the_job(context, own, name)
    return steered_json(await context.desk(caller.actor).pause(own, name, body.on_resume))


@routes.post("/jobs/{name}/resume", response_model=shapes.SteeredJob, summary="Resume a job", **needs(Role.OPERATOR))
async def resume_job(
    context: TheContext,
    caller: TheCaller,
    name: Name,
    body: Annotated[Resume, Body(default_factory=Resume)],
    tenant: Tenant = None,
) -> dict[str, Any]:
    """Plan it again, from now on; and say what becomes of the ticks while it was paused."""
    own = caller.tenant(tenant)
    await the_job(context, own, name)
    return steered_json(await context.desk(caller.actor).resume(own, name, body.missed))


@routes.post(
    "/jobs/{name}/cancel", response_model=shapes.EndedJob, summary="End a job for good", **needs(Role.OPERATOR)
)
async def cancel_job(context: TheContext, caller: TheCaller, name: Name, tenant: Tenant = None) -> dict[str, Any]:
    """It keeps its name and its history, and never runs again."""
    own = caller.tenant(tenant)
    await the_job(context, own, name)
    return await ended_json(context, await context.desk(caller.actor).cancel(own, name))


@routes.post(
    "/jobs/{name}/trigger",
    response_model=shapes.Triggered,
    status_code=202,
    summary="Run a job now",
    **needs(Role.OPERATOR),
)
async def trigger_job(
    context: TheContext,
    caller: TheCaller,
    name: Name,
    body: Annotated[Trigger, Body(default_factory=Trigger)],
    tenant: Tenant = None,
    idempotency_key_: Annotated[str | None, Header(alias="Idempotency-Key", include_in_schema=False)] = None,
) -> dict[str, Any]:
    """Whatever its schedule says, also if it is paused. The run has an identity of its own, and never takes the place
    of a tick.

    A `key` in the body belongs to the run: asking again with it gives the same run, with whatever key of the API, and
    also on the database (`jobs trigger --key`, `app.enqueue(key=…)`). With an `Idempotency-Key`, which belongs to the
    request, asking again gives the same run even if the first server has died: of this key of the API, for 24 hours."""
    line = await the_job(context, caller.tenant(tenant), name)
    key = body.key or _own_key(caller, idempotency_key_)
    made = await answer(
        lambda: context.store.steering.trigger(line.job.job_id, body.payload, actor=caller.actor, key=key)
    )
    return triggered_json(made)


@routes.post(
    "/jobs/{name}/backfill", response_model=shapes.Backfilled, summary="Runs for past ticks", **needs(Role.OPERATOR)
)
async def backfill_job(
    context: TheContext, caller: TheCaller, name: Name, body: Backfill, tenant: Tenant = None
) -> dict[str, Any]:
    """The ticks of the past that have no run get one, in the catch-up lane. Safe to repeat."""
    own = caller.tenant(tenant)
    await the_job(context, own, name)
    from_ms, to_ms = _instant("/from", body.from_), _instant("/to", body.to)
    until_ms = await context.now_ms() + 1 if to_ms is None else to_ms
    assert from_ms is not None
    done = await fill(
        context.store, own, name, from_ms, until_ms, actor=caller.actor, limit=body.limit, dry_run=body.dry_run
    )
    return backfilled_json(own, name, from_ms, until_ms, done, dry_run=body.dry_run)


def _own_key(caller: Caller, request_key: str | None) -> str:
    """Of a run that was asked for without a key: nobody else's, so it says whose it is."""
    return secrets.token_hex(16) if request_key is None else digest(caller.key_id, request_key)


def _instant(pointer: str, text: str | None) -> int | None:
    try:
        return instant_ms(pointer, text)
    except Problem:
        raise wrong(pointer, "is not an instant", "write it as 2027-01-01T09:00:00Z") from None
