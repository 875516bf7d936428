"""`fleetcron jobs pause`, `resume`, `cancel`, `delete`: what people do to a job between two edits."""

from collections.abc import Awaitable, Callable
from typing import TypeAlias

import click

from fleetcron.cli.connection import Database, database_options
from fleetcron.cli.moments import as_json as instant_json
from fleetcron.cli.moments import utc
from fleetcron.cli.names import by_option, the_job
from fleetcron.cli.tables import coloured
from fleetcron.cli.when import json_option, print_json
from fleetcron.model.rules import MisfirePolicy
from fleetcron.scheduler.desk import Applied, Desk
from fleetcron.store.store import Store

POLICIES = ("skip", "latest", "all")

Steer: TypeAlias = Callable[[Desk, str, str], Awaitable[Applied]]


@click.command("pause")
@click.argument("name")
@click.option("--on-resume", type=click.Choice(POLICIES), help="What becomes of the ticks meanwhile. [default: skip]")
@by_option
@database_options
@json_option
def pause(database: Database, name: str, on_resume: MisfirePolicy | None, by: str, as_json: bool) -> None:
    """Stop planning NAME until it is resumed."""
    applied = _steered(database, name, by, lambda desk, tenant, own: desk.pause(tenant, own, on_resume))
    kept = applied.job.on_resume if applied.job else None
    _say(applied, as_json, f"When it is resumed, the ticks meanwhile: {kept}. Resume it: fleetcron jobs resume {name}")


@click.command("resume")
@click.argument("name")
@click.option("--missed", type=click.Choice(POLICIES), help="What becomes of the paused ticks. [default: as paused]")
@by_option
@database_options
@json_option
def resume(database: Database, name: str, missed: MisfirePolicy | None, by: str, as_json: bool) -> None:
    """Plan NAME again, from now on."""
    applied = _steered(database, name, by, lambda desk, tenant, own: desk.resume(tenant, own, missed))
    _say(applied, as_json, f"What became of the ticks meanwhile: fleetcron ledger --job {name}")


@click.command("cancel")
@click.argument("name")
@by_option
@database_options
@json_option
def cancel(database: Database, name: str, by: str, as_json: bool) -> None:
    """End NAME for good: it keeps its name and its history, and never runs again."""
    _say(_steered(database, name, by, lambda desk, tenant, own: desk.cancel(tenant, own)), as_json)


@click.command("delete")
@click.argument("name")
@by_option
@database_options
@json_option
def delete(database: Database, name: str, by: str, as_json: bool) -> None:
    """Delete NAME. Its runs, ledger and revisions stay, and the name is free again."""
    applied = _steered(database, name, by, lambda desk, tenant, own: desk.delete(tenant, own))
    _say(applied, as_json, f"Its history stays: fleetcron jobs history {name}")


def _steered(database: Database, name: str, by: str, steer: Steer) -> Applied:
    shards = database.config().scheduler.shards

    async def work(store: Store) -> Applied:
        definition = (await the_job(store, name)).job.definition
        return await steer(Desk(store, actor=by, shards=shards), definition.tenant, definition.name)

    return database.run(work)


def _say(applied: Applied, as_json: bool, more: str | None = None) -> None:
    job = applied.job
    if as_json:
        told = {"tenant": applied.tenant, "name": applied.name, "done": applied.done}
        state = {"state": job.state, "revision": job.revision, "on_resume": job.on_resume} if job else {}
        print_json({**told, **state, "next": instant_json(applied.next_due_ms)})
        return
    still = f" (it is {job.state})" if applied.done == "unchanged" and job else ""
    coming = f", next at {utc(applied.next_due_ms)}" if applied.next_due_ms is not None else ""
    click.echo(f"{applied.tenant}/{applied.name}: {coloured(applied.done)}{still}{coming}.")
    if more and applied.done != "unchanged":
        click.echo(more)
