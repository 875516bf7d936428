"""`fleetcron tenants`: who owns jobs, what each may have, and what each uses of it."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from fleetcron.cli.asking import Doc
from fleetcron.cli.connection import Database, database_options
from fleetcron.cli.lazy import LazyGroup, Table
from fleetcron.cli.limits import (
    change,
    figure,
    figure_or_none,
    given,
    unknown,
    used,
    waiting,
)
from fleetcron.cli.moments import shown as shown_at
from fleetcron.cli.names import by_option
from fleetcron.cli.tables import limit_option, say_more, table
from fleetcron.cli.watching import watchable
from fleetcron.cli.when import json_option, print_json
from fleetcron.config.kinds import secret_bytes
from fleetcron.errors import ConfigError, Mistake, RefusedError
from fleetcron.executors.signature import key_of, shown
from fleetcron.model.tenant import Tenant
from fleetcron.store.limits import TenantLine
from fleetcron.store.looking import Changed
from fleetcron.store.store import Store
from fleetcron.store.written import Written
from fleetcron.views.fleet import limited_json

if TYPE_CHECKING:
    from fleetcron.client.blocking import Client

COMMANDS: Table = {
    "show": ("fleetcron.cli.tenants:show", "Show what a tenant may have and what it uses."),
    "set": ("fleetcron.cli.tenants:set_limits", "Set the share and the limits of a tenant."),
    "signing-key": (
        "fleetcron.cli.tenants:signing_key",
        "Show what the receiver of a tenant's HTTP calls checks them with.",
    ),
    "reset": ("fleetcron.cli.tenants:reset", "Give a tenant the defaults again."),
}


@click.group("tenants", cls=LazyGroup, table=COMMANDS, invoke_without_command=True)
@watchable
@click.option("--after", metavar="NAME", default="", help="The page after this tenant.")
@limit_option
@database_options
@json_option
@click.pass_context
def command(context: click.Context, database: Database, after: str, limit: int, as_json: bool) -> None:
    """List tenants: everybody who has jobs, runs or limits."""
    if context.invoked_subcommand is not None:
        return
    every = database.ask(_of_store, lambda client: client.tenants.list()["tenants"])
    found = [each for each in every if each["name"] > after]
    lines, last = found[:limit], found[limit - 1]["name"] if len(found) > limit else None
    if as_json:
        print_json({"tenants": lines, "after": last})
    elif lines:
        heads = ("NAME", "WEIGHT", "JOBS", "RUNNING", "WAITING", "RATE")
        click.echo(table(heads, [_row(line) for line in lines]))
        if last is not None:
            say_more(len(lines), f"--after {last}")
    else:
        click.echo("There is no tenant yet. A job has one: `default`, unless it says another.")


@click.command("show")
@click.argument("name")
@database_options
@json_option
def show(database: Database, name: str, as_json: bool) -> None:
    """Show what NAME may have and what it uses."""
    told = database.ask(lambda store: _known(store, name), lambda client: _known_there(client, name))
    if as_json:
        print_json(told)
        return
    plain = Tenant(name).as_document()
    limits = [(field, "none" if told[field] is None else f"{told[field]}") for field in plain]
    set_at = "nobody has set anything" if told["updated_at"] is None else f"set {shown_at(told['updated_at'])}"
    click.echo(f"{name} ({set_at})")
    rows = [[f"  {field}", value, "" if value != str(plain[field] or "none") else "default"] for field, value in limits]
    click.echo(table((), rows))
    ended = "has" if told["ended"] == 1 else "have"
    jobs = used(told["jobs"] - told["ended"], told["max_jobs"])
    click.echo(f"  jobs: {jobs}, and {told['ended']:,} that {ended} ended")
    click.echo(f"  running: {used(told['in_flight'], told['max_in_flight'])}")
    click.echo(f"  waiting: {waiting(told) or 0}")


@click.command("set")
@click.argument("name")
@click.option("--weight", callback=figure, metavar="N", help="Its share when others want the same slots. [1 to 1000]")
@click.option("--max-jobs", callback=figure_or_none, metavar="N", help="Jobs at most that have not ended, or none.")
@click.option("--max-in-flight", callback=figure_or_none, metavar="N", help="Runs at a time, or none.")
@click.option("--rate", metavar="RATE", help="Starts at most: 10/s, 100/m, 1000/h; or none.")
@click.option("--burst", callback=figure, metavar="N", help="How many may start at once before the rate holds.")
@click.option("--max-payload", metavar="BYTES", help="Size of a job's payload at most: bytes, or 64k.")
@by_option
@database_options
@json_option
def set_limits(database: Database, name: str, by: str, as_json: bool, **options: Any) -> None:
    """Set the share and the limits of NAME, whether it has jobs already or not. What is not said stays as it is."""
    fields = given(options)

    async def count(store: Store) -> int:
        return (await store.limits.tenant(name)).usage.jobs

    change(
        database,
        Tenant(name),
        lambda store: store.limits.put_tenant(name, fields, actor=by),
        lambda client: client.tenants.set(name, fields),
        as_json,
        count,
        lambda client: client.tenants.get(name)["jobs"],
    )


@click.command("reset")
@click.argument("name")
@by_option
@database_options
@json_option
def reset(database: Database, name: str, by: str, as_json: bool) -> None:
    """Give NAME the defaults again: an equal share, and no limits. Its jobs stay."""

    async def work(store: Store) -> Written[Changed[Tenant]]:
        await _known(store, name)
        return await store.limits.delete_tenant(name, actor=by)

    def ask(client: "Client") -> Doc:
        _known_there(client, name)
        return client.tenants.reset(name)

    change(database, Tenant(name), work, ask, as_json)


@click.command("signing-key")
@click.argument("name")
@database_options
@json_option
def signing_key(database: Database, name: str, as_json: bool) -> None:
    """Show the key that HTTP calls of NAME are signed with, as libraries for Standard Webhooks want it.

    It follows from the secret of the fleet (executor.signing_secret) and is good for this tenant alone.
    """
    secret = database.config().executor.signing_secret
    if secret is None:
        hint = "give every worker the same: FLEETCRON_EXECUTOR__SIGNING_SECRET=$(openssl rand -base64 32)"
        raise ConfigError([Mistake("executor.signing_secret", "is not set, so HTTP calls are not signed", hint)])
    key = shown(key_of(secret_bytes(secret), name))
    if as_json:
        print_json({"tenant": name, "key": key})
    else:
        click.echo(key)


async def _of_store(store: Store) -> Sequence[Doc]:
    return [_told(line) for line in await store.limits.tenants()]


def _told(line: TenantLine) -> Doc:
    return limited_json(line.tenant, line.usage, line.updated_ms)


async def _known(store: Store, name: str) -> Doc:
    line = _told(await store.limits.tenant(name))
    if _is_nobody(line):
        raise _unknown(name, await _of_store(store))
    return line


def _known_there(client: "Client", name: str) -> Doc:
    line = client.tenants.get(name)
    if _is_nobody(line):
        raise _unknown(name, client.tenants.list()["tenants"])
    return line


def _is_nobody(line: Doc) -> bool:
    return line["updated_at"] is None and not line["jobs"] and not line["queued"] and not line["in_flight"]


def _unknown(name: str, known: Sequence[Doc]) -> RefusedError:
    return unknown("tenant", name, [each["name"] for each in known], "`fleetcron tenants` lists them all")


def _row(line: Doc) -> list[str]:
    rate = line["rate"] or ""
    return [
        line["name"],
        str(line["weight"]),
        used(line["jobs"] - line["ended"], line["max_jobs"]),
        used(line["in_flight"], line["max_in_flight"]),
        waiting(line),
        f"{rate}, burst {line['burst']}" if rate and line["burst"] > 1 else rate,
    ]
