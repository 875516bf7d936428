"""Mistakes in a document: found all at once, each with its place in what was written and what to write instead."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from itertools import islice
from typing import Any, Final, get_args, get_origin

from pydantic import BaseModel, Tag
from pydantic_core import ErrorDetails

from fleetcron.errors import Mistake
from fleetcron.model.values import kind_of

Path = tuple[str | int, ...]
_LONGEST = 60
_FEW = 10

# What a document of another system calls it, or where people look for it first.
ELSEWHERE: Final[Mapping[str, str]] = {
    "command": "write it under run: {command: […]}",
    "concurrency": "write overlap: skip, queue, collapse, allow or cancel_previous",
    "cron": "write it under schedule: {cron: …}",
    "cron_expression": "write schedule: {cron: …}",
    "enabled": "a job is active unless paused: fleetcron jobs pause",
    "every": "write it under schedule: {every: …}",
    "handler": 'write run: {python: "module:function"}',
    "http": "write it under run: {http: …}",
    "id": "fleetcron gives the id",
    "job_payload": "write payload",
    "job_type": "write type",
    "max_missed_firings": "write misfire: {limit: …}",
    "max_retries": "write retry: {max_attempts: …}, which counts the first attempt too",
    "overlap_policy": "write overlap",
    "payload_template": "write payload",
    "publish": "write it under run: {publish: …}",
    "python": "write it under run: {python: …}",
    "recovery_window": "write misfire: {window: …}",
    "retries": "write retry: {max_attempts: …}, which counts the first attempt too",
    "state": "a job is active unless paused: fleetcron jobs pause",
    "timeout_seconds": "write timeout",
    "timezone": "write it under schedule: {cron: …, timezone: …}",
}
_CASES: Final[Mapping[str, tuple[str, ...]]] = {
    "schedule": ("cron", "every", "at"),
    "run": ("python", "command", "http", "publish"),
    "backoff": ("fixed", "exponential"),
}  # of the unions
_EXAMPLES: Final[Mapping[str, str]] = {
    "schedule": '{cron: "0 2 * * *"}, {every: 15m} or {at: 2027-01-01T09:00:00Z}',
    "run": '{command: ["python", "report.py"]}, {python: "module:function"}, {http: …} or {publish: …}',
    "backoff": "[30s, 2m, 10m], {fixed: 30s} or {exponential: {first: 30s, max: 2h}}",
}


def mistake(base: str, raw: object, path: Path, text: str, hint: str | None = None) -> Mistake:
    """A mistake at a path of the long form, pointing at what stands for it in `raw`."""
    return Mistake(base + pointer(written_path(raw, path)), printable(text), None if hint is None else printable(hint))


def pointer(path: Path) -> str:
    """A JSON pointer (RFC 6901); an endless key is cut."""
    return "".join("/" + printable(_cut(str(part)).replace("~", "~0").replace("/", "~1")) for part in path)


def printable(text: str) -> str:
    return text.encode("utf-8", "backslashreplace").decode()


def written_path(raw: object, path: Path) -> Path:
    """The path in what was written: without the cases of unions, and no deeper than a short form goes."""
    here: list[str | int] = []
    for at, part in enumerate(path):
        if isinstance(part, int):
            if not isinstance(raw, list):
                continue  # one entry stands for a list of one
            if part >= len(raw):
                break
            raw = raw[part]
        elif isinstance(raw, dict) and part in raw:
            raw = raw[part]
        elif isinstance(raw, dict) and at == len(path) - 1:
            pass  # a field that is missing
        elif isinstance(raw, dict):
            continue
        elif " " in part:
            continue  # the case of a union
        else:
            break
        here.append(part)
    return tuple(here)


def from_error(base: str, raw: object, error: ErrorDetails, shape: type[BaseModel]) -> Mistake:
    path: Path = error["loc"]
    if error["type"] == "union_tag_not_found" and (meant := _meant(_CASES[_union(path)], error["input"])):
        key, near = meant
        return mistake(base, raw, (*path, key), f"unknown field {kind_of(key)}", f"did you mean {near}?")
    return mistake(base, raw, path, *_words(error, shape))


def _words(error: ErrorDetails, shape: type[BaseModel]) -> tuple[str, str | None]:
    value, limits = error["input"], error.get("ctx", {})
    match error["type"]:
        case "missing":
            field = str(error["loc"][-1])
            return "is missing", f"write {field}: {_EXAMPLES[field]}" if field in _EXAMPLES else "every one needs it"
        case "extra_forbidden":
            return _unknown(error["loc"], known_fields(shape, error["loc"][:-1]))
        case "union_tag_not_found":
            return _no_case(_union(error["loc"]), value)
        case "string_type":
            return f"must be text, not {kind_of(value)}", "quote it" if isinstance(value, int | float) else None
        case "string_unicode":
            return "has a character that cannot be stored (NUL or half a surrogate pair)", "remove it"
        case "int_type" | "int_from_float":
            return f"must be a whole number, not {kind_of(value)}", None
        case "float_type" | "finite_number":
            return f"must be a number, not {kind_of(value)}", None
        case "bool_type":
            return f"must be true or false, not {kind_of(value)}", None
        case "list_type":
            return f"must be a list, not {kind_of(value)}", "write it in brackets: […]"
        case "dict_type" | "model_type" | "model_attributes_type":
            return f"must be a mapping, not {kind_of(value)}", None
        case "literal_error":
            return _no_choice(value, str(limits["expected"]))
        case "string_pattern_mismatch":
            return (
                f"{kind_of(value)} is not a name",
                "small letters, digits, dots, dashes and underscores, 200 at most, a letter or digit first",
            )
        case "greater_than_equal":
            return f"{kind_of(value)} is less than {limits['ge']}, the least that is allowed", None
        case "greater_than":
            return f"{kind_of(value)} is not more than {limits['gt']}", None
        case "less_than_equal":
            return f"{kind_of(value)} is more than {limits['le']}, the most that is allowed", None
        case "string_too_short" | "too_short":
            return "must not be empty", None
        case "string_too_long" | "too_long":
            unit = "characters" if isinstance(value, str) else "entries"
            return f"is too long: {limits['max_length']:,} {unit} at most", None
        case "value_error":
            fault = limits["error"]
            return str(getattr(fault, "mistake", fault)), getattr(fault, "hint", None)
    return str(error["msg"]), None


def _unknown(path: Path, known: Sequence[str]) -> tuple[str, str | None]:
    name = str(path[-1])
    text, cases = f"unknown field {kind_of(name)}", _CASES.get(str(path[0]), ())
    if name in cases and len(path) > 1:
        return text, f"it has one of {', '.join(cases)}" + ("; write a list for several" if "cron" in cases else "")
    if len(path) == 1 and name in ELSEWHERE:
        return text, ELSEWHERE[name]
    near = get_close_matches(name, known, n=1) if len(name) <= _LONGEST else []
    if near:
        return text, f"did you mean {near[0]}?"
    return text, f"there are {', '.join(known)}" if len(known) <= _FEW else "docs/learn/jobs.md lists the fields"


def _no_choice(value: object, expected: str) -> tuple[str, str | None]:
    allowed = [word.strip("'") for word in expected.replace(" or ", ", ").split(", ")]
    near = get_close_matches(value, allowed, n=1) if isinstance(value, str) and len(value) <= _LONGEST else []
    return f"{kind_of(value)} is not one of {', '.join(allowed)}", f"did you mean {near[0]}?" if near else None


def _union(path: Path) -> str:
    """Which of the unions stands at a path."""
    return next(str(part) for part in reversed(path) if part in _CASES)


def _meant(cases: tuple[str, ...], value: object) -> tuple[str, str] | None:
    """A key that is nearly one of the cases, and which."""
    for key in islice(value, _LONGEST) if isinstance(value, dict) else ():
        if isinstance(key, str) and len(key) <= _LONGEST and (near := get_close_matches(key, cases, n=1)):
            return key, near[0]
    return None


def _no_case(union: str, value: object) -> tuple[str, str]:
    cases, example = _CASES[union], f"write {_EXAMPLES[union]}"
    if isinstance(value, dict):
        return f"has none of {', '.join(cases)}", example
    return f"must be a mapping with {', '.join(cases[:-1])} or {cases[-1]}, not {kind_of(value)}", example


def known_fields(shape: type[BaseModel], path: Path) -> tuple[str, ...]:
    """The fields of the model that stands at a path of `shape`."""
    wanted = tuple(part for part in path if isinstance(part, str))
    known = _SHAPES.get(shape)
    if known is None:
        known = _SHAPES[shape] = dict(_shapes(shape, ()))
    return known.get(wanted, ())


_SHAPES: dict[type[BaseModel], dict[tuple[str, ...], tuple[str, ...]]] = {}


def _shapes(shape: type[BaseModel], path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], tuple[str, ...]]]:
    fields = {field.alias or name: field.annotation for name, field in shape.model_fields.items()}
    yield path, tuple(name for name in fields if name != "derived")
    for name, annotation in fields.items():
        for tags, inner in _models_in(annotation, ()):
            yield from _shapes(inner, (*path, name, *tags))


def _models_in(annotation: Any, tags: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], type[BaseModel]]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield tags, annotation
        return
    here = (*tags, *(part.tag for part in getattr(annotation, "__metadata__", ()) if isinstance(part, Tag)))
    if get_origin(annotation) is not None:
        for part in get_args(annotation):
            yield from _models_in(part, here)


def report(mistakes: Iterable[Mistake], most: int = 50) -> str:
    """The mistakes for a terminal: the first ones, and how many more there are."""
    listed = list(mistakes)
    more = [f"and {len(listed) - most} more"] if len(listed) > most else []
    return "\n".join([*map(str, listed[:most]), *more])


def _cut(text: str) -> str:
    return text if len(text) <= 200 else f"{text[:199]}…"
