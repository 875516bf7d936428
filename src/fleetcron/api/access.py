"""Who asks. The tenant comes from the credential; what belongs to another one does not exist."""

import ipaddress
from dataclasses import dataclass
from typing import Annotated, Final

from fastapi import Depends, Query, Request

from fleetcron.api import session_cookie
from fleetcron.api.context import Context
from fleetcron.api.problems import Problem, not_found
from fleetcron.model.access import EVERY_POOL, Credential, Role, SessionToken, read_key
from fleetcron.model.tenant import DEFAULT_TENANT
from fleetcron.policy import access
from fleetcron.policy.access import Refusal, Turn
from fleetcron.store.keys import KeyFilter
from fleetcron.store.sessions import Session

OPEN_HEADER: Final = "Fleetcron-Open-Access"
OPEN_WORDS: Final = "no API key exists: everybody on this machine is admin; fleetcron keys create NAME --role admin"
_NOBODY: Final = Credential("-", "nobody", Role.ADMIN, pools=(EVERY_POOL,))
_FORWARDING: Final = ("Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Real-IP", "Via")
_CHALLENGE: Final = {"WWW-Authenticate": 'Bearer realm="fleetcron"'}


@dataclass(frozen=True, slots=True)
class Caller:
    """`is_open`: there is no key at all, and whoever asks sits on this machine. With a session: who logged in."""

    credential: Credential
    is_open: bool = False
    session: Session | None = None
    token: SessionToken | None = None

    @property
    def actor(self) -> str:
        return "nobody (no key)" if self.is_open else self.credential.actor

    @property
    def key_id(self) -> str:
        return self.credential.key_id

    def may(self, role: Role) -> bool:
        return self.is_open or access.allows(self.credential, role)

    def may_claim(self, pool: str) -> bool:
        return self.is_open or access.may_claim(self.credential, pool)

    def tenant(self, asked: str | None) -> str:
        """The tenant that a request is about."""
        found = access.tenant_of(self.credential, asked)
        if isinstance(found, Refusal):
            raise not_found(f"tenant {asked or DEFAULT_TENANT}")
        return found

    def tenants(self, asked: str | None) -> str | None:
        """The same for lists. None: all tenants."""
        found = access.tenants_of(self.credential, asked)
        if isinstance(found, Refusal):
            raise not_found(f"tenant {asked or DEFAULT_TENANT}")
        return found

    def sees(self, tenant: str | None) -> bool:
        return access.sees(self.credential, tenant)

    def shares(self, actor: str) -> bool:
        """Whether it was a key of the same tenant that did it. Its name says so (`key:acme/ci`), and nobody else's can:
        neither a key nor a tenant has a slash in its name."""
        return self.credential.tenant is not None and actor.startswith(f"key:{self.credential.tenant}/")

    def needs_fleet(self) -> None:
        """What belongs to the fleet does not exist for the key of one tenant."""
        if not self.sees(None):
            raise Problem(404, "not found: it belongs to the whole fleet, and this key to one tenant")


def limit_logins(context: Context, request: Request) -> None:
    """Before a key is looked at. Keys cannot be guessed; whoever tries costs the database little, and is heard of."""
    turn = context.logins.take(address_of(request), None, context.clock.monotonic_ms())
    _in_turn(turn, "too many logins from this address")


def address_of(request: Request) -> str:
    return request.client.host if request.client is not None else "-"


def _in_turn(turn: Turn, why: str) -> None:
    if not turn.allowed:
        seconds = max(1, -(-turn.retry_after_ms // 1000))
        raise Problem(429, f"{why}; try again in {seconds} s", headers={"Retry-After": str(seconds)})


async def identify(context: Context, request: Request, role: Role) -> Caller:
    """Whoever asks, if he may. Everything that is refused is refused here, before the body is looked at."""
    caller = await _caller(context, request)
    if not caller.is_open:
        turn = context.limiter.take(caller.key_id, caller.credential.rate_per_minute, context.clock.monotonic_ms())
        _in_turn(turn, "this key has asked too often")
        context.uses.note(caller.key_id, context.clock.monotonic_ms())
    if caller.token is not None:
        session_cookie.refuse_forgery(request, caller.token)
    if not caller.may(role):
        raise Problem(403, f"that takes the role {role}, and this key is of the role {caller.credential.role}")
    return caller


async def why_over(context: Context, caller: Caller) -> str | None:
    """Why somebody who was let in a while ago would not be now. For whoever waits long, or reads on and on."""
    if caller.is_open:
        return "there is a key now, and this request came without one" if await _has_keys(context) else None
    if caller.token is not None:
        session = await context.store.sessions.find(caller.token.digest)
        return "the session has ended; log in again: POST /api/v1/session" if session is None else None
    found = await context.store.keys.find(caller.key_id)
    match "gone" if found.key is None else access.state_of(found.key.credential, found.now_ms):
        case "active":
            return None
        case "expired":
            return f"the key {caller.credential.name} has expired"
        case _:
            return f"the key {caller.credential.name} was revoked"


async def require_still(context: Context, caller: Caller) -> None:
    """As when he came."""
    if (why := await why_over(context, caller)) is not None:
        raise Problem(401, why, headers=_CHALLENGE)


async def _caller(context: Context, request: Request) -> Caller:
    header = request.headers.get("authorization")
    if header is None:
        token = session_cookie.presented(request)
        return await _without_key(context, request) if token is None else await _logged_in(context, request, token)
    scheme, _, text = header.partition(" ")
    key = read_key(text.strip()) if scheme.lower() == "bearer" else None
    if key is None:
        raise Problem(401, "that is no key; send Authorization: Bearer fck_…", headers=_CHALLENGE)
    found = await context.store.keys.find(key.key_id)
    verified = access.verify(key, found.key, found.now_ms)
    if isinstance(verified, Refusal):
        raise Problem(401, verified.reason, headers=_CHALLENGE)
    context.has_keys = True
    return Caller(verified)


async def _logged_in(context: Context, request: Request, token: SessionToken) -> Caller:
    session = await context.store.sessions.find(token.digest)
    if session is None:
        return await _without_key(context, request, "the session has ended; log in again: POST /api/v1/session")
    context.has_keys = True
    return Caller(session.credential, session=session, token=token)


async def _without_key(
    context: Context, request: Request, why: str = "send a key: Authorization: Bearer fck_…"
) -> Caller:
    if not context.open_to_all or await _has_keys(context):
        raise Problem(401, why, headers=_CHALLENGE)
    _refuse_forwarded(request)
    _refuse_other_sites(request)
    request.scope["fleetcron.headers"].append((OPEN_HEADER, OPEN_WORDS))
    return Caller(_NOBODY, is_open=True)


async def _has_keys(context: Context) -> bool:
    if not context.has_keys:
        context.has_keys = bool((await context.store.keys.list(KeyFilter(), 1)).keys)  # also one that is revoked
    return context.has_keys


def _refuse_other_sites(request: Request) -> None:
    """A page of another site must not use the API of whoever looks at it: neither by its own name for this machine
    (DNS rebinding), nor by asking across sites."""
    host = request.headers.get("host", "").rpartition("@")[2]
    if not is_loopback(_name_of(host)):
        raise Problem(403, f"without a key only names of this machine are served, not {host[:100]!r}")
    if session_cookie.is_of_another_site(request):
        raise Problem(403, "without a key other sites are not served")


def _refuse_forwarded(request: Request) -> None:
    """A proxy on this machine asks from this machine, for whoever is beyond it: maybe for the internet."""
    if (header := next((name for name in _FORWARDING if name in request.headers), None)) is not None:
        raise Problem(
            403,
            f"this request came through a proxy ({header}), and without a key only this machine is served: create a "
            "key (fleetcron keys create NAME --role admin) and send it: Authorization: Bearer fck_…",
        )


def _name_of(host: str) -> str:
    return host[1:].partition("]")[0] if host.startswith("[") else host.partition(":")[0]


def is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def context_of(request: Request) -> Context:
    context: Context = request.app.state.context
    return context


def caller_of(request: Request) -> Caller:
    caller: Caller = request.state.caller
    return caller


TheContext = Annotated[Context, Depends(context_of)]
TheCaller = Annotated[Caller, Depends(caller_of)]
Tenant = Annotated[
    str | None,
    Query(description="of this tenant; only keys of all tenants may choose", max_length=200),
]
