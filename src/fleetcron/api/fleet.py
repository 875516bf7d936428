"""The fleet: figures of a day, tenants, pools, nodes and shards, calendars."""

from typing import Annotated, Any, Final

from fastapi import Path

from fleetcron.api import fleet_shapes as shapes
from fleetcron.api.access import Tenant, TheCaller, TheContext
from fleetcron.api.context import Context
from fleetcron.api.jobs import tenant_in
from fleetcron.api.parameters import CalendarBody, Limit
from fleetcron.api.problems import not_found, wrong
from fleetcron.api.routing import needs, router
from fleetcron.model.access import Role
from fleetcron.model.calendar import CalendarDocument
from fleetcron.model.reading import read_calendar
from fleetcron.store.limits import TenantLine
from fleetcron.store.looking import Changed
from fleetcron.store.steering import DeadFilter
from fleetcron.views.asking import answer
from fleetcron.views.calendars import stored_calendars
from fleetcron.views.fleet import changed_json, fleet_json, limited_json, pool_json
from fleetcron.views.instants import as_json as instant_json
from fleetcron.views.top import top, top_json

routes = router("fleet")
_DAY_MS: Final = 24 * 3_600_000
TenantName = Annotated[str, Path(max_length=200, description="the name of a tenant")]
PoolName = Annotated[str, Path(max_length=200, description="the name of a pool")]
CalendarName = Annotated[str, Path(max_length=200, description="the name of a calendar")]


@routes.get("/overview", response_model=shapes.Overview, summary="The figures of the last day", **needs(Role.VIEWER))
async def get_overview(context: TheContext, caller: TheCaller, tenant: Tenant = None) -> dict[str, Any]:
    """Of the runs that ended in the last 24 hours, and what is there now. A run that was created more than a day before
    that is not counted."""
    own = caller.tenants(tenant)
    now_ms = await context.now_ms()
    found = await context.store.figures.ended(own, now_ms - _DAY_MS)
    lines = [await context.store.limits.tenant(own)] if own else await context.store.limits.tenants()
    dead = await context.store.steering.count_dead(DeadFilter(own))
    return {
        "now": instant_json(now_ms),
        "since": instant_json(now_ms - _DAY_MS),
        "succeeded": found.states["succeeded"],
        "failed": found.states["dead"] + found.states["expired"],
        "dead": found.states["dead"],
        "cancelled": found.states["cancelled"],
        "skipped": found.states["skipped"] + found.states["merged"],
        "running": sum(line.usage.in_flight for line in lines),
        "queued": sum(line.usage.queued for line in lines),
        "average_duration_ms": found.average_ms,
        "jobs": {
            "open": sum(line.usage.jobs - line.usage.ended for line in lines),
            "ended": sum(line.usage.ended for line in lines),
        },
        "dead_letters": dead.runs,
    }


# -- tenants


@routes.get("/tenants", response_model=shapes.Tenants, summary="List tenants", **needs(Role.VIEWER))
async def list_tenants(context: TheContext, caller: TheCaller) -> dict[str, Any]:
    """Everybody who has jobs, runs or limits. A key of one tenant sees that one."""
    own = caller.credential.tenant
    lines = [await context.store.limits.tenant(own)] if own else await context.store.limits.tenants()
    return {"tenants": [_tenant_json(line) for line in lines]}


@routes.get("/tenants/{name}", response_model=shapes.Tenant, summary="Show a tenant", **needs(Role.VIEWER))
async def get_tenant(context: TheContext, caller: TheCaller, name: TenantName) -> dict[str, Any]:
    """What it may have and what it uses. A tenant that nobody knows has the defaults."""
    return _tenant_json(await context.store.limits.tenant(caller.tenant(name)))


@routes.patch("/tenants/{name}", response_model=shapes.Limits, summary="Set limits of a tenant", **needs(Role.ADMIN))
async def set_tenant_limits(
    context: TheContext, caller: TheCaller, name: TenantName, body: dict[str, Any]
) -> dict[str, Any]:
    """weight, max_jobs, max_in_flight, rate, burst, max_payload; null takes a limit away. Only an admin of all tenants
    may: nobody raises his own limits."""
    caller.needs_fleet()
    done = await answer(lambda: context.store.limits.put_tenant(name, body, actor=caller.actor))
    return _changed(name, done)


@routes.delete(
    "/tenants/{name}/limits", response_model=shapes.Limits, summary="Take its limits away", **needs(Role.ADMIN)
)
async def reset_tenant_limits(context: TheContext, caller: TheCaller, name: TenantName) -> dict[str, Any]:
    """The defaults again. Its jobs stay."""
    caller.needs_fleet()
    return _changed(name, await answer(lambda: context.store.limits.delete_tenant(name, actor=caller.actor)))


def _tenant_json(line: TenantLine) -> dict[str, Any]:
    return limited_json(line.tenant, line.usage, line.updated_ms)


def _changed(name: str, changed: Changed[Any]) -> dict[str, Any]:
    return {"name": name, **changed_json(changed)}


# -- pools


@routes.get("/pools", response_model=shapes.Pools, summary="List pools", **needs(Role.VIEWER))
async def list_pools(context: TheContext, caller: TheCaller) -> dict[str, Any]:
    """Every pool that has jobs, runs, workers or limits. Pools belong to the fleet."""
    caller.needs_fleet()
    return {"pools": [pool_json(line) for line in await context.store.limits.pools()]}


@routes.patch("/pools/{name}", response_model=shapes.Limits, summary="Set limits of a pool", **needs(Role.ADMIN))
async def set_pool_limits(
    context: TheContext, caller: TheCaller, name: PoolName, body: dict[str, Any]
) -> dict[str, Any]:
    """slots, per_tenant, per_type; null takes a limit away."""
    caller.needs_fleet()
    return _changed(name, await answer(lambda: context.store.limits.put_pool(name, body, actor=caller.actor)))


@routes.delete(
    "/pools/{name}/limits", response_model=shapes.Limits, summary="Take its limits away", **needs(Role.ADMIN)
)
async def reset_pool_limits(context: TheContext, caller: TheCaller, name: PoolName) -> dict[str, Any]:
    """It has what its workers have."""
    caller.needs_fleet()
    return _changed(name, await answer(lambda: context.store.limits.delete_pool(name, actor=caller.actor)))


# -- nodes


@routes.get("/nodes", response_model=shapes.Fleet, summary="List nodes", **needs(Role.VIEWER))
async def list_nodes(context: TheContext, caller: TheCaller) -> dict[str, Any]:
    """Who lives, since when, how far its clock is off, and who plans which shard."""
    caller.needs_fleet()
    return fleet_json(await context.store.shards.view(), await context.store.shards.number())


@routes.get("/shards", response_model=shapes.Shards, summary="List shards", **needs(Role.VIEWER))
async def list_shards(context: TheContext, caller: TheCaller) -> dict[str, Any]:
    """Into how many slices the jobs are divided, and who plans which."""
    caller.needs_fleet()
    told = fleet_json(await context.store.shards.view(), await context.store.shards.number())
    return {"shards": told["shards"], "leases": told["leases"]}


@routes.get("/top", response_model=shapes.Top, summary="The fleet at a glance", **needs(Role.VIEWER))
async def get_top(context: TheContext, caller: TheCaller, limit: Limit = 10) -> dict[str, Any]:
    """Pools, nodes, what runs, and what has failed lately; `limit` is for runs and failures, of each."""
    caller.needs_fleet()
    return top_json(await top(context.store, limit))


# -- calendars


@routes.get("/calendars", response_model=shapes.Calendars, summary="List calendars", **needs(Role.VIEWER))
async def list_calendars(context: TheContext, caller: TheCaller, tenant: Tenant = None) -> dict[str, Any]:
    own = caller.tenants(tenant)
    found = await stored_calendars(context.store)
    return {"calendars": [each.as_document() for each in found if own in (None, each.tenant)]}


@routes.get("/calendars/{name}", response_model=shapes.Calendar, summary="Show a calendar", **needs(Role.VIEWER))
async def get_calendar(
    context: TheContext, caller: TheCaller, name: CalendarName, tenant: Tenant = None
) -> dict[str, Any]:
    return (await _the_calendar(context, caller.tenant(tenant), name)).as_document()


@routes.put("/calendars/{name}", response_model=shapes.Adopted, summary="Create or change one", **needs(Role.OPERATOR))
async def put_calendar(
    context: TheContext, caller: TheCaller, name: CalendarName, body: CalendarBody, tenant: Tenant = None
) -> dict[str, Any]:
    """The ticks of the jobs that use it move in the same transaction."""
    own = tenant_in(caller, tenant, body)
    if body.get("name", name) != name:
        raise wrong("/name", f"is not {name}")
    document = read_calendar({**body, "tenant": own, "name": name})
    adopted = await context.desk(caller.actor).put_calendar(document)
    moved = any(table.part.kind == "calendar" for table in adopted.tables)
    return {
        "tenant": own,
        "name": name,
        "done": "changed" if moved else "unchanged",
        "jobs_moved": adopted.jobs,
        "jobs_stuck": adopted.stuck,
        "calendar": document.as_document(),
    }


async def _the_calendar(context: Context, tenant: str, name: str) -> CalendarDocument:
    for each in await stored_calendars(context.store):
        if (each.tenant, each.name) == (tenant, name):
            return each
    raise not_found(f"calendar {name} of tenant {tenant}")
