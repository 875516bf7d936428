"""The name under which a worker can import a function: `shop.jobs:report`.

A script that was started as `python jobs.py` is called `__main__` here, and `jobs` in the handler hosts, which are
processes of their own and import it from its folder (`running.py` tells them where that is). As with multiprocessing,
what the script does beside defining functions must stand under `if __name__ == "__main__":`.
"""

import os
import sys
from collections.abc import Callable
from importlib.machinery import PathFinder
from types import ModuleType
from typing import Any

MAIN = "__main__"


class NotImportable(Exception):
    """Why a worker cannot import a function, and what to do about it."""

    def __init__(self, reason: str, hint: str) -> None:
        self.reason = reason
        self.hint = hint
        super().__init__(f"{reason}; {hint}")


def import_name(function: Callable[..., Any]) -> str:
    module, path = getattr(function, "__module__", None), getattr(function, "__qualname__", None)
    if not isinstance(module, str) or not isinstance(path, str):
        raise NotImportable(f"a {type(function).__name__} has no name to import it by", "write a function with def")
    if "<lambda>" in path:
        raise NotImportable("a lambda has no name to import it by", "write a function with def")
    if "<locals>" in path:
        raise NotImportable("it is inside another function, where no worker can reach it", "move it out of there")
    _reach(module, path)
    return f"{main_name(sys.modules[MAIN]) if module == MAIN else module}:{path}"


def shown_name(function: Callable[..., Any]) -> str:
    """For messages, also about what cannot be imported."""
    module = getattr(function, "__module__", None) or "?"
    return f"{module}:{getattr(function, '__qualname__', None) or type(function).__name__}"


def main_name(main: ModuleType) -> str:
    """What `__main__` is called when it is imported."""
    spec = getattr(main, "__spec__", None)
    if spec is not None and spec.name != MAIN:  # python -m shop.jobs
        return str(spec.name)
    file = main_file(main)
    if file is None:
        raise NotImportable("it was not read from a file, so no worker can import it", "put it in a module")
    name, suffix = os.path.splitext(os.path.basename(file))
    if suffix != ".py" or not name.isidentifier() or name == MAIN:
        raise NotImportable(f"{os.path.basename(file)} cannot be imported under its name", "call it jobs.py, say")
    if name in sys.stdlib_module_names:
        raise NotImportable(f"{name}.py has the name of a module of Python itself", "rename it")
    found = PathFinder.find_spec(name, [os.getcwd(), os.path.dirname(file)])  # in this order hosts look
    if found is None or found.origin is None or os.path.realpath(found.origin) != file:
        other = found.origin if found is not None and found.origin else f"the folder {name}"
        raise NotImportable(f"'import {name}' finds {other} first", f"rename {file}")
    return name


def main_file(main: ModuleType) -> str | None:
    """The script, with links followed, as Python does for `sys.path`."""
    file = getattr(main, "__file__", None)
    return os.path.realpath(file) if isinstance(file, str) and os.path.exists(file) else None


def _reach(module: str, path: str) -> None:
    found: Any = sys.modules.get(module)
    if found is None:
        return  # a module that was made by hand; the worker will see
    for part in path.split("."):
        found = getattr(found, part, None)
    if not callable(found):
        raise NotImportable(
            f"{module} has no function {path} any more", "keep it under the name that it was defined with"
        )
