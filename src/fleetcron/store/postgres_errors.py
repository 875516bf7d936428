"""What an error of PostgreSQL means to us."""

from typing import Final

import asyncpg  # type: ignore[import-untyped]

from fleetcron.errors import SchemaError, StoreError, StoreUnavailable

AGAIN: Final = ("40001", "40P01")  # serialization failure, deadlock: the database asks us to run the script again
READ_ONLY: Final = "25006"


class RolledBack(StoreUnavailable):
    """The server answered a COMMIT with a rollback."""


def is_again(error: BaseException) -> bool:
    """Must the script run again from its start?"""
    outdated = (asyncpg.InvalidCachedStatementError, asyncpg.OutdatedSchemaCacheError)  # a migration went by
    return isinstance(error, outdated) or sqlstate(error) in AGAIN


def is_lost(error: BaseException) -> bool:
    """Is the connection gone, or does it lead to a server that has become a standby? The driver has many words."""
    if isinstance(error, asyncpg.PostgresError):
        state = sqlstate(error)
        return state.startswith(("08", "57P")) or state == READ_ONLY
    if isinstance(error, asyncpg.InterfaceError):
        return "closed" in str(error)
    return isinstance(error, (OSError, asyncpg.InternalClientError))  # a TimeoutError is an OSError


def is_refusal(error: BaseException) -> bool:
    """Did the server answer that it did not do it? An error that ends the session says nothing about a COMMIT."""
    said_no = isinstance(error, asyncpg.PostgresError) and getattr(error, "severity_en", None) == "ERROR"
    return said_no or isinstance(error, RolledBack)


def sqlstate(error: BaseException) -> str:
    return str(getattr(error, "sqlstate", None) or "")


def words(error: BaseException) -> str:
    return " ".join(str(error).split()) or type(error).__name__


def meaning(error: BaseException, shown: str, statement: str | None = None) -> BaseException:
    """The error as we name it. One that is not of the database stays what it is."""
    place = f"PostgreSQL at {shown}"
    state = sqlstate(error)
    if isinstance(error, StoreError):
        return error
    if isinstance(error, TimeoutError):
        return StoreUnavailable(f"{place} did not answer in time", hint="look at the network and at the server's load")
    match state[:2], state:
        case "28", _:
            return StoreError(
                f"{place} refuses the user or the password", hint="look at the user and password in the URL"
            )
        case _, "3D000":
            return StoreError(f"{place}: {words(error)}", hint="create the database, or name another one in the URL")
        case _, "57014" | "55P03":
            return StoreUnavailable(
                f"{place} needed too long{_at(statement)} ({words(error)})",
                hint="look at what holds locks (pg_stat_activity) and at the server's load",
            )
        case _, state if state == READ_ONLY:
            return StoreUnavailable(
                f"{place} takes no writes{_at(statement)} ({words(error)})", hint="is it a standby?"
            )
        case (("53" | "58"), _):
            return StoreUnavailable(f"{place} is out of something: {words(error)}", hint="look at its disk and limits")
        case _, "42P01" | "42703" | "42883" | "3F000":
            return SchemaError(
                f"{place} lacks what this program needs ({words(error)})", hint="run `fleetcron migrate`"
            )
        case _, "42501":
            return StoreError(f"{place}: {words(error)}", hint="grant this user what is missing")
    if is_again(error):
        return StoreUnavailable(f"{place} could not put concurrent writes in order ({words(error)})", hint="try again")
    if is_lost(error):
        return StoreUnavailable(
            f"{place} cannot be reached ({words(error)})", hint="is it running, and is the address in the URL right?"
        )
    if isinstance(error, (asyncpg.PostgresError, asyncpg.DataError, asyncpg.InterfaceError)):
        return StoreError(f"{place} failed{_at(statement)}: {words(error)}")
    return error


def _at(statement: str | None) -> str:
    return f" in the statement {statement}" if statement else ""
