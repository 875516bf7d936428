"""`fleetcron runs`: the list, and the commands about one run."""

from collections.abc import Mapping
from typing import Any, Final

import click

from fleetcron.cli.connection import Database, database_options
from fleetcron.cli.lazy import LazyGroup, Table
from fleetcron.cli.moments import as_json as instant_json
from fleetcron.cli.moments import distance, local, utc
from fleetcron.cli.past import Asked, Page, asked_options
from fleetcron.cli.tables import coloured, numbered, printable, say_more, table
from fleetcron.cli.when import json_option, print_json
from fleetcron.model.run import RunLine
from fleetcron.model.states import RunState
from fleetcron.store.store import Store
from fleetcron.times.durations import rough_text
from fleetcron.times.zone import Zone

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


@click.group("runs", cls=LazyGroup, table=COMMANDS, invoke_without_command=True)
@asked_options
@click.option("--state", type=click.Choice([state.value for state in RunState]), help="Only runs in this state.")
@database_options
@json_option
@click.pass_context
def command(context: click.Context, database: Database, asked: Asked, state: str | None, as_json: bool) -> None:
    """List runs, the newest first: one for each tick that is to be worked on, planned ahead of its time.

    Ticks that have no run are in the ledger: fleetcron ledger.
    """
    if context.invoked_subcommand is not None:
        return

    async def work(store: Store) -> Page[RunLine]:
        return await asked.page(store, lambda span, limit: store.history.runs(span, state=state, limit=limit))

    page = database.run(work)
    before = page.before(lambda line: line.run.run_id)
    if as_json:
        print_json({"runs": [line_json(line, page.now_ms) for line in page.lines], "before": before})
    elif page.lines:
        click.echo(table(_HEADS, [_row(line, page.now_ms, page.zone) for line in page.lines]))
        if before is not None:
            say_more(len(page.lines), f"--before {before}")
        if any(_is_due(line, page.now_ms) for line in page.lines):
            click.echo(
                "What is due waits for a worker with a free slot. Why one of them waits: fleetcron runs why RUN."
            )
    elif asked.is_for_all and state is None:
        click.echo("No run yet. A scheduler creates each one shortly before its tick.")
        click.echo("Is one running? fleetcron nodes. When is the next tick? fleetcron jobs.")
    else:
        click.echo("No run is like that. Ticks without a run are in the ledger: fleetcron ledger.")


def _is_due(line: RunLine, now_ms: int) -> bool:
    return line.run.state is RunState.PLANNED and line.node_id is None and line.run.run_after_ms <= now_ms


def _row(line: RunLine, now_ms: int, zone: Zone | None) -> list[str]:
    run = line.run
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
        about(line, now_ms),
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


def about(line: RunLine, now_ms: int) -> str:
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
    else:
        said = run.reason or ""
    said = printable(said)
    return said if len(said) <= _WIDTH else f"{said[: _WIDTH - 1]}…"


def covers_words(line: RunLine) -> str:
    if line.run.window_ms is None:
        return ""
    start, end = line.run.window_ms
    return f"{numbered(line.run.covers, 'tick')}, {utc(start)} to {utc(end)}"


def line_json(line: RunLine, now_ms: int) -> dict[str, Any]:
    run, waiting = line.run, line.waiting
    window = run.window_ms
    return {
        "run_id": run.run_id,
        "tenant": line.tenant,
        "name": line.name,
        "job_id": run.job_id,
        "pool": line.pool,
        "scheduled_for": instant_json(run.scheduled_for_ms),
        "run_after": instant_json(run.run_after_ms),
        "state": run.state.value,
        "kind": run.kind,
        "lane": run.lane,
        "covers": run.covers,
        "window": window and {"from": instant_json(window[0]), "to": instant_json(window[1])},
        "created_at": instant_json(run.created_ms),
        "started_at": instant_json(run.started_ms),
        "finished_at": instant_json(run.finished_ms),
        "delay_ms": line.delay_ms,
        "duration_ms": line.lasted_ms(now_ms),
        "attempt": run.attempt,
        "failures": run.failures,
        "losses": run.losses,
        "round": run.round,
        "reason": run.reason,
        "covered_by": run.covered_by,
        "asked_by": run.asked_by,
        "node_id": line.node_id,
        "progress": line.progress,
        "note": line.note,
        "asked_to_stop": line.cancel,
        "next_try": instant_json(line.next_ms),
        "waiting": waiting and {"gate": waiting.gate, "key": waiting.key, "since": instant_json(waiting.since_ms)},
        "revision": run.revision,
        "idempotency_key": run.idempotency_key,
    }
