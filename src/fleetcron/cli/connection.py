"""The options that say where a command looks, in a database or in an API, and the way from them to either.

A command asks for a document (`Database.ask`): one way to it reads the store, the other asks the API, and what is
printed is drawn from the document. A command that does not say how to ask the API works on the database itself.
"""

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import click
from click.core import ParameterSource

from fleetcron.cli.place import API_VARIABLE, api_of
from fleetcron.clock import SystemClock
from fleetcron.config import Config, load
from fleetcron.config.sources import FILE_VARIABLE
from fleetcron.errors import ConfigError, Mistake, StoreError
from fleetcron.store.migrations import migrate, require_current, status
from fleetcron.store.store import Store

if TYPE_CHECKING:
    from fleetcron.client.blocking import Client

T = TypeVar("T")
Command = TypeVar("Command", bound=Callable[..., Any])

DEFAULT_FILE = Path("fleetcron.toml")
_FLAGS = {"store.url": "database", "worker.pools": "pool"}  # those that are not called like their setting


@dataclass(frozen=True, slots=True)
class Database:
    """What the command line says about where to look, before the file and the environment are asked."""

    url: str | None = None
    file: str | None = None
    api: str | None = None

    @property
    def there(self) -> str | None:
        """The API, if that is where to look."""
        return api_of(self.api, self.url)

    def config(self, flags: Mapping[str, object] | None = None) -> Config:
        """The settings of a command that works on the database. Who names only an API does not mean a file here."""
        found = self.settings(flags)
        if self.there is not None and not is_named(found):
            raise click.UsageError(
                f"'{click.get_current_context().command_path}' works on the database itself, and {API_VARIABLE} names"
                " an API: say --database URL, or set FLEETCRON_DATABASE_URL."
            )
        return found

    def settings(self, flags: Mapping[str, object] | None = None) -> Config:
        """The settings of this machine. A `fleetcron.toml` in this folder counts, unless another file is named."""
        if self.api is not None:
            raise click.UsageError(
                f"'{click.get_current_context().command_path}' works on the database itself, which no API gives away:"
                " leave out --api, and say --database URL if it is not the usual one."
            )
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

    def ask(self, of_store: Callable[[Store], Awaitable[T]], of_api: "Callable[[Client], T]") -> T:
        """A document, from the database or from the API."""
        client = self.client()
        if client is None:
            return self.run(of_store)
        with client:
            return of_api(client)

    def client(self, timeout_s: float = 30) -> "Client | None":
        """Whoever asks the API, if that is where to look."""
        if self.there is None:
            return None
        from fleetcron.client.blocking import Client  # who asks a database does without it

        if click.get_current_context().get_parameter_source("by") is ParameterSource.COMMANDLINE:
            raise click.UsageError("--by: over an API the history names the key that asks. Leave it out.")
        return Client(self.there, timeout=timeout_s)


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


def is_named(config: Config) -> bool:
    """Whether anybody has said where the database is: a flag, the environment or a file."""
    return config.source_of("store.url") != "default"


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
    click.option("--api", metavar="URL", help="Ask this API instead of a database, with the key of FLEETCRON_API_KEY. "
                 "Also FLEETCRON_API_URL."),
    click.option("--config", "config_file", metavar="FILE", help="Settings. Also FLEETCRON_CONFIG. "
                 "[default: fleetcron.toml, if it is in this folder]"),
)  # fmt: skip


def database_options(function: Command) -> Command:
    """Add --database, --api and --config; the command gets them as one `database`. A group hands them down."""

    @wraps(function)
    def command(database: str | None, api: str | None, config_file: str | None, **values: Any) -> Any:
        given = Database(database or _above("database"), config_file or _above("config_file"), api or _above("api"))
        if given.url is not None and given.api is not None:
            raise click.UsageError("--database and --api exclude each other: say one place to look.")
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
