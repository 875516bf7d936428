"""`fleetcron runs`: the rows of ticks that are to be worked on."""

from typing import Any

import click

from fleetcron.cli.connection import Database, database_options
from fleetcron.cli.moments import as_json as instant_json
from fleetcron.cli.moments import distance, local, utc
from fleetcron.cli.past import Asked, Page, asked_options
from fleetcron.cli.tables import coloured, numbered, say_more, table
from fleetcron.cli.when import json_option, print_json
from fleetcron.model.states import RunState
from fleetcron.store.history import RunLine
from fleetcron.store.store import Store
from fleetcron.times.zone import Zone

_HEADS = ("RUN", "JOB", "SCHEDULED FOR", "LOCAL", "STATE", "STARTS", "LANE", "COVERS")


@click.command("runs")
@asked_options
@click.option("--state", type=click.Choice([state.value for state in RunState]), help="Only runs in this state.")
@database_options
@json_option
def command(database: Database, asked: Asked, state: str | None, as_json: bool) -> None:
    """List runs, the newest first: one for each tick that is to be worked on, planned ahead of its time.

    Ticks that have no run are in the ledger: fleetcron ledger.
    """

    async def work(store: Store) -> Page[RunLine]:
        return await asked.page(store, lambda span, limit: store.history.runs(span, state=state, limit=limit))

    page = database.run(work)
    before = page.before(lambda line: line.run.run_id)
    if as_json:
        print_json({"runs": [_as_json(line) for line in page.lines], "before": before})
    elif page.lines:
        click.echo(table(_HEADS, [_row(line, page.now_ms, page.zone) for line in page.lines]))
        if before is not None:
            say_more(len(page.lines), f"--before {before}")
        if any(_is_due(line, page.now_ms) for line in page.lines):
            click.echo("What is due waits for a worker. This release plans and stores; workers come with the next one.")
    elif asked.is_for_all and state is None:
        click.echo("No run yet. A scheduler creates each one shortly before its tick.")
        click.echo("Is one running? fleetcron nodes. When is the next tick? fleetcron jobs.")
    else:
        click.echo("No run is like that. Ticks without a run are in the ledger: fleetcron ledger.")


def _is_due(line: RunLine, now_ms: int) -> bool:
    return line.run.state is RunState.PLANNED and line.run.run_after_ms <= now_ms


def _row(line: RunLine, now_ms: int, zone: Zone | None) -> list[str]:
    run = line.run
    starts = distance(run.run_after_ms, now_ms) if run.run_after_ms > now_ms else ""
    if _is_due(line, now_ms):
        starts = f"due {distance(run.run_after_ms, now_ms)}"
    if run.run_after_ms != run.scheduled_for_ms:
        starts += f" ({(run.run_after_ms - run.scheduled_for_ms) / 1000:g} s jitter)"
    return [
        str(run.run_id),
        f"{line.tenant}/{line.name}",
        utc(run.scheduled_for_ms),
        local(run.scheduled_for_ms, zone) if zone else "",
        coloured(run.state.value),
        starts.strip(),
        run.lane if run.lane != "live" or run.kind != "tick" else "",
        _covers(line),
    ]


def _covers(line: RunLine) -> str:
    if line.run.window_ms is None:
        return ""
    start, end = line.run.window_ms
    return f"{numbered(line.run.covers, 'tick')}, {utc(start)} to {utc(end)}"


def _as_json(line: RunLine) -> dict[str, Any]:
    run = line.run
    window = run.window_ms
    return {
        "run_id": run.run_id,
        "tenant": line.tenant,
        "name": line.name,
        "job_id": run.job_id,
        "scheduled_for": instant_json(run.scheduled_for_ms),
        "run_after": instant_json(run.run_after_ms),
        "state": run.state.value,
        "kind": run.kind,
        "lane": run.lane,
        "covers": run.covers,
        "window": window and {"from": instant_json(window[0]), "to": instant_json(window[1])},
        "created_at": instant_json(run.created_ms),
        "finished_at": instant_json(run.finished_ms),
        "revision": run.revision,
        "idempotency_key": run.idempotency_key,
    }
