"""What there is to see of one job: its next ticks, its figures, its revisions; and of one that is not saved yet."""

import asyncio
from datetime import datetime
from typing import Annotated, Any, Final

from fastapi import Query

from fleetcron.api import job_shapes as shapes
from fleetcron.api.access import Tenant, TheCaller, TheContext
from fleetcron.api.context import Context
from fleetcron.api.job_names import Name
from fleetcron.api.jobs import defined, tenant_in, the_job
from fleetcron.api.parameters import Instant, JobBody, Limit, instant_ms
from fleetcron.api.problems import not_found
from fleetcron.api.routing import needs, router
from fleetcron.model.access import Role
from fleetcron.model.job import Revision, changes
from fleetcron.model.target import unserved
from fleetcron.model.timing import Timing
from fleetcron.scheduler.tables import Tables
from fleetcron.times.explain import explain
from fleetcron.times.instants import from_ms
from fleetcron.times.preview import preview as rows_of
from fleetcron.times.timetable import Timetable
from fleetcron.views.able import fleet
from fleetcron.views.instants import as_json as instant_json
from fleetcron.views.instants import zone_of
from fleetcron.views.jobs import revision_json

routes = router("jobs")
_DAY_MS: Final = 24 * 3_600_000
_FAILED: Final = ("dead", "expired")
Count = Annotated[int, Query(ge=1, le=500, description="how many ticks")]
Number = Annotated[int | None, Query(ge=1, le=2**31 - 1)]


@routes.get("/jobs/{name}/next", response_model=shapes.Ticks, summary="The next ticks of a job", **needs(Role.VIEWER))
async def next_ticks_of_job(
    context: TheContext,
    caller: TheCaller,
    name: Name,
    count: Count = 10,
    after: Instant = None,
    tenant: Tenant = None,
) -> dict[str, Any]:
    """In UTC and in its zone, with what clock changes do to them; whether it is paused or not."""
    own = caller.tenant(tenant)
    line = await the_job(context, own, name)
    found = await context.store.jobs.find([(own, name)])
    if (own, name) not in found.standings:
        raise not_found(f"job {name} of tenant {own}")
    timetable = await _timetable(context, found.standings[own, name].timing, found.epoch)
    zone = zone_of(line.job.definition)
    since_ms = instant_ms("after", after)
    rows = rows_of(timetable, from_ms(found.now_ms if since_ms is None else since_ms), count, zone)
    return {"tenant": own, "name": name, "timezone": zone.name, "ticks": [row.as_json() for row in rows]}


@routes.get("/jobs/{name}/stats", response_model=shapes.Stats, summary="The figures of a job", **needs(Role.VIEWER))
async def get_job_stats(
    context: TheContext,
    caller: TheCaller,
    name: Name,
    from_: Annotated[str | None, Query(alias="from", max_length=64)] = None,
    to: Instant = None,
    tenant: Tenant = None,
) -> dict[str, Any]:
    """Of its runs with a tick in [from, to): the last 30 days unless said otherwise."""
    own = caller.tenant(tenant)
    line = await the_job(context, own, name)
    until_ms = instant_ms("to", to)
    until_ms = await context.now_ms() + 1 if until_ms is None else until_ms
    since_ms = instant_ms("from", from_)
    since_ms = until_ms - 30 * _DAY_MS if since_ms is None else since_ms
    found = await context.store.figures.of_job(line.job.job_id, since_ms, until_ms)
    failures = sum(found.states[state] for state in _FAILED)
    judged = failures + found.states["succeeded"]
    return {
        "tenant": own,
        "name": name,
        "from": instant_json(since_ms),
        "to": instant_json(until_ms),
        "total_runs": found.states.total(),
        "states": dict(sorted(found.states.items())),
        "failures": failures,
        "success_rate": round(100 * found.states["succeeded"] / judged, 2) if judged else None,
        "average_duration_ms": found.average_ms,
        "longest_duration_ms": found.longest_ms,
    }


@routes.get(
    "/jobs/{name}/revisions", response_model=shapes.Revisions, summary="Who changed a job", **needs(Role.VIEWER)
)
async def list_job_revisions(
    context: TheContext, caller: TheCaller, name: Name, limit: Limit = 100, tenant: Tenant = None
) -> dict[str, Any]:
    """The newest first, with the fields that each has changed; also of jobs of this name that were deleted."""
    own = caller.tenant(tenant)
    found = await _revisions(context, own, name, limit)
    return {"revisions": [revision_json(each) for each in found]}


@routes.get(
    "/jobs/{name}/diff", response_model=shapes.Diff, summary="What differs between revisions", **needs(Role.VIEWER)
)
async def diff_job_revisions(
    context: TheContext,
    caller: TheCaller,
    name: Name,
    from_: Annotated[int, Query(alias="from", ge=1, le=2**31 - 1, description="a revision")],
    to: Number = None,
    tenant: Tenant = None,
) -> dict[str, Any]:
    """From one revision to another, the newest unless one is named."""
    own = caller.tenant(tenant)
    line = await the_job(context, own, name)
    known = {each.revision: each for each in await context.store.jobs.revisions(line.job.job_id, 10_000)}
    last = line.job.revision if to is None else to
    for number in (from_, last):
        if number not in known:
            raise not_found(f"revision {number} of {name}")
    found = changes(known[from_].after, known[last].after)
    return {
        "tenant": own,
        "name": name,
        "from": from_,
        "to": last,
        "changes": [{"field": each.field, "old": each.old, "new": each.new} for each in found],
    }


@routes.post(
    "/jobs/preview", response_model=shapes.Preview, summary="Look at a job before it is saved", **needs(Role.VIEWER)
)
async def preview_job(
    context: TheContext, caller: TheCaller, body: JobBody, count: Count = 10, tenant: Tenant = None
) -> dict[str, Any]:
    """Its ticks under the fleet's own tables, what it means, and what is probably not meant. Writes nothing."""
    own = tenant_in(caller, tenant, body)
    definition = await defined(context, {**body, "tenant": own})
    found = await context.store.jobs.find(())
    timetable = await _timetable(context, definition.timing(found.now_ms), found.epoch)
    now: datetime = from_ms(found.now_ms)
    timetable.check(now)
    zone = zone_of(definition)
    warning = (await fleet(context.store)).doubt(definition) or unserved(definition.run)
    said = (await asyncio.to_thread(explain, timetable, now)).as_json()  # it walks through two years
    return {
        "schedule": said["schedule"],
        "clock_changes": said["clock_changes"],
        "verdict": said["verdict"],
        "definition": definition.as_document(),
        "timezone": zone.name,
        "ticks": [row.as_json() for row in rows_of(timetable, now, count, zone)],
        "findings": said["findings"],
        "warnings": [] if warning is None else [warning],
    }


async def _timetable(context: Context, timing: Timing, epoch: int) -> Timetable:
    timetable, _ = await Tables(context.store.almanac).timetable(timing, epoch)
    return timetable


async def _revisions(context: Context, tenant: str, name: str, limit: int) -> list[Revision]:
    jobs = await context.store.jobs.named(tenant, name)
    if not jobs:
        raise not_found(f"job {name} of tenant {tenant}")
    found: list[Revision] = []
    for job in jobs:
        found += await context.store.jobs.revisions(job.job_id, limit - len(found))
        if len(found) >= limit:
            break
    return found
