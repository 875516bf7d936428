"""Finding a handler by its exact name, among those that the operator allows (`allowed.py`). A module allows what is
written in it: that is what keeps `shop.jobs:os.system` out."""

import importlib
import inspect
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from fleetcron.executors.allowed import is_allowed, is_within, not_allowed
from fleetcron.executors.context import Context
from fleetcron.executors.payload_types import PayloadType, Unresolvable, payload_type
from fleetcron.executors.verdicts import limited, name_of

_SHAPES = "write def f(ctx), def f(ctx, payload) or def f()"


@dataclass(frozen=True, slots=True)
class Handler:
    name: str
    function: Callable[..., Any]
    takes: int  # 0: nothing, 1: the context, 2: the context and the payload
    is_coroutine: bool
    payload: PayloadType | None = None  # of one that takes 2 and says what it takes

    def given(self, context: Context) -> tuple[Any, ...]:
        """What the function is called with. A BadPayload if the payload is not what it takes."""
        if self.takes < 2:
            return (context,)[: self.takes]
        return (context, context.payload if self.payload is None else self.payload.built(context.payload))


class UnknownHandler(Exception):
    """There is no such handler here; the text says why."""


class Handlers:
    """What was found is kept. What was not is looked for again: the reason may have gone."""

    def __init__(self, allowed: Sequence[str]) -> None:
        self._allowed = tuple(allowed)
        self._found: dict[str, Handler] = {}

    def get(self, name: str) -> Handler | None:
        """Without importing anything."""
        return self._found.get(name)

    def add(self, name: str, function: Callable[..., Any]) -> None:
        """A function that this process has already."""
        self._found[name] = _handler(name, function)

    def find(self, name: str) -> str | None:
        """Import it; None if it is there, otherwise the reason. Never raises, whatever the module does."""
        if name in self._found:
            return None
        try:
            self._found[name] = _handler(name, self._import(name))
        except UnknownHandler as unknown:
            return str(unknown)
        except BaseException as error:  # what is in a module may do anything too, when it is only looked at
            return f"{name} cannot be used: {_said(error)}"
        return None

    def _import(self, name: str) -> Callable[..., Any]:
        module_name, _, path = name.partition(":")
        entry = is_allowed(name, self._allowed)
        if entry is None:
            raise UnknownHandler(not_allowed(name))
        try:
            if module_name not in sys.modules:
                importlib.invalidate_caches()  # it may have come since somebody looked for it
            found: Any = importlib.import_module(module_name)
        except BaseException as error:  # a module may do anything, also sys.exit
            raise UnknownHandler(f"{module_name} cannot be imported: {_said(error)}") from error
        for part in path.split("."):
            found = getattr(found, part, None)
        if not callable(found):
            raise UnknownHandler(f"{module_name} has no function {path}")
        if ":" not in entry and not is_within(str(getattr(found, "__module__", "")), entry):
            raise UnknownHandler(f"{path} is not written in {entry}; allow {name} by its own name")
        return found  # type: ignore[no-any-return]


def _said(error: BaseException) -> str:
    kind = name_of(type(error))
    try:
        return f"{kind}: {limited(str(error), 500)}"
    except BaseException:  # its text is somebody's code as well
        return f"{kind} (its text cannot be shown)"


def _handler(name: str, function: Callable[..., Any]) -> Handler:
    if inspect.isasyncgenfunction(function) or inspect.isgeneratorfunction(function):
        raise UnknownHandler(f"{name} is a generator; {_SHAPES}")
    called = function if inspect.isroutine(function) else type(function).__call__
    is_coroutine = inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(called)
    takes = _takes(name, function)
    return Handler(name, function, takes, is_coroutine, _payload(name, function) if takes == 2 else None)


def _payload(name: str, function: Callable[..., Any]) -> PayloadType | None:
    try:
        return payload_type(function)
    except Unresolvable:
        return None  # named for type checkers only; an app says so when it is defined
    except Exception as error:  # a model that pydantic cannot make sense of
        said = limited(str(error).partition("\n")[0], 500)
        raise UnknownHandler(f"the payload type of {name} cannot be used: {said}") from error


def _takes(name: str, function: Callable[..., Any]) -> int:
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):  # something written in C
        raise UnknownHandler(f"it cannot be seen what {name} takes; {_SHAPES}") from None
    open_ended = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    needed = [one for one in parameters if one.default is one.empty and one.kind not in open_ended]
    if any(one.kind is one.KEYWORD_ONLY for one in needed) or len(needed) > 2:
        raise UnknownHandler(f"{name} takes {len(needed)} arguments; {_SHAPES}")
    names = [one.name for one in parameters if one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD)]
    takes = len(needed)
    # an argument with a default is the function's own affair, unless it has our name
    if takes == 0 and (
        names[:1] in (["ctx"], ["context"]) or any(one.kind is one.VAR_POSITIONAL for one in parameters)
    ):
        takes = 1
    return 2 if takes == 1 and names[1:2] == ["payload"] else takes
