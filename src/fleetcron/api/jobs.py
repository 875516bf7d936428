"""Jobs: create, list, get, replace, patch, delete."""

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from typing import Annotated, Any, Final

from fastapi import Header, Response
from fastapi.responses import JSONResponse

from fleetcron.api import job_shapes as shapes
from fleetcron.api.access import Caller, Tenant, TheCaller, TheContext
from fleetcron.api.context import Context
from fleetcron.api.job_names import Name
from fleetcron.api.job_patch import patched, replaced
from fleetcron.api.parameters import Cursor, JobBody, Limit, cursor_of, from_cursor
from fleetcron.api.problems import Problem, not_found, wrong
from fleetcron.api.routing import needs, router
from fleetcron.errors import RefusedError
from fleetcron.model.access import Role
from fleetcron.model.definition import Definition
from fleetcron.model.job import Job
from fleetcron.model.name import NAME_HINT, is_name
from fleetcron.model.reading import read_job
from fleetcron.model.states import JobState
from fleetcron.scheduler.desk import Applied, Refusal
from fleetcron.store.job_pages import JobFilter
from fleetcron.store.jobs import JobLine
from fleetcron.views.able import fleet, living
from fleetcron.views.calendars import stored_calendars
from fleetcron.views.coming import next_ticks, ticks_of
from fleetcron.views.jobs import COUNTED, job_json, line_json, stated_json, steered_json

routes = router("jobs")
TICKS: Final = 3
_TRIES: Final = 50  # of a change; each but the last means that somebody else's change was written meanwhile
IfMatch = Annotated[str | None, Header(description="the ETag of the job as you know it, or *: 428 without, or empty")]


@routes.get("/jobs", response_model=shapes.JobPage, summary="List jobs", **needs(Role.VIEWER))
async def list_jobs(
    context: TheContext,
    caller: TheCaller,
    tenant: Tenant = None,
    state: JobState | None = None,
    type: str | None = None,  # noqa: A002 - the name of the parameter
    pool: str | None = None,
    text: str | None = None,
    managed_by: str | None = None,
    limit: Limit = 100,
    cursor: Cursor = None,
) -> dict[str, Any]:
    """By tenant and name, each with its next tick, what became of its last one, and how it is."""
    after = from_cursor(cursor, str, str)
    wanted = JobFilter(
        tenant=caller.tenants(tenant),
        state=state,
        type=type,
        pool=pool,
        text=text.lower() if text else None,
        managed_by=managed_by,
        after=None if after is None else (after[0], after[1]),
    )
    found = await context.store.jobs.list(wanted, limit + 1)
    lines = found[:limit]
    coming, now_ms = await next_ticks(context.store, lines), await context.now_ms()
    last, crew = lines[-1].job.definition if len(found) > limit else None, await living(context.store)
    return {
        "jobs": [line_json(line, coming.get(line.job.job_id), now_ms, crew) for line in lines],
        "next": None if last is None else cursor_of(last.tenant, last.name),
    }


@routes.get("/definitions", response_model=shapes.Definitions, summary="Jobs as documents", **needs(Role.VIEWER))
async def list_definitions(
    context: TheContext,
    caller: TheCaller,
    tenant: Tenant = None,
    managed_by: str | None = None,
    limit: Limit = 100,
    cursor: Cursor = None,
) -> dict[str, Any]:
    """Every field of each job, as `fleetcron apply` reads it; by tenant and name."""
    after = from_cursor(cursor, str, str)
    wanted = JobFilter(
        tenant=caller.tenants(tenant), managed_by=managed_by, after=None if after is None else (after[0], after[1])
    )
    found = await context.store.jobs.list(wanted, limit + 1)
    last = found[limit - 1].job.definition if len(found) > limit else None
    return {
        "definitions": [stated_json(line.job) for line in found[:limit]],
        "next": None if last is None else cursor_of(last.tenant, last.name),
    }


@routes.post("/jobs", response_model=shapes.Job, status_code=201, summary="Create a job", **needs(Role.OPERATOR))
async def create_job(context: TheContext, caller: TheCaller, body: JobBody, tenant: Tenant = None) -> Response:
    """409 if its name is taken, or its schedule can never fire."""
    own = tenant_in(caller, tenant, body)
    definition = await defined(context, {**body, "tenant": own})
    applied = await context.desk(caller.actor).create(definition)
    return await answered(context, own, definition.name, applied, 201)


@routes.get("/jobs/{name}", response_model=shapes.Job, summary="Show a job", **needs(Role.VIEWER))
async def get_job(context: TheContext, caller: TheCaller, name: Name, tenant: Tenant = None) -> Response:
    """With every field. Its `ETag` is for whoever changes it."""
    return await answered(context, caller.tenant(tenant), name)


@routes.put("/jobs/{name}", response_model=shapes.Job, summary="Replace a job", **needs(Role.OPERATOR))
async def replace_job(
    context: TheContext,
    caller: TheCaller,
    name: Name,
    body: JobBody,
    tenant: Tenant = None,
    if_match: IfMatch = None,
) -> Response:
    """What the body does not say has its default again, except `managed_by`, which stays. Effective from the next tick
    on; no tick is lost or doubled."""
    own = tenant_in(caller, tenant, body)
    line = await the_job(context, own, name)
    match = _needed(if_match)
    if body.get("name", name) != name:
        raise wrong("/name", f"is not {name}: a job keeps its name", "create another one, and delete this one")
    return await _changed(context, caller, line, match, lambda before: replaced(before, body))


@routes.patch("/jobs/{name}", response_model=shapes.Job, summary="Change some fields of a job", **needs(Role.OPERATOR))
async def patch_job(
    context: TheContext,
    caller: TheCaller,
    name: Name,
    body: dict[str, Any],
    tenant: Tenant = None,
    if_match: IfMatch = None,
) -> Response:
    """JSON Merge Patch (RFC 7396): what is not said stays, null takes the default. A `run` of another kind replaces the
    old one whole. An object for `schedule` changes the only entry that it has (`{"schedule": {"cron": "5 5 * * *"}}`
    keeps the timezone), or replaces it by one of another kind; of several entries send the whole list. With
    `If-Match: *` it is merged into whatever the job is at that moment: nothing that others change meanwhile is lost."""
    own = tenant_in(caller, tenant, body)
    line = await the_job(context, own, name)
    match = _needed(if_match)
    if body.get("name", name) != name:
        raise wrong("/name", f"is not {name}: a job keeps its name")
    return await _changed(context, caller, line, match, lambda before: patched(before, body))


@routes.delete("/jobs/{name}", response_model=shapes.EndedJob, summary="Delete a job", **needs(Role.OPERATOR))
async def delete_job(
    context: TheContext, caller: TheCaller, name: Name, tenant: Tenant = None, if_match: IfMatch = None
) -> dict[str, Any]:
    """Its runs, ledger and revisions stay, and the name is free again."""
    own = caller.tenant(tenant)
    await the_job(context, own, name)
    refuse = _refusal(_needed(if_match))

    def still_the_same(job: Job) -> bool:
        refuse(job)
        return True

    async with _while_it_is_there(context, own, name):
        done = await context.desk(caller.actor).delete(own, name, only_if=still_the_same)
    return await ended_json(context, done)


# -- what the routes about one job share


async def the_job(context: Context, tenant: str, name: str) -> JobLine:
    found = await context.store.jobs.list(JobFilter(tenant=tenant, name=name), 1)
    if not found:
        raise not_found(f"job {name} of tenant {tenant}")
    return found[0]


async def defined(context: Context, raw: dict[str, Any]) -> Definition:
    return read_job(raw, known_calendars=await stored_calendars(context.store))


async def answered(
    context: Context, tenant: str, name: str, applied: Applied | None = None, status: int = 200
) -> Response:
    """A job with its ETag."""
    line = await the_job(context, tenant, name)
    ticks, now_ms = await ticks_of(context.store, line, TICKS), await context.now_ms()
    coming = (await next_ticks(context.store, [line])).get(line.job.job_id)
    warning = None if applied is None else applied.warning
    body = job_json(line, ticks, coming, now_ms, await fleet(context.store), warning)
    headers = {"ETag": etag(line.job)}
    if status == 201:
        headers["Location"] = f"/api/v1/jobs/{name}" + ("" if tenant == "default" else f"?tenant={tenant}")
    return JSONResponse(shapes.Job.model_validate(body).model_dump(mode="json"), status, headers)


def etag(job: Job) -> str:
    """Of a job that is made again under the same name it is another one."""
    return f'"{job.job_id[-12:]}.{job.revision}"'


async def ended_json(context: Context, applied: Applied) -> dict[str, Any]:
    """Of a job that was cancelled or deleted: how many of its runs have not started, and will not."""
    left = await context.store.history.open(applied.job.job_id, limit=COUNTED) if applied.job else ()
    return {**steered_json(applied), "not_started": sum(not run.started for run in left)}


class _Moved(Exception):
    """Somebody else has changed the job since it was read."""


async def _changed(
    context: Context,
    caller: Caller,
    line: JobLine,
    match: str,
    make: Callable[[Mapping[str, Any]], dict[str, Any]],
) -> Response:
    """`make` gets the document of the job as it is, and gives the one that it is to be; again if it has moved."""
    own = line.job.definition
    for _ in range(_TRIES):
        made = make(line.job.definition.as_document())
        definition = await defined(context, {**made, "tenant": own.tenant, "name": own.name})
        with suppress(_Moved):
            return await _edited(context, caller, definition, line, match)
        line = await the_job(context, own.tenant, own.name)
    raise Problem(409, "other changes of the same job do not end; try again")


async def _edited(context: Context, caller: Caller, definition: Definition, line: JobLine, match: str) -> Response:
    """The definition was made from what was read, and means nothing for any other revision: then it is _Moved."""
    refuse = _refusal(match)
    refuse(line.job)

    def refuse_other(job: Job) -> None:
        refuse(job)
        if etag(job) != etag(line.job):
            raise _Moved

    async with _while_it_is_there(context, definition.tenant, definition.name):
        applied = await context.desk(caller.actor).edit(definition, refuse=refuse_other)
    return await answered(context, definition.tenant, definition.name, applied)


@asynccontextmanager
async def _while_it_is_there(context: Context, tenant: str, name: str) -> AsyncIterator[None]:
    """If somebody else has deleted it meanwhile, it is 404 as for whoever comes later."""
    try:
        yield
    except RefusedError:
        await the_job(context, tenant, name)
        raise


def _needed(if_match: str | None) -> str:
    """An empty one is what a program sends that has lost the ETag: it means no version, least of all every one."""
    if if_match is None or not if_match.strip():
        said = "" if if_match is None else "If-Match is empty: "
        raise Problem(428, f"{said}send If-Match with the ETag of the job as you know it, or * for whatever it is")
    return if_match


def _refusal(match: str) -> Refusal:
    """Asked by the desk at the moment of the change: between our look and the write somebody else may be faster. Tags
    are compared as RFC 9110 wants it for changes: a weak one never matches, and * stands alone."""
    known = [tag.strip() for tag in match.split(",")]

    def refuse(job: Job) -> None:
        if known == ["*"] or etag(job) in known:
            return
        detail = f"it is at revision {job.revision} now; look at it again"
        if any(tag.startswith("W/") for tag in known):
            detail += ", and send its ETag without W/: a weak tag (a proxy on the way makes them) matches nothing"
        elif "*" in known:
            detail += ", and send its ETag, or * alone"
        raise Problem(412, detail, headers={"ETag": etag(job)})

    return refuse


def tenant_in(caller: Caller, asked: str | None, body: dict[str, Any]) -> str:
    """The tenant of a request with a document in it. A document may name it, and may not choose what a key does not
    see."""
    said = body.get("tenant")
    if said is not None and not is_name(said):
        raise wrong("/tenant", "is not a name of a tenant", NAME_HINT)
    if said is not None and asked is not None and said != asked:
        raise wrong("/tenant", f"is not {asked}, which the parameter tenant says")
    return caller.tenant(asked if said is None else said)
