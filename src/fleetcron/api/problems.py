"""What went wrong, as RFC 9457 says it: application/problem+json, with all mistakes at once and a pointer for each."""

import json
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import Any, Final

from fastapi import Request, Response
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, Field
from starlette.exceptions import HTTPException

from fleetcron.errors import (
    DefinitionError,
    FleetcronError,
    Mistake,
    RefusedError,
    ScheduleError,
    StoreError,
    StoreUnavailable,
)
from fleetcron.model.mistakes import known_fields, pointer

MEDIA: Final = "application/problem+json"
MOST: Final = 1_000  # mistakes that are told; more than that nobody reads
_LONGEST: Final = 500
_LONGEST_NAME: Final = 60
_IN_THE_LOG: Final = "it is in the log of the server, under the id of this request"
TITLES: Final[Mapping[int, tuple[str, str]]] = {
    400: ("bad_request", "The request cannot be read"),
    401: ("unauthenticated", "A valid key is needed"),
    403: ("forbidden", "This key may not do that"),
    404: ("not_found", "Not found"),
    405: ("method_not_allowed", "There is no such method here"),
    408: ("too_slow", "The request took too long"),
    409: ("refused", "That is not possible now"),
    412: ("changed", "It has changed meanwhile"),
    413: ("too_large", "The request is too large"),
    414: ("too_long", "The address is too long"),
    415: ("media_type", "Another media type is needed"),
    422: ("invalid", "The request has mistakes"),
    428: ("precondition_required", "Say which version you mean"),
    429: ("too_many_requests", "Too many requests"),
    500: ("internal", "Something is wrong with the server"),
    503: ("unavailable", "The database cannot answer now"),
}


class Place(BaseModel):
    """One mistake. In a body `pointer` says where; elsewhere `parameter` names it."""

    pointer: str | None = Field(default=None, description="a JSON pointer (RFC 6901) into the body")
    parameter: str | None = Field(default=None, description="a parameter of the query, the path or the headers")
    detail: str
    hint: str | None = Field(default=None, description="what to write instead")


class ProblemDetails(BaseModel):
    """RFC 9457. `code` is stable, for programs; `detail` is for people."""

    type: str
    title: str
    status: int
    code: str
    detail: str
    request_id: str
    errors: list[Place] | None = None
    errors_left_out: int | None = None


class Problem(HTTPException):
    """Raised anywhere below a route; `errors` are mistakes with their places. `kind` is a code and a title where those
    of the status would say something else."""

    def __init__(
        self,
        status: int,
        detail: str,
        *,
        errors: Sequence[Mapping[str, str | None]] = (),
        headers: Mapping[str, str] | None = None,
        kind: tuple[str, str] | None = None,
    ) -> None:
        super().__init__(status, detail, dict(headers or {}))
        self.errors = errors
        self.kind = kind


def not_found(what: str) -> Problem:
    return Problem(404, f"there is no {what}")


def mistakes(found: Sequence[Mistake], base: str = "") -> list[dict[str, str | None]]:
    return [{"pointer": f"{base}{each.pointer}", "detail": each.message, "hint": each.hint} for each in found]


def wrong(place: str, detail: str, hint: str | None = None) -> Problem:
    """One mistake in a body."""
    return Problem(422, detail, errors=[{"pointer": place, "detail": detail, "hint": hint}])


def wrong_parameter(name: str, detail: str, hint: str | None = None) -> Problem:
    return Problem(422, f"{name}: {detail}", errors=[{"parameter": name, "detail": detail, "hint": hint}])


def problem_of(error: Exception) -> Problem:
    """What an error of the rooms below is for whoever asked."""
    match error:
        case Problem():
            return error
        case HTTPException():
            return Problem(error.status_code, str(error.detail), headers=error.headers)
        case RequestValidationError():
            return invalid(error)
        case DefinitionError():
            return Problem(422, _count(len(error.mistakes)), errors=mistakes(error.mistakes))
        case ScheduleError():
            return wrong("", error.mistake, error.hint)
        case RefusedError():
            return Problem(409, str(error))
        case StoreUnavailable():
            return Problem(
                503, "it could not be done now; try again: everything is safe to repeat", headers={"Retry-After": "1"}
            )
        case StoreError():  # its text names the database and the statement, which are nobody's who asks
            return Problem(500, _IN_THE_LOG)
        case FleetcronError():
            return Problem(500, str(error))
        case _:
            return Problem(500, _IN_THE_LOG)


def response_of(request: Request, error: Exception) -> Response:
    problem = problem_of(error)
    code, title = problem.kind or TITLES.get(problem.status_code, ("error", "Error"))
    body: dict[str, Any] = {
        "type": f"urn:fleetcron:problem:{code}",
        "title": title,
        "status": problem.status_code,
        "code": code,
        "detail": problem.detail,
        "request_id": request.scope.get("fleetcron.request_id", ""),
    }
    if problem.errors:
        body["errors"] = [{k: v for k, v in each.items() if v is not None} for each in problem.errors[:MOST]]
        if len(problem.errors) > MOST:
            body["errors_left_out"] = len(problem.errors) - MOST
    told = json.dumps(body, ensure_ascii=False, separators=(",", ":"))  # of what was asked, maybe, which is any text
    return Response(told.encode("utf-8", "replace"), problem.status_code, dict(problem.headers or {}), MEDIA)


def invalid(error: RequestValidationError, shape: type[BaseModel] | None = None) -> Problem:
    """`shape` is what the body should be: it knows which field was meant."""
    found = [_place(each, shape) for each in error.errors()]
    return Problem(422, _count(len(found)), errors=found)


def _place(error: Mapping[str, Any], shape: type[BaseModel] | None) -> dict[str, str | None]:
    where, *path = error["loc"]
    text = _words(error)[:_LONGEST]
    if where != "body":
        return {"parameter": ".".join(map(str, path)), "detail": text}
    hint = error.get("ctx", {}).get("hint")
    if error["type"] == "extra_forbidden" and shape is not None:
        hint = _meant(str(path[-1]), known_fields(shape, tuple(path[:-1])))
    return {"pointer": pointer(tuple(path)), "detail": text, "hint": hint}


def _meant(name: str, known: Sequence[str]) -> str | None:
    near = get_close_matches(name, known, n=1) if len(name) <= _LONGEST_NAME else []
    return f"did you mean {near[0]}?" if near else f"there are: {', '.join(known)}" if known else None


def _words(error: Mapping[str, Any]) -> str:
    limits = error.get("ctx", {})
    match error["type"]:
        case "extra_forbidden":
            return "unknown field"
        case "missing":
            return "is missing"
        case "too_long" | "string_too_long":
            unit = "characters" if isinstance(error["input"], str) else "entries"
            return f"is too long: {limits['max_length']:,} {unit} at most, not {len(error['input']):,}"
        case "too_short" | "string_too_short":
            return "must not be empty"
    text = str(error["msg"])
    return text[0].lower() + text[1:] if text else "is wrong"


def _count(number: int) -> str:
    return "there is 1 mistake" if number == 1 else f"there are {number:,} mistakes"
