"""`fleetcron jobs`: the list, and the commands about one job."""

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from fleetcron.cli.asking import Doc, paged
from fleetcron.cli.connection import Database, database_options
from fleetcron.cli.lazy import LazyGroup, Table
from fleetcron.cli.moments import distance, ms_of, now_ms
from fleetcron.cli.names import split
from fleetcron.cli.schedules import in_a_table
from fleetcron.cli.serving import lines, served_there
from fleetcron.cli.tables import coloured, limit_option, say_more, table
from fleetcron.cli.watching import watchable
from fleetcron.cli.when import json_option, print_json
from fleetcron.model.states import JOB_STATES
from fleetcron.store.job_pages import JobFilter
from fleetcron.store.store import Store
from fleetcron.views.able import living
from fleetcron.views.coming import next_ticks
from fleetcron.views.cursors import cursor_of
from fleetcron.views.jobs import line_json

if TYPE_CHECKING:
    from fleetcron.client.blocking import Client

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
    listed = database.ask(lambda store: _of_store(store, wanted, limit), lambda client: _of_api(client, wanted, limit))
    jobs = listed.jobs
    last = _full(jobs[-1]) if listed.more else None
    if as_json:
        print_json({"jobs": jobs, "after": last})
    elif jobs:
        click.echo(table(["NAME", "SCHEDULE", "STATE", "NEXT", "LAST"], [_row(each, listed.now_ms) for each in jobs]))
        if last is not None:
            say_more(len(jobs), f"--after {last}")
        pools = Counter(each["pool"] for each in jobs if each["state"] in ("active", "paused"))
        for warning in lines(pools, listed.served) if listed.served else ():
            click.echo(f"{click.style('warning', fg='yellow')} {warning}")
    elif wanted == JobFilter():
        click.echo("There is no job yet. Write some into a file and run: fleetcron apply -f jobs.yaml")
    else:
        click.echo("No job is like that. Without these options, fleetcron jobs lists them all.")


@dataclass(frozen=True, slots=True)
class Listed:
    """A page, and the pools that workers serve."""

    jobs: Sequence[Doc]
    more: bool
    now_ms: int
    served: Collection[str]


async def _of_store(store: Store, wanted: JobFilter, limit: int) -> Listed:
    found = await store.jobs.list(wanted, limit + 1)
    now_ms = (await store.jobs.find(())).now_ms
    coming = await next_ticks(store, found[:limit])
    crew = await living(store)
    jobs = [line_json(line, coming.get(line.job.job_id), now_ms, crew) for line in found[:limit]]
    return Listed(jobs, len(found) > limit, now_ms, crew.pools)


def _of_api(client: "Client", wanted: JobFilter, limit: int) -> Listed:
    cursor = None if wanted.after is None else cursor_of(*wanted.after)
    query = {"tenant": wanted.tenant, "state": wanted.state, "type": wanted.type, "pool": wanted.pool}
    jobs, more, _ = paged(client.jobs.page, "jobs", limit, cursor, text=wanted.text, **query)
    return Listed(jobs, more, now_ms(), served_there(client))


def _full(job: Doc) -> str:
    return f"{job['tenant']}/{job['name']}"


def _row(job: Doc, now: int) -> list[str]:
    return [_full(job), in_a_table(job["schedule"]), _state(job, now), _next(job, now), _last(job["last"], now)]


def _state(job: Doc, now: int) -> str:
    until = job["shadow"]
    is_in_shadow = until is True or (isinstance(until, str) and ms_of(until) > now)
    shadow = click.style(" (shadow)", fg="magenta") if is_in_shadow else ""
    return coloured(job["state"]) + shadow + (click.style(" (stuck)", fg="red") if job["health"] == "stuck" else "")


def _next(job: Doc, now: int) -> str:
    if job["next"] is None:
        return "-"
    next_ms = ms_of(job["next"])
    when = f"{job['next_local']} ({distance(next_ms, now)})"
    return when if next_ms > now else f"{when}, not planned yet"


def _last(last: Doc | None, now: int) -> str:
    return "-" if last is None else f"{coloured(last['state'])} {distance(ms_of(last['scheduled_for']), now)}"
