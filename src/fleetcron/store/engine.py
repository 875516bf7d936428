"""How verbs talk to a database.

A verb is a *script*: a plain generator that yields named statements and gets their rows. It decides nothing and awaits
nothing, so one text of it serves both engines: SQLite runs the whole script on its writer thread (no thread is crossed
between statements), PostgreSQL awaits each statement. An engine may run a script again from its start when the
database asks for it (serialization failure, deadlock), so scripts are given as factories.
"""

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from typing import Any, Generator, Protocol, TypeAlias, TypeVar  # noqa: UP035 - see Script

from fleetcron.store.written import Refused, Written

T = TypeVar("T")


class Row(Protocol):
    """A row of either engine: columns by name or by place."""

    def __getitem__(self, key: Any, /) -> Any: ...


Call: TypeAlias = tuple[str, Mapping[str, Any]]
# Each call of a verb evaluates `Script[…]`. That of typing is remembered: 1 µs, where that of collections takes 4.
Script: TypeAlias = Generator[Call, list[Row], T]


class Engine(Protocol):
    """One database. `name` is the folder of its own statements under sql/."""

    name: str

    async def write(self, script: Callable[[], Script[T | Refused]]) -> Written[T]:
        """Run a script as one transaction.

        A script that returns Refused is committed too: what it wrote is the event that says so. A script that raises
        is rolled back.
        """
        ...

    async def read(self, script: Callable[[], Script[T]]) -> T:
        """Run a script on one consistent snapshot. It must not write."""
        ...

    def hints(self) -> AbstractAsyncContextManager[AsyncIterator[str]]:
        """What others say has changed ("jobs", "shards"). Only a hint: it may come late, twice or never."""
        ...

    async def close(self) -> None: ...
