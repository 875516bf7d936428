"""`fleetcron nodes`: who lives, and who plans which shard."""

from collections.abc import Iterable, Iterator

import click

from fleetcron.cli.asking import Doc
from fleetcron.cli.connection import Database, database_options
from fleetcron.cli.moments import distance, ms_of
from fleetcron.cli.tables import coloured, printable, table
from fleetcron.cli.watching import watchable
from fleetcron.cli.when import json_option, print_json
from fleetcron.model.shard import ANYWHERE
from fleetcron.store.store import Store
from fleetcron.times.words import ranges
from fleetcron.views.fleet import fleet_json

_HEADS = ("NODE", "", "SEEN", "ROLES", "REGION", "SHARDS", "CLOCK", "ZONES", "VERSION")


@click.command("nodes")
@watchable
@database_options
@json_option
def command(database: Database, as_json: bool) -> None:
    """List the nodes: who lives, which shards it plans, how far its clock is off, and its zone data."""

    async def of_store(store: Store) -> Doc:
        return fleet_json(await store.shards.view(), await store.shards.number())

    fleet = database.ask(of_store, lambda client: client.nodes())
    if as_json:
        print_json(fleet)
        return
    if not fleet["nodes"]:
        click.echo("No node is running, so nothing is planned. Start one: fleetcron serve")
        return
    click.echo(table(_HEADS, [_row(node, fleet) for node in fleet["nodes"]]))
    if fleet["shards"] is not None and (free := _free(fleet)):
        click.echo(f"{click.style('Nobody plans', fg='red')} {'; '.join(free)}. Their ticks wait for a node.")


def _row(node: Doc, fleet: Doc) -> list[str]:
    return [
        printable(node["node_id"]),
        coloured("alive" if node["alive"] else "silent"),
        distance(ms_of(node["seen_at"]), ms_of(fleet["now"])),
        ",".join(node["roles"]),
        "" if node["region"] == ANYWHERE else node["region"],
        "; ".join(_shards(node["node_id"], fleet)) or "none",
        f"{node['clock_ahead_ms'] / 1000:+.3f}s",
        node["zone_release"],
        node["version"],
    ]


def _held(fleet: Doc) -> Iterator[Doc]:
    now = ms_of(fleet["now"])
    return (lease for lease in fleet["leases"] if ms_of(lease["expires_at"]) > now)


def _shards(node_id: str, fleet: Doc) -> list[str]:
    """`0 to 7`, and `eu 0 to 15` for the shards of a region."""
    held: dict[str, list[int]] = {}
    for lease in _held(fleet):
        if lease["node_id"] == node_id:
            held.setdefault(lease["region"], []).append(lease["shard"])
    return [named(region, shards) for region, shards in sorted(held.items())]


def named(region: str, shards: Iterable[int]) -> str:
    """`0 to 7`, or `eu 0 to 7`."""
    said = ranges(sorted(shards))
    return said if region == ANYWHERE else f"{region} {said}"


def _free(fleet: Doc) -> list[str]:
    """The shards that have jobs to plan and no owner."""
    taken = {(lease["region"], lease["shard"]) for lease in _held(fleet)}
    free = []
    for region in sorted({ANYWHERE, *fleet["job_regions"]}):
        open_shards = [shard for shard in range(fleet["shards"]) if (region, shard) not in taken]
        if open_shards:
            where = "shard" if len(open_shards) == 1 else "shards"
            free.append(f"{where} {named(region, open_shards)}")
    return free
