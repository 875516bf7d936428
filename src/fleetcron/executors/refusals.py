"""What a worker will never run, whatever it is asked for: its settings say so, before anybody asks.

A worker's `lacks` are the handlers that it was asked for and has not. Refusals stand beside them under names of the
same kind: `shell`, and one for all Python functions but those that it may look for. Whoever hands out runs compares
whole names: what is said early never keeps a run from a worker that has its handler.
"""

from collections.abc import Iterable, Mapping
from typing import Final

from fleetcron.config import ExecutorConfig
from fleetcron.executors.allowed import is_allowed, not_allowed

NO_SHELL: Final = "this worker runs no shell; write the command as a list, or set executor.shell to allowed"
_PYTHON: Final = "python:"
_ALL_BUT: Final = "python:* but "
_LONGEST: Final = 1_000  # every claim reads what all workers lack: a longer list is found out by asking


def refusals(config: ExecutorConfig, functions: Iterable[str] = ()) -> dict[str, str]:
    """With the reasons. `functions` are those that the process has already; only `isolation: inline` can use them."""
    found = {} if config.shell == "allowed" else {"shell": NO_SHELL}
    allowed = " ".join([*config.handlers, *(functions if config.isolation == "inline" else ())])
    if len(allowed) <= _LONGEST:
        found[_ALL_BUT + allowed] = "executor.handlers says so"
    return found


def why_lacking(lacks: Mapping[str, str], handler: str) -> str | None:
    """Why a worker cannot run a handler; None if it can, or was never asked."""
    if handler in lacks:
        return lacks[handler] or "it is not known there"
    if not handler.startswith(_PYTHON):
        return None
    function = handler.removeprefix(_PYTHON)
    rules = (name.removeprefix(_ALL_BUT).split() for name in lacks if name.startswith(_ALL_BUT))
    return not_allowed(function) if any(is_allowed(function, allowed) is None for allowed in rules) else None
