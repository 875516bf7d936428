"""`fleetcron top`: the whole fleet on one screen, again and again."""

from collections.abc import Sequence

import click

from fleetcron.cli.connection import Database, database_options
from fleetcron.cli.limits import used, waiting
from fleetcron.cli.moments import distance
from fleetcron.cli.tables import coloured, numbered, printable, shortened, table
from fleetcron.cli.watching import INTERVAL, SECONDS, watched
from fleetcron.cli.when import json_option, print_json
from fleetcron.model.run import RunLine
from fleetcron.store.limits import PoolLine
from fleetcron.store.nodes import SeenNode
from fleetcron.store.steering import DeadLetter
from fleetcron.times.durations import rough_text
from fleetcron.views.fleet import pool_json
from fleetcron.views.top import Top, top, top_json

_POOL = ("POOL", "WORKERS", "RUNNING", "WAITING", "LAG")
_NODE = ("NODE", "", "SEEN", "ROLES", "VERSION")
_RUN = ("RUN", "JOB", "SINCE", "TRY", "NODE", "ABOUT")
_FAILURE = ("FAILED", "JOB", "", "WHEN", "ERROR")
_WIDTH = 60


@click.command("top")
@click.option(
    "--interval", default=SECONDS, show_default=True, type=INTERVAL, metavar="SECONDS", help="How often to look."
)
@click.option("--once", is_flag=True, help="Look once, and end.")
@click.option(
    "--limit", default=10, show_default=True, type=click.IntRange(1, 1000), help="Runs and failures at most, of each."
)
@database_options
@json_option
def command(database: Database, interval: float, once: bool, limit: int, as_json: bool) -> None:
    """Show the pools, the nodes, what runs and what has failed lately, until Ctrl-C.

    LAG is how long the first run of a pool's queue has waited for a free slot. With --json each look is one object on
    one line, or a single one with --once.
    """

    def show() -> None:
        found = database.run(lambda store: top(store, limit))
        if as_json:
            print_json(top_json(found))
        else:
            click.echo("\n\n".join(_parts(found)))

    if once:
        show()
    else:
        watched(show, interval, as_json=as_json)


def _parts(found: Top) -> list[str]:
    alive = sum(seen.alive for seen in found.view.nodes)
    said = [
        f"{numbered(alive, 'node')} alive, {found.in_flight:,} running, {found.queued:,} waiting"
        + ("" if alive else "; nothing is planned and nothing runs: fleetcron serve")
    ]
    if found.pools:
        said.append(table(_POOL, [_pool(line, found) for line in found.pools]))
    if found.view.nodes:
        said.append(table(_NODE, [_node(seen, found.now_ms) for seen in found.view.nodes]))
    if found.running:
        said.append(table(_RUN, [_run(line, found.now_ms) for line in found.running]))
        if found.in_flight > len(found.running):
            said[-1] += f"\n{found.in_flight - len(found.running):,} more: --limit, or fleetcron runs --state running"
    failures = _failures(found.retrying, found.dead, found.now_ms)
    if failures:
        said.append(table(_FAILURE, failures))
    return said


def _pool(line: PoolLine, found: Top) -> list[str]:
    lag_ms = found.lag_ms(line)
    slots = line.worker_slots if line.pool.slots is None else min(line.pool.slots, line.worker_slots)
    lag = "" if lag_ms is None else rough_text(lag_ms)
    return [
        line.pool.name,
        f"{line.workers:,}" if line.workers or not line.usage.queued else click.style("none", fg="red"),
        used(line.usage.in_flight, slots),
        waiting(pool_json(line)),
        click.style(lag, fg="red") if lag_ms is not None and lag_ms >= 60_000 else lag,
    ]


def _node(seen: SeenNode, now_ms: int) -> list[str]:
    node = seen.node
    state = coloured("alive" if seen.alive else "silent")
    return [printable(node.node_id), state, distance(seen.seen_ms, now_ms), ",".join(node.roles), node.version]


def _run(line: RunLine, now_ms: int) -> list[str]:
    far = "" if line.progress is None else f"{line.progress:.0%} "
    about = f"asked to stop: {line.cancel}" if line.cancel else f"{far}{line.note or ''}"
    since = line.begun_ms if line.begun_ms is not None else now_ms
    return [
        str(line.run.run_id),
        line.job,
        rough_text(max(0, now_ms - since)),
        str(line.run.attempt),
        printable(line.node_id or ""),
        shortened(printable(about.strip()), _WIDTH),
    ]


def _failures(retrying: Sequence[RunLine], dead: Sequence[DeadLetter], now_ms: int) -> list[list[str]]:
    """What is tried again, and what is not."""
    again = [
        [str(line.run.run_id), line.job, coloured("retrying"), _again(line, now_ms), _short(line.run.reason or "")]
        for line in retrying
    ]
    return again + [
        [
            str(each.run_id),
            f"{each.tenant}/{each.name}",
            coloured("dead"),
            distance(each.finished_ms, now_ms),
            _short(f"{each.error_code or '-'}: {each.error_text or ''}".removesuffix(": ")),
        ]
        for each in dead
    ]


def _again(line: RunLine, now_ms: int) -> str:
    if line.next_ms is None:
        return ""
    return f"again {distance(line.next_ms, now_ms)}" if line.next_ms > now_ms else "due again"


def _short(text: str) -> str:
    return shortened(printable(text), _WIDTH)
