"""`fleetcron jobs show` and `history`: one job with every field, and who changed which."""

import click

from fleetcron.cli.changes import change_words
from fleetcron.cli.connection import Database, database_options
from fleetcron.cli.moments import distance, local, utc, zone_of
from fleetcron.cli.names import no_such_job, split, the_job
from fleetcron.cli.schedules import short
from fleetcron.cli.tables import coloured, limit_option, printable
from fleetcron.cli.when import json_option, print_json
from fleetcron.cli.yamltext import dumped
from fleetcron.model.job import Job, Revision, changes
from fleetcron.model.writing import shadow_document
from fleetcron.store.jobs import JobLine
from fleetcron.store.store import Store
from fleetcron.views.coming import ticks_of
from fleetcron.views.jobs import job_json, revision_json

_TICKS = 3


@click.command("show")
@click.argument("name")
@database_options
@json_option
def show(database: Database, name: str, as_json: bool) -> None:
    """Show NAME: its state, its next ticks, and every field with its value, chosen or default."""

    async def work(store: Store) -> tuple[JobLine, list[int], int]:
        line = await the_job(store, name)
        return line, await ticks_of(store, line, _TICKS), (await store.jobs.find(())).now_ms

    line, ticks, now_ms = database.run(work)
    if as_json:
        print_json(job_json(line, ticks))
    else:
        _show(line, ticks, now_ms)


def _show(line: JobLine, ticks: list[int], now_ms: int) -> None:
    job, zone = line.job, zone_of(line.job.definition)
    state = coloured(job.state) + (f", on resume: {job.on_resume}" if job.state == "paused" else "")
    match shadow_document(job.definition.shadow_ms):
        case True:
            state += ", in shadow: another scheduler runs it"
        case str(instant):
            state += f", in shadow until {instant}"
    said = [("state", state), ("schedule", short(job.definition))]
    if job.problem:
        said.append(("problem", click.style(printable(job.problem), fg="red")))
    for at, tick in enumerate(ticks):
        where = "" if zone.name == "UTC" else f"   {local(tick, zone)} {zone.name}"
        said.append(("next" if at == 0 else "", f"{utc(tick)}{where}   {distance(tick, now_ms)}"))
    if line.last_state is not None and line.last_scheduled_ms is not None:
        said.append(("last", f"{utc(line.last_scheduled_ms)}   {coloured(line.last_state)}"))
    said.append(("revision", f"{job.revision}, changed {utc(job.updated_ms)}"))
    said.append(("created", f"{utc(job.created_ms)} by {printable(job.created_by)}, id {job.job_id}"))
    click.echo(click.style(job.definition.seed, bold=True))
    for head, text in said:
        click.echo(f"  {head:<10}{text}")
    click.echo("\nEvery field:")
    click.echo("".join(f"  {text}\n" for text in dumped(job.definition.as_document()).splitlines()), nl=False)


@click.command("history")
@click.argument("name")
@limit_option
@database_options
@json_option
def history(database: Database, name: str, limit: int, as_json: bool) -> None:
    """Show who changed NAME, when, and which fields; also of a job that was deleted."""

    async def work(store: Store) -> list[tuple[Job, list[Revision]]]:
        jobs = await store.jobs.named(*split(name))
        if not jobs:
            raise await no_such_job(store, name)
        return [(job, list(await store.jobs.revisions(job.job_id, limit))) for job in jobs]

    found = database.run(work)
    if as_json:
        print_json({"revisions": [revision_json(each) for _, revisions in found for each in revisions]})
        return
    for job, revisions in found:
        gone = f", deleted {utc(job.deleted_ms)}" if job.deleted_ms is not None else ""
        click.echo(f"{click.style(job.definition.seed, bold=True)}   {job.job_id}{gone}")
        for each in revisions:
            click.echo(f"  {each.revision:>3}  {utc(each.at_ms)}  {each.action} by {printable(each.actor)}")
            for change in changes(each.before, each.after) if each.before is not None else ():
                click.echo(f"       {change_words(change)}")
        if len(revisions) == limit:
            click.echo("       older ones with a higher --limit")
