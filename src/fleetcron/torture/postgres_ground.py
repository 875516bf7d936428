"""A PostgreSQL schema of its own. Every statement names it, so that none can reach another one."""

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, Final
from urllib.parse import parse_qsl, urlencode, urlsplit

from fleetcron.clock import Clock
from fleetcron.errors import RefusedError, StoreError, StoreUnavailable
from fleetcron.store.postgres_connections import Connection, Connector, farewell
from fleetcron.store.postgres_errors import meaning
from fleetcron.store.postgres_url import parse
from fleetcron.torture.evidence import TABLES, Sample, Tables, plain
from fleetcron.torture.ground import NAME, Facts, LeftOver, Owner
from fleetcron.torture.network import reach
from fleetcron.torture.preflight import Server, facts_of

_DEADLINE_S: Final = 30.0  # for those who read everything; connecting has its own
_DROP_TRIES: Final = 6
_DROP_AGAIN_S: Final = 1.0
_NOW_US: Final = "SELECT floor(extract(epoch FROM clock_timestamp()) * 1000000)::bigint"
_SERVER: Final = """
SELECT current_setting('server_version') AS version, current_database() AS database, current_user AS "user",
    pg_is_in_recovery() AS is_standby, has_database_privilege(current_database(), 'CREATE') AS may_create,
    current_setting('fsync') AS fsync, current_setting('synchronous_commit') AS synchronous_commit,
    current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int
        - coalesce(current_setting('reserved_connections', true), '0')::int AS most,
    (SELECT count(*) FROM pg_stat_activity WHERE datid IS NOT NULL)::int AS used,
    (SELECT rolconnlimit FROM pg_roles WHERE rolname = current_user) AS most_of_user,
    (SELECT count(*) FROM pg_stat_activity WHERE usename = current_user)::int AS used_by_user,
    (SELECT datconnlimit FROM pg_database WHERE datname = current_database()) AS most_of_database,
    (SELECT count(*) FROM pg_stat_activity WHERE datname = current_database())::int AS used_in_database,
    (SELECT string_agg(n.nspname, ', ' ORDER BY n.nspname) FROM pg_namespace AS n
     WHERE EXISTS (SELECT FROM pg_class AS c WHERE c.relnamespace = n.oid AND c.relname = 'shard_leases')
       AND EXISTS (SELECT FROM pg_class AS c WHERE c.relnamespace = n.oid AND c.relname = 'job_revisions')) AS fleets
"""
_LEFT: Final = """
SELECT nspname AS name, obj_description(oid, 'pg_namespace') AS owner FROM pg_namespace
WHERE nspname LIKE 'fleetcron\\_torture\\_%' ORDER BY nspname
"""


class PostgresGround:
    def __init__(self, url: str, name: str, clock: Clock) -> None:
        parsed = parse(url)
        options = parse_qsl(urlsplit(url).query, keep_blank_values=True)
        if any(option == "schema" for option, _ in options):
            raise StoreError(
                f"{parsed.shown} names the schema {parsed.schema}, and a torture never works in one that somebody has",
                hint="leave schema= out of the URL: it makes a schema of its own, and drops it again",
            )
        self.name = name
        self.what = f"the schema {name}"
        self.url = urlsplit(url)._replace(query=urlencode([*options, ("schema", name)])).geturl()
        self._parsed = parsed
        self._clock = clock
        self._connector = Connector(parsed, deadline_s=_DEADLINE_S)
        self._connection: Connection | None = None
        self._lock = asyncio.Lock()

    async def look(self, nodes: int) -> Facts:
        connection = await self._connected()
        [row] = await self._fetch(_SERVER)
        samples = [await self.sample() for _ in range(5)]
        server = Server(
            **dict(row), pooled=self._parsed.pooled, round_trip_us=min(each.high_us - each.low_us for each in samples)
        )
        best = min(samples, key=lambda each: each.high_us - each.low_us)
        line = connection._transport.get_extra_info("peername")
        return facts_of(server, best, self._parsed.shown, nodes, reach(line) if line else None)

    async def make(self, until_ms: int) -> None:
        owner = Owner.me(until_ms).text().replace("'", "''")
        await self._execute(f"BEGIN; CREATE SCHEMA {self.name}; COMMENT ON SCHEMA {self.name} IS '{owner}'; COMMIT")

    async def read(self) -> tuple[Tables, int]:
        async with self._lock:
            connection = await self._connected()
            try:
                async with connection.transaction(isolation="repeatable_read", readonly=True):
                    found = {table: await connection.fetch(f"SELECT * FROM {self.name}.{table}") for table in TABLES}
                    now_us = await connection.fetchval(_NOW_US)
            except Exception as error:
                raise self._lost(error) from error
        return {table: [plain(table, row) for row in rows] for table, rows in found.items()}, now_us // 1000

    async def ask(self, question: str) -> Sequence[Mapping[str, Any]]:
        return await self._fetch(question.format(at=f"{self.name}."))

    async def sample(self) -> Sample:
        async with self._lock:
            connection = await self._connected()
            try:
                async with connection.transaction():  # a pooler gives one session to a transaction
                    before_us = self._clock.now_us()
                    now_us = await connection.fetchval(_NOW_US)
                    after_us = self._clock.now_us()
            except Exception as error:
                raise self._lost(error) from error
        return Sample(before_us, now_us - after_us, now_us - before_us)

    async def remove(self) -> None:
        await self.clear(LeftOver(self.name, self.what, None))

    async def left_overs(self) -> list[LeftOver]:
        rows = await self._fetch(_LEFT)
        found = [(str(row["name"]), row["owner"]) for row in rows if NAME.fullmatch(str(row["name"]))]
        return [LeftOver(name, f"the schema {name}", Owner.read(owner)) for name, owner in found]

    async def clear(self, left: LeftOver) -> None:
        """What a node that was killed asked last may still be under way: its locks are waited for."""
        if not NAME.fullmatch(left.name):
            raise RefusedError(f"{left.name} is not a schema of a torture")
        drop = (
            "BEGIN; SET LOCAL lock_timeout = 5000; SET LOCAL statement_timeout = 0;"
            f" DROP SCHEMA IF EXISTS {left.name} CASCADE; COMMIT"
        )
        for tries_left in reversed(range(_DROP_TRIES)):
            try:
                await self._execute(drop)
            except StoreUnavailable:
                if not tries_left:
                    raise
                await asyncio.sleep(_DROP_AGAIN_S)
            else:
                return

    async def close(self) -> None:
        if self._connection is not None:
            connection, self._connection = self._connection, None
            await farewell(connection)

    async def _fetch(self, sql: str) -> Sequence[Any]:
        async with self._lock:
            connection = await self._connected()
            try:
                async with connection.transaction():
                    rows: Sequence[Any] = await connection.fetch(sql)
                    return rows
            except Exception as error:
                raise self._lost(error) from error

    async def _execute(self, sql: str) -> None:
        async with self._lock:
            connection = await self._connected()
            try:
                await connection.execute(sql)
            except Exception as error:
                with suppress(Exception):
                    await connection.execute("ROLLBACK")
                raise self._lost(error) from error

    async def _connected(self) -> Connection:
        if self._connection is None or self._connection.is_closed():
            async with asyncio.timeout(_DEADLINE_S):
                self._connection = await self._connector.connect()
        return self._connection

    def _lost(self, error: Exception) -> BaseException:
        found = meaning(error, self._parsed.shown)
        return found if isinstance(found, StoreError) else error
