"""Writes of a handler that count only while its attempt holds the run.

`LeaseGuard`: the handler writes into the database that has fleetcron's tables too. At the end of its transaction the
lease of the attempt is locked and looked at. Whoever would give the run to another worker waits for that lock, so the
answer still holds when the transaction commits; claims and renewals do not wait. It is not locked earlier: a handler
that stands still with its transaction open must not keep the fleet from what its worker held. Between the lock and the
commit there is nothing of the user's, and a session that stands still even there is ended by the server.

`FenceGuard`: the database is elsewhere. A row for each run has the highest attempt that has written; a lower one is
refused. It knows only who has written, not who holds the run: the newer attempt has to have been there first.
"""

import re
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any, Final

from fleetcron.errors import LeaseLost, StoreError
from fleetcron.store.borrowed import borrow_driver, borrow_plain_driver
from fleetcron.store.drivers import driver_of, plain_driver_of
from fleetcron.store.engine import Row, Script

_PATIENCE: Final = "SELECT set_config('idle_in_transaction_session_timeout', '5000', true)"
_RAISE: Final = (
    "INSERT INTO {table} AS f (run_key, fence) VALUES ($1, $2) "
    "ON CONFLICT (run_key) DO UPDATE SET fence = excluded.fence WHERE f.fence <= excluded.fence RETURNING fence"
)
_TABLE: Final = re.compile(r"[A-Za-z_]\w{0,62}(\.[A-Za-z_]\w{0,62})?")


class LeaseGuard:
    def __init__(self, run_id: int, attempt: int, schema: str) -> None:
        self._run_id = run_id
        self._attempt = attempt
        self._schema = schema

    @asynccontextmanager
    async def over(self, connection: Any) -> AsyncIterator[None]:
        driver = await driver_of(connection)
        async with driver.transaction():
            yield
            await driver.fetch(_PATIENCE)
            await borrow_driver(driver, self._schema, self._require)

    @contextmanager
    def over_plain(self, connection: Any) -> Iterator[None]:
        driver = plain_driver_of(connection)
        with driver.transaction():
            yield
            driver.fetch(_PATIENCE)
            borrow_plain_driver(driver, self._schema, self._require)

    def _require(self) -> Script[None]:
        """Between two attempts a lease has the number of the last one, and nobody who holds it."""
        found = yield "leases_guard", {"run_id": self._run_id}
        if not any(row["attempt"] == self._attempt and row["node_id"] is not None for row in found):
            raise LeaseLost(
                f"attempt {self._attempt} of run {self._run_id} does not hold the run any more, by the leases in the "
                f"schema {self._schema}: what it wrote was rolled back"
            )


class FenceGuard:
    def __init__(self, run_key: str, fence: int, table: str) -> None:
        if not _TABLE.fullmatch(table):
            raise StoreError(f"{table!r} is not the name of a table", hint="write name or schema.name")
        self._call = (_RAISE.format(table=table), (run_key, fence))
        self._fence = fence

    @asynccontextmanager
    async def over(self, connection: Any) -> AsyncIterator[None]:
        driver = await driver_of(connection)
        async with driver.transaction():
            self._require(await driver.fetch(*self._call))
            yield

    @contextmanager
    def over_plain(self, connection: Any) -> Iterator[None]:
        driver = plain_driver_of(connection)
        with driver.transaction():
            self._require(driver.fetch(*self._call))
            yield

    def _require(self, raised: list[Row]) -> None:
        if not raised:
            raise LeaseLost(f"a later attempt than {self._fence} of this run has written here: this one is over")
