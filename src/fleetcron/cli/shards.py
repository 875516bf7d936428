"""`fleetcron shards`: into how many slices the jobs are divided, and how to change that."""

import click

from fleetcron.cli.connection import Database, database_options
from fleetcron.cli.watching import watchable
from fleetcron.cli.when import json_option, print_json
from fleetcron.errors import RefusedError, StoreUnavailable
from fleetcron.store.shards import set_shards
from fleetcron.store.store import Store
from fleetcron.store.written import Ok, Refused, Unknown


@click.command("shards")
@watchable
@click.option("--set", "number", type=click.IntRange(1, 1024), help="Divide all jobs anew. Stop every scheduler first.")
@database_options
@json_option
def command(database: Database, number: int | None, as_json: bool) -> None:
    """Show how many shards the fleet has; the first node or job fixes it. Who plans which: fleetcron nodes."""
    if number is not None and click.get_current_context().params.get("watch") is not None:
        raise click.UsageError("--set and --watch exclude each other: it would be set again and again.")
    found = (
        database.ask(lambda store: store.shards.number(), lambda client: client.shards()["shards"])
        if number is None
        else database.run(lambda store: _number(store, number))  # while no scheduler works, perhaps no API does either
    )
    if as_json:
        print_json({"shards": found})
    elif found is None:
        click.echo("Nobody has fixed the number yet; the first node or job does.")
    else:
        click.echo(f"The fleet has {found} shards.")


async def _number(store: Store, number: int | None) -> int | None:
    if number is not None:
        match await set_shards(store.engine, number):
            case Refused(reason):
                raise RefusedError(reason)
            case Unknown(why):
                raise StoreUnavailable(f"it is not known whether the number was changed ({why})", hint="run it again")
            case Ok():
                pass
    return await store.shards.number()
