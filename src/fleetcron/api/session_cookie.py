"""The cookie of somebody who logged in with a browser, and what keeps pages of other sites from using it.

A browser sends the cookie whoever asks it to. SameSite=Strict keeps it from requests that other sites begin; who has
an old browser, or another site under the same name, is kept safe by the two checks below: the browser says from where
a request comes, and what changes something carries a text that only pages of this site can read.
"""

import hmac
from typing import Final

from fastapi import Request, Response

from fleetcron.api.problems import Problem
from fleetcron.model.access import SessionToken, read_session

NAME: Final = "fleetcron_session"
CSRF_HEADER: Final = "Fleetcron-CSRF"
_SAFE: Final = frozenset({"GET", "HEAD", "OPTIONS"})


def presented(request: Request) -> SessionToken | None:
    return read_session(request.cookies.get(NAME, ""))


def keep(request: Request, response: Response, token: SessionToken, lasts_ms: int) -> None:
    """For scripts of pages it does not exist, and over plain HTTP it is not sent where it came by HTTPS."""
    response.set_cookie(NAME, token.text, max_age=lasts_ms // 1000, **_where(request))  # type: ignore[arg-type]


def forget(request: Request, response: Response) -> None:
    response.delete_cookie(NAME, **_where(request))  # type: ignore[arg-type]


def refuse_forgery(request: Request, token: SessionToken) -> None:
    """Whoever only looks cannot be made to change anything. Without a header of the browser it is no browser, or an old
    one: then `Origin` counts, and in any case the text."""
    if request.method in _SAFE:
        return
    if is_of_another_site(request):
        raise Problem(403, "another site asks with this session")
    sent = request.headers.get(CSRF_HEADER, "")
    if not hmac.compare_digest(sent.encode(), token.csrf.encode()):
        raise Problem(403, f"with a session, send the header {CSRF_HEADER} with `csrf` of GET /session")


def is_of_another_site(request: Request) -> bool:
    """As the browser says. Behind a proxy that changes `Host` only `Sec-Fetch-Site` is right, and it is asked first."""
    site = request.headers.get("sec-fetch-site")
    if site is not None:
        return site not in ("same-origin", "none")
    origin = request.headers.get("origin")
    return origin is not None and origin.partition("://")[2] != request.headers.get("host", "")


def _where(request: Request) -> dict[str, object]:
    path = f"{request.scope.get('root_path', '').rstrip('/')}/"
    return {"path": path, "secure": _is_https(request), "httponly": True, "samesite": "strict"}


def _is_https(request: Request) -> bool:
    """Also as a proxy says it: who lies makes his own cookie stricter, and nothing else."""
    said = request.headers.get("x-forwarded-proto", "").partition(",")[0].strip().lower()
    forwarded = request.headers.get("forwarded", "").partition(",")[0].lower().replace('"', "").replace(" ", "")
    return request.url.scheme == "https" or said == "https" or "proto=https" in forwarded.split(";")
