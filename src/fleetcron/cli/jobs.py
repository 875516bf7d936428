"""`fleetcron jobs`: the list, and the commands about one job."""

from collections import Counter
from dataclasses import dataclass

import click

from fleetcron.cli.connection import Database, database_options
from fleetcron.cli.lazy import LazyGroup, Table
from fleetcron.cli.moments import distance, local, zone_of
from fleetcron.cli.names import split
from fleetcron.cli.schedules import in_a_table
from fleetcron.cli.serving import unserved
from fleetcron.cli.tables import coloured, limit_option, say_more, table
from fleetcron.cli.watching import watchable
from fleetcron.cli.when import json_option, print_json
from fleetcron.model.states import JOB_STATES
from fleetcron.store.job_pages import JobFilter
from fleetcron.store.jobs import JobLine
from fleetcron.store.store import Store
from fleetcron.views.coming import next_ticks
from fleetcron.views.jobs import line_json
from fleetcron.views.shadow import is_in_shadow

COMMANDS: Table = {
    "show": ("fleetcron.cli.show:show", "Show a job with every field, its state and its next ticks."),
    "history": ("fleetcron.cli.show:history", "Show who changed a job, when, and which fields."),
    "pause": ("fleetcron.cli.steering:pause", "Stop planning a job until it is resumed."),
    "resume": ("fleetcron.cli.steering:resume", "Plan a paused job again."),
    "cancel": ("fleetcron.cli.steering:cancel", "End a job for good."),
    "delete": ("fleetcron.cli.steering:delete", "Delete a job; its history stays."),
    "trigger": ("fleetcron.cli.trigger:trigger", "Run a job now, whatever its schedule says."),
    "backfill": ("fleetcron.cli.backfill:backfill", "Create the runs of past ticks that have none."),
    "export": ("fleetcron.cli.export:export", "Print jobs as YAML that apply accepts."),
}


@click.group("jobs", cls=LazyGroup, table=COMMANDS, invoke_without_command=True)
@watchable
@click.option("--tenant", metavar="NAME", help="Only the jobs of a tenant.")
@click.option("--state", type=click.Choice(JOB_STATES), help="Only jobs in this state.")
@click.option("--type", "kind", metavar="TYPE", help="Only jobs of this type.")
@click.option("--pool", metavar="NAME", help="Only jobs of this pool.")
@click.option("--text", metavar="TEXT", help="Only jobs whose name has this in it.")
@click.option("--after", metavar="TENANT/NAME", help="The page after this job.")
@limit_option
@database_options
@json_option
@click.pass_context
def command(
    context: click.Context,
    database: Database,
    tenant: str | None,
    state: str | None,
    kind: str | None,
    pool: str | None,
    text: str | None,
    after: str | None,
    limit: int,
    as_json: bool,
) -> None:
    """List jobs: when each is next, and what became of its last tick.

    A NAME is `nightly-report`, or `acme/nightly-report` for another tenant than `default`.
    """
    if context.invoked_subcommand is not None:
        return
    page = None if after is None else split(after)
    wanted = JobFilter(tenant, None, state, kind, pool, text.lower() if text else None, page)
    listed = database.run(lambda store: _listed(store, wanted, limit))
    lines, coming, more = listed.lines, listed.coming, listed.more
    last = lines[-1].job.definition.seed if more else None
    if as_json:
        print_json({"jobs": [line_json(line, coming.get(line.job.job_id)) for line in lines], "after": last})
    elif lines:
        click.echo(
            table(["NAME", "SCHEDULE", "STATE", "NEXT", "LAST"], [_row(each, coming, listed.now_ms) for each in lines])
        )
        if last is not None:
            say_more(len(lines), f"--after {last}")
        for warning in listed.unserved:
            click.echo(f"{click.style('warning', fg='yellow')} {warning}")
    elif wanted == JobFilter():
        click.echo("There is no job yet. Write some into a file and run: fleetcron apply -f jobs.yaml")
    else:
        click.echo("No job is like that. Without these options, fleetcron jobs lists them all.")


@dataclass(frozen=True, slots=True)
class Listed:
    """A page, and its pools that no worker serves."""

    lines: list[JobLine]
    more: bool
    coming: dict[str, int]
    now_ms: int
    unserved: list[str]


async def _listed(store: Store, wanted: JobFilter, limit: int) -> Listed:
    found = await store.jobs.list(wanted, limit + 1)
    lines = found[:limit]
    pools = Counter(line.job.definition.pool for line in lines if line.job.state in ("active", "paused"))
    now_ms = (await store.jobs.find(())).now_ms
    return Listed(lines, len(found) > limit, await next_ticks(store, lines), now_ms, await unserved(store, pools))


def _row(line: JobLine, coming: dict[str, int], now_ms: int) -> list[str]:
    job = line.job
    next_ms = coming.get(job.job_id)
    return [
        job.definition.seed,
        in_a_table(job.definition),
        _state(line, now_ms),
        _next(line, next_ms, now_ms),
        _last(line, now_ms),
    ]


def _state(line: JobLine, now_ms: int) -> str:
    shadow = click.style(" (shadow)", fg="magenta") if is_in_shadow(line, now_ms) else ""
    return coloured(line.job.state) + shadow + (click.style(" (stuck)", fg="red") if line.job.problem else "")


def _next(line: JobLine, next_ms: int | None, now_ms: int) -> str:
    if next_ms is None:
        return "-"
    when = f"{local(next_ms, zone_of(line.job.definition))} ({distance(next_ms, now_ms)})"
    return when if next_ms > now_ms else f"{when}, not planned yet"


def _last(line: JobLine, now_ms: int) -> str:
    if line.last_state is None or line.last_scheduled_ms is None:
        return "-"
    return f"{coloured(line.last_state)} {distance(line.last_scheduled_ms, now_ms)}"
