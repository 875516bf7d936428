"""Asking for runs from Python: `app.enqueue(…)`, and `app.enqueue_in(connection, …)` in a transaction of the caller's.

A job is named by its name, or by its function if the app declares it. What the app declares is checked here, before
anything is written; a job that somebody else keeps is known only to the store.
"""

import secrets
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from difflib import get_close_matches
from typing import Any, NamedTuple

from fleetcron.app.application import DEFAULT_TENANT, Declared, Fleetcron
from fleetcron.app.importable import NotImportable, import_name
from fleetcron.app.payloads import check, kind_of
from fleetcron.app.running import settings
from fleetcron.clock import SystemClock
from fleetcron.errors import DefinitionError, Mistake, RefusedError
from fleetcron.executors.payload_types import PayloadType, Unresolvable
from fleetcron.executors.performer import at_home
from fleetcron.store.borrowed import borrow, borrow_sync
from fleetcron.store.borrowed_sqlite import borrow_sqlite
from fleetcron.store.migrations import require_current
from fleetcron.store.opening import is_postgres, require_file
from fleetcron.store.postgres_url import parse
from fleetcron.store.steering import Triggered, enqueueing
from fleetcron.store.store import Store
from fleetcron.views.asking import answer


class Wish(NamedTuple):
    """A run that somebody asks for."""

    job: tuple[str, str]
    payload: Mapping[str, Any] | None
    key: str


async def enqueue(app: Fleetcron, wish: Wish) -> Triggered:
    """In a transaction of its own. The store that the app has open is used; otherwise one is opened for this call."""
    if app.store is not None:
        return await _trigger(app.store, wish, app)
    config = settings(app, _home_of(app)).store
    if config.url == ":memory:":
        raise RefusedError(
            "the store is in the memory of a node (:memory:), where nobody else can write; give it a file"
        )
    require_file(config.url)
    store = await Store.open(config, SystemClock())
    try:
        await require_current(store.engine)
        return await _trigger(store, wish, app)
    finally:
        await store.close()


async def enqueue_in(app: Fleetcron, connection: object, wish: Wish) -> Triggered:
    url = _url(app)
    if not is_postgres(url):
        raise RefusedError(
            "the store of this app is SQLite, whose connections are not awaited; call app.enqueue_in_sync(…) with a "
            "sqlite3.Connection to the same file, or app.enqueue(…), which has a transaction of its own"
        )
    return await borrow(connection, parse(url).schema, lambda: enqueueing(*wish, actor=app.managed_by))


def enqueue_in_sync(app: Fleetcron, connection: object, wish: Wish) -> Triggered:
    url = _url(app)
    if is_postgres(url):
        return borrow_sync(connection, parse(url).schema, lambda: enqueueing(*wish, actor=app.managed_by))
    path = url.removeprefix("sqlite:///")
    return borrow_sqlite(connection, path, SystemClock(), lambda: enqueueing(*wish, actor=app.managed_by))


def wish_of(app: Fleetcron, job: str | Callable[..., Any], payload: Any, tenant: str | None, key: str | None) -> Wish:
    found = find(app, job, tenant)
    name, owner = (found.name, found.tenant) if found else (str(job), tenant or DEFAULT_TENANT)
    if found is None and payload is not None and not isinstance(payload, Mapping):
        raise RefusedError(
            f"this app has no job {name}{_near(app, name)}; a {type(payload).__name__} can be sent to a job whose "
            "function takes it, and to the jobs of others a JSON object"
        )
    kind = kind_of_job(app, found)
    checked = check(payload, kind, name, owner)
    if found is not None and payload is None and not found.fields.get("payload"):
        check({}, kind, name, owner)  # it would get nothing: a run that takes something would be dead at once
    if key is not None and not isinstance(key, str):
        raise DefinitionError([Mistake("key", f"must be a text, not {type(key).__name__}", 'write key="order-17"')])
    return Wish((owner, name), checked, key if key is not None else secrets.token_hex(16))


def find(app: Fleetcron, job: str | Callable[..., Any], tenant: str | None) -> Declared | None:
    """What the app declares under this name or above this function."""
    by_name = isinstance(job, str)
    found = [
        each
        for each in app.declared
        if (each.name == job if by_name else each.function is job) and tenant in (None, each.tenant)
    ]
    if len(found) > 1 and len({(each.tenant, each.name) for each in found}) > 1:
        some = ", ".join(f"{each.tenant}/{each.name}" for each in found)
        raise RefusedError(f"{job!r} is several jobs of this app ({some}): give the name, and tenant=…")
    if not found and not by_name:
        raise RefusedError(f"{getattr(job, '__qualname__', job)} is no job of this app: write @app.job(…) above it")
    return found[0] if found else None


def kind_of_job(app: Fleetcron, declared: Declared | None) -> PayloadType | None:
    """Kept: an application asks for runs all the time."""
    if declared is None:
        return None
    if declared.function not in app.kinds:
        try:
            app.kinds[declared.function] = kind_of(declared.function)
        except Unresolvable as error:
            raise DefinitionError([Mistake(f"{declared.name}: payload", str(error))]) from None
    kind: PayloadType | None = app.kinds[declared.function]
    return kind


def _near(app: Fleetcron, name: str) -> str:
    near = get_close_matches(name, {each.name for each in app.declared}, n=3)
    return f" (did you mean {' or '.join(near)}?)" if near else ""


async def _trigger(store: Store, wish: Wish, app: Fleetcron) -> Triggered:
    try:
        return await answer(lambda: store.steering.enqueue(wish.job, wish.payload, actor=app.managed_by, key=wish.key))
    except RefusedError as error:
        known = any(each.name == wish.job[1] for each in app.declared)
        if known or not (near := _near(app, wish.job[1])):
            raise
        raise RefusedError(f"{error}{near}") from None


def _home_of(app: Fleetcron) -> str | None:
    """In a handler: the store of the worker that calls it, whatever the code and the environment say. An app of which
    this worker calls nothing may belong elsewhere, and its code says where."""
    home = at_home()
    if home.store_url is None or (app.url is not None and not home.is_of(_names(app))):
        return None
    return home.store_url


def _names(app: Fleetcron) -> Iterator[str]:
    for each in app.declared:
        with suppress(NotImportable):
            yield import_name(each.function)


def _url(app: Fleetcron) -> str:
    """Of the store. Kept, because the settings do not change while a program runs."""
    if (of_worker := _home_of(app)) is not None:
        return of_worker
    if app.store_url is None:
        app.store_url = settings(app).store.url
    return app.store_url
