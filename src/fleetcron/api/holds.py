"""What people switch in an incident, and how they undo it."""

from collections.abc import Callable
from difflib import get_close_matches
from functools import partial
from typing import Annotated, Any

from fastapi import Path, Query
from pydantic import Field

from fleetcron.api import fleet_shapes as shapes
from fleetcron.api.access import Caller, TheCaller, TheContext
from fleetcron.api.context import Context
from fleetcron.api.parameters import Asked, Duration, Words
from fleetcron.api.problems import Problem, wrong
from fleetcron.api.routing import needs, router
from fleetcron.model.access import Role
from fleetcron.model.control import Scope, Switched, Wish
from fleetcron.times.durations import duration_ms
from fleetcron.views.asking import answer
from fleetcron.views.fleet import changed_json, hold_json

routes = router("incidents")


class Switch(Asked):
    scope: Scope
    name: Words = Field(max_length=200)
    percent: int | None = Field(default=None, ge=0, le=100, description="so many of the jobs may start; 0: none")
    attempts: int | None = Field(default=None, ge=1, description="so many attempts of a run at most; 1: no retries")
    backoff: float | None = Field(default=None, ge=1, description="delays before retries are so many times longer")
    for_: Duration | None = Field(default=None, alias="for", description="it ends by itself after this, such as 2h")
    reason: Words | None = Field(
        default=None, min_length=1, max_length=300, description="why: the others read it too; needed unless keeps_end"
    )
    keeps_end: bool = Field(
        default=False,
        description="a step of a gradual resume: it ends when it would have ended; 409 if nothing is held",
    )


@routes.get("/holds", response_model=shapes.Holds, summary="What is held or slowed down", **needs(Role.VIEWER))
async def list_holds(context: TheContext, caller: TheCaller) -> dict[str, Any]:
    """Why, by whom and until when. A key of one tenant sees what is about that tenant."""
    found = await context.store.controls.list()
    told = [hold_json(line) for line in found.controls]
    return {"holds": [each for each in told if _sees(caller, each["scope"], each["name"])]}


@routes.post("/holds", response_model=shapes.Held, summary="Hold back or slow down", **needs(Role.OPERATOR))
async def set_hold(context: TheContext, caller: TheCaller, body: Switch) -> dict[str, Any]:
    """Of a tenant, a pool or a type: let only a share of its runs start, or retry it less. What runs goes on, and ticks
    are planned: their runs wait. 403 for the key of one tenant while something is switched for it from above."""
    await _known(context, caller, body.scope, body.name)
    if body.percent is None and body.attempts is None and body.backoff is None:
        raise wrong("", "say what to do: percent, attempts or backoff")
    for_ms = None if body.for_ is None else duration_ms(body.for_)
    wish = Wish(body.scope, body.name, body.percent, body.attempts, body.backoff, for_ms, body.reason, body.keeps_end)
    wish.check()
    done = await answer(lambda: context.store.controls.switch(wish, actor=caller.actor, check=_changing(caller)))
    return {"scope": body.scope, "name": body.name, **changed_json(done)}


@routes.delete("/holds/{scope}/{name}", response_model=shapes.Held, summary="Let it go on", **needs(Role.OPERATOR))
async def release_hold(
    context: TheContext,
    caller: TheCaller,
    scope: Scope,
    name: Annotated[str, Path(max_length=200)],
    reason: Annotated[str | None, Query(max_length=300, description="what was done about it")] = None,
) -> dict[str, Any]:
    """Everything ends that was switched for it. To let it go on by and by, POST /holds with a rising percent. The key
    of one tenant ends what keys of that tenant have switched: 403 for what came from above."""
    await _known(context, caller, scope, name)
    release = partial(context.store.controls.release, scope, name, actor=caller.actor, reason=reason)
    done = await answer(lambda: release(check=_changing(caller)))
    return {"scope": scope, "name": name, **changed_json(done)}


def _sees(caller: Caller, scope: str, name: str) -> bool:
    return caller.sees(name if scope == "tenant" else None)


async def _known(context: Context, caller: Caller, scope: Scope, name: str) -> None:
    """In an incident a typing error must not look like success."""
    names = [each for each in await context.store.controls.names(scope) if _sees(caller, scope, each)]
    if name not in names:
        near = get_close_matches(name, names, n=3)
        hint = f"; did you mean {' or '.join(near)}?" if near else ""
        raise Problem(404, f"there is no {scope} {name}{hint}")


def _changing(caller: Caller) -> Callable[[Switched | None], None]:
    """What was switched from above (with a key of all tenants, on the database, without a key) is not for the key of
    one tenant to change. Not to make it stricter either: a name has one record, and whoever wrote it last is its
    author, who may undo all of it."""

    def check(before: Switched | None) -> None:
        if before is None or caller.sees(None) or caller.shares(before.actor):
            return
        raise Problem(
            403,
            f"{before.control.scope} {before.control.name} was held or slowed down by {before.actor} ({before.reason})"
            ", and this key is of one tenant: ask them to let it go on, or use a key of all tenants",
        )

    return check
