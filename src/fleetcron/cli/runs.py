"""`fleetcron runs`: the list, and the commands about one run."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import click

from fleetcron.cli.connection import Database, database_options
from fleetcron.cli.lazy import LazyGroup, Table
from fleetcron.cli.moments import distance, local, utc
from fleetcron.cli.past import Asked, Page, asked_options
from fleetcron.cli.tables import coloured, numbered, printable, say_more, shortened, table
from fleetcron.cli.watching import watchable
from fleetcron.cli.when import json_option, print_json
from fleetcron.model.run import RunLine
from fleetcron.model.states import RunState
from fleetcron.store.store import Store
from fleetcron.times.durations import rough_text
from fleetcron.views.runs import line_json

_HEADS = ("RUN", "JOB", "SCHEDULED FOR", "LOCAL", "STATE", "START", "TOOK", "TRIES", "LANE", "COVERS", "ABOUT")
_WIDTH = 60
# what a run waits for, in a word; `fleetcron runs why` has the sentence
WAITS: Final[Mapping[str, str]] = {
    "key": "waits for a run before it",
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


@dataclass(frozen=True, slots=True)
class Listed:
    """A page; how many runs that are planned for later were left out (None: too many to count); and for each merged
    run on the page the one that does its work."""

    page: Page[RunLine]
    later: int | None
    workers: Mapping[int, int]

    @property
    def lines(self) -> list[RunLine]:
        """Pages go by number, which is cheap; on a page the latest tick comes first, for runs are planned by job."""
        return sorted(self.page.lines, key=lambda line: (line.run.scheduled_for_ms, line.run.run_id), reverse=True)


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
    listed = database.run(lambda store: _listed(store, asked, state, everything))
    page, lines = listed.page, listed.lines
    before = page.before(lambda line: line.run.run_id)
    if as_json:
        runs = [line_json(line, page.now_ms, listed.workers) for line in lines]
        print_json({"runs": runs, "before": before, "planned_later": listed.later})
    elif lines:
        click.echo(table(_HEADS, [_row(line, listed) for line in lines]))
        if before is not None:
            say_more(len(lines), f"--before {before}")
        _say_later(listed.later)
        if any(_is_due(line, page.now_ms) for line in lines):
            click.echo(
                "What is due waits for a worker with a free slot. Why one of them waits: fleetcron runs why RUN."
            )
    elif listed.later != 0:
        click.echo("No run like that has come to its tick yet." if state else "No run has come to its tick yet.")
        _say_later(listed.later)
    elif asked.is_for_all and state is None:
        click.echo("No run yet. A scheduler creates each one shortly before its tick.")
        click.echo("Is one running? fleetcron nodes. When is the next tick? fleetcron jobs.")
    else:
        click.echo("No run is like that. Ticks without a run are in the ledger: fleetcron ledger.")


async def _listed(store: Store, asked: Asked, state: str | None, everything: bool) -> Listed:
    page = await asked.page(
        store, lambda span, limit: store.history.runs(span, state=state, limit=limit, later=everything)
    )
    later = 0 if everything else await store.history.later(asked.span)
    merged = [line.run.run_id for line in page.lines if line.run.state is RunState.MERGED]
    return Listed(page, later, await store.history.covering(merged) if merged else {})


def _say_later(later: int | None) -> None:
    if later is None:
        click.echo("Runs that are planned for later are not shown: --planned")
    elif later:
        click.echo(f"{numbered(later, 'run')} planned for later {'is' if later == 1 else 'are'} not shown: --planned")


def _is_due(line: RunLine, now_ms: int) -> bool:
    return line.run.state is RunState.PLANNED and line.node_id is None and line.run.run_after_ms <= now_ms


def _row(line: RunLine, listed: Listed) -> list[str]:
    run, now_ms, zone = line.run, listed.page.now_ms, listed.page.zone
    lasted = line.lasted_ms(now_ms)
    return [
        str(run.run_id),
        line.job,
        utc(run.scheduled_for_ms),
        local(run.scheduled_for_ms, zone) if zone else "",
        coloured(run.state.value),
        _start(line, now_ms),
        "" if lasted is None else rough_text(lasted) + ("" if run.state.is_final else " so far"),
        str(run.attempt) if run.attempt > 1 else "",
        run.lane if run.lane != "live" else run.kind if run.kind != "tick" else "",
        covers_words(line),
        _about(line, now_ms, listed.workers),
    ]


def _start(line: RunLine, now_ms: int) -> str:
    """How late it started; before that, when it may."""
    run = line.run
    if line.delay_ms is not None:
        return f"+{rough_text(max(0, line.delay_ms))}"
    if run.state.is_final:
        return ""
    due = run.run_after_ms <= now_ms
    when = f"due {distance(run.run_after_ms, now_ms)}" if due else distance(run.run_after_ms, now_ms)
    jitter_ms = run.run_after_ms - run.scheduled_for_ms
    return f"{when} ({jitter_ms / 1000:g} s jitter)" if jitter_ms else when


def _about(line: RunLine, now_ms: int, workers: Mapping[int, int]) -> str:
    """What else there is to say in a list: where it runs, when it is tried again, what it waits for, why it ended."""
    run = line.run
    if line.waiting is not None:
        said = WAITS.get(line.waiting.gate, line.waiting.gate)
    elif run.state is RunState.RUNNING:
        far = "" if line.progress is None else f" {line.progress:.0%}"
        said = f"{line.node_id}{far} {line.note or ''}".rstrip()
    elif run.state is RunState.RETRYING and line.next_ms is not None and line.next_ms > now_ms:
        said = f"next try {distance(line.next_ms, now_ms)}: {run.reason or ''}".rstrip(": ")
    elif run.state is RunState.SUCCEEDED:
        return ""
    elif run.run_id in workers:
        said = f"run {workers[run.run_id]} does its work"
    else:
        said = (run.reason or "").removeprefix(f"{run.state}: ")
    return shortened(printable(said), _WIDTH)


def covers_words(line: RunLine) -> str:
    if line.run.window_ms is None:
        return ""
    start, end = line.run.window_ms
    return f"{numbered(line.run.covers, 'tick')}, {utc(start)} to {utc(end)}"
