"""A handler that says what its payload is: `def send(ctx, payload: Invoice)`.

A pydantic model, a dataclass or a TypedDict, or a union of these, is checked and built before the function is called.
Every other annotation (dict, Mapping, Any, none) means the plain payload, as it is. pydantic does the checking and is
imported only here, when the first function that needs it is found: a handler host without one starts faster.
"""

import inspect
import json
import sys
import types
from collections.abc import Callable, Mapping
from dataclasses import is_dataclass
from typing import Annotated, Any, Final, Union, get_args, get_origin

from fleetcron.errors import Mistake
from fleetcron.executors.context import BadPayload

_MOST: Final = 20  # mistakes in one text


class Unresolvable(Exception):
    """The annotation names something that is not there when the program runs."""


class PayloadType:
    """What a function takes as its payload."""

    def __init__(self, hint: Any) -> None:
        from pydantic import TypeAdapter

        self.name = _shown(hint)
        self._adapter: Any = TypeAdapter(hint)

    def schema(self) -> dict[str, Any]:
        """The JSON Schema of what may be sent."""
        found: dict[str, Any] = self._adapter.json_schema()
        return found

    def dumped(self, value: Any) -> Any:
        """The JSON object of a value of this type; whatever else it is, as it is."""
        from pydantic import ValidationError

        try:
            return self._adapter.dump_python(self._adapter.validate_python(value), mode="json", by_alias=True)
        except ValidationError:
            return value

    def built(self, payload: Mapping[str, Any]) -> Any:
        """What the function gets; a BadPayload that trying again would not help."""
        value, wrong = self._read(payload)
        if wrong:
            raise BadPayload(f"the payload does not fit {self.name}: {'; '.join(map(str, wrong))}")
        return value

    def mistakes(self, payload: Mapping[str, Any]) -> list[Mistake]:
        """Everything that does not fit, each with the JSON pointer into the payload."""
        return self._read(payload)[1]

    def _read(self, payload: Mapping[str, Any]) -> tuple[Any, list[Mistake]]:
        from pydantic import ValidationError

        try:  # as JSON, which it is: also a strict model takes an instant or a number of 20 digits as text then
            return self._adapter.validate_json(json.dumps(payload)), []
        except ValidationError as error:
            found = error.errors(include_url=False, include_context=False, include_input=False)
            wrong = [Mistake(_pointer(each["loc"], payload), each["msg"]) for each in found[:_MOST]]
            more = len(found) - _MOST
            return None, [*wrong, Mistake("", f"and {more} more")] if more > 0 else wrong


def payload_type(function: Callable[..., Any]) -> PayloadType | None:
    """Of a function that takes (ctx, payload). Unresolvable if what it names is not there at run time."""
    parameters = list(inspect.signature(function).parameters.values())
    hint = parameters[1].annotation if len(parameters) > 1 else inspect.Parameter.empty
    if isinstance(hint, str):
        hint = _resolved(hint, function)
    return PayloadType(hint) if _is_model(hint) else None


def _resolved(text: str, function: Callable[..., Any]) -> Any:
    """As `from __future__ import annotations` leaves them. The text is the user's own code, as the function is."""
    inner = inspect.unwrap(function)
    try:
        return eval(text, getattr(inner, "__globals__", {}))
    except Exception as error:
        raise Unresolvable(f"its annotation {text!r} cannot be looked up ({error})") from error


def _is_model(hint: Any) -> bool:
    origin = get_origin(hint)
    if origin is Annotated:
        return _is_model(get_args(hint)[0])
    if origin in (Union, types.UnionType):
        return any(map(_is_model, get_args(hint)))
    if not isinstance(hint, type):
        return False
    # every pydantic model and dataclass has this mark: no need to import pydantic to know one
    return hasattr(hint, "__pydantic_validator__") or is_dataclass(hint) or _is_checked_dict(hint)


def _is_checked_dict(hint: type) -> bool:
    """A TypedDict, of typing or typing_extensions. Before Python 3.12 those of typing say too little about themselves
    to be checked, so they stay what they are when the program runs: a dict."""
    if not hasattr(hint, "__required_keys__"):
        return False
    return sys.version_info >= (3, 12) or type(hint).__module__ != "typing"


def _shown(hint: Any) -> str:
    if get_origin(hint) is Annotated:
        return _shown(get_args(hint)[0])
    if get_origin(hint) in (Union, types.UnionType):
        return " | ".join(map(_shown, get_args(hint)))
    return getattr(hint, "__name__", None) or str(hint)


def _pointer(parts: tuple[int | str, ...], payload: object) -> str:
    """Where in the payload. Of a union pydantic names the choice too, which is no place in it."""
    found, at = "", payload
    for number, part in enumerate(parts, 1):
        if isinstance(at, Mapping) and (part in at or number == len(parts)):
            at = at.get(part)
        elif isinstance(at, list) and isinstance(part, int) and part < len(at):
            at = at[part]
        else:
            continue
        found += f"/{str(part).replace('~', '~0').replace('/', '~1')}"
    return found
