"""API keys: create, list, revoke. Nobody makes a key that sees more than his own."""

from typing import Annotated, Any, Final

from fastapi import Path
from pydantic import Field

from fleetcron.api import fleet_shapes as shapes
from fleetcron.api.access import Tenant, TheCaller, TheContext
from fleetcron.api.parameters import Asked, Cursor, Duration, Limit, Words, cursor_of, from_cursor
from fleetcron.api.problems import Problem, not_found
from fleetcron.api.routing import needs, router
from fleetcron.errors import RefusedError
from fleetcron.model.access import KeyState, KeyWish, Role, new_key
from fleetcron.policy.access import may_grant
from fleetcron.store.keys import KeyFilter
from fleetcron.times.durations import duration_ms
from fleetcron.views.asking import answer
from fleetcron.views.keys import key_json

routes = router("access")
_TENANT: Final = "that of the key that asks unless given; null is all tenants, for a key of all tenants to make"


class CreateKey(Asked):
    name: Words = Field(max_length=200)
    role: Annotated[Role, Field(strict=False)]
    tenant: Words | None = Field(default=None, description=_TENANT)
    pools: list[Words] = Field(
        default=[], max_length=100, description="of a worker: where it may claim; * is every pool"
    )
    expires_in: Duration | None = Field(default=None, description="such as 90d; null: it holds until it is revoked")
    rate_per_minute: int | None = Field(default=None, ge=1, le=600_000)


class RevokeKey(Asked):
    reason: Words = Field(min_length=1, max_length=300)


@routes.post(
    "/keys",
    response_model=shapes.NewKey,
    status_code=201,
    summary="Create a key",
    **needs(Role.ADMIN, shown_once=True),
)
async def create_key(context: TheContext, caller: TheCaller, body: CreateKey) -> dict[str, Any]:
    """It is shown this once. A key of one tenant makes keys of that tenant; workers are made by an admin of all."""
    lasts_ms = None if body.expires_in is None else duration_ms(body.expires_in)
    tenant = caller.credential.tenant if body.tenant is None else body.tenant
    if body.tenant is None and "tenant" in body.model_fields_set and tenant is not None:
        raise Problem(
            403, f"a key of all tenants is not for one of {tenant} to make: leave tenant out for one of its own"
        )
    wish = KeyWish(body.name, body.role, tenant, tuple(dict.fromkeys(body.pools)), lasts_ms, body.rate_per_minute)
    if not caller.sees(tenant):
        raise not_found(f"tenant {tenant}")
    if body.role is Role.WORKER and not caller.sees(None):
        raise Problem(403, "pools belong to the fleet: only an admin of all tenants makes workers")
    wish.check()
    if not caller.is_open and not may_grant(caller.credential, wish):
        raise Problem(403, "this key may not make that one")
    key = new_key()
    made = await answer(lambda: context.store.keys.create(key.key_id, key.digest, wish, actor=caller.actor))
    return {**key_json(made.credential, made.now_ms), "key": key.text}


@routes.get("/keys", response_model=shapes.Keys, summary="List keys", **needs(Role.ADMIN))
async def list_keys(
    context: TheContext,
    caller: TheCaller,
    tenant: Tenant = None,
    role: Role | None = None,
    state: KeyState | None = None,
    limit: Limit = 100,
    cursor: Cursor = None,
) -> dict[str, Any]:
    """Also those that were revoked or have expired. Secrets are not shown: nobody has them."""
    after = from_cursor(cursor, str)
    wanted = KeyFilter(caller.tenants(tenant), role, state, after=after[0] if after else None)
    page = await context.store.keys.list(wanted, limit + 1)
    keys = page.keys[:limit]
    return {
        "keys": [key_json(each, page.now_ms) for each in keys],
        "next": cursor_of(keys[-1].key_id) if len(page.keys) > limit else None,
    }


@routes.post("/keys/{key_id}/revoke", response_model=shapes.RevokedKey, summary="Revoke a key", **needs(Role.ADMIN))
async def revoke_key(
    context: TheContext, caller: TheCaller, key_id: Annotated[str, Path(max_length=200)], body: RevokeKey
) -> dict[str, Any]:
    """For good, and with it every session that began with it."""
    own = caller.credential.tenant
    try:
        done = await answer(lambda: context.store.keys.revoke(key_id, body.reason, actor=caller.actor, tenant=own))
    except RefusedError:
        raise not_found("such key") from None  # it may be a whole key, which is to be said nowhere
    return {**key_json(done.credential, done.now_ms), "done": "revoked" if done.changed else "unchanged"}
