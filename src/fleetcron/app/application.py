"""An app: functions, and the jobs that call them."""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar, Unpack

from fleetcron.app.fields import JobFields
from fleetcron.errors import ConfigError, Mistake

if TYPE_CHECKING:
    from contextlib import AbstractAsyncContextManager

    from fleetcron.app.web import Mounted
    from fleetcron.model.definition import Definition
    from fleetcron.scheduler.desk import Applied
    from fleetcron.scheduler.sync import Prune
    from fleetcron.store.steering import Triggered
    from fleetcron.store.store import Store

Function = TypeVar("Function", bound=Callable[..., Any])

DEFAULT_TENANT: Final = "default"  # as in model/, which takes longer to import
PRUNES: Final = ("pause", "delete", "keep")
_NAME: Final = re.compile(r"[a-z0-9][a-z0-9._-]{0,99}")


class Declared(NamedTuple):
    """A function, and what was written above it."""

    function: Callable[..., Any]
    fields: Mapping[str, Any]

    @property
    def name(self) -> str:
        """Of its job: `nightly_report` is nightly-report, unless another one was written."""
        given = self.fields.get("name")
        if given is not None:
            return str(given)
        name = str(getattr(self.function, "__name__", "<none>"))
        # what has no name is told once, as a function, not as a job too
        return f"stand-in-{id(self.function)}" if name.startswith("<") else name.replace("_", "-")

    @property
    def tenant(self) -> str:
        return str(self.fields.get("tenant") or DEFAULT_TENANT)


class Fleetcron:
    """`app = Fleetcron("sqlite:///fleetcron.db")`, then `@app.job(...)` on functions, then `app.run()`.

    Without a URL the settings say where the store is. `name` tells apps that share a store apart: what is in the store
    under this name and no longer in the code is paused, deleted or kept, as `prune` says.
    """

    def __init__(self, url: str | None = None, *, name: str = "app", prune: "Prune" = "pause") -> None:
        self.url = url
        self.name = name
        self.prune = prune
        self.declared: list[Declared] = []
        self.store: Store | None = None  # while the app runs in this process, or is connected
        self.kinds: dict[Callable[..., Any], Any] = {}  # what functions take, found when somebody asks for a run
        self.store_url: str | None = None  # what the settings say, likewise
        self.is_mounted = False  # somebody has asked for the API
        self.api: Any = None  # while the app runs in this process, as an ASGI app
        mistakes = []
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            hint = "small letters, digits, dots, dashes and underscores, 100 at most, a letter or digit first"
            mistakes.append(Mistake("Fleetcron(name=…)", f"{name!r} is not a name", hint))
        if prune not in PRUNES:
            mistakes.append(Mistake("Fleetcron(prune=…)", f"{prune!r} is not one of {', '.join(PRUNES)}"))
        if mistakes:
            raise ConfigError(mistakes)

    def __repr__(self) -> str:
        return f"<Fleetcron {self.name}: {len(self.declared)} jobs>"  # without the URL, which may have a password

    @property
    def managed_by(self) -> str:
        """How the store knows which jobs are this app's."""
        return f"app:{self.name}"

    def job(self, **fields: Unpack[JobFields]) -> Callable[[Function], Function]:
        """Have the function called as the fields say. It stays what it is, and can be called by hand.

        Nothing is checked yet: `definitions()` tells the mistakes of all functions at once.
        """

        def declare(function: Function) -> Function:
            if not callable(function):
                raise TypeError(f"@app.job(...) stands above a function, not above a {type(function).__name__}")
            self.declared.append(Declared(function, dict(fields)))
            return function

        return declare

    def definitions(self) -> list["Definition"]:
        """The jobs, checked; a DefinitionError with every mistake of every function."""
        from fleetcron.app.defining import define

        return define(self.declared, self.managed_by)

    async def enqueue(
        self, job: "str | Callable[..., Any]", payload: Any = None, *, key: str | None = None, tenant: str | None = None
    ) -> "Triggered":
        """Ask for a run now. With a `key`, asking again gives the same run. RefusedError: no such job, or it is paused.

        The payload is the job's own unless one is given: a JSON object, or a value of the type that the function takes.
        """
        from fleetcron.app.asking import enqueue, wish_of

        return await enqueue(self, wish_of(self, job, payload, tenant, key))

    async def enqueue_in(
        self,
        connection: object,
        job: "str | Callable[..., Any]",
        payload: Any = None,
        *,
        key: str | None = None,
        tenant: str | None = None,
    ) -> "Triggered":
        """Ask for a run in a transaction of yours: the run is there if and when you commit, otherwise it never was.

        `connection` leads to the database that has fleetcron's tables: of asyncpg or psycopg 3 (async), or an
        AsyncConnection or AsyncSession of SQLAlchemy on one of them. What is refused leaves your transaction as it was.
        """
        from fleetcron.app.asking import enqueue_in, wish_of

        return await enqueue_in(self, connection, wish_of(self, job, payload, tenant, key))

    def enqueue_in_sync(
        self,
        connection: object,
        job: "str | Callable[..., Any]",
        payload: Any = None,
        *,
        key: str | None = None,
        tenant: str | None = None,
    ) -> "Triggered":
        """As `enqueue_in`, for a plain connection of psycopg 3, or a Connection or Session of SQLAlchemy on one; and if
        the store is SQLite, for a sqlite3.Connection to the same file."""
        from fleetcron.app.asking import enqueue_in_sync, wish_of

        return enqueue_in_sync(self, connection, wish_of(self, job, payload, tenant, key))

    def payload_schema(self, job: "str | Callable[..., Any]", *, tenant: str | None = None) -> dict[str, Any] | None:
        """The JSON Schema of what a job takes, if its function says what that is."""
        from fleetcron.app.asking import find, kind_of_job

        kind = kind_of_job(self, find(self, job, tenant))
        return None if kind is None else kind.schema()

    async def sync(
        self, store: "Store", *, prune: "Prune | None" = None, by: str | None = None, shards: int | None = None
    ) -> list["Applied"]:
        """Create and edit the jobs, and put to rest those that vanished from the code. `by`: on whose behalf."""
        from fleetcron.scheduler.sync import sync

        given = {} if shards is None else {"shards": shards}
        return await sync(
            store, self.definitions(), managed_by=self.managed_by, prune=prune or self.prune, by=by, **given
        )

    def asgi(self) -> "Mounted":
        """The API, to be mounted in a web application: `web.mount("/fleetcron", app.asgi())`. It takes keys, as the
        API of a node does, and it answers while `app.lifespan` is at work."""
        from fleetcron.app.web import Mounted

        self.is_mounted = True
        return Mounted(self)

    def lifespan(
        self, web: object = None, *, roles: "Sequence[str] | None" = None
    ) -> "AbstractAsyncContextManager[None]":
        """Of a web application: `FastAPI(lifespan=app.lifespan)`. Sync, then plan and work beside the requests; at the
        end what is at work may finish, as with SIGTERM. `roles=()` only connects: for `app.enqueue` and the API."""
        from fleetcron.app.web import living

        del web
        return living(self, roles)

    def run(self) -> None:
        """Sync, then plan and work until SIGTERM or SIGINT. In a script: under `if __name__ == "__main__":`."""
        from fleetcron.app.running import run

        run(self)
