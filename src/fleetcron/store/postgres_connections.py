"""The connections of one engine: opened when needed, kept while they work, dropped at the first doubt.

Why not the driver's pool: ours sends no reset between transactions (one round trip less), never waits for a connection
that does not answer, and after a loss forgets the idle ones too, because they lead to the same place.
"""

import asyncio
import socket
from contextlib import suppress
from typing import Any, Final, TypeAlias
from weakref import WeakKeyDictionary

import asyncpg  # type: ignore[import-untyped]

from fleetcron.errors import StoreError, StoreUnavailable
from fleetcron.store.postgres_errors import meaning
from fleetcron.store.postgres_url import PostgresUrl, unreadable

Connection: TypeAlias = Any  # the driver brings no types

_KEEPALIVE_AFTER_S: Final = 30
_FAREWELL_S: Final = 1.0
# A plan is kept as long as the connection, or until somebody analyses a table of it. What was planned while the queue
# was empty joins the whole of it with a batch, and a moment later it holds 100,000 runs: a claim took 30 ms instead of
# one, for a minute and more. (Planning everything anew at every call would take longer than what is planned.)
_PLANS_S: Final = 5.0


class Connector:
    """Knows how to open a connection, and with which settings a session must run."""

    def __init__(self, url: PostgresUrl, *, deadline_s: float) -> None:
        self.url = url
        self.deadline_s = deadline_s
        self._was_let_in = False
        self._planned_s: WeakKeyDictionary[Connection, float] = WeakKeyDictionary()
        deadline_ms = int(deadline_s * 1000)
        # The server gives up before we do, so that an overloaded server is told from a broken network.
        self._settings = {
            "search_path": url.schema,
            "statement_timeout": str(deadline_ms * 7 // 10),
            "lock_timeout": str(deadline_ms // 2),
            "idle_in_transaction_session_timeout": str(deadline_ms),  # a client that vanished lets go of its locks
            # of a client whose machine is gone the server hears nothing: it has to ask
            "tcp_keepalives_idle": str(_KEEPALIVE_AFTER_S),
            "tcp_keepalives_interval": str(max(1, int(deadline_s))),
            "tcp_keepalives_count": "3",
            # The planner takes a batch (JSON) for 100 rows; if probes were dear, it would read whole tables instead.
            "random_page_cost": "1.1",
            "enable_seqscan": "off",  # nobody has analysed yet what came a moment ago: it looks small, and is not
            "jit": "off",  # where nothing else is possible that looks dear, and compiling takes longer than reading
        }

    def settings_of(self, connection: Connection, timeout_s: float) -> str:
        """What every transaction brings along: all settings where there is a pooler, which passes none on when a
        connection is opened, and the longest time that it may take.

        A client that stands still between the two halves of a statement (it was described, and is not executed yet) is
        not idle for the server: it would keep its locks for ever. PostgreSQL 17 and newer can be told better.
        """
        settings = dict(self._settings) if self.url.pooled else {}
        if connection.get_server_version() >= (17,):
            settings["transaction_timeout"] = str(int(timeout_s * 2000))
        return "".join(f"; SET LOCAL {name} = {value}" for name, value in settings.items())

    def planning_of(self, connection: Connection, now_s: float) -> str:
        """What a transaction brings along, too, if the plans of its connection are old: they are made anew."""
        if self.url.pooled or now_s - self._planned_s.setdefault(connection, now_s) < _PLANS_S:
            return ""  # behind a pooler no plan is kept
        self._planned_s[connection] = now_s
        return "; DISCARD PLANS"

    async def connect(self) -> Connection:
        """A new connection, or the reason why there is none. A server that has let us in before and does not now (a
        password is being changed, a directory is away, a backup is put back) may do so again: that is no reason to give
        up what runs."""
        settings = {"application_name": "fleetcron"}
        try:
            async with asyncio.timeout(self.deadline_s):
                connection = await asyncpg.connect(
                    self.url.dsn,
                    server_settings=settings if self.url.pooled else settings | self._settings,
                    statement_cache_size=0 if self.url.pooled else 1000,
                    max_cached_statement_lifetime=0,
                )
        except ValueError:
            raise unreadable(self.url.shown) from None
        except Exception as error:
            named = meaning(error, self.url.shown)
            if self._was_let_in and isinstance(named, StoreError):
                named = StoreUnavailable(named.message, hint=named.hint)
            raise named from error
        self._was_let_in = True
        self._watch_the_line(connection)
        return connection

    def _watch_the_line(self, connection: Connection) -> None:
        """Let the kernel notice a dead peer too: of an idle connection, or while a big parameter is on its way."""
        line = connection._transport.get_extra_info("socket")
        if line is None or line.family == getattr(socket, "AF_UNIX", None):
            return
        with suppress(OSError):  # it helps, but nothing rests on it
            line.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            for option, value in (
                ("TCP_KEEPIDLE", _KEEPALIVE_AFTER_S),
                ("TCP_KEEPINTVL", max(1, int(self.deadline_s))),
                ("TCP_USER_TIMEOUT", int(self.deadline_s * 1000)),
            ):
                if hasattr(socket, option):  # not every system has all of them
                    line.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), value)


class Connections:
    def __init__(self, connector: Connector, size: int) -> None:
        self._connector = connector
        self._size = size
        self._places = asyncio.Semaphore(size)
        self._idle: list[Connection] = []
        self._closed = False

    async def take(self) -> tuple[Connection, bool]:
        """A connection, and whether it is fresh; one that is not may have died since. Give it back or discard it."""
        if self._closed:
            raise StoreError(f"PostgreSQL at {self._connector.url.shown} was closed by this process")
        await self._places.acquire()
        try:
            while self._idle:
                connection = self._idle.pop()
                if not connection.is_closed():
                    return connection, False
            return await self._connector.connect(), True
        except BaseException:
            self._places.release()
            raise

    def give_back(self, connection: Connection) -> None:
        self._idle.append(connection)
        self._places.release()

    def discard(self, connection: Connection) -> None:
        connection.terminate()
        self._places.release()

    def forget_idle(self) -> None:
        while self._idle:
            self._idle.pop().terminate()

    async def close(self, patience_s: float) -> None:
        """Let those finish who have a connection or wait for one, then hang up."""
        if not self._closed:
            self._closed = True
            with suppress(TimeoutError):
                async with asyncio.timeout(patience_s):
                    for _ in range(self._size):
                        await self._places.acquire()
        while self._idle:
            await farewell(self._idle.pop())


async def farewell(connection: Connection) -> None:
    """Close politely, but do not wait long for the answer."""
    try:
        async with asyncio.timeout(_FAREWELL_S):
            await connection.close()
    except Exception:
        connection.terminate()
