"""Read a pickle without running any of it.

A pickle is a small program: loading one calls whatever it names. Here every class and function that it names is a
stand-in of ours, which only remembers what it was given, so that the worst a hostile pickle can do is to describe
nonsense. The reader of the standard library that is written in Python is used, not the one in C: its memory is a
dictionary, so that an index of four billion costs one entry and not a table.
"""

import io
import pickle
from collections.abc import Mapping
from datetime import date, datetime, timedelta, timezone
from typing import Any, Final

MAX_BYTES: Final = 1_000_000
# plain values, whose makers can do nothing but refuse
_REAL: Final[Mapping[tuple[str, str], Any]] = {
    ("datetime", "date"): date,
    ("datetime", "timedelta"): timedelta,
    ("datetime", "timezone"): timezone,
}


class BadPickle(ValueError):
    """These bytes are no pickle, or one of a kind that nobody writes for jobs."""


class Inert:
    """Stands for an object of a foreign class: what it was made with, and the state that it was given."""

    name = ""  # module.class

    def __new__(cls, *given: Any, **named: Any) -> "Inert":
        made = super().__new__(cls)
        made.given, made.named, made.state, made.items = given, named, {}, []
        return made

    given: tuple[Any, ...]
    named: Mapping[str, Any]
    state: dict[str, Any]
    items: list[Any]

    def __init__(self, *given: Any, **named: Any) -> None:
        """What it was made with is kept by __new__."""

    def __setstate__(self, state: Any) -> None:
        for part in state if isinstance(state, tuple) else (state,):
            if isinstance(part, dict):
                self.state.update(part)
            elif part is not None:
                self.items.append(part)

    def __call__(self, *given: Any, **named: Any) -> "Inert":
        """What the real thing would give is not known; only what it was called with."""
        return stand_in(f"{self.name}()")(*given, **named)

    def append(self, item: Any) -> None:
        self.items.append(item)

    def extend(self, items: Any) -> None:
        self.items.extend(items)

    def add(self, item: Any) -> None:
        self.items.append(item)

    def __setitem__(self, key: Any, value: Any) -> None:
        self.state[str(key)] = value

    @property
    def kind(self) -> str:
        """The last part of the name of its class."""
        return self.name.rpartition(".")[2]


def stand_in(name: str) -> type[Inert]:
    return type(name.rpartition(".")[2] or "Inert", (Inert,), {"name": name})


def moment(*given: Any) -> Any:
    """A datetime, as a pickle makes it; with a zone that is a stand-in, it is one too."""
    if any(isinstance(each, Inert) for each in given):
        return stand_in("datetime.datetime")(*given)
    return datetime(*given)  # noqa: DTZ001


class _Reader(pickle._Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        if (module, name) == ("datetime", "datetime"):
            return moment
        return _REAL.get((module, name)) or stand_in(f"{module}.{name}")


def read_pickle(data: bytes) -> Any:
    """What is in it, or BadPickle."""
    if len(data) > MAX_BYTES:
        raise BadPickle(f"{len(data):,} bytes, {MAX_BYTES:,} at most")
    try:
        return _Reader(io.BytesIO(data)).load()
    except MemoryError:
        raise BadPickle("it asks for more memory than there is") from None
    except Exception as error:  # the reader lets through whatever its steps raise
        raise BadPickle(f"not a pickle of a job: {type(error).__name__}: {error}") from None
