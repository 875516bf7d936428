"""`fleetcron top`: the whole fleet on one screen, again and again."""

from collections.abc import Sequence
from typing import Final

import click

from fleetcron.cli.asking import Doc
from fleetcron.cli.connection import Database, database_options
from fleetcron.cli.limits import used, waiting
from fleetcron.cli.moments import distance, ms_of
from fleetcron.cli.tables import coloured, numbered, printable, shortened, table
from fleetcron.cli.watching import INTERVAL, SECONDS, watched
from fleetcron.cli.when import json_option, print_json
from fleetcron.store.store import Store
from fleetcron.times.durations import rough_text
from fleetcron.views.top import top, top_json

_POOL = ("POOL", "WORKERS", "RUNNING", "WAITING", "LAG")
_NODE = ("NODE", "", "SEEN", "ROLES", "VERSION")
_RUN = ("RUN", "JOB", "SINCE", "TRY", "NODE", "ABOUT")
_FAILURE = ("FAILED", "JOB", "", "WHEN", "ERROR")
_WIDTH = 60
_MOST: Final = 500  # that one answer of an API gives


@click.command("top")
@click.option(
    "--interval", default=SECONDS, show_default=True, type=INTERVAL, metavar="SECONDS", help="How often to look."
)
@click.option("--once", is_flag=True, help="Look once, and end.")
@click.option(
    "--limit", default=10, show_default=True, type=click.IntRange(1, _MOST), help="Runs and failures at most, of each."
)
@database_options
@json_option
def command(database: Database, interval: float, once: bool, limit: int, as_json: bool) -> None:
    """Show the pools, the nodes, what runs and what has failed lately, until Ctrl-C.

    LAG is how long the first run of a pool's queue has waited for a free slot. With --json each look is one object on
    one line, or a single one with --once.
    """

    async def of_store(store: Store) -> Doc:
        return top_json(await top(store, limit))

    def show() -> None:
        found = database.ask(of_store, lambda client: client.top(limit=limit))
        if as_json:
            print_json(found)
        else:
            click.echo("\n\n".join(_parts(found)))

    if once:
        show()
    else:
        watched(show, interval, as_json=as_json)


def _parts(found: Doc) -> list[str]:
    now_ms = ms_of(found["now"])
    alive = sum(node["alive"] for node in found["nodes"])
    said = [
        f"{numbered(alive, 'node')} alive, {found['in_flight']:,} running, {found['queued']:,} waiting"
        + ("" if alive else "; nothing is planned and nothing runs: fleetcron serve")
    ]
    if found["pools"]:
        said.append(table(_POOL, [_pool(pool) for pool in found["pools"]]))
    if found["nodes"]:
        said.append(table(_NODE, [_node(node, now_ms) for node in found["nodes"]]))
    if found["running"]:
        said.append(table(_RUN, [_run(run, now_ms) for run in found["running"]]))
        more = found["in_flight"] - len(found["running"])
        if more > 0:
            said[-1] += f"\n{more:,} more: --limit, or fleetcron runs --state running"
    failures = _failures(found["retrying"], found["dead"], now_ms)
    if failures:
        said.append(table(_FAILURE, failures))
    return said


def _pool(pool: Doc) -> list[str]:
    lag_s, own, there = pool["lag_seconds"], pool["slots"], pool["worker_slots"]
    lag = "" if lag_s is None else rough_text(round(lag_s * 1000))
    return [
        pool["name"],
        f"{pool['workers']:,}" if pool["workers"] or not pool["queued"] else click.style("none", fg="red"),
        used(pool["in_flight"], there if own is None else min(own, there)),
        waiting(pool),
        click.style(lag, fg="red") if lag_s is not None and lag_s >= 60 else lag,
    ]


def _node(node: Doc, now_ms: int) -> list[str]:
    state = coloured("alive" if node["alive"] else "silent")
    seen = distance(ms_of(node["seen_at"]), now_ms)
    return [printable(node["node_id"]), state, seen, ",".join(node["roles"]), node["version"]]


def _run(run: Doc, now_ms: int) -> list[str]:
    far = "" if run["progress"] is None else f"{run['progress']:.0%} "
    about = f"asked to stop: {run['asked_to_stop']}" if run["asked_to_stop"] else f"{far}{run['note'] or ''}"
    since = run["attempt_started_at"]
    return [
        str(run["run_id"]),
        f"{run['tenant']}/{run['name']}",
        rough_text(0 if since is None else max(0, now_ms - ms_of(since))),
        str(run["attempt"]),
        printable(run["node_id"] or ""),
        shortened(printable(about.strip()), _WIDTH),
    ]


def _failures(retrying: Sequence[Doc], dead: Sequence[Doc], now_ms: int) -> list[list[str]]:
    """What is tried again, and what is not."""
    again = [[*_failed(run, "retrying"), _again(run, now_ms), _short(run["reason"] or "")] for run in retrying]
    return again + [
        [
            *_failed(each, "dead"),
            distance(ms_of(each["died_at"]), now_ms),
            _short(f"{each['error']['code'] or '-'}: {each['error']['text'] or ''}".removesuffix(": ")),
        ]
        for each in dead
    ]


def _failed(run: Doc, state: str) -> list[str]:
    return [str(run["run_id"]), f"{run['tenant']}/{run['name']}", coloured(state)]


def _again(run: Doc, now_ms: int) -> str:
    if run["next_try"] is None:
        return ""
    next_ms = ms_of(run["next_try"])
    return f"again {distance(next_ms, now_ms)}" if next_ms > now_ms else "due again"


def _short(text: str) -> str:
    return shortened(printable(text), _WIDTH)
