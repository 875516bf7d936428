"""Many jobs in one call: one JSON document in each line, one answer for each.

Lines that cannot be read do not keep the others from being written, and each says what is wrong with it. Reading is
done some at a time: other requests, and whatever else this process does, get their turn in between.
"""

import asyncio
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Annotated, Any, Final, Literal

from fastapi import Query, Request

from fleetcron.api import job_shapes as shapes
from fleetcron.api.access import Caller, Tenant, TheCaller, TheContext
from fleetcron.api.bodies import MOST_BYTES, read_json
from fleetcron.api.context import Context
from fleetcron.api.jobs import tenant_in
from fleetcron.api.problems import Problem, mistakes
from fleetcron.api.routing import needs, router
from fleetcron.errors import DefinitionError
from fleetcron.model.access import Role
from fleetcron.model.calendar import CalendarDocument
from fleetcron.model.definition import Definition
from fleetcron.model.job import Job
from fleetcron.model.reading import read_job
from fleetcron.scheduler.desk import BATCH, Applied, Refusal
from fleetcron.store.store import Store
from fleetcron.views.calendars import stored_calendars
from fleetcron.views.instants import as_json as instant_json

routes = router("jobs")
MOST: Final = 20_000  # lines
_MISTAKES: Final = 10_000  # of all lines; whoever makes so many has sent something else than jobs
_TOLD: Final = 20  # of one line
_AT_ONCE: Final = 50
_MOVED: Final = "somebody else has begun or ceased to manage it at this moment; send it again"
_BODY: Final[dict[str, Any]] = {
    "requestBody": {
        "required": True,
        "content": {
            "application/x-ndjson": {
                "schema": {"type": "string", "format": "binary", "description": "a job in each line"}
            }
        },
    }
}


@routes.post(
    "/jobs/batch", response_model=shapes.Batch, summary="Create or change many jobs", **needs(Role.OPERATOR, **_BODY)
)
async def batch_jobs(
    request: Request,
    context: TheContext,
    caller: TheCaller,
    tenant: Tenant = None,
    mode: Annotated[Literal["upsert", "create"], Query(description="create: jobs that exist are refused")] = "upsert",
) -> dict[str, Any]:
    """NDJSON, up to 16 MiB and 20,000 lines; a result for each line. Not one transaction: what can be written is."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind not in ("application/x-ndjson", "application/jsonl", "application/json-lines"):
        raise Problem(415, "send Content-Type: application/x-ndjson, with a job in each line")
    lines = [(at, line) for at, line in enumerate((await request.body()).split(b"\n"), 1) if line.strip()]
    if len(lines) > MOST:
        raise Problem(413, f"{len(lines):,} lines, {MOST:,} at most: send several batches")
    items = await _read(context, caller, tenant, lines)
    good = [item for item in items if item.definition is not None]
    refuse = _taken if mode == "create" else await _kept(context.store, good)
    applied = await context.desk(caller.actor).apply(
        [item.definition for item in good if item.definition is not None], strict=True, refuse=refuse
    )
    for item, done in zip(good, applied, strict=True):
        item.applied = done
    told = [item.as_json() for item in items]
    return {"counts": dict(sorted(Counter(each["done"] for each in told).items())), "items": told}


class _Item:
    """One line on its way."""

    def __init__(self, line: int) -> None:
        self.line = line
        self.definition: Definition | None = None
        self.names_manager = False
        self.applied: Applied | None = None
        self.wrong: Problem | DefinitionError | None = None
        self.named: tuple[str | None, str | None] = (None, None)

    def as_json(self) -> dict[str, Any]:
        if self.applied is not None:
            done, job = self.applied, self.applied.job
            return {
                "line": self.line,
                "tenant": done.tenant,
                "name": done.name,
                "done": done.done,
                "revision": None if job is None else job.revision,
                "next": instant_json(done.next_due_ms),
                "reason": done.reason,
            }
        told = {"line": self.line, "tenant": self.named[0], "name": self.named[1], "done": "refused"}
        if isinstance(self.wrong, DefinitionError):
            found = self.wrong.mistakes
            left_out = len(found) - _TOLD
            reason = "it has mistakes" if left_out <= 0 else f"it has mistakes, and {left_out:,} more than are told"
            return {**told, "reason": reason, "errors": mistakes(found[:_TOLD])}
        assert self.wrong is not None
        return {**told, "reason": self.wrong.detail}


async def _read(
    context: Context, caller: Caller, tenant: str | None, lines: Sequence[tuple[int, bytes]]
) -> list[_Item]:
    calendars = await stored_calendars(context.store)
    items: list[_Item] = []
    seen: dict[tuple[str, str], int] = {}
    made = 0
    for start in range(0, len(lines), _AT_ONCE):
        for at, line in lines[start : start + _AT_ONCE]:
            item = _Item(at)
            items.append(item)
            try:
                if made > _MISTAKES:
                    raise Problem(422, f"not looked at: the lines before have {made:,} mistakes")
                item.definition = _definition(caller, tenant, line, calendars, item)
                key = item.definition.tenant, item.definition.name
                if (first := seen.setdefault(key, at)) != at:
                    item.definition = None
                    raise Problem(422, f"line {first} has the same name")
            except (Problem, DefinitionError) as error:
                item.wrong = error
                made += len(error.mistakes) if isinstance(error, DefinitionError) else 1
        await asyncio.sleep(0)
    return items


def _definition(
    caller: Caller, tenant: str | None, line: bytes, calendars: Sequence[CalendarDocument], item: _Item
) -> Definition:
    if len(line) > MOST_BYTES:
        raise Problem(413, f"the line is longer than {MOST_BYTES // 1024:,} KiB")
    raw = read_json(line, "the line")
    if not isinstance(raw, dict):
        raise Problem(422, "the line is no JSON object")
    name = raw.get("name")
    item.named = (None, name[:200] if isinstance(name, str) else None)
    own = tenant_in(caller, tenant, raw)
    item.named = (own, item.named[1])
    item.names_manager = "managed_by" in raw
    return read_job({**raw, "tenant": own}, known_calendars=calendars)


async def _kept(store: Store, items: Iterable[_Item]) -> Refusal:
    """Lines that do not say whose a job is leave it to whom it belongs. If that changes before they are written, they
    are refused: they were made for another."""
    silent = {_name(item.definition): item for item in items if item.definition and not item.names_manager}
    names = list(silent)
    owners: dict[tuple[str, str], str | None] = {}
    for start in range(0, len(names), BATCH):
        found = await store.jobs.find(names[start : start + BATCH])
        owners |= {name: standing.job.definition.managed_by for name, standing in found.standings.items()}
    for name, item in silent.items():
        if item.definition is not None:
            item.definition = replace(item.definition, managed_by=owners.get(name))

    def refusal(job: Job) -> str | None:
        name, owner = _name(job.definition), job.definition.managed_by
        return _MOVED if name in silent and owner != owners.get(name) else None

    return refusal


def _name(definition: Definition) -> tuple[str, str]:
    return definition.tenant, definition.name


def _taken(job: Job) -> str:
    return f"the name is taken, by {job.job_id}"
