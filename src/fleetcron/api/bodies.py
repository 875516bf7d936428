"""Bodies: JSON that can be trusted to be small, flat and unambiguous."""

import json
from typing import Any, Final

from fastapi import Request

from fleetcron.api.problems import Problem, wrong
from fleetcron.model.mistakes import Path, pointer

MOST_BYTES: Final = 1024 * 1024
MOST_DEPTH: Final = 32


def read_json(body: bytes) -> Any:
    """The value, or a Problem. Whatever is written twice, is too deep or is no JSON is refused."""
    try:
        text = body.decode("utf-8")
    except UnicodeDecodeError as error:
        raise Problem(400, f"the body is not UTF-8: byte {error.start} is {body[error.start]:#04x}") from None
    try:
        value = json.loads(text, object_pairs_hook=_once, parse_constant=_no_number)
    except RecursionError:
        raise _too_deep("") from None
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno}"
        raise Problem(400, f"the body is not JSON: {error.msg} ({where})") from None
    except ValueError as error:  # a number of thousands of digits
        raise Problem(400, f"the body is not JSON that can be read: {error}") from None
    _check_depth(value)
    return value


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):  # nobody knows which one was meant
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                raise wrong("", f"the key {key[:60]!r} is written twice", "keep one of them")
            seen.add(key)
    return found


def _no_number(text: str) -> Any:
    raise Problem(400, f"the body is not JSON: {text} is no number of JSON")


def _check_depth(value: Any) -> None:
    level: list[tuple[Path, Any]] = [((), value)] if isinstance(value, dict | list) else []
    for _ in range(MOST_DEPTH):
        if not level:
            return
        level = [
            ((*path, key), part)
            for path, each in level
            for key, part in (each.items() if isinstance(each, dict) else enumerate(each))
            if isinstance(part, dict | list)
        ]
    if level:
        raise _too_deep(pointer(level[0][0]))


def _too_deep(place: str) -> Problem:
    return wrong(place, f"nested deeper than {MOST_DEPTH} levels", "make it flatter")


class Received(Request):
    """A request whose JSON is read by our rules."""

    async def json(self) -> Any:
        if not hasattr(self, "_value"):
            self._value = read_json(await self.body())
        return self._value
