"""The payloads of an app's jobs, for functions that say what they take: checked before anything is written.

The same type checks three times: the job's own payload when the app is defined, what is sent along when somebody asks
for a run, and what arrives when the function is called (`executors/payload_types.py`), which is the only one that
others than Python see.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

from fleetcron.errors import DefinitionError, Mistake
from fleetcron.executors.handlers import Handlers
from fleetcron.executors.payload_types import PayloadType, payload_type
from fleetcron.model.payload import filled, problems
from fleetcron.times.instants import EPOCH, iso

_SOME_TICK: Final = iso(EPOCH)  # what {{ scheduled_for }} becomes while a payload is checked


def kind_of(function: Callable[..., Any]) -> PayloadType | None:
    """What the function says its payload is. Unresolvable if what it names is not there."""
    handlers = Handlers(())
    handlers.add("it", function)
    handler = handlers.get("it")
    return payload_type(function) if handler is not None and handler.takes == 2 else None


def plain(payload: Any, kind: PayloadType | None) -> Any:
    """The JSON object that is stored. A value of the function's own type may be given, or the object itself."""
    return payload if kind is None or payload is None or isinstance(payload, Mapping) else kind.dumped(payload)


def misfits(payload: Any, kind: PayloadType, name: str, tenant: str) -> list[Mistake]:
    """With its templates filled in, as the function will see it. What is no JSON is told by those who store it."""
    if problems(payload):
        return []
    return kind.mistakes(filled(payload, _SOME_TICK, name, tenant))


def check(payload: Any, kind: PayloadType | None, name: str, tenant: str) -> Any:
    """What somebody sends along, as JSON; a DefinitionError with the pointer of everything that does not fit."""
    found = plain(payload, kind)
    if kind is not None and found is not None and (wrong := misfits(found, kind, name, tenant)):
        hint = f"{kind.name} says what it takes"
        raise DefinitionError([Mistake(f"/payload{each.pointer}", each.message, hint) for each in wrong])
    return found
