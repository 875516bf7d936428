"""What an error of SQLite means to us."""

import os
import sqlite3
from typing import Final

from fleetcron.errors import SchemaError, StoreError, StoreUnavailable

MEMORY: Final = ":memory:"
_OF_THE_CONNECTION: Final = (
    sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_READONLY,
    sqlite3.SQLITE_CANTOPEN,
    sqlite3.SQLITE_CORRUPT,
    sqlite3.SQLITE_NOTADB,
    sqlite3.SQLITE_PERM,
)


def primary(error: sqlite3.Error) -> int:
    """The result code without its extension; -1 if the error is Python's own."""
    code: int = getattr(error, "sqlite_errorcode", -1)
    return code & 0xFF if code >= 0 else -1


def is_busy(error: sqlite3.Error) -> bool:
    return primary(error) == sqlite3.SQLITE_BUSY


def is_of_the_connection(error: sqlite3.Error) -> bool:
    """May a new connection cure it?"""
    return primary(error) in _OF_THE_CONNECTION


def is_not_committed(error: sqlite3.Error) -> bool:
    """A COMMIT that failed so was taken back. After another failure its frames may lie in the WAL, complete, and
    whoever opens the file next may find them committed: nobody knows."""
    return primary(error) in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_FULL)


def meaning(error: sqlite3.Error, path: str, statement: str | None = None) -> StoreError:
    """The error for whoever runs fleetcron: what it is and what to do."""
    place = f"the SQLite file {path}" if path != MEMORY else "the SQLite database in memory"
    folder = os.path.dirname(path)
    words = f"({error})"
    at = f" in the statement {statement}" if statement else ""
    match primary(error):
        case sqlite3.SQLITE_FULL:
            return StoreUnavailable(f"{place} cannot grow {words}", hint="free space on its disk")
        case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED:
            hint = "it goes on when that process has finished; `fuser` with the name of the file tells who it is"
            return StoreUnavailable(f"{place} is held by another process {words}", hint=hint)
        case sqlite3.SQLITE_PROTOCOL:  # many begin to read at the same moment, and one of them lost that race too often
            return StoreUnavailable(f"{place} is busy {words}", hint="it goes on when fewer processes use it at once")
        case sqlite3.SQLITE_READONLY:
            hint = f"give this user the right to write to {path}, {path}-wal, {path}-shm and the folder {folder}"
            return StoreUnavailable(f"{place} cannot be written {words}", hint=hint)
        case sqlite3.SQLITE_CANTOPEN | sqlite3.SQLITE_PERM if not os.path.isdir(folder):
            return StoreUnavailable(f"{place} cannot be opened: there is no folder {folder}", hint="create the folder")
        case sqlite3.SQLITE_CANTOPEN | sqlite3.SQLITE_PERM if os.path.isdir(path):
            return StoreError(f"{place} cannot be opened: it is a folder", hint="name a file in it")
        case sqlite3.SQLITE_CANTOPEN | sqlite3.SQLITE_PERM:
            hint = f"look whether it is still there, and at its rights and those of its folder {folder}"
            return StoreUnavailable(f"{place} cannot be opened {words}", hint=hint)
        case sqlite3.SQLITE_IOERR:
            hint = "look at the disk: full, over quota, gone or broken"
            return StoreUnavailable(f"{place} cannot be read or written {words}", hint=hint)
        case sqlite3.SQLITE_CORRUPT | sqlite3.SQLITE_NOTADB:
            return StoreError(f"{place} is damaged, or is not a database {words}", hint="restore it from a backup")
    if str(error).startswith(("no such table", "no such column")):
        return SchemaError(f"{place} lacks what this program needs{at} {words}", hint="run `fleetcron migrate`")
    return StoreError(f"{place} failed{at} {words}")
