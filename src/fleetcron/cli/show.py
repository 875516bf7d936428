"""`fleetcron jobs show` and `history`: one job with every field, and who changed which."""

from itertools import groupby
from typing import TYPE_CHECKING, Final

import click

from fleetcron.cli.asking import Doc
from fleetcron.cli.changes import change_words
from fleetcron.cli.connection import Database, database_options
from fleetcron.cli.moments import distance, ms_of, now_ms, shown
from fleetcron.cli.names import naming, no_such_job, split, split_there, the_job
from fleetcron.cli.tables import coloured, limit_option, printable
from fleetcron.cli.when import json_option, print_json
from fleetcron.cli.yamltext import dumped
from fleetcron.model.job import Change
from fleetcron.store.store import Store
from fleetcron.views.able import fleet
from fleetcron.views.coming import next_ticks, ticks_of
from fleetcron.views.instants import zone_name
from fleetcron.views.jobs import job_json, revision_json

if TYPE_CHECKING:
    from fleetcron.client.blocking import Client

_TICKS: Final = 3
_PAGE: Final = 500


@click.command("show")
@click.argument("name")
@database_options
@json_option
def show(database: Database, name: str, as_json: bool) -> None:
    """Show NAME: its state, its next ticks, and every field with its value, chosen or default."""

    job, now = database.ask(lambda store: _of_store(store, name), lambda client: _of_api(client, name))
    if as_json:
        print_json(job)
    else:
        _show(job, now)


async def _of_store(store: Store, name: str) -> tuple[Doc, int]:
    line = await the_job(store, name)
    coming = (await next_ticks(store, [line])).get(line.job.job_id)
    now = (await store.jobs.find(())).now_ms
    return job_json(line, await ticks_of(store, line, _TICKS), coming, now, await fleet(store)), now


def _of_api(client: "Client", name: str) -> tuple[Doc, int]:
    tenant, own = split_there(name)
    with naming(client, name):
        return client.jobs.get(own, tenant=tenant), now_ms()


def _show(job: Doc, now: int) -> None:
    zone = zone_name(job["definition"])
    state = coloured(job["state"]) + (f", on resume: {job['on_resume']}" if job["state"] == "paused" else "")
    match job["definition"].get("shadow"):
        case True:
            state += ", in shadow: another scheduler runs it"
        case str(instant):
            state += f", {'was ' if ms_of(instant) <= now else ''}in shadow until {instant}"
    said = [("state", state), ("schedule", job["schedule"])]
    if job["problem"]:
        said.append(("problem", click.style(printable(job["problem"]), fg="red")))
    said += [("warning", click.style(printable(warning), fg="yellow")) for warning in job["warnings"]]
    for at, tick in enumerate(job["next"]):
        where = "" if zone == "UTC" else f"   {tick['local']} {zone}"
        due = tick["scheduled_for"]
        said.append(("next" if at == 0 else "", f"{shown(due)}{where}   {distance(ms_of(due), now)}"))
    if (last := job["last"]) is not None:
        said.append(("last", f"{shown(last['scheduled_for'])}   {coloured(last['state'])}"))
    said.append(("revision", f"{job['revision']}, changed {shown(job['updated_at'])}"))
    said.append(("created", f"{shown(job['created_at'])} by {printable(job['created_by'])}, id {job['job_id']}"))
    click.echo(click.style(f"{job['tenant']}/{job['name']}", bold=True))
    for head, text in said:
        click.echo(f"  {head:<10}{text}")
    click.echo("\nEvery field:")
    click.echo("".join(f"  {text}\n" for text in dumped(job["definition"]).splitlines()), nl=False)


@click.command("history")
@click.argument("name")
@limit_option
@database_options
@json_option
def history(database: Database, name: str, limit: int, as_json: bool) -> None:
    """Show who changed NAME, when, and which fields; also of a job that was deleted."""

    async def of_store(store: Store) -> list[Doc]:
        jobs = await store.jobs.named(*split(name))
        if not jobs:
            raise await no_such_job(store, name)
        return [revision_json(each) for job in jobs for each in await store.jobs.revisions(job.job_id, limit)]

    def of_api(client: "Client") -> list[Doc]:
        tenant, own = split_there(name)
        with naming(client, name):
            return [*client.jobs.revisions(own, tenant=tenant, limit=min(limit, _PAGE))["revisions"]]

    found = database.ask(of_store, of_api)
    if as_json:
        print_json({"revisions": found})
        return
    for job_id, group in groupby(found, lambda each: str(each["job_id"])):
        revisions = list(group)
        gone = f", deleted {shown(revisions[0]['at'])}" if revisions[0]["action"] == "delete" else ""
        click.echo(f"{click.style('/'.join(split(name)), bold=True)}   {job_id}{gone}")
        for each in revisions:
            click.echo(f"  {each['revision']:>3}  {shown(each['at'])}  {each['action']} by {printable(each['by'])}")
            for change in each["changes"]:
                click.echo(f"       {change_words(Change(**change))}")
        if len(revisions) == limit:
            click.echo("       older ones with a higher --limit")
