"""`fleetcron serve`: a node, until it is asked to stop."""

import asyncio
import logging
from contextlib import suppress
from typing import Final

import click

from fleetcron import __version__
from fleetcron.cli.applying import Report, apply
from fleetcron.cli.calendars import stored_calendars
from fleetcron.cli.connection import Database, database_options, sqlite_path
from fleetcron.cli.files import Loaded, files_option, load, read
from fleetcron.cli.logs import set_up
from fleetcron.cli.moments import distance, utc
from fleetcron.cli.names import user
from fleetcron.cli.tables import numbered
from fleetcron.config import Config
from fleetcron.config.kinds import masked
from fleetcron.errors import StoreUnavailable
from fleetcron.node import Node, stop_on_signals

log = logging.getLogger(__name__)

_TRY_EVERY_S: Final = 1.0
_SAY_EVERY: Final = 5  # tries
_BUILT: Final = ("scheduler",)


@click.command("serve")
@files_option
@click.option("--lookahead", metavar="DURATION", help="How long before its tick a run is created. [default: 1m]")
@click.option("--shards", metavar="NUMBER", help="Slices of the fleet's jobs, the same on every node. [default: 16]")
@click.option("--region", metavar="NAME", help="Where this node runs. [default: none]")
@click.option("--name", metavar="NAME", help="What people call this node. [default: hostname-pid]")
@click.option("--log-format", metavar="FORMAT", help="text or json. [default: text]")
@click.option("--log-level", metavar="LEVEL", help="debug, info, warning or error. [default: info]")
@click.option("--no-wait", is_flag=True, help="Give up at once if PostgreSQL is not there.")
@database_options
def command(database: Database, files: tuple[str, ...], no_wait: bool, **flags: str | None) -> None:
    """Plan runs until SIGTERM or SIGINT (Ctrl-C). Creates or updates the tables first, then applies the files.

    The log goes to standard error. Exit code 0 after a stop that was asked for.
    """
    rooms = {"lookahead": "scheduler", "shards": "scheduler"}
    config = database.config({f"{rooms.get(flag, 'node')}.{flag}": value for flag, value in flags.items()})
    loaded = load(files)
    read(loaded)  # mistakes are told before anything is touched
    set_up(config.node)
    asyncio.run(_serve(config, loaded, wait=not no_wait and sqlite_path(config.store.url) is None))


async def _serve(config: Config, loaded: Loaded, *, wait: bool) -> None:
    stop = asyncio.Event()
    stop_on_signals(stop)
    node = await _started(config, stop, wait=wait)
    if node is None:
        return
    try:
        if loaded.sources:
            _tell(await _applied(node, loaded))
        await _greet(node)
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
    return await apply(node.store, documents, actor=user(), shards=node.config.scheduler.shards)


def _tell(report: Report) -> None:
    counts = ", ".join(f"{number} {done}" for done, number in report.counts.items() if number) or "none"
    log.info("jobs of the files: %s", counts)
    for job in report.refused:
        log.warning("the job %s was refused: %s", job.full_name, job.applied.reason)


async def _greet(node: Node) -> None:
    """What this node does and where to look next: for people on standard output, for machines in the log."""
    found = await node.store.jobs.count()
    active, paused = found.jobs.get("active", 0), found.jobs.get("paused", 0)
    resting = f", {paused:,} paused" if paused else ""
    lines = [
        f"fleetcron {__version__} serves {masked(node.config.store.url)} as {node.row.node_id}",
        numbered(active, "active job") + resting + _next(found.next_ms, found.now_ms),
    ]
    if not active and not paused:
        lines[1] = "There is no job yet: fleetcron apply -f jobs.yaml"
    unbuilt = [role for role in node.row.roles if role not in _BUILT]
    if unbuilt:
        log.warning("the role %s does not exist yet in this release", " and ".join(unbuilt))
    if node.config.node.log_format == "json":
        for line in lines:
            log.info(line)
        return
    flag = " (with the same --database)" if node.config.source_of("store.url") == "flag" else ""
    lines.append(f"Look at it: fleetcron jobs, fleetcron runs, fleetcron nodes{flag}. Stop it: Ctrl-C.")
    lines.append("It plans and stores runs. Nothing executes them yet: workers come with the next release.")
    click.echo("\n".join(lines))


def _next(next_ms: int | None, now_ms: int) -> str:
    if next_ms is None:
        return ""
    if next_ms <= now_ms:
        return f"; ticks since {utc(next_ms)} ({distance(next_ms, now_ms)}) are late and decided now: fleetcron ledger"
    return f"; the next tick is {utc(next_ms)} ({distance(next_ms, now_ms)})"
