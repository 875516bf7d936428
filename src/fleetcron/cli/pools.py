"""`fleetcron pools`: groups of workers, their slots and quotas, and what runs and waits in each."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from fleetcron.cli.asking import Doc
from fleetcron.cli.connection import Database, database_options
from fleetcron.cli.lazy import LazyGroup, Table
from fleetcron.cli.limits import (
    NONE,
    change,
    figure_or_none,
    given,
    unknown,
    used,
    waiting,
)
from fleetcron.cli.names import by_option
from fleetcron.cli.tables import printable, table
from fleetcron.cli.watching import watchable
from fleetcron.cli.when import json_option, print_json
from fleetcron.model.pool import Pool
from fleetcron.store.looking import Changed
from fleetcron.store.store import Store
from fleetcron.store.written import Written
from fleetcron.views.fleet import pool_json

if TYPE_CHECKING:
    from fleetcron.client.blocking import Client

COMMANDS: Table = {
    "set": ("fleetcron.cli.pools:set_limits", "Set the slots and the quotas of a pool."),
    "reset": ("fleetcron.cli.pools:reset", "Take the limits of a pool away."),
}


@click.group("pools", cls=LazyGroup, table=COMMANDS, invoke_without_command=True)
@watchable
@database_options
@json_option
@click.pass_context
def command(context: click.Context, database: Database, as_json: bool) -> None:
    """List pools: everyone that has jobs, runs, workers or limits."""
    if context.invoked_subcommand is not None:
        return
    lines = database.ask(_of_store, lambda client: client.pools.list()["pools"])
    if as_json:
        print_json({"pools": lines})
    elif lines:
        heads = ("NAME", "JOBS", "WORKERS", "RUNNING", "WAITING", "PER TENANT", "PER TYPE")
        click.echo(table(heads, [_row(line) for line in lines]))
        alone = [line["name"] for line in lines if line["queued"] and not line["workers"]]
        if alone:
            click.echo(f"Runs wait, and no worker serves: {', '.join(alone)}.")
    else:
        click.echo("There is no pool yet. A job has one: `default`, unless it says another.")


@click.command("set")
@click.argument("name")
@click.option("--slots", callback=figure_or_none, metavar="N", help="Runs at a time in the whole fleet, or none.")
@click.option("--per-tenant", callback=figure_or_none, metavar="N", help="Of these, of one tenant at most, or none.")
@click.option("--per-type", multiple=True, metavar="TYPE=N", help="Of these, of one type at most: export=2, or =none.")
@by_option
@database_options
@json_option
def set_limits(
    database: Database,
    name: str,
    slots: Any,
    per_tenant: Any,
    per_type: tuple[str, ...],
    by: str,
    as_json: bool,
) -> None:
    """Set the slots and the quotas of NAME, whether it has workers already or not. What is not said stays as it is."""
    quotas = dict(map(_quota, per_type))
    fields = given({"slots": slots, "per_tenant": per_tenant, "per_type": quotas or None})

    async def count(store: Store) -> int:
        return (await store.limits.jobs_by_pool())[name]

    def count_there(client: "Client") -> int:
        return sum(pool["jobs"] for pool in client.pools.list()["pools"] if pool["name"] == name)

    change(
        database,
        Pool(name),
        lambda store: store.limits.put_pool(name, fields, actor=by),
        lambda client: client.pools.set(name, fields),
        as_json,
        count,
        count_there,
    )


@click.command("reset")
@click.argument("name")
@by_option
@database_options
@json_option
def reset(database: Database, name: str, by: str, as_json: bool) -> None:
    """Take the limits of NAME away: it has what its workers have."""

    async def work(store: Store) -> Written[Changed[Pool]]:
        _check(name, await _of_store(store))
        return await store.limits.delete_pool(name, actor=by)

    def ask(client: "Client") -> Doc:
        _check(name, client.pools.list()["pools"])
        return client.pools.reset(name)

    change(database, Pool(name), work, ask, as_json)


async def _of_store(store: Store) -> Sequence[Doc]:
    return [pool_json(line) for line in await store.limits.pools()]


def _check(name: str, pools: Sequence[Doc]) -> None:
    names = [pool["name"] for pool in pools]
    if name not in names:
        raise unknown("pool", name, names, "`fleetcron pools` lists them all")


def _quota(text: str) -> tuple[str, int | None]:
    kind, _, number = text.rpartition("=")
    if not kind or not (number == NONE or (number.isascii() and number.isdigit() and len(number) < 10)):
        raise click.UsageError(f"--per-type: '{text}' is not TYPE=N, such as export=2 or export=none.")
    return kind, None if number == NONE else int(number)


def _row(pool: Doc) -> list[str]:
    quotas = [f"{kind} {used(pool['in_flight_by_type'].get(kind, 0), most)}" for kind, most in pool["per_type"].items()]
    return [
        pool["name"],
        f"{pool['jobs'] - pool['ended']:,}",
        f"{pool['workers']:,} ({pool['worker_slots']:,} slots)" if pool["workers"] else "0",
        used(pool["in_flight"], pool["slots"]),
        waiting(pool),
        "" if pool["per_tenant"] is None else str(pool["per_tenant"]),
        printable(", ".join(quotas)),
    ]
