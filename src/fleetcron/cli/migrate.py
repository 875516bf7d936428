"""`fleetcron migrate`: bring the tables to the version of this program, or show how."""

import asyncio
from typing import Any

import click

from fleetcron.cli.connection import Database, database_options, opened, sqlite_path
from fleetcron.cli.moments import as_json as instant_json
from fleetcron.cli.moments import utc
from fleetcron.cli.tables import table
from fleetcron.cli.when import json_option, print_json
from fleetcron.config import Config
from fleetcron.store.migrations import Status, as_sql, known, migrate, status
from fleetcron.store.postgres_url import parse


@click.command("migrate")
@click.option("--sql", is_flag=True, help="Print the statements for an empty database, and do nothing.")
@click.option("--status", "only_status", is_flag=True, help="Show what was applied and what is missing.")
@database_options
@json_option
def command(database: Database, sql: bool, only_status: bool, as_json: bool) -> None:
    """Create the tables, or bring them to the version of this program. Safe to run from everywhere at once."""
    config = database.config()
    engine = "postgres" if config.store.url.startswith("postgres") else "sqlite"
    if sql:
        schema = parse(config.store.url).schema if engine == "postgres" else ""
        click.echo(as_sql(engine, schema), nl=False)
        return
    done: list[str] = []
    if only_status and (path := sqlite_path(config.store.url)) and not path.exists():
        found = Status((), known(engine))
    else:
        found, done = asyncio.run(_run(config, only_status))
    if as_json:
        print_json(_as_json(found, done))
        return
    for name in done:
        click.echo(f"applied {name}")
    if only_status:
        _show(found)
    elif not done:
        click.echo(f"Nothing to do: the tables are at version {found.applied[-1].number}.")


async def _run(config: Config, only_status: bool) -> tuple[Status, list[str]]:
    async with opened(config, "any") as store:
        before = len((await status(store.engine)).applied)
        if not only_status:
            await migrate(store.engine)
        found = await status(store.engine)
        return found, [f"{each.number:04}_{each.name}" for each in found.applied[before:]]


def _show(found: Status) -> None:
    rows = [[f"{each.number:04}_{each.name}", utc(each.at_ms), f"fleetcron {each.program}"] for each in found.applied]
    rows += [[str(each), "not applied yet", ""] for each in found.pending]
    click.echo(table(("MIGRATION", "APPLIED", "BY"), rows))
    if found.pending:
        click.echo("Apply what is missing: fleetcron migrate")


def _as_json(found: Status, done: list[str]) -> dict[str, Any]:
    applied = [
        {"number": each.number, "name": each.name, "at": instant_json(each.at_ms), "program": each.program}
        for each in found.applied
    ]
    pending = [{"number": each.number, "name": each.name} for each in found.pending]
    return {"applied": applied, "pending": pending, "done": done}
