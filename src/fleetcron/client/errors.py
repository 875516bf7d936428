"""What can go wrong when an API is asked, by name.

ApiError                 also a FleetcronError; `status`, `code`, `detail`, `request_id`, `mistakes`
├── Unauthorized         401: no key, or one that is not valid (any more)
├── Forbidden            403: this key may not do that
├── NotFound             404: there is no such thing, or not for this key
├── Conflict             409, 412, 428: not possible now, or it has changed meanwhile
├── Refused              400, 405, 413, 414, 415, 422, 431: the request has mistakes; `mistakes` has all of them
├── TooManyRequests      429: asked too often; `retry_after` says how many seconds to wait
└── Unavailable          408, 5xx, or nobody answers: asking again later is right; `retry_after` if the server said so

Closed                   a FleetcronError: the client was closed before; nothing was sent
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

from fleetcron.errors import FleetcronError, Mistake

_MOST: Final = 300  # characters of an answer that is no problem document


class ApiError(FleetcronError):
    """`status` is None when no answer came."""

    def __init__(
        self,
        detail: str,
        *,
        status: int | None = None,
        code: str = "error",
        hint: str | None = None,
        mistakes: Sequence[Mistake] = (),
        request_id: str | None = None,
        retry_after: float | None = None,
    ) -> None:
        self.detail = detail
        self.status = status
        self.code = code
        self.hint = hint
        self.mistakes = list(mistakes)
        self.request_id = request_id
        self.retry_after = retry_after
        said = [f"{detail}; {hint}" if hint else detail, *(f"  {each}" for each in self.mistakes)]
        super().__init__("\n".join(said))


class Closed(FleetcronError):
    """The client was closed by its own program."""

    def __init__(self) -> None:
        super().__init__("this client is closed: make a new one, or close it later")


class Unauthorized(ApiError):
    """There is no key, or it is not valid (any more)."""


class Forbidden(ApiError):
    """This key may not do that."""


class NotFound(ApiError):
    """There is no such thing, or not for this key."""


class Conflict(ApiError):
    """Not possible now, or somebody else was faster."""


class Refused(ApiError):
    """The request has mistakes. `mistakes` has all of them, each with its place."""


class TooManyRequests(ApiError):
    """Asked too often. `retry_after` says how many seconds to wait."""


class Unavailable(ApiError):
    """Nobody answers, or the server cannot do it now. Asking again later is right."""


_BY_STATUS: Final[Mapping[int, type[ApiError]]] = {
    400: Refused, 401: Unauthorized, 403: Forbidden, 404: NotFound, 405: Refused, 408: Unavailable, 409: Conflict,
    412: Conflict, 413: Refused, 414: Refused, 415: Refused, 422: Refused, 428: Conflict, 429: TooManyRequests,
    431: Refused,
}  # fmt: skip


def error_of(status: int, headers: Mapping[str, str], body: bytes) -> ApiError:
    """The error that an answer means. Whoever answers may also be a proxy that knows nothing of problem documents."""
    kind = _BY_STATUS.get(status, Unavailable if status >= 500 else ApiError)
    told = _problem(headers, body)
    detail = str(told.get("detail") or _plain(status, headers, body))
    return kind(
        detail,
        status=status,
        code=str(told.get("code", "error")),
        mistakes=[_mistake(each) for each in told.get("errors", ()) if isinstance(each, dict)],
        request_id=headers.get("x-request-id"),
        retry_after=retry_after(headers),
    )


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds. The other form of the header, a date, is nothing that this API writes."""
    text = headers.get("retry-after", "").strip()
    return float(text) if text.isascii() and text.isdigit() and len(text) < 7 else None


def _problem(headers: Mapping[str, str], body: bytes) -> dict[str, Any]:
    if "json" not in headers.get("content-type", ""):
        return {}
    try:
        found = json.loads(body)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _plain(status: int, headers: Mapping[str, str], body: bytes) -> str:
    if 300 <= status < 400:
        return f"the answer is a redirect ({status}) to {headers.get('location', 'nowhere')}: give that address instead"
    text = " ".join(body[: 4 * _MOST].decode("utf-8", "replace").split())[:_MOST]
    return f"the server answered {status}" + (f": {text}" if text else "")


def _mistake(place: Mapping[str, Any]) -> Mistake:
    hint = place.get("hint")
    where = place.get("pointer", place.get("parameter"))
    return Mistake(str(where or ""), str(place.get("detail", "is wrong")), None if hint is None else str(hint))
