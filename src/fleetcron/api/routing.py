"""What happens around every route: who asks, which parameters there are, and requests that are sent twice."""

import logging
from collections import Counter
from collections.abc import Callable, Coroutine, Iterator
from typing import Any, Final, get_args

from fastapi import APIRouter, Request, Response
from fastapi.dependencies.models import Dependant
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from pydantic import BaseModel

from fleetcron.api.access import Caller, address_of, context_of, identify, limit_logins
from fleetcron.api.bodies import Received
from fleetcron.api.context import Context, digest
from fleetcron.api.problems import MEDIA, Problem, invalid, problem_of, response_of, wrong_parameter
from fleetcron.errors import DefinitionError, StoreUnavailable
from fleetcron.model.access import Role
from fleetcron.store.idempotency import Different, Done, New, Running
from fleetcron.store.written import Ok

log = logging.getLogger(__name__)

ROLE: Final = "x-fleetcron-role"
ONCE: Final = "x-fleetcron-shown-once"  # its answer has a secret, which is kept nowhere
LOGIN: Final = "x-fleetcron-login"  # somebody may be trying keys
HEADER: Final = "idempotency-key"
REPLAYED: Final = "Idempotent-Replayed"
IN_PROGRESS: Final = ("in_progress", "The same request is at work")
_LONGEST_QUERY: Final = 16 * 1024
_KEPT_HEADERS: Final = ("content-type", "etag", "location")
_SCHEMA: Final = {"schema": {"$ref": "#/components/schemas/Problem"}}
PROBLEMS: Final[dict[int | str, dict[str, Any]]] = {
    "4XX": {"description": "what was asked cannot be", "content": {MEDIA: _SCHEMA}},
    "5XX": {"description": "it could not be done now", "content": {MEDIA: _SCHEMA}},
}
_SHOWN_ONCE: Final = "this answer is shown once, so it cannot be asked for again: leave Idempotency-Key out"
Handler = Callable[[Request], Coroutine[Any, Any, Response]]


def needs(role: Role, *, shown_once: bool = False, login: bool = False, **more: Any) -> dict[str, Any]:
    """Of a route: `@router.get("/jobs", **needs(Role.VIEWER))`."""
    flags = {name: True for name, is_so in ((ONCE, shown_once), (LOGIN, login)) if is_so}
    extra = {ROLE: str(role), **flags, **more}
    return {"openapi_extra": extra}


class Route(APIRoute):
    """Every route says which role it takes: one that does not cannot be made."""

    def get_route_handler(self) -> Handler:
        body = self.body_field
        inner = _worded(super().get_route_handler(), None if body is None else _model_in(body.field_info.annotation))
        extra = self.openapi_extra or {}
        role = Role(extra[ROLE])
        is_post = "POST" in (self.methods or ())
        known = frozenset(_queries(self.dependant))

        async def handle(request: Request) -> Response:
            try:
                context = context_of(request)
                if LOGIN in extra:
                    limit_logins(context, request)
                caller = await identify(context, request, role)
                request.state.caller = caller
                _check_head(request, known)
                if self.body_field is not None:
                    _check_media(request)
                received = Received(request.scope, request.receive)
                if is_post and HEADER in request.headers:
                    if ONCE in extra:
                        raise Problem(422, _SHOWN_ONCE)
                    return await _once(context, caller, received, inner)
                return await inner(received)
            except Exception as error:
                if LOGIN in extra:
                    log.warning("a login from %s was refused: %s", address_of(request), problem_of(error).detail)
                return answer(request, error)

        return handle


def _worded(inner: Handler, shape: type[BaseModel] | None) -> Handler:
    """Mistakes in a body are told by whoever knows what the body should be."""

    async def handle(request: Request) -> Response:
        try:
            return await inner(request)
        except RequestValidationError as error:
            raise invalid(error, shape) from None

    return handle


def _model_in(annotation: Any) -> type[BaseModel] | None:
    """The model of `Body`, of `Body | None`, of `Annotated[Body, …]`."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next((found for each in get_args(annotation) if (found := _model_in(each)) is not None), None)


def answer(request: Request, error: Exception) -> Response:
    """What whoever asked gets to see of an error; the log gets the rest."""
    status = problem_of(error).status_code
    if isinstance(error, StoreUnavailable):
        log.warning("%s %s: %s (%s)", request.method, request.url.path, error, request.scope["fleetcron.request_id"])
    if status == 500:
        log.error("%s %s failed (%s)", request.method, request.url.path, request.scope.get("fleetcron.request_id"),
                  exc_info=error)  # fmt: skip
    return response_of(request, error)


def router(tag: str) -> APIRouter:
    return APIRouter(prefix="/api/v1", route_class=Route, tags=[tag], responses=PROBLEMS)


def _queries(dependant: Dependant) -> Iterator[str]:
    yield from (field.alias for field in dependant.query_params)
    for each in dependant.dependencies:
        yield from _queries(each)


def _check_head(request: Request, known: frozenset[str]) -> None:
    """A filter that is misspelled must not look as if it had found everything."""
    if len(request.scope["query_string"]) > _LONGEST_QUERY:
        raise Problem(414, f"the query is longer than {_LONGEST_QUERY // 1024} KiB")
    if request.headers.get("content-encoding", "identity").lower() != "identity":
        raise Problem(415, "send the body as it is, without a Content-Encoding")
    if b"%00" in request.scope["query_string"] or "\0" in request.scope["path"]:
        raise Problem(400, "the address has a character that cannot be stored")
    unknown = sorted(set(request.query_params) - known)
    if unknown:
        errors: list[dict[str, str | None]] = [
            {"parameter": name[:100], "detail": "unknown parameter", "hint": f"there are: {', '.join(sorted(known))}"}
            for name in unknown
        ]
        raise Problem(422, f"unknown parameter {unknown[0][:100]!r}", errors=errors)
    times = Counter(name for name, _ in request.query_params.multi_items())
    twice = [name for name, number in times.items() if number > 1]  # no route takes a list there
    if twice:
        hint = "send it once: to ask for several values, ask several times"
        told = [{"parameter": name, "detail": f"is given {times[name]} times", "hint": hint} for name in twice]
        raise Problem(422, f"the parameter {twice[0]} is given {times[twice[0]]} times", errors=told)


def _check_media(request: Request) -> None:
    sent = request.headers.get("content-length", "0") != "0" or "transfer-encoding" in request.headers
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if sent and kind != "application/json" and not (kind.startswith("application/") and kind.endswith("+json")):
        raise Problem(415, "send Content-Type: application/json")


async def _once(context: Context, caller: Caller, request: Received, inner: Handler) -> Response:
    """Asked twice, done once, answered alike."""
    key = request.headers[HEADER]
    path = request.scope["path"]
    asked = digest(request.method, path, request.scope["query_string"], await request.body())
    owner = context.new_id()
    try:
        begun = await context.store.idempotency.begin(caller.key_id, key, asked, owner=owner)
    except DefinitionError as error:
        raise wrong_parameter("Idempotency-Key", error.mistakes[0].message) from None
    if not isinstance(begun, Ok):
        raise StoreUnavailable("it is not known whether this request has begun", hint="try again")
    match begun.value:
        case Different():
            raise wrong_parameter("Idempotency-Key", "was used before, for another request", "choose a new one")
        case Running():
            detail = "the same request is at work: ask again under the same key, and its answer comes"
            raise Problem(409, detail, headers={"Retry-After": "1"}, kind=IN_PROGRESS)
        case Done(status, headers, body):
            return Response(body or b"", status, {**headers, REPLAYED: "true"})
        case New():
            pass
    try:
        response = await inner(request)
    except Exception as error:
        response = answer(request, error)
    if response.status_code >= 300:  # nothing was done, and why not may be over in a moment: 404, 409, 503
        await context.store.idempotency.abandon(caller.key_id, key, owner=owner)
    else:
        kept = {name: response.headers[name] for name in _KEPT_HEADERS if name in response.headers}
        await context.store.idempotency.finish(
            caller.key_id, key, owner=owner, status=response.status_code, headers=kept, body=bytes(response.body)
        )
    return response
