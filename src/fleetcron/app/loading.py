"""An app by its name, `shop.jobs:app`: for the command line."""

import os
import re
import sys
from importlib import import_module
from traceback import extract_tb
from types import ModuleType
from typing import Any, NoReturn

from fleetcron.app import running
from fleetcron.app.application import Fleetcron
from fleetcron.errors import ConfigError, Mistake

_NAME = re.compile(r"([A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*):([A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*)")


def load(name: str) -> Fleetcron:
    """The app, imported as Python would in the current folder. A ConfigError with the reason if there is none."""
    found = _NAME.fullmatch(name)
    if found is None:
        hint = _meant(name) or "write module:attribute, such as shop.jobs:app"
        _refuse(f"{name!r} is not the name of an app", hint)
    module = _imported(found[1], _meant(name))
    app: Any = module
    for part in found[2].split("."):
        if not hasattr(app, part):
            _refuse(f"{found[1]} has no {found[2]}", _offer(module))
        app = getattr(app, part)
    if not isinstance(app, Fleetcron):
        _refuse(f"{name} is a {type(app).__name__}, not a Fleetcron", _offer(module))
    return app


def _imported(name: str, meant: str | None) -> ModuleType:
    folder = os.getcwd()
    if "" not in sys.path and folder not in sys.path:
        sys.path.insert(0, folder)
    try:
        with running.forbidden(f"while {name} is imported"):
            return import_module(name)
    except ModuleNotFoundError as error:
        if error.name and (name == error.name or name.startswith(f"{error.name}.")):
            hint = meant or f"start it in the folder that has {name.partition('.')[0]}, or set PYTHONPATH"
            _refuse(f"there is no module {error.name} in {folder} or where Python looks", hint)
        _refuse(*_broken(name, error))
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # a module may do anything, also sys.exit
        _refuse(*_broken(name, error))


def _meant(name: str) -> str | None:
    """People write the file instead of the module: shop/jobs.py:app."""
    module, _, attribute = name.partition(":")
    if not module.endswith(".py"):
        return None
    wanted = f"{module.removesuffix('.py').removeprefix('./').replace('/', '.')}:{attribute or 'app'}"
    return f"did you mean {wanted}?" if _NAME.fullmatch(wanted) else None


def _broken(name: str, error: BaseException) -> tuple[str, str | None]:
    """The reason, and the line of the module, or of what it imports, where it happened."""
    said = f"{name} cannot be imported: {type(error).__name__}: {error}".removesuffix(": ")
    frames = [frame for frame in extract_tb(error.__traceback__) if not frame.filename.startswith("<frozen ")]
    inside = [frame for frame in frames if frame.filename != __file__ and not _is_library(frame.filename)]
    return said, f"{os.path.relpath(inside[-1].filename)}, line {inside[-1].lineno}" if inside else None


def _is_library(file: str) -> bool:
    return os.path.realpath(file).startswith((sys.base_prefix + os.sep + "lib", os.path.dirname(running.__file__)))


def _offer(module: ModuleType) -> str:
    apps = [name for name, value in vars(module).items() if isinstance(value, Fleetcron)]
    if not apps:
        return "write app = Fleetcron() there"
    return f"did you mean {' or '.join(f'{module.__name__}:{name}' for name in apps)}?"


def _refuse(text: str, hint: str | None) -> NoReturn:
    raise ConfigError([Mistake("--app", text, hint)]) from None
