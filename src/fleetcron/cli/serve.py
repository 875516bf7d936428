"""`fleetcron serve`, `scheduler`, `worker` and `api`: a node with all roles or with one, until it is asked to stop."""

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from importlib import import_module
from typing import Any, Final, cast

import click

from fleetcron import __version__
from fleetcron.app.application import Fleetcron
from fleetcron.app.running import fitted, lend_functions
from fleetcron.applying.apply import Report, apply, mark_unable
from fleetcron.cli.apps import app_of, app_option, database_of
from fleetcron.cli.connection import Database, database_options, sqlite_path
from fleetcron.cli.files import Loaded, files_option, load, read
from fleetcron.cli.logs import set_up
from fleetcron.cli.moments import distance, utc
from fleetcron.cli.names import user
from fleetcron.cli.serving import lines as unserved_lines
from fleetcron.cli.serving import served
from fleetcron.cli.tables import numbered
from fleetcron.config import Config
from fleetcron.config.kinds import masked
from fleetcron.ending import run_to_the_end
from fleetcron.errors import StoreUnavailable
from fleetcron.executors.refusals import refusals
from fleetcron.model.shard import ANYWHERE
from fleetcron.node import Node, stop_on_signals, tune_interpreter
from fleetcron.scheduler import sync
from fleetcron.store.jobs import Count
from fleetcron.store.workers import Worker
from fleetcron.views.calendars import stored_calendars

log = logging.getLogger(__name__)

_TRY_EVERY_S: Final = 1.0
_SAY_EVERY: Final = 5  # tries


def _options(command: Callable[..., None]) -> Callable[..., None]:
    """What every kind of node takes."""
    for option in reversed((
        files_option,
        app_option,
        click.option("--region", metavar="NAME", help="Where this node runs. [default: none]"),
        click.option("--name", metavar="NAME", help="What people call this node. [default: hostname-pid]"),
        click.option("--log-format", metavar="FORMAT", help="text or json. [default: text]"),
        click.option("--log-level", metavar="LEVEL", help="debug, info, warning or error. [default: info]"),
        click.option("--no-wait", is_flag=True, help="Give up at once if PostgreSQL is not there."),
        database_options,
    )):  # fmt: skip
        command = option(command)
    return command


_lookahead = click.option(
    "--lookahead", metavar="DURATION", help="How long before its tick a run is created. [default: 1m]"
)
_shards = click.option(
    "--shards", metavar="NUMBER", help="Slices of the fleet's jobs, the same on every node. [default: 16]"
)
_pools = click.option(
    "--pool", "--pools", "pools", multiple=True, metavar="NAME=SLOTS",
    help="A pool that it serves, and how many runs at a time. Repeatable. [default: default=10]",
)  # fmt: skip
_handlers = click.option(
    "--handlers", multiple=True, metavar="MODULE[:FUNCTION]",
    help="Python functions that jobs may call. Repeatable. [default: those of --app]",
)  # fmt: skip
_listen = click.option("--listen", metavar="HOST:PORT", help="Where the API listens. [default: 127.0.0.1:8470]")


@click.command("serve")
@_lookahead
@_shards
@_pools
@_handlers
@_listen
@click.option("--no-api", is_flag=True, help="Without the API.")
@_options
def command(no_api: bool, **options: Any) -> None:
    """Plan runs, execute them and serve the API until SIGTERM or SIGINT (Ctrl-C).

    Creates or updates the tables first, then applies files and app. The log goes to standard error. Exit code 0 after a
    stop that was asked for.
    """
    _run(None, no_api=no_api, **options)


@click.command("scheduler")
@_lookahead
@_shards
@_options
def scheduler(**options: Any) -> None:
    """Plan runs, and leave executing them to workers. Otherwise like serve."""
    _run("scheduler", **options)


@click.command("worker")
@_pools
@_handlers
@_options
def worker(**options: Any) -> None:
    """Execute runs that schedulers plan. Otherwise like serve.

    Asked to stop, it claims nothing more, waits for what runs (worker.drain), and hands the rest back.
    """
    _run("worker", **options)


@click.command("api")
@_listen
@_options
def api(**options: Any) -> None:
    """Serve the API, and leave planning and executing to others. Otherwise like serve."""
    _run("api", **options)


_ROOMS: Final = {
    "lookahead": "scheduler", "shards": "scheduler", "pools": "worker", "handlers": "executor", "listen": "api",
}  # fmt: skip
_ALL: Final = ("scheduler", "worker", "api")


def _run(
    role: str | None,
    *,
    database: Database,
    files: tuple[str, ...],
    app_name: str | None,
    no_wait: bool,
    no_api: bool = False,
    **flags: Any,
) -> None:
    app = app_of(app_name)
    given = {f"{_ROOMS.get(flag, 'node')}.{flag}": _text(value) for flag, value in flags.items()}
    if role is not None:
        given["node.roles"] = role
    config = _with_roles(database_of(app, database).config(given), no_api=no_api)
    loaded = load(files)
    read(loaded)  # mistakes are told before anything is touched
    if app is not None:
        config = fitted(config, app.definitions())
    set_up(config.node)
    wait = not no_wait and sqlite_path(config.store.url) is None
    run_to_the_end(_serve(config, loaded, app, wait=wait), _fastest() if config.node.roles == ("api",) else None)


def _with_roles(config: Config, *, no_api: bool) -> Config:
    """Who chose no roles has all of them."""
    roles = _ALL if config.source_of("node.roles") == "default" else config.node.roles
    if no_api:
        roles = tuple(role for role in roles if role != "api")
    return replace(config, node=replace(config.node, roles=roles))


def _fastest() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """uvloop, where there is one. Only for a node that executes nothing: the executors were measured without it."""
    try:
        return cast(Callable[[], asyncio.AbstractEventLoop], import_module("uvloop").new_event_loop)
    except ImportError:
        return None


def _text(value: str | tuple[str, ...] | None) -> str | None:
    return (",".join(value) or None) if isinstance(value, tuple) else value


async def _serve(config: Config, loaded: Loaded, app: Fleetcron | None, *, wait: bool) -> None:
    stop = asyncio.Event()
    stop_on_signals(stop)
    tune_interpreter()
    node = await _started(config, stop, wait=wait)
    if node is None:
        return
    try:
        if loaded.sources:
            _tell(await _applied(node, loaded))
        if app is not None:
            lend_functions(app, node)
            shards = node.config.scheduler.shards
            sync.tell(app.managed_by, await app.sync(node.store, by=user(), shards=shards))
        await _greet(node)
        await _warn(node)
        await node.run(stop)
    finally:
        await node.close()


async def _started(config: Config, stop: asyncio.Event, *, wait: bool) -> Node | None:
    """The node, once its database is there; None if it was stopped before that."""
    tries = 0
    while not stop.is_set():
        try:
            return await Node.start(config)
        except StoreUnavailable as error:
            if not wait:
                raise
            if tries % _SAY_EVERY == 0:
                log.info("waiting for the database: %s", error)
            tries += 1
        with suppress(TimeoutError):
            async with asyncio.timeout(_TRY_EVERY_S):
                await stop.wait()
    return None


async def _applied(node: Node, loaded: Loaded) -> Report:
    documents = read(loaded, await stored_calendars(node.store))
    report = await apply(node.store, documents, actor=user(), shards=node.config.scheduler.shards)
    coming, planning = [], set()
    if "worker" in node.row.roles:
        refused = refusals(node.config.executor, node.functions)
        coming = [Worker(node.row.node_id, "", node.config.worker.slots(), refused, 0, 0, 0)]
    if "scheduler" in node.row.roles:
        planning = {ANYWHERE, node.row.region}
    await mark_unable(node.store, report, *coming, planning=planning)
    return report


def _tell(report: Report) -> None:
    counts = ", ".join(f"{number} {done}" for done, number in report.counts.items() if number) or "none"
    log.info("jobs of the files: %s", counts)
    for job in report.refused:
        log.warning("the job %s was refused: %s", job.full_name, job.applied.reason)
    for warning, names in report.warnings.items():
        log.warning("%s: %s", ", ".join(names), warning)


async def _greet(node: Node) -> None:
    """What this node does and where to look next: for people on standard output, for machines in the log."""
    lines = [f"fleetcron {__version__} serves {masked(node.config.store.url)} as {node.row.node_id}"]
    with suppress(StoreUnavailable):  # a node that has started goes on: its loops ask again
        lines.append(_jobs(await node.store.jobs.count()))
    lines.append(_duty(node))
    if node.api is not None:
        lines.append(f"The API is at {node.api.url}/api/v1, and says what it can at {node.api.url}/docs")
    if node.config.node.log_format == "json":
        for line in lines:
            log.info(line)
        return
    flag = " (with the same --database)" if node.config.source_of("store.url") == "flag" else ""
    lines.append(f"Look at it: fleetcron jobs, fleetcron runs, fleetcron nodes{flag}. Stop it: Ctrl-C.")
    click.echo("\n".join(lines))


def _jobs(found: Count) -> str:
    active, paused = found.jobs.get("active", 0), found.jobs.get("paused", 0)
    if not active and not paused:
        return "There is no job yet: fleetcron apply -f jobs.yaml"
    resting = f", {paused:,} paused" if paused else ""
    return numbered(active, "active job") + resting + _next(found.next_ms, found.now_ms)


def _duty(node: Node) -> str:
    """What it does, in one line."""
    pools = ", ".join(f"{name} ({slots} at a time)" for name, slots in node.config.worker.slots().items())
    where = f"of the pool{'s' if len(node.config.worker.slots()) > 1 else ''} {pools}"
    match sorted(node.row.roles):
        case ["scheduler"]:
            return "It plans runs; workers execute them: fleetcron worker"
        case ["worker"]:
            return f"It executes runs {where}, and plans none; that is for: fleetcron scheduler, or fleetcron serve"
        case ["api"]:
            return (
                "It answers requests; planning and executing is for: fleetcron serve, or fleetcron scheduler and worker"
            )
        case ["api", "scheduler"]:
            return "It plans runs and answers requests; workers execute them: fleetcron worker"
        case ["api", "worker"]:
            return f"It executes runs {where} and answers requests, and plans none; that is for: fleetcron scheduler"
    return f"It plans runs, and executes those {where}"


async def _warn(node: Node) -> None:
    """A worker tells which pools have jobs and nobody who serves them."""
    if "worker" not in node.row.roles:
        return
    with suppress(StoreUnavailable):  # nobody has to know at once
        there = await served(node.store) | node.config.worker.slots().keys()
        for line in unserved_lines(await node.store.limits.jobs_by_pool(), there):
            log.warning(line)


def _next(next_ms: int | None, now_ms: int) -> str:
    if next_ms is None:
        return ""
    if next_ms <= now_ms:
        since = f"{utc(next_ms)} ({distance(next_ms, now_ms)})"
        return f"; ticks since {since} are decided now: fleetcron runs, fleetcron ledger"
    return f"; the next tick is {utc(next_ms)} ({distance(next_ms, now_ms)})"
