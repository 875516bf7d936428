"""Beside the API: is it alive, can it work, and its own description. Nobody needs a key for these."""

import gzip
import logging
from functools import cache
from importlib.resources import files
from typing import Any, Final

from fastapi import APIRouter, Request, Response
from fastapi.responses import HTMLResponse
from pydantic import BaseModel

from fleetcron.api.access import TheContext
from fleetcron.api.problems import Problem
from fleetcron.api.routing import PROBLEMS, answer
from fleetcron.errors import StoreError
from fleetcron.store.migrations import require_current

log = logging.getLogger(__name__)
router = APIRouter(tags=["system"], responses=PROBLEMS)
_SHOWN: Final = {
    "swagger-ui-bundle.js": "text/javascript",
    "swagger-ui.css": "text/css",
    "start.js": "text/javascript",
}
_PAGE: Final = """<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><title>fleetcron API</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<link rel="stylesheet" href="docs/swagger-ui.css"></head>
<body><div id="docs"></div>
<script src="docs/swagger-ui-bundle.js"></script><script src="docs/start.js"></script></body>
</html>
"""
# its own styles are inline; scripts come from here only
_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; "
    "connect-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
)


class Alive(BaseModel):
    status: str


@router.get("/healthz", response_model=Alive, summary="Is the process alive?")
async def get_health() -> dict[str, str]:
    """200 as long as it answers at all."""
    return {"status": "ok"}


@router.get("/readyz", response_model=Alive, summary="Can it answer requests?")
async def get_readiness(request: Request, context: TheContext) -> Any:
    """200 while the database answers and its tables are those of this program; 503 otherwise, and while it stops."""
    if context.closing.is_set():
        return answer(request, Problem(503, "the server is about to end", headers={"Retry-After": "1"}))
    try:
        await require_current(context.store.engine)
    except StoreError as error:
        log.warning("not ready: %s", error)
        return answer(
            request,
            Problem(
                503, "the database does not answer, or has other tables; it is in the log", headers={"Retry-After": "1"}
            ),
        )
    return {"status": "ready"}


@router.get("/docs", include_in_schema=False)
async def docs() -> HTMLResponse:
    return HTMLResponse(_PAGE, headers={"Content-Security-Policy": _POLICY})


@router.get("/docs/{name}", include_in_schema=False)
async def asset(request: Request, name: str) -> Response:
    if name not in _SHOWN:
        return answer(request, Problem(404, "there is no such page"))
    data, is_packed = _packed(name)
    headers = {"Cache-Control": "public, max-age=3600", "Vary": "Accept-Encoding"}
    if is_packed and "gzip" in request.headers.get("accept-encoding", ""):
        headers["Content-Encoding"] = "gzip"
    elif is_packed:
        data = gzip.decompress(data)
    return Response(data, headers=headers, media_type=_SHOWN[name])


@cache
def _packed(name: str) -> tuple[bytes, bool]:
    folder = files("fleetcron.api") / "swagger"
    packed = folder / f"{name}.gz"
    return (packed.read_bytes(), True) if packed.is_file() else ((folder / name).read_bytes(), False)
