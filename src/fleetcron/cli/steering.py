"""`fleetcron jobs pause`, `resume`, `cancel`, `delete`: what people do to a job between two edits."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import click

from fleetcron.cli.asking import Doc
from fleetcron.cli.connection import Database, database_options
from fleetcron.cli.moments import ms_of, now_ms, utc
from fleetcron.cli.names import by_option, naming, split_there, the_job
from fleetcron.cli.tables import coloured
from fleetcron.cli.when import json_option, print_json
from fleetcron.model.rules import MisfirePolicy
from fleetcron.scheduler.desk import Applied, Desk
from fleetcron.store.store import Store
from fleetcron.views.jobs import COUNTED, steered_json

if TYPE_CHECKING:
    from fleetcron.client.blocking import Client

POLICIES = ("skip", "latest", "all")

Steer: TypeAlias = Callable[[Desk, str, str], Awaitable[Applied]]
Ask: TypeAlias = "Callable[[Client, str | None, str], Doc]"  # the same over an API


@click.command("pause")
@click.argument("name")
@click.option("--on-resume", type=click.Choice(POLICIES), help="What becomes of the ticks meanwhile. [default: skip]")
@by_option
@database_options
@json_option
def pause(database: Database, name: str, on_resume: MisfirePolicy | None, by: str, as_json: bool) -> None:
    """Stop planning NAME until it is resumed."""
    done = _steered(
        database,
        name,
        by,
        lambda desk, tenant, own: desk.pause(tenant, own, on_resume),
        lambda client, tenant, own: client.jobs.pause(own, on_resume=on_resume, tenant=tenant),
    )
    kept = done.told["on_resume"]
    _say(done, as_json, f"When it is resumed, the ticks meanwhile: {kept}. Resume it: fleetcron jobs resume {name}")


@click.command("resume")
@click.argument("name")
@click.option("--missed", type=click.Choice(POLICIES), help="What becomes of the paused ticks. [default: as paused]")
@by_option
@database_options
@json_option
def resume(database: Database, name: str, missed: MisfirePolicy | None, by: str, as_json: bool) -> None:
    """Plan NAME again, from now on."""
    done = _steered(
        database,
        name,
        by,
        lambda desk, tenant, own: desk.resume(tenant, own, missed),
        lambda client, tenant, own: client.jobs.resume(own, missed=missed, tenant=tenant),
    )
    _say(done, as_json, f"What became of the ticks meanwhile: fleetcron ledger --job {name}")


@click.command("cancel")
@click.argument("name")
@by_option
@database_options
@json_option
def cancel(database: Database, name: str, by: str, as_json: bool) -> None:
    """End NAME for good: it keeps its name and its history, and never runs again."""
    done = _steered(
        database,
        name,
        by,
        lambda desk, tenant, own: desk.cancel(tenant, own),
        lambda client, tenant, own: client.jobs.cancel(own, tenant=tenant),
        ends=True,
    )
    _end(done, as_json)


@click.command("delete")
@click.argument("name")
@by_option
@database_options
@json_option
def delete(database: Database, name: str, by: str, as_json: bool) -> None:
    """Delete NAME. Its runs, ledger and revisions stay, and the name is free again."""
    more = f"Its history stays: fleetcron jobs history {name}"
    done = _steered(
        database,
        name,
        by,
        lambda desk, tenant, own: desk.delete(tenant, own),
        lambda client, tenant, own: client.jobs.delete(own, tenant=tenant),
        ends=True,
    )
    _end(done, as_json, more)


@dataclass(frozen=True, slots=True)
class Done:
    """What became of it, and when."""

    told: Doc
    now_ms: int


def _end(done: Done, as_json: bool, more: str | None = None) -> None:
    """Cancel or delete. What was planned for later is withdrawn with it; what is due or was asked for is left."""
    left = done.told["not_started"]
    _say(done, as_json, more)
    if left and not as_json:
        many = f"{left:,} or more" if left == COUNTED else f"{left:,}"
        runs, have, each = ("run", "has", "it is") if left == 1 else ("runs", "have", "each is")
        said = f"{many} {runs} that {have} not started will not start either"
        click.echo(f"{said}: {each} closed as cancelled when its turn comes, as is what waits for another try.")


def _steered(database: Database, name: str, by: str, steer: Steer, ask: Ask, *, ends: bool = False) -> Done:
    async def of_store(store: Store) -> Done:
        job = (await the_job(store, name)).job
        tenant, own = job.definition.tenant, job.definition.name
        applied = await steer(Desk(store, actor=by, shards=database.config().scheduler.shards), tenant, own)
        told = steered_json(applied)
        if ends:
            left = await store.history.open(job.job_id, limit=COUNTED)
            told["not_started"] = sum(not run.started for run in left)
        return Done(told, (await store.jobs.find(())).now_ms)

    def of_api(client: "Client") -> Done:
        tenant, own = split_there(name)
        with naming(client, name):
            return Done(ask(client, tenant, own), now_ms())

    return database.ask(of_store, of_api)


def _say(done: Done, as_json: bool, more: str | None = None) -> None:
    told = done.told
    if as_json:
        print_json(told)
        return
    still = f" (it is {told['state']})" if told["done"] == "unchanged" else ""
    click.echo(f"{told['tenant']}/{told['name']}: {coloured(told['done'])}{still}{_coming(done)}.")
    if more and told["done"] != "unchanged":
        click.echo(more)


def _coming(done: Done) -> str:
    """A scheduler plans a tick ahead of its time; one that is past has none."""
    if done.told["next"] is None:
        return ""
    next_ms = ms_of(done.told["next"])
    if next_ms > done.now_ms:
        return f", next at {utc(next_ms)}"
    return f"; nobody has planned its tick of {utc(next_ms)} yet: is a scheduler running? fleetcron nodes"
