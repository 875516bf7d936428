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
from fleetcron.model.name import NAME, NAME_HINT

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


_WANTED: Final[Mapping[str, str]] = {
    **dict.fromkeys(("dict_type", "model_type", "model_attributes_type"), "a JSON object"),
    **dict.fromkeys(("int_type", "int_from_float", "int_parsing", "int_parsing_size"), "a whole number"),
    **dict.fromkeys(("float_type", "float_parsing"), "a number"),
    **dict.fromkeys(("bool_type", "bool_parsing"), "true or false"),
    "list_type": "a list",
    "string_type": "text",
}  # by what pydantic calls the mistake


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
    text, hint = _words(error)
    if where != "body":
        return {"parameter": ".".join(map(str, path)), "detail": text[:_LONGEST], "hint": hint}
    if error["type"] == "extra_forbidden" and shape is not None:
        hint = _meant(str(path[-1]), known_fields(shape, tuple(path[:-1])))
    elif not path:
        hint = hint or _whole(shape)
    return {"pointer": pointer(tuple(path)), "detail": text[:_LONGEST], "hint": hint}


def _meant(name: str, known: Sequence[str]) -> str | None:
    near = get_close_matches(name, known, n=1) if len(name) <= _LONGEST_NAME else []
    return f"did you mean {near[0]}?" if near else f"there are: {', '.join(known)}" if known else None


def _whole(shape: type[BaseModel] | None) -> str:
    """What to send instead of a body that is none."""
    if shape is None:
        return "write it in braces: {…}"
    fields = {field.alias or name: field for name, field in shape.model_fields.items()}
    if needed := [name for name, field in fields.items() if field.is_required()]:
        return "send {" + ", ".join(f'"{name}": …' for name in needed) + "}"
    return f"send {{}}, or some of: {', '.join(fields)}" if fields else "send {}"


def _words(error: Mapping[str, Any]) -> tuple[str, str | None]:
    """What is wrong, and what to write instead. Of what was sent it says the kind and not the text, which may be a
    secret in the wrong place."""
    value: Any = error.get("input")
    limits = error.get("ctx", {})
    match error["type"]:
        case "extra_forbidden":
            return "unknown field", None
        case "missing":
            return "is missing", None
        case "too_long" | "string_too_long":
            unit = "characters" if isinstance(value, str) else "entries"
            return f"is too long: {limits['max_length']:,} {unit} at most, not {len(value):,}", None
        case "too_short" | "string_too_short":
            return "must not be empty", None
        case "greater_than_equal":
            return f"is less than {_figure(limits['ge'])}, the least that is allowed", None
        case "less_than_equal":
            return f"is more than {_figure(limits['le'])}, the most that is allowed", None
        case "literal_error" | "enum":
            return _no_choice(value, [word.strip("'") for word in limits["expected"].replace(" or ", ", ").split(", ")])
        case "string_pattern_mismatch" if limits["pattern"] == NAME:
            return "is not a name", NAME_HINT
        case "string_pattern_mismatch":
            return f"must match {limits['pattern']}", None
        case "value_error":
            return str(limits["error"]), None
        case kind if (wanted := _WANTED.get(kind)) is not None:
            is_read = "parsing" in kind  # from an address, where everything is text
            return f"must be {wanted}" if is_read else f"must be {wanted}, not {_kind(value)}", None
    text = str(error["msg"])
    return text[0].lower() + text[1:] if text else "is wrong", limits.get("hint")


def _no_choice(value: object, known: Sequence[str]) -> tuple[str, str | None]:
    near = get_close_matches(value, known, n=1) if isinstance(value, str) and len(value) <= _LONGEST_NAME else []
    return f"is not one of {', '.join(known)}", f"did you mean {near[0]}?" if near else None


def _figure(number: float) -> str:
    return f"{number:,}".removesuffix(".0")


def _kind(value: object) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "true or false"
        case int():
            return "a whole number"
        case float():
            return "a number with a fraction"
        case str():
            return "text"
        case list():
            return "a list"
        case _:
            return "an object"


def _count(number: int) -> str:
    return "there is 1 mistake" if number == 1 else f"there are {number:,} mistakes"
