"""`async with guarded(ctx, connection):` in a handler: what it writes counts only while its attempt holds the run."""

from contextlib import AbstractAsyncContextManager, AbstractContextManager
from types import TracebackType
from typing import TYPE_CHECKING, Any

from fleetcron.executors.home import NOWHERE
from fleetcron.store.guards import FenceGuard, LeaseGuard
from fleetcron.store.opening import is_postgres
from fleetcron.store.postgres_url import DEFAULT_SCHEMA, parse

if TYPE_CHECKING:
    from fleetcron.executors.context import Context


class Guarded:
    """Of a connection that is awaited it is used with `async with`, otherwise with `with`."""

    def __init__(self, guard: LeaseGuard | FenceGuard, connection: Any) -> None:
        self._guard = guard
        self._connection = connection
        self._awaited: AbstractAsyncContextManager[None] | None = None
        self._plain: AbstractContextManager[None] | None = None

    async def __aenter__(self) -> None:
        self._awaited = self._guard.over(self._connection)
        await self._awaited.__aenter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        assert self._awaited is not None
        return await self._awaited.__aexit__(kind, error, trace)

    def __enter__(self) -> None:
        self._plain = self._guard.over_plain(self._connection)
        self._plain.__enter__()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        assert self._plain is not None
        return self._plain.__exit__(kind, error, trace)


def guarded(ctx: "Context", connection: Any, *, schema: str | None = None) -> Guarded:
    """A transaction that commits only if this attempt still holds its run; LeaseLost otherwise, and nothing is written.

    `connection` leads to the database of fleetcron's store. The schema is that of the worker's store, unless another is
    named. In a transaction that has begun it is a part of that one, and holds for all of it: let it be the last thing
    before the commit.
    """
    known = schema or _schema_of(ctx)
    return Guarded(LeaseGuard(ctx.run_id, ctx.attempt, known), connection)


def _schema_of(ctx: "Context") -> str:
    url = getattr(ctx, "home", NOWHERE).store_url  # a context of a user's test may have none
    return parse(url).schema if url is not None and is_postgres(url) else DEFAULT_SCHEMA


def fenced(ctx: "Context", connection: Any, *, table: str = "fleetcron_fences") -> Guarded:
    """The same for another PostgreSQL database: a transaction that is refused with LeaseLost once a later attempt of
    the run has been there. The table is yours: (run_key text PRIMARY KEY, fence bigint NOT NULL)."""
    return Guarded(FenceGuard(ctx.idempotency_key, ctx.fence, table), connection)
