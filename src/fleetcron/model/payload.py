"""The payload of a job: a JSON object, with a few templates in its texts and no code.

S4-9 `payload_template`. The limits keep a row, a page and a terminal usable, whoever writes the document.
"""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from fleetcron.model.tenant import MAX_PAYLOAD

MAX_DEPTH: Final = 32
TEMPLATES: Final = ("scheduled_for", "job.name", "tenant")
_OPEN = re.compile(r"\{\{(?:\s*([A-Za-z0-9_.]+)\s*\}\})?")
_KNOWN = re.compile(r"\{\{\s*(scheduled_for|job\.name|tenant)\s*\}\}")
_BITS = 4096  # of a whole number: json refuses to write much longer ones
_ONLY = f"there are {', '.join('{{ ' + name + ' }}' for name in TEMPLATES)}"

Path = tuple[str | int, ...]
Problem = tuple[Path, str, str | None]


def problems(payload: object, max_bytes: int = MAX_PAYLOAD) -> list[Problem]:
    """Everything that is wrong with it: where, what, and what to write. Bounded for any value, also an endless one."""
    if not isinstance(payload, dict):
        return [((), "must be a mapping: a JSON object", "such as {kind: full}")]
    found: list[Problem] = []
    stack: list[tuple[Path, Any]] = [((), payload)]
    seen = 0
    while stack:
        path, value = stack.pop()
        seen += 1
        if seen + len(stack) > max_bytes:  # every value takes a byte at least, so these do not fit
            return [*found, _too_large(max_bytes)]
        found += _problems_of(path, value)
        if isinstance(value, dict | list) and len(path) < MAX_DEPTH:
            stack += reversed(_children(path, value))
    if not found and size(payload) > max_bytes:
        found.append(_too_large(max_bytes))
    return found


def size(payload: Mapping[str, Any]) -> int:
    """Bytes of JSON."""
    return len(json.dumps(payload, separators=(",", ":"), ensure_ascii=False).encode())


def filled(payload: Mapping[str, Any], scheduled_for: str, job_name: str, tenant: str) -> dict[str, Any]:
    """The payload that a handler gets: the templates in its texts replaced, everything else as it is."""
    values = {"scheduled_for": scheduled_for, "job.name": job_name, "tenant": tenant}
    return {key: _fill(value, values) for key, value in payload.items()}


def _fill(value: Any, values: Mapping[str, str]) -> Any:
    match value:
        case str():
            return _KNOWN.sub(lambda found: values[found[1]], value)
        case dict():
            return {key: _fill(each, values) for key, each in value.items()}
        case list():
            return [_fill(each, values) for each in value]
    return value


def _children(path: Path, value: dict[Any, Any] | list[Any]) -> list[tuple[Path, Any]]:
    if isinstance(value, list):
        return [((*path, at), each) for at, each in enumerate(value)]
    return [((*path, key), each) for key, each in value.items() if isinstance(key, str)]


def _problems_of(path: Path, value: object) -> Iterator[Problem]:
    match value:
        case None | bool():
            pass
        case str():
            yield from _problems_of_text(path, value)
        case int():
            if value.bit_length() > _BITS:
                yield path, "the number is too large", "write it as text"
        case float():
            if value != value or value in (float("inf"), float("-inf")):
                yield path, f"{value} is not a JSON number", "write null or text"
        case dict() | list():
            if len(path) >= MAX_DEPTH:
                yield path, f"nested deeper than {MAX_DEPTH} levels", "make the payload flatter"
            elif isinstance(value, dict):
                yield from _problems_of_keys(path, value)
        case _:
            yield path, f"a {type(value).__name__} is not JSON", "write it as text"


def _problems_of_keys(path: Path, value: dict[Any, Any]) -> Iterator[Problem]:
    for key in value:
        if not isinstance(key, str):
            yield path, f"a key is a {type(key).__name__} and not text", "quote it"
        elif "{{" in key:
            yield (*path, key), "a template cannot stand in a key", "templates are for values"
        else:
            yield from _problems_of_text((*path, key), key)


def _problems_of_text(path: Path, text: str) -> Iterator[Problem]:
    if not is_storable(text):
        yield path, "has a character that cannot be stored (NUL or half a surrogate pair)", "remove it"
    for opened in _OPEN.finditer(text):
        if opened[1] not in TEMPLATES:
            shown = opened[0] if opened[1] and len(opened[0]) <= 60 else "{{"
            yield path, f"'{shown}' is not a template", _ONLY
            return


def is_storable(text: str) -> bool:
    """Neither a database nor JSON can hold NUL and half a surrogate pair."""
    try:
        return "\0" not in text and bool(text.encode() or True)
    except UnicodeEncodeError:
        return False


def _too_large(max_bytes: int) -> Problem:
    most = f"{max_bytes:,} bytes" if max_bytes % 1024 else f"{max_bytes // 1024:,} KiB"
    return (), f"larger than {most} of JSON", "store the data elsewhere and give its address"
