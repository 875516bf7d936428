"""`fleetcron runs`: the list, and the commands about one run."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

import click

from fleetcron.cli.asking import Doc
from fleetcron.cli.connection import Database, database_options
from fleetcron.cli.lazy import LazyGroup, Table
from fleetcron.cli.moments import distance, local, ms_of, shown
from fleetcron.cli.past import Asked, Page, asked_options
from fleetcron.cli.tables import coloured, numbered, printable, say_more, shortened, table
from fleetcron.cli.watching import watchable
from fleetcron.cli.when import json_option, print_json
from fleetcron.model.run import RunLine
from fleetcron.model.states import RunState
from fleetcron.store.history import Span
from fleetcron.store.store import Store
from fleetcron.times.durations import rough_text
from fleetcron.times.zone import Zone
from fleetcron.views.runs import line_json

_HEADS = ("RUN", "JOB", "SCHEDULED FOR", "LOCAL", "STATE", "START", "TOOK", "TRIES", "LANE", "COVERS", "ABOUT")
_WIDTH = 60
# what a run waits for, in a word; `fleetcron runs why` has the sentence
WAITS: Final[Mapping[str, str]] = {
    "key": "waits for a run before it",
    "former": "waits for a run before it",
    "upstream": "waits for an upstream job",
    "tenant": "waits for a place of its tenant",
    "quota_tenant": "waits for a place of its tenant in the pool",
    "quota_type": "waits for a place of its type in the pool",
    "rate": "waits for the rate of its tenant",
    "paused": "held back",
    "handler": "no worker has its handler",
}

COMMANDS: Table = {
    "show": ("fleetcron.cli.run:show", "Show a run with everything about it: its attempts, and what it waits for."),
    "log": ("fleetcron.cli.run_log:log", "Print what an attempt wrote, or follow it while it runs."),
    "why": ("fleetcron.cli.why:command", "Say why a run waits, or why it ended as it did."),
    "cancel": ("fleetcron.cli.run_steering:cancel", "Cancel runs that have not ended."),
    "replay": ("fleetcron.cli.run_steering:replay", "Open dead or cancelled runs again."),
}


@click.group("runs", cls=LazyGroup, table=COMMANDS, invoke_without_command=True)
@watchable
@asked_options
@click.option("--state", type=click.Choice([state.value for state in RunState]), help="Only runs in this state.")
@click.option("--planned", is_flag=True, help="Also runs that are planned for later; only those: --state planned.")
@database_options
@json_option
@click.pass_context
def command(
    context: click.Context, database: Database, asked: Asked, state: str | None, planned: bool, as_json: bool
) -> None:
    """List runs up to now, the newest first: one for each tick that is to be worked on.

    Runs are planned ahead of their time; those that are still to come are shown with --planned, --state planned or
    --to.
    Ticks that have no run are in the ledger: fleetcron ledger.
    """
    if context.invoked_subcommand is not None:
        return
    everything = planned or state is not None or asked.looks_ahead
    page = database.ask(
        lambda store: _of_store(store, asked, state, everything),
        lambda client: asked.of_api(client, client.runs.page, "runs", state=state, planned=everything),
    )
    # pages go by number, which is cheap; on a page the latest tick comes first, for runs are planned by job
    runs = sorted(page.lines, key=lambda run: (ms_of(run["scheduled_for"]), run["run_id"]), reverse=True)
    before, later = page.before("run_id"), page.more["planned_later"]
    if as_json:
        print_json({"runs": runs, "before": before, "planned_later": later})
    elif runs:
        click.echo(table(_HEADS, [_row(run, page.now_ms, page.zone) for run in runs]))
        if before is not None:
            say_more(len(runs), f"--before {before}")
        _say_later(later)
        if any(_is_due(run, page.now_ms) for run in runs):
            click.echo(
                "What is due waits for a worker with a free slot. Why one of them waits: fleetcron runs why RUN."
            )
    elif later != 0:
        click.echo("No run like that has come to its tick yet." if state else "No run has come to its tick yet.")
        _say_later(later)
    elif asked.is_for_all and state is None:
        click.echo("No run yet. A scheduler creates each one shortly before its tick.")
        click.echo("Is one running? fleetcron nodes. When is the next tick? fleetcron jobs.")
    else:
        click.echo("No run is like that. Ticks without a run are in the ledger: fleetcron ledger.")


async def _of_store(store: Store, asked: Asked, state: str | None, everything: bool) -> Page:
    workers: dict[int, int] = {}

    async def read(span: Span, limit: int) -> Sequence[RunLine]:
        found = await store.history.runs(span, state=state, limit=limit, later=everything)
        merged = [line.run.run_id for line in found if line.run.state is RunState.MERGED]
        workers.update(await store.history.covering(merged) if merged else {})
        return found

    page = await asked.of_store(store, read, lambda line, now: line_json(line, now, workers))
    return replace(page, more={"planned_later": 0 if everything else await store.history.later(asked.span)})


def _say_later(later: int | None) -> None:
    if later is None:
        click.echo("Runs that are planned for later are not shown: --planned")
    elif later:
        click.echo(f"{numbered(later, 'run')} planned for later {'is' if later == 1 else 'are'} not shown: --planned")


def _is_due(run: Doc, now: int) -> bool:
    return run["state"] == RunState.PLANNED and run["node_id"] is None and ms_of(run["run_after"]) <= now


def _row(run: Doc, now: int, zone: Zone | None) -> list[str]:
    lasted, state = run["duration_ms"], RunState(run["state"])
    return [
        str(run["run_id"]),
        f"{run['tenant']}/{run['name']}",
        shown(run["scheduled_for"]),
        local(ms_of(run["scheduled_for"]), zone) if zone else "",
        coloured(state),
        _start(run, now),
        "" if lasted is None else rough_text(lasted) + ("" if state.is_final else " so far"),
        str(run["attempt"]) if run["attempt"] > 1 else "",
        run["lane"] if run["lane"] != "live" else run["kind"] if run["kind"] != "tick" else "",
        covers_words(run),
        _about(run, now),
    ]


def _start(run: Doc, now: int) -> str:
    """How late it started; before that, when it may."""
    if run["delay_ms"] is not None:
        return f"+{rough_text(max(0, run['delay_ms']))}"
    if RunState(run["state"]).is_final:
        return ""
    after_ms = ms_of(run["run_after"])
    when = f"due {distance(after_ms, now)}" if after_ms <= now else distance(after_ms, now)
    jitter_ms = after_ms - ms_of(run["scheduled_for"])
    return f"{when} ({jitter_ms / 1000:g} s jitter)" if jitter_ms else when


def _about(run: Doc, now: int) -> str:
    """What else there is to say in a list: where it runs, when it is tried again, what it waits for, why it ended."""
    state = RunState(run["state"])
    if run["waiting"] is not None:
        gate = run["waiting"]["gate"]
        said = WAITS.get(gate, gate)
    elif state is RunState.RUNNING:
        far = "" if run["progress"] is None else f" {run['progress']:.0%}"
        said = f"{run['node_id']}{far} {run['note'] or ''}".rstrip()
    elif state is RunState.RETRYING and run["next_try"] is not None and ms_of(run["next_try"]) > now:
        said = f"next try {distance(ms_of(run['next_try']), now)}: {run['reason'] or ''}".rstrip(": ")
    elif state is RunState.SUCCEEDED:
        return ""
    elif run["worked_by"] is not None:
        said = f"run {run['worked_by']} does its work"
    else:
        said = (run["reason"] or "").removeprefix(f"{state}: ")
    return shortened(printable(said), _WIDTH)


def covers_words(run: Doc) -> str:
    window = run["window"]
    if window is None:
        return ""
    return f"{numbered(run['covers'], 'tick')}, {shown(window['from'])} to {shown(window['to'])}"
