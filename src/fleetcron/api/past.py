"""Ticks that have no run, and what left the normal path."""

from typing import Annotated, Any, Literal

from fastapi import Query

from fleetcron.api import run_shapes as shapes
from fleetcron.api.access import Tenant, TheCaller, TheContext
from fleetcron.api.parameters import Cursor, Instant, Limit, cursor_of, from_cursor, instant_ms
from fleetcron.api.problems import wrong_parameter
from fleetcron.api.routing import needs, router
from fleetcron.events import KINDS
from fleetcron.model.access import Role
from fleetcron.store.history import Span
from fleetcron.views.past import event_json, ledger_json

routes = router("history")
JobName = Annotated[str | None, Query(max_length=200, description="of this job")]


@routes.get("/ledger", response_model=shapes.LedgerPage, summary="Ticks that did not run", **needs(Role.VIEWER))
async def list_ledger(
    context: TheContext,
    caller: TheCaller,
    tenant: Tenant = None,
    job: JobName = None,
    answer: Literal["skipped", "missed", "cancelled"] | None = None,
    from_: Annotated[str | None, Query(alias="from", max_length=64)] = None,
    to: Instant = None,
    limit: Limit = 100,
    cursor: Cursor = None,
) -> dict[str, Any]:
    """Each with its reason, the newest entries first. A stretch of ticks with one reason is one line."""
    own = caller.tenants(tenant) if job is None else caller.tenant(tenant)
    after = from_cursor(cursor, int)
    span = Span(own, job, instant_ms("from", from_), instant_ms("to", to), after[0] if after else None)
    found = await context.store.history.ledger(span, answer=answer, limit=limit + 1)
    lines = found[:limit]
    return {
        "ledger": [ledger_json(line) for line in lines],
        "next": cursor_of(lines[-1].entry_id) if len(found) > limit else None,
    }


@routes.get("/events", response_model=shapes.EventPage, summary="What left the normal path", **needs(Role.VIEWER))
async def list_events(
    context: TheContext,
    caller: TheCaller,
    tenant: Tenant = None,
    job: JobName = None,
    kind: Annotated[str | None, Query(max_length=100, description="such as job_paused")] = None,
    limit: Limit = 100,
    cursor: Cursor = None,
) -> dict[str, Any]:
    """The newest first: changes of jobs with who made them, nodes and shards, conflicts, refusals. A key of one tenant
    sees what is about its jobs, its keys and their sessions."""
    if kind is not None and kind not in KINDS:
        raise wrong_parameter("kind", "is no kind of event", f"there are: {', '.join(KINDS)}")
    own = caller.tenants(tenant) if job is None else caller.tenant(tenant)
    after = from_cursor(cursor, int)
    span = Span(own, job, before_id=after[0] if after else None)
    found = await context.store.history.events(span, kind=kind, limit=limit + 1)
    lines = found[:limit]
    return {
        "events": [event_json(line) for line in lines],
        "next": cursor_of(lines[-1].event_id) if len(found) > limit else None,
    }
