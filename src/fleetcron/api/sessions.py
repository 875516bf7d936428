"""Log in with a key, and get a cookie for it: for the dashboard, and for pages of one's own on the same site.

A session has no rights of its own: it is its key, as that is now, and ends with it. Nobody begins one with another
session, so none lives longer than it may.
"""

from typing import Any

from fastapi import Request, Response
from pydantic import Field

from fleetcron.api import session_cookie
from fleetcron.api.access import Caller, TheCaller, TheContext
from fleetcron.api.parameters import Shown
from fleetcron.api.problems import Problem, not_found
from fleetcron.api.routing import needs, router
from fleetcron.model.access import Role, SessionToken, new_session
from fleetcron.store.sessions import Session as Stored
from fleetcron.views.asking import answer
from fleetcron.views.instants import as_json as instant_json

routes = router("access")


class Session(Shown):
    name: str
    key_id: str
    role: Role
    tenant: str | None = Field(description="null: all tenants")
    began_at: str
    expires_at: str = Field(description="12 hours after it began, or when its key ends")
    csrf: str = Field(description="send it as Fleetcron-CSRF with whatever changes something")


class Ended(Shown):
    ended: bool


@routes.post(
    "/session",
    response_model=Session,
    status_code=201,
    summary="Log in",
    **needs(Role.VIEWER, shown_once=True, login=True),
)
async def begin_session(context: TheContext, caller: TheCaller, request: Request, response: Response) -> dict[str, Any]:
    """With a key in `Authorization`. The answer sets a cookie, which stands for the key in the requests of a browser;
    worker routes do not take it. Attempts are counted for each address: above 30 a minute they are refused (429)."""
    if caller.is_open:
        raise Problem(409, "there is no key yet, so nobody has to log in")
    if caller.session is not None:
        raise Problem(403, "a session does not begin another one: log in with the key")
    token = new_session()
    begun = await answer(lambda: context.store.sessions.create(token.digest, caller.key_id))
    session_cookie.keep(request, response, token, begun.expires_ms - begun.now_ms)
    return _shown(caller, begun, token)


@routes.get("/session", response_model=Session, summary="Whose session this is", **needs(Role.VIEWER))
async def read_session(caller: TheCaller) -> dict[str, Any]:
    """404 for whoever asks with a key: `GET /me` is for both."""
    if caller.session is None or caller.token is None:
        raise not_found("session: this request has none")
    return _shown(caller, caller.session, caller.token)


@routes.delete("/session", response_model=Ended, summary="Log out", **needs(Role.VIEWER))
async def end_session(context: TheContext, caller: TheCaller, request: Request, response: Response) -> dict[str, Any]:
    """It ends at once, for all copies of its cookie."""
    token = caller.token
    if token is None:
        raise not_found("session: this request has none")
    ended = await answer(lambda: context.store.sessions.end(token.digest))
    session_cookie.forget(request, response)
    return {"ended": ended}


def _shown(caller: Caller, session: Stored, token: SessionToken) -> dict[str, Any]:
    key = caller.credential
    return {
        "name": key.name,
        "key_id": key.key_id,
        "role": key.role,
        "tenant": key.tenant,
        "began_at": instant_json(session.created_ms),
        "expires_at": instant_json(session.expires_ms),
        "csrf": token.csrf,
    }
