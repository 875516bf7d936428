"""Jobs and calendars of files, all at once: what `fleetcron apply` and `fleetcron plan` ask."""

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Annotated, Any, Final, Literal

from pydantic import Field

from fleetcron.api import applying_shapes as shapes
from fleetcron.api.access import Caller, TheCaller, TheContext
from fleetcron.api.context import Context
from fleetcron.api.jobs import tenant_in
from fleetcron.api.parameters import Asked, Words
from fleetcron.api.problems import wrong
from fleetcron.api.routing import needs, router
from fleetcron.applying.apply import Report, apply, gone_from, mark_unable
from fleetcron.applying.plan import planned
from fleetcron.applying.rehearsal import RehearsalStore
from fleetcron.model.access import Role
from fleetcron.model.job import Job
from fleetcron.model.reading import Documents, read_definitions
from fleetcron.store.store import Store
from fleetcron.views.calendars import stored_calendars

routes = router("jobs")
MOST: Final = 20_000  # jobs
_FULL_NAME: Final = "^[^/]+/[^/]+$"
Document = dict[str, Any]


class Wished(Asked):
    calendars: list[Document] = Field(default=[], max_length=1_000)
    jobs: list[Document] = Field(default=[], max_length=MOST)
    managed_by: Words | None = Field(
        default=None,
        min_length=1,
        max_length=200,
        description="who keeps these documents: their jobs belong to this name, and jobs of another are left alone; "
        "without it, every job that has a manager, unless its document names one",
    )
    prune: Literal["pause", "delete", "keep"] | None = Field(
        default=None, description="what becomes of jobs of this manager that are not among them; keep unless said"
    )
    besides: list[Annotated[str, Field(pattern=_FULL_NAME)]] = Field(
        default=[],
        max_length=1_000_000,
        description="tenant/name of jobs that are sent in another request, and so are not gone: for `prune`",
    )


class ApplyFiles(Wished):
    dry_run: bool = Field(default=False, description="say what would happen, and write nothing")


class PlanFiles(Wished):
    days: int = Field(default=90, ge=1, le=3660, description="how far ahead fire times are compared")


@routes.post(
    "/apply", response_model=shapes.AppliedFiles, summary="Create and change jobs as files say", **needs(Role.OPERATOR)
)
async def apply_files(context: TheContext, caller: TheCaller, body: ApplyFiles) -> dict[str, Any]:
    """Calendars first, then jobs, those first that others depend on. With a mistake it is 422 with all of them, and
    nothing is written; what only the store can refuse is refused by itself. Safe to repeat."""
    store = await _rehearsal(context) if body.dry_run else context.store
    return (await _carried_out(context, caller, body, store)).as_json(dry_run=body.dry_run)


@routes.post("/plan", response_model=shapes.PlannedFiles, summary="What that would change", **needs(Role.OPERATOR))
async def plan_files(context: TheContext, caller: TheCaller, body: PlanFiles) -> dict[str, Any]:
    """What POST /apply would do, and which ticks would appear, vanish or move. Writes nothing."""
    store = await _rehearsal(context)
    report = await _carried_out(context, caller, body, store)
    return (await planned(store, report, body.days)).as_json()


async def _rehearsal(context: Context) -> Store:
    if await context.store.shards.number() is None:  # a job cannot be rehearsed before somebody has fixed it
        await context.store.shards.fix(context.shards)
    return RehearsalStore(context.store)


async def _carried_out(context: Context, caller: Caller, body: Wished, store: Store) -> Report:
    documents = await _documents(context, caller, body)
    gone = await gone_from(store, documents, body.managed_by, body.prune)
    report = await apply(
        store,
        documents,
        actor=caller.actor,
        shards=context.shards,
        managed_by=body.managed_by,
        gone=_seen(caller, gone, body.besides),
        prune=body.prune or "keep",
    )
    await mark_unable(store, report)
    return report


def _seen(caller: Caller, gone: Sequence[Job], besides: Iterable[str]) -> list[Job]:
    """What belongs to another tenant is not there, and so cannot be gone."""
    elsewhere = {*besides}
    return [job for job in gone if caller.sees(job.definition.tenant) and job.definition.seed not in elsewhere]


async def _documents(context: Context, caller: Caller, body: Wished) -> Documents:
    if body.prune not in (None, "keep") and body.managed_by is None:
        raise wrong("/prune", "is about the jobs of one manager", "say managed_by")
    raw = {
        "calendars": [{**each, "tenant": tenant_in(caller, None, each)} for each in body.calendars],
        "jobs": [{**each, "tenant": tenant_in(caller, None, each)} for each in body.jobs],
    }
    known = await stored_calendars(context.store)
    # thousands take a while, and others wait for this loop
    documents = await asyncio.to_thread(read_definitions, raw, known_calendars=known)
    for at, job in enumerate(documents.jobs):
        if body.managed_by is not None and job.managed_by not in (None, body.managed_by):
            raise wrong(f"/jobs/{at}/managed_by", f"is {job.managed_by}, and not {body.managed_by}")
    documents.jobs[:] = [replace(job, managed_by=job.managed_by or body.managed_by) for job in documents.jobs]
    return documents
