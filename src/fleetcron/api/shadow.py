"""Jobs that another scheduler still runs: what it says, how that compares, and the hand-over."""

from dataclasses import replace
from typing import Annotated, Any

from fastapi import Body
from pydantic import Field

from fleetcron.api import shadow_shapes as shapes
from fleetcron.api.access import Tenant, TheCaller, TheContext
from fleetcron.api.job_names import Name
from fleetcron.api.jobs import the_job
from fleetcron.api.parameters import Asked, Cursor, Duration, Instant, Limit, Words, cursor_of, from_cursor, instant_ms
from fleetcron.api.problems import Problem, wrong
from fleetcron.api.routing import needs, router
from fleetcron.model.access import Role
from fleetcron.model.ping import LONGEST_HOST, LONGEST_ID, Event, Told
from fleetcron.store.jobs import JobFilter
from fleetcron.times.durations import duration_ms
from fleetcron.views.asking import answer
from fleetcron.views.shadow import hand_over as handed_over
from fleetcron.views.shadow import handed_json, noted_json, report_json, reports, warned

routes = router("shadow")


class Ping(Asked):
    event: Event = Field(default="end", description="the start of a command, or its end")
    id: Annotated[Words, Field(min_length=1, max_length=LONGEST_ID)] | None = Field(
        default=None, description="what ties an end to its start; a ping that is sent again is noted once"
    )
    exit_code: int | None = Field(default=None, ge=-(2**31), lt=2**31, description="of an end; 0 is success")
    duration: Duration | None = Field(default=None, description="how long the command has run, such as 90s")
    host: Annotated[Words, Field(max_length=LONGEST_HOST)] = Field(default="", description="where it ran")


class HandOver(Asked):
    at: Words | None = Field(default=None, description="the instant; the one that the report names unless given")
    anyway: bool = Field(default=False, description="also if no worker that lives could run it: some will, by then")


@routes.post("/jobs/{name}/ping", response_model=shapes.Noted, summary="The old scheduler ran it", **needs(Role.PING))
async def ping_job(
    context: TheContext,
    caller: TheCaller,
    name: Name,
    body: Annotated[Ping, Body(default_factory=Ping)],
    tenant: Tenant = None,
) -> dict[str, Any]:
    """For a line of a crontab, behind its command or around it. Instants are of the database's clock. Without a body it
    is the end of a command that succeeded."""
    own, said = caller.tenant(tenant), body
    await the_job(context, own, name)
    took_ms = None if said.duration is None else duration_ms(said.duration)
    told = Told(said.event, said.exit_code, took_ms, host=said.host)
    told = told if said.id is None else replace(told, ping_id=said.id)
    told.check()
    noted = await answer(lambda: context.store.pings.note(own, name, told))
    return noted_json(own, name, noted, await warned(context.store, own, name, noted))


@routes.get("/jobs/{name}/shadow", response_model=shapes.Comparison, summary="Compare a job", **needs(Role.VIEWER))
async def compare_job(
    context: TheContext, caller: TheCaller, name: Name, tenant: Tenant = None, since: Instant = None
) -> dict[str, Any]:
    """Its ticks in shadow next to the pings of the old scheduler: matched, missed, doubled, unexpected, failed. Of the
    last seven days unless `since` says otherwise."""
    line = await the_job(context, caller.tenant(tenant), name)
    [found] = await reports(context.store, [line], instant_ms("since", since))
    return report_json(found)


@routes.get("/shadow", response_model=shapes.ComparisonPage, summary="Compare all jobs in shadow", **needs(Role.VIEWER))
async def list_shadows(
    context: TheContext,
    caller: TheCaller,
    tenant: Tenant = None,
    since: Instant = None,
    limit: Limit = 50,
    cursor: Cursor = None,
) -> dict[str, Any]:
    """Jobs that are or were in shadow, by tenant and name, each with its report."""
    after = from_cursor(cursor, str, str)
    wanted = JobFilter(
        tenant=caller.tenants(tenant), shadow=True, after=None if after is None else (after[0], after[1])
    )
    found = await context.store.jobs.list(wanted, limit + 1)
    lines = found[:limit]
    last = lines[-1].job.definition if len(found) > limit else None
    made = await reports(context.store, lines, instant_ms("since", since))
    return {
        "jobs": [report_json(each) for each in made],
        "next": None if last is None else cursor_of(last.tenant, last.name),
    }


@routes.post("/jobs/{name}/hand-over", response_model=shapes.Handed, summary="Hand a job over", **needs(Role.OPERATOR))
async def hand_over_job(
    context: TheContext,
    caller: TheCaller,
    name: Name,
    body: Annotated[HandOver, Body(default_factory=HandOver)],
    tenant: Tenant = None,
) -> dict[str, Any]:
    """From the instant on its ticks are ours; those before it stay the old scheduler's. No tick is lost or doubled.
    Safe to repeat. 409 if it is not in shadow, if the instant has passed, if nobody names one, or if no worker that
    lives could run it."""
    line = await the_job(context, caller.tenant(tenant), name)
    at_ms = _instant(body.at)
    if at_ms is None:
        [found] = await reports(context.store, [line])
        at_ms = found.hand_over_ms
        if at_ms is None:
            raise Problem(409, "the report names no instant: it is not in shadow, or not the same so far; send `at`")
    return handed_json(await handed_over(context.store, context.desk(caller.actor), line, at_ms, anyway=body.anyway))


@routes.post("/jobs/{name}/shadow", response_model=shapes.Handed, summary="Put a job in shadow", **needs(Role.OPERATOR))
async def shadow_job(context: TheContext, caller: TheCaller, name: Name, tenant: Tenant = None) -> dict[str, Any]:
    """From now on another scheduler has its ticks, and nothing of it runs here. What is due already stands."""
    line = await the_job(context, caller.tenant(tenant), name)
    return handed_json(await handed_over(context.store, context.desk(caller.actor), line, None))


def _instant(text: str | None) -> int | None:
    try:
        return instant_ms("/at", text)
    except Problem:
        raise wrong("/at", "is not an instant", "write it as 2027-01-01T09:00:00Z") from None
