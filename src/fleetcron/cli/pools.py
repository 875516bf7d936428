"""`fleetcron pools`: groups of workers, their slots and quotas, and what runs and waits in each."""

from typing import Any

import click

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
from fleetcron.store.limits import PoolLine
from fleetcron.store.looking import Changed
from fleetcron.store.store import Store
from fleetcron.store.written import Written
from fleetcron.views.fleet import pool_json

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
    lines = database.run(lambda store: store.limits.pools())
    if as_json:
        print_json({"pools": [pool_json(line) for line in lines]})
    elif lines:
        heads = ("NAME", "JOBS", "WORKERS", "RUNNING", "WAITING", "PER TENANT", "PER TYPE")
        click.echo(table(heads, [_row(line) for line in lines]))
        alone = [line.pool.name for line in lines if line.usage.queued and not line.workers]
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

    change(database, Pool(name), lambda store: store.limits.put_pool(name, fields, actor=by), as_json, count)


@click.command("reset")
@click.argument("name")
@by_option
@database_options
@json_option
def reset(database: Database, name: str, by: str, as_json: bool) -> None:
    """Take the limits of NAME away: it has what its workers have."""

    async def work(store: Store) -> Written[Changed[Pool]]:
        names = [line.pool.name for line in await store.limits.pools()]
        if name not in names:
            raise unknown("pool", name, names, "`fleetcron pools` lists them all")
        return await store.limits.delete_pool(name, actor=by)

    change(database, Pool(name), work, as_json)


def _quota(text: str) -> tuple[str, int | None]:
    kind, _, number = text.rpartition("=")
    if not kind or not (number == NONE or (number.isascii() and number.isdigit() and len(number) < 10)):
        raise click.UsageError(f"--per-type: '{text}' is not TYPE=N, such as export=2 or export=none.")
    return kind, None if number == NONE else int(number)


def _row(line: PoolLine) -> list[str]:
    pool, usage = line.pool, line.usage
    return [
        pool.name,
        f"{usage.jobs - usage.ended:,}",
        f"{line.workers:,} ({line.worker_slots:,} slots)" if line.workers else "0",
        used(usage.in_flight, pool.slots),
        waiting(usage),
        "" if pool.per_tenant is None else str(pool.per_tenant),
        printable(", ".join(f"{kind} {used(usage.by_type[kind], quota)}" for kind, quota in pool.per_type.items())),
    ]
