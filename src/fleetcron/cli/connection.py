"""The options that name a database, and the way from them to an open store."""

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import Any, Literal, TypeVar

import click

from fleetcron.clock import SystemClock
from fleetcron.config import Config, load
from fleetcron.config.sources import FILE_VARIABLE
from fleetcron.errors import ConfigError, Mistake, StoreError
from fleetcron.store.migrations import migrate, require_current, status
from fleetcron.store.store import Store

T = TypeVar("T")
Command = TypeVar("Command", bound=Callable[..., Any])

DEFAULT_FILE = Path("fleetcron.toml")
_FLAGS = {"store.url": "database", "worker.pools": "pool"}  # those that are not called like their setting


@dataclass(frozen=True, slots=True)
class Database:
    """What the command line says about the database, before the file and the environment are asked."""

    url: str | None = None
    file: str | None = None

    def config(self, flags: Mapping[str, object] | None = None) -> Config:
        """The settings of this command. A `fleetcron.toml` in this folder counts, unless another file is named."""
        path = None if self.file is None else Path(self.file)
        if path is None and not os.environ.get(FILE_VARIABLE) and DEFAULT_FILE.exists():
            path = DEFAULT_FILE
        try:
            return load(path, os.environ, {"store.url": self.url, **(flags or {})})
        except ConfigError as error:
            raise ConfigError([_as_flag(mistake) for mistake in error.mistakes]) from None

    def run(self, work: Callable[[Store], Awaitable[T]]) -> T:
        """Open the store, do the work, close."""
        config = self.config()

        async def main() -> T:
            async with opened(config) as store:
                return await work(store)

        return asyncio.run(main())


@asynccontextmanager
async def opened(config: Config, tables: Literal["needed", "made", "any"] = "needed") -> AsyncIterator[Store]:
    """The store. Its tables are needed as they are to be, or made where there are none at all, or not looked at."""
    path = sqlite_path(config.store.url)
    if tables == "needed" and path is not None and not path.exists():
        # opening would create an empty one, and the next look would find a database without jobs
        raise StoreError(
            f"there is no database {path} yet",
            hint="`fleetcron apply -f FILE` or `fleetcron serve` makes it; --database names another one",
        )
    store = await Store.open(config.store, SystemClock())
    try:
        if tables == "made" and not (await status(store.engine)).applied:
            await migrate(store.engine)
        if tables != "any":
            await require_current(store.engine)
        yield store
    finally:
        await store.close()


def _as_flag(mistake: Mistake) -> Mistake:
    """A flag as it was written: `flag: scheduler.shards` is --shards."""
    kind, _, setting = mistake.pointer.partition(": ")
    if kind != "flag":
        return mistake
    flag = _FLAGS.get(setting) or setting.partition(".")[2].replace("_", "-")
    return Mistake(f"--{flag}", mistake.message, mistake.hint)


def sqlite_path(url: str) -> Path | None:
    """The file of a SQLite URL; None for memory and for other databases."""
    if not url.startswith("sqlite:///") or url.endswith(":memory:"):
        return None
    return Path(url.removeprefix("sqlite:///"))


_OPTIONS = (
    click.option("--database", metavar="URL", help="Where the store is: sqlite:///FILE or postgresql://USER@HOST/NAME. "
                 "Also FLEETCRON_DATABASE_URL, DATABASE_URL. [default: sqlite:///fleetcron.db, in this folder]"),
    click.option("--config", "config_file", metavar="FILE", help="Settings. Also FLEETCRON_CONFIG. "
                 "[default: fleetcron.toml, if it is in this folder]"),
)  # fmt: skip


def database_options(function: Command) -> Command:
    """Add --database and --config; the command gets them as one `database`. A group hands them down."""

    @wraps(function)
    def command(database: str | None, config_file: str | None, **values: Any) -> Any:
        given = Database(database or _above("database"), config_file or _above("config_file"))
        return function(database=given, **values)

    for option in reversed(_OPTIONS):
        command = option(command)
    return command  # type: ignore[return-value]


def _above(name: str) -> str | None:
    """What was said before the name of the subcommand: `fleetcron jobs --database URL show NAME`."""
    context = click.get_current_context().parent
    while context is not None:
        if found := context.params.get(name):
            return str(found)
        context = context.parent
    return None
