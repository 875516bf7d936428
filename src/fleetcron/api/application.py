"""The app: all routes, and what goes around them. `create_app(context)`; nothing is global."""

import re
from typing import Any, Final

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.openapi.utils import get_openapi
from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException

from fleetcron import __version__
from fleetcron.api import (
    applying,
    batch,
    fleet,
    holds,
    job_looks,
    job_steering,
    jobs,
    keys,
    me,
    past,
    run_log,
    run_steering,
    runs,
    sessions,
    shadow,
    system,
    worker_claims,
    workers,
)
from fleetcron.api.context import Context
from fleetcron.api.envelope import Envelope
from fleetcron.api.problems import Problem, ProblemDetails
from fleetcron.api.routing import LOGIN, ONCE, ROLE, answer
from fleetcron.api.session_cookie import CSRF_HEADER, NAME
from fleetcron.model.access import Role
from fleetcron.store.idempotency import LONGEST_KEY

_ROUTERS: Final = (
    system.router,
    me.routes,
    sessions.routes,
    jobs.routes,
    job_steering.routes,
    job_looks.routes,
    batch.routes,
    applying.routes,
    runs.routes,
    run_log.routes,
    run_steering.routes,
    past.routes,
    shadow.routes,
    fleet.routes,
    holds.routes,
    keys.routes,
    workers.routes,
    worker_claims.routes,
)
_V1: Final = "/api/v1"
_NUMBER: Final = re.compile("[0-9]{1,19}")
_SESSION: Final = "of POST /session; whatever changes something needs its `csrf` too, as the header"
_KEY: Final[dict[str, Any]] = {
    "name": "Idempotency-Key",
    "in": "header",
    "required": False,
    "schema": {"type": "string", "title": "Idempotency-Key", "minLength": 1, "maxLength": LONGEST_KEY},
    "description": "asked again under the same key within 24 hours, it is carried out once and answered alike",
}
_ABOUT: Final = """Jobs, runs and everything around them.

Errors are `application/problem+json` (RFC 9457): every mistake at once, each with a JSON pointer. Lists are cut into
pages: send `next` of one answer as `cursor` of the next question. Jobs have an `ETag`; whoever changes one sends it as
`If-Match`. A `POST` with an `Idempotency-Key` is carried out once in 24 hours. Instants are RFC 3339 in UTC.
`x-fleetcron-role` says which role a route takes.
"""


def create_app(context: Context) -> FastAPI:
    app = FastAPI(
        title="fleetcron",
        version=__version__,
        description=_ABOUT,
        docs_url=None,
        redoc_url=None,
        openapi_url="/openapi.json",
        redirect_slashes=False,
        generate_unique_id_function=_operation_id,
    )
    app.state.context = context
    for router in _ROUTERS:
        app.include_router(router)
    for kind in (HTTPException, RequestValidationError):
        app.add_exception_handler(kind, _told)
    app.add_middleware(Envelope, new_id=context.new_id)
    app.openapi = lambda: _described(app)  # type: ignore[method-assign]
    return app


def _operation_id(route: APIRoute) -> str:
    """What a generated client calls it: the name of the function, such as `create_job`."""
    return route.name


async def _told(request: Request, error: Exception) -> Response:
    """What goes wrong before a route is found, or within one that needs no key."""
    if isinstance(error, HTTPException) and error.status_code == 405:
        error.headers = {"Allow": ", ".join(_methods(request.scope["path"]))}
    if isinstance(error, HTTPException) and error.status_code == 404 and not isinstance(error, Problem):
        error = Problem(404, _no_route(request))
    return answer(request, error)


def _no_route(request: Request) -> str:
    """What probably was meant."""
    path = request.scope["path"].removeprefix(request.scope.get("root_path", "").rstrip("/"))
    match path.removeprefix(_V1).split("/") if path.startswith(_V1) else None:
        case None if path in ("", "/"):
            return f"this is the API of fleetcron: its routes are under {_V1}, and /docs shows them all"
        case ["", "runs", given, *_] if not _NUMBER.fullmatch(given):
            return f"{given[:60]!r} is not the number of a run, such as 812: GET {_V1}/runs lists them"
        case ["", "jobs", _, *_]:
            return (
                f"there is no route {request.method} {path[:200]}. A job in a path is its name, without a slash; of"
                " another tenant: ?tenant=NAME. /docs shows every route"
            )
    return f"there is no route {request.method} {path[:200]}; /docs shows them all, and they are under {_V1}"


def _methods(path: str) -> list[str]:
    """All that a path knows. Each is a route of its own, and the first that is met knows its own alone. Of
    /jobs/batch it is what the document has under that path, not what a job of that name would have."""
    found = [route for router in _ROUTERS for route in router.routes if isinstance(route, APIRoute)]
    there = [route for route in found if route.path == path]
    there = there or [route for route in found if route.path_regex.match(path)]
    return sorted({method for route in there for method in route.methods or ()})


def _described(app: FastAPI) -> dict[str, Any]:
    if app.openapi_schema:
        return app.openapi_schema
    found = get_openapi(
        title=app.title, version=app.version, openapi_version="3.1.0", description=app.description, routes=app.routes
    )
    parts = found.setdefault("components", {})
    schemas = parts.setdefault("schemas", {})
    shape = ProblemDetails.model_json_schema(ref_template="#/components/schemas/{model}")
    schemas.update(shape.pop("$defs", {}))
    schemas["Problem"] = {**shape, "title": "Problem"}
    parts["securitySchemes"] = {
        "key": {"type": "http", "scheme": "bearer", "description": "an API key: fck_…"},
        "session": {"type": "apiKey", "in": "cookie", "name": NAME, "description": f"{_SESSION} {CSRF_HEADER}"},
    }
    for operations in found["paths"].values():
        for method, operation in operations.items():
            if ROLE in operation:
                _describe_headers(method, operation)
                only_key = operation[ROLE] == Role.WORKER or LOGIN in operation
                operation["security"] = [{"key": []}] if only_key else [{"key": []}, {"session": []}]
    app.openapi_schema = found
    return found


def _describe_headers(method: str, operation: dict[str, Any]) -> None:
    """What holds for every route is read around it (`routing.py`); and a missing If-Match is 428, which whoever reads
    parameters would make a 422. The document says both."""
    if method == "post" and ONCE not in operation:
        operation["parameters"] = [*operation.get("parameters", ()), _KEY]
    for each in operation.get("parameters", ()):
        if each["name"] == "if-match":
            each.update(name="If-Match", required=True, schema={"type": "string", "title": "If-Match"})
