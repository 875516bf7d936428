"""Bring the tables to the version that this program knows. Numbered files, each one transaction, each applied once.

Several nodes may start at once: whoever comes second waits, then finds the work done. Files are never edited after a
release; a checksum notices it.
"""

import hashlib
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Final, Protocol, TypeVar

from fleetcron import __version__
from fleetcron.errors import SchemaError, StoreUnavailable
from fleetcron.events import Event
from fleetcron.store.engine import Engine, Row, Script
from fleetcron.store.events import note
from fleetcron.store.statements import DDL, ENGINES, Statements, texts_in
from fleetcron.store.written import Ok, Refused, Unknown, Written

T = TypeVar("T")

_PATIENCE: Final = 3
_FILE = re.compile(r"(\d{4})_([a-z0-9_]+)")
_NOW_MS: Final = {
    "sqlite": "CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER)",
    "postgres": "db_now_ms()",
}


class Altering(Engine, Protocol):
    """An engine as a migration needs it."""

    statements_run: set[str]  # the names of all statements that this engine has run: for the conformance suite

    async def alter(self, script: Callable[[], Script[T | Refused]]) -> Written[T]:
        """As `write`, but patient, and the script may yield ("ddl", {"text": …})."""
        ...


@dataclass(frozen=True, slots=True)
class Migration:
    number: int
    name: str
    text: str

    @property
    def checksum(self) -> str:
        return hashlib.sha256(self.text.encode()).hexdigest()

    def __str__(self) -> str:
        return f"{self.number:04}_{self.name}"


@dataclass(frozen=True, slots=True)
class Applied:
    number: int
    name: str
    checksum: str
    at_ms: int
    program: str


@dataclass(frozen=True, slots=True)
class Status:
    applied: tuple[Applied, ...]
    pending: tuple[Migration, ...]


async def status(engine: Engine) -> Status:
    """What was applied and what is missing. Raises if the tables are newer than this program, or somebody else's."""
    return await engine.read(lambda: _status(engine.name))


async def require_current(engine: Engine) -> None:
    """For those who do not migrate: raise unless the tables are the ones this program knows."""
    found = await status(engine)
    if found.pending:
        has = f"are at version {found.applied[-1].number}" if found.applied else "do not exist"
        needed = f"this program needs version {found.pending[-1].number} of them"
        raise SchemaError(f"the tables {has}, {needed}", hint="run `fleetcron migrate`")


async def migrate(engine: Altering) -> list[Migration]:
    """Apply what is missing and say what this call applied. Safe to call from everywhere at once."""
    if not (await status(engine)).pending:
        return []  # without waiting for whoever writes just now
    done: list[Migration] = []
    lost = 0
    while True:
        match await engine.alter(lambda: _apply_next(engine.name)):
            case Ok(None):
                return done
            case Ok(Migration() as migration):
                done.append(migration)
            case Refused(reason):
                raise SchemaError(reason)
            case Unknown(why):  # the next round looks what became of it
                lost += 1
                if lost == _PATIENCE:
                    raise StoreUnavailable(
                        f"the connection broke at every commit of a migration ({why})", hint="try again"
                    )


def as_sql(engine_name: str, schema: str = "fleetcron") -> str:
    """Everything as one text, for those who let nobody but themselves change a database. Apply it to an empty one."""
    lines = ["BEGIN;"]
    if engine_name == "postgres":
        lines += [f"CREATE SCHEMA IF NOT EXISTS {schema};", f"SET LOCAL search_path = {schema};"]
    lines += [Statements.for_engine(engine_name)["migrations_create"].sql + ";"]
    for migration in known(engine_name):
        values = (
            f"{migration.number}, '{migration.name}', '{migration.checksum}', {_NOW_MS[engine_name]}, '{__version__}'"
        )
        lines += [f"\n-- {migration}", migration.text.rstrip()]
        lines += [f"INSERT INTO migrations (number, name, checksum, at_ms, program) VALUES ({values});"]
    return "\n".join([*lines, "\nCOMMIT;", ""])


@cache
def known(engine_name: str) -> tuple[Migration, ...]:
    """The migrations of this program, in order."""
    folders = {engine: texts_in(files("fleetcron.store") / "migrations" / engine) for engine in ENGINES}
    names = {engine: sorted(texts) for engine, texts in folders.items()}
    if names["sqlite"] != names["postgres"]:
        raise SchemaError(f"the engines have different migrations: {names}")
    found = []
    for expected, (file, text) in enumerate(sorted(folders[engine_name].items()), start=1):
        match = _FILE.fullmatch(file)
        if not match or int(match[1]) != expected:
            raise SchemaError(f"migrations/{engine_name}/{file}.sql: expected {expected:04}_name.sql")
        found.append(Migration(expected, match[2], text))
    return tuple(found)


def _status(engine_name: str) -> Script[Status]:
    rows: list[Row] = []
    if (yield "migrations_exist", {}):
        rows = yield "migrations_list", {}
    applied = [Applied(row["number"], row["name"], row["checksum"], row["at_ms"], row["program"]) for row in rows]
    return _compared(applied, known(engine_name))


def _compared(applied: list[Applied], ours: tuple[Migration, ...]) -> Status:
    by_number = {migration.number: migration for migration in ours}
    newest = max((found.number for found in applied), default=0)
    if newest > len(ours):
        raise SchemaError(
            f"the tables are newer ({newest}) than this program ({len(ours)})", hint="upgrade fleetcron on this machine"
        )
    for found in applied:
        mine = by_number.get(found.number)
        if not mine or (found.name, found.checksum) != (mine.name, mine.checksum):
            raise SchemaError(
                f"migration {found.number:04}_{found.name} of the database is not the one of this program",
                hint=f"it was applied by fleetcron {found.program}; use that version, or restore a backup",
            )
    done = {found.number for found in applied}
    return Status(tuple(applied), tuple(migration for migration in ours if migration.number not in done))


def _apply_next(engine_name: str) -> Script[Migration | None]:
    yield "migrations_lock", {}
    pending = (yield from _status(engine_name)).pending
    if not pending:
        return None
    migration = pending[0]
    if migration.number == 1:
        yield "migrations_schema", {}
        yield "migrations_create", {}
    yield DDL, {"text": migration.text}
    yield (
        "migrations_insert",
        {
            "number": migration.number,
            "name": migration.name,
            "checksum": migration.checksum,
            "program": __version__,
        },
    )
    detail = {"number": migration.number, "name": migration.name, "program": __version__}
    yield from note(Event("schema_migrated", detail=detail))
    return migration
