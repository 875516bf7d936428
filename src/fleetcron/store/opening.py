"""From a URL to an engine."""

import os
from pathlib import Path

from fleetcron.clock import Clock
from fleetcron.errors import StoreError
from fleetcron.store.migrations import Altering
from fleetcron.store.postgres_url import masked
from fleetcron.store.sqlite import SqliteEngine

__all__ = ["anchored", "is_postgres", "masked", "open_engine", "require_file"]

FORMS = "sqlite:///jobs.db, sqlite:////var/lib/fleetcron/jobs.db, :memory: or postgresql://user:password@host:5432/name"


def require_file(url: str) -> None:
    """For whoever only visits: opening a SQLite file that is not there would make an empty one."""
    path = url.removeprefix("sqlite:///")
    if path != url and path != ":memory:" and not Path(path).exists():
        hint = "`fleetcron migrate`, `fleetcron apply` or a node makes it"
        raise StoreError(f"there is no database {path} yet", hint=hint)


def anchored(url: str) -> str:
    """The same from every folder."""
    path = url.removeprefix("sqlite:///")
    return url if path == url else f"sqlite:///{os.path.abspath(path)}"


def is_postgres(url: str) -> bool:
    return url.partition("://")[0] in ("postgres", "postgresql")


async def open_engine(url: str, *, clock: Clock, deadline_s: float = 5.0, connections: int = 8) -> Altering:
    """The engine for a URL, connected. `clock` is the database's clock on SQLite; PostgreSQL has its own."""
    scheme, separator, rest = url.partition("://")
    if url == ":memory:":
        return await SqliteEngine.open(url, clock=clock, deadline_s=deadline_s)
    if separator and scheme == "sqlite" and rest.startswith("/") and rest != "/":
        return await SqliteEngine.open(rest[1:], clock=clock, deadline_s=deadline_s)
    if separator and is_postgres(url):
        try:
            from fleetcron.store.postgres import PostgresEngine  # the driver is an extra
        except ModuleNotFoundError as missing:
            if missing.name != "asyncpg":
                raise
            hint = (
                "install the extra fleetcron[postgres]: `pip install 'fleetcron[postgres]'`, or with uv"
                " `uv pip install 'fleetcron[postgres]'`; in a clone, whose .venv has no pip: `make setup`"
            )
            raise StoreError("the PostgreSQL driver is not installed", hint=hint) from missing
        return await PostgresEngine.open(url, deadline_s=deadline_s, connections=connections)
    raise StoreError(f"'{masked(url)}' is not the URL of a database", hint=f"write {FORMS}")
