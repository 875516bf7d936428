"""Bodies: JSON that can be trusted to be small, flat and unambiguous."""

import json
import math
import re
import sys
from collections.abc import Callable, Iterator
from typing import Any, Final

from fastapi import Request

from fleetcron.api.problems import Problem, wrong
from fleetcron.model.figures import shown
from fleetcron.model.mistakes import Path, pointer

MOST_BYTES: Final = 1024 * 1024
MOST_DEPTH: Final = 32
_HALF: Final = re.compile(r"\\u[dD][89a-fA-F]")
_HALVES: Final = re.compile("[\ud800-\udfff]")


def read_json(body: bytes, what: str = "the body") -> Any:
    """The value, or a Problem. Whatever is written twice, is too deep or is no JSON is refused. `what` is the whole, or
    a line of it."""
    try:
        text = body.decode("utf-8")
    except UnicodeDecodeError as error:
        raise Problem(400, f"{what} is not UTF-8: byte {error.start} is {body[error.start]:#04x}") from None
    twice: list[tuple[dict[str, Any], str]] = []
    try:
        value = json.loads(text, object_pairs_hook=_noting(twice), parse_constant=_no_number, parse_float=_finite)
    except RecursionError:
        raise _too_deep("") from None
    except json.JSONDecodeError as error:
        where = f"column {error.colno}" if error.lineno == 1 else f"line {error.lineno}, column {error.colno}"
        raise Problem(400, f"{what} is not JSON: {error.msg} ({where})") from None
    except ValueError:
        most = sys.get_int_max_str_digits()
        raise Problem(400, f"{what} has a number of more than {most:,} digits: write it as a text") from None
    _check_depth(value)
    if twice:
        place, key = twice[0]
        raise wrong(_place(value, place), f"the key {shown(key)} is written twice", "keep one of them")
    if _HALF.search(text):
        _check_texts(value)
    return value


def _noting(twice: list[tuple[dict[str, Any], str]]) -> Callable[[list[tuple[str, Any]]], dict[str, Any]]:
    def made(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) < len(pairs) and not twice:  # nobody knows which one was meant
            seen: set[str] = set()
            twice.append((found, next(key for key, _ in pairs if key in seen or seen.add(key))))  # type: ignore[func-returns-value]
        return found

    return made


def _finite(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise Problem(400, f"the body has a number that is too large: {text[:40]}")
    return number


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


def _parts(value: Any) -> Iterator[tuple[Path, Any]]:
    """Everything in it, with its place."""
    waiting: list[tuple[Path, Any]] = [((), value)]
    while waiting:
        path, each = waiting.pop()
        yield path, each
        if isinstance(each, dict):
            waiting += [((*path, key), part) for key, part in each.items()]
        elif isinstance(each, list):
            waiting += [((*path, at), part) for at, part in enumerate(each)]


def _place(value: Any, wanted: Any) -> str:
    return next((pointer(path) for path, each in _parts(value) if each is wanted), "")


def _check_texts(value: Any) -> None:
    """Half a surrogate pair is no character: neither a database nor an answer can hold it."""
    for path, each in _parts(value):
        texts = each if isinstance(each, dict) else [each] if isinstance(each, str) else ()
        if any(not text.isascii() and _HALVES.search(text) for text in texts):
            raise wrong(pointer(path), "has half a surrogate pair, which is no character", "remove it")


def _too_deep(place: str) -> Problem:
    return wrong(place, f"nested deeper than {MOST_DEPTH} levels", "make it flatter")


class Received(Request):
    """A request whose JSON is read by our rules."""

    async def json(self) -> Any:
        if not hasattr(self, "_value"):
            self._value = read_json(await self.body())
        return self._value
