"""`fleetcron torture`: do the promises hold on your database? Real nodes, real faults, and a verdict."""

import asyncio
import logging
import os
import shutil
import signal
import sys
from typing import Final

import click

from fleetcron.cli.ranges import FloatRange
from fleetcron.cli.tables import numbered
from fleetcron.cli.torture_report import Silent, Spoken, Terminal, print_result
from fleetcron.cli.when import json_option, print_json
from fleetcron.clock import SystemClock
from fleetcron.errors import ScheduleError
from fleetcron.times.durations import duration_ms
from fleetcron.torture.evidence import FaultKind
from fleetcron.torture.ground import Ground, LeftOver, new_name
from fleetcron.torture.opening import ground_of
from fleetcron.torture.siege import Audience, Result, Siege, Wish, folder_of
from fleetcron.torture.torment import KINDS

_LEAST_MS, _MOST_MS = 1000, 24 * 3_600_000
_ENDS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Interrupted(Exception):
    """By a signal, and everything is taken away."""

    def __init__(self, number: signal.Signals) -> None:
        self.number = number
        super().__init__(number.name)


def _length(_context: click.Context, _option: click.Parameter, value: str) -> float:
    try:
        ms = duration_ms(value, "--for")
    except ScheduleError as error:
        raise click.BadParameter(f"{value!r} is not a duration of 1s to 24h; {error.hint}") from None
    if not _LEAST_MS <= ms <= _MOST_MS:
        raise click.BadParameter("a torture takes 1s to 24h")
    return ms / 1000


def _kinds(_context: click.Context, _option: click.Parameter, value: str | None) -> tuple[FaultKind, ...] | None:
    if value is None:
        return None
    words = [word.strip() for word in value.split(",") if word.strip()]
    unknown = [word for word in words if word not in KINDS]
    if unknown or not words:
        raise click.BadParameter(f"{unknown[0] if unknown else 'nothing'!r} is no fault; there are {', '.join(KINDS)}")
    return tuple(kind for kind in KINDS if kind in words)


@click.command("torture")
@click.option(
    "--database",
    required=True,
    metavar="URL",
    help="Where: sqlite:///FILE or postgresql://USER@HOST/NAME. Neither the environment nor fleetcron.toml is asked.",
)
@click.option(
    "--for",
    "for_s",
    default="60s",
    show_default=True,
    metavar="DURATION",
    callback=_length,
    help="How long the nodes are hurt.",
)
@click.option("--nodes", default=3, show_default=True, type=click.IntRange(1, 50), help="How many nodes.")
@click.option("--rate", default=0.5, show_default=True, type=FloatRange(0.01, 20), help="Faults a second.")
@click.option(
    "--faults",
    "kinds",
    metavar="LIST",
    callback=_kinds,
    help=f"Which faults. [default: {','.join(KINDS)}, as far as they are possible]",
)
@click.option("--seed", type=click.IntRange(0), help="What chance decides is decided alike. [default: a new one]")
@click.option("--keep", is_flag=True, help="Keep the schema or file, and the evidence.")
@click.option("--clean", is_flag=True, help="Remove what killed runs of this command have left, and do nothing else.")
@click.option("--yes", "-y", is_flag=True, help="With --clean: do not ask.")
@json_option
def command(
    database: str,
    for_s: float,
    nodes: int,
    rate: float,
    kinds: tuple[FaultKind, ...] | None,
    seed: int | None,
    keep: bool,
    clean: bool,
    yes: bool,
    as_json: bool,
) -> None:
    """Hurt real nodes on your own database for a while, and say whether every promise was kept.

    Makes a schema of its own (SQLite: a file beside the one that you name), starts nodes with jobs of its own, kills
    and freezes them, breaks their network and changes their jobs, waits until everything that was due has its
    answer, compares that with its own count, and removes what it has made.

    Exit codes: 0 all promises hold, 1 one is broken, 2 it could not be tried, 3 the database is not available.
    """
    logging.getLogger("fleetcron").setLevel(logging.CRITICAL)  # what goes wrong on purpose is no news
    ground = ground_of(database, new_name(os.urandom(6)), SystemClock())
    if clean:
        asyncio.run(_clean(ground, yes=yes, as_json=as_json))
        return
    chosen = int.from_bytes(os.urandom(4), "big") if seed is None else seed
    wish = Wish(nodes, for_s, rate, chosen, kinds or KINDS, insists=kinds is not None, keep=keep)
    audience: Audience = Silent() if as_json else Terminal() if sys.stderr.isatty() else Spoken()
    siege = Siege(ground, wish, audience, clock=SystemClock(), environment=os.environ)
    try:
        result = asyncio.run(_besieged(siege))
    except Interrupted as end:
        click.echo(f"Stopped by {end.number.name}: there is no verdict.{_gone(ground, siege, keep)}", err=True)
        sys.exit(128 + end.number)
    finally:
        if siege.left is not None:
            click.echo(f"{siege.left}\nRemove it later: fleetcron torture --database URL --clean", err=True)
    print_result(result, siege.folder, as_json=as_json)
    sys.exit(0 if result.verdict.holds else 1)


async def _besieged(siege: Siege) -> Result:
    """A signal ends it early: what was made is taken away, and then there is no verdict."""
    loop, work = asyncio.get_running_loop(), asyncio.create_task(siege.run())
    caught: list[signal.Signals] = []

    def asked(number: signal.Signals) -> None:
        caught.append(number)
        if len(caught) == 1:
            work.cancel()
        else:
            click.echo("a moment: what was made is being taken away", err=True)

    for number in _ENDS:
        loop.add_signal_handler(number, asked, number)
    try:
        return await work
    except asyncio.CancelledError:
        raise Interrupted(caught[0]) from None


async def _clean(ground: Ground, *, yes: bool, as_json: bool) -> None:
    try:
        found, now_ms = await ground.left_overs(), SystemClock().now_ms()
        running = [left for left in found if left.owner is not None and left.owner.is_running(now_ms)]
        dead = [left for left in found if left not in running]
        if not as_json:
            _list(dead, running)
        if dead and not yes:
            if as_json:
                raise click.UsageError("--json asks nobody: add --yes.")
            click.confirm(f"Remove {'it' if len(dead) == 1 else 'all of them'}?", abort=True, err=True)
        for left in dead:
            await ground.clear(left)
            shutil.rmtree(folder_of(left.name), ignore_errors=True)
        if as_json:
            print_json({"removed": [left.name for left in dead], "running": [left.name for left in running]})
        elif dead:
            click.echo(f"Removed: {numbered(len(dead), 'left-over')}.")
    finally:
        await ground.close()


def _list(dead: list[LeftOver], running: list[LeftOver]) -> None:
    for left in running:
        click.echo(f"{left.what} is in use by {left.owner}: it is left alone")
    for left in dead:
        click.echo(f"{left.what}, left by {left.owner or 'nobody knows whom'}")
    if not dead:
        click.echo("There is nothing to remove.")


def _gone(ground: Ground, siege: Siege, keep: bool) -> str:
    if siege.left is not None:
        return ""  # said by itself
    return f" Kept: {ground.what}." if keep else f" {ground.what.capitalize()} is removed."
