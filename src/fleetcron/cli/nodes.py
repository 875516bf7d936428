"""`fleetcron nodes`: who lives, and who plans which shard."""

from collections.abc import Iterable

import click

from fleetcron.cli.connection import Database, database_options
from fleetcron.cli.moments import distance
from fleetcron.cli.tables import coloured, printable, table
from fleetcron.cli.watching import watchable
from fleetcron.cli.when import json_option, print_json
from fleetcron.model.shard import ANYWHERE
from fleetcron.store.nodes import SeenNode
from fleetcron.store.shards import FleetView
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

    async def work(store: Store) -> tuple[FleetView, int | None]:
        return await store.shards.view(), await store.shards.number()

    view, shards = database.run(work)
    if as_json:
        print_json(fleet_json(view, shards))
        return
    if not view.nodes:
        click.echo("No node is running, so nothing is planned. Start one: fleetcron serve")
        return
    click.echo(table(_HEADS, [_row(seen, view) for seen in view.nodes]))
    if shards is not None and (free := _free(view, shards)):
        click.echo(f"{click.style('Nobody plans', fg='red')} {'; '.join(free)}. Their ticks wait for a node.")


def _row(seen: SeenNode, view: FleetView) -> list[str]:
    node = seen.node
    return [
        printable(node.node_id),
        coloured("alive" if seen.alive else "silent"),
        distance(seen.seen_ms, view.now_ms),
        ",".join(node.roles),
        "" if node.region == ANYWHERE else node.region,
        "; ".join(_shards(node.node_id, view)) or "none",
        f"{-seen.clock_offset_ms / 1000:+.3f}s",
        node.zone_release,
        node.version,
    ]


def _shards(node_id: str, view: FleetView) -> list[str]:
    """`0 to 7`, and `eu 0 to 15` for the shards of a region."""
    held: dict[str, list[int]] = {}
    for lease in view.leases:
        if lease.held.owner == node_id and lease.expires_ms > view.now_ms:
            held.setdefault(lease.held.region, []).append(lease.held.shard)
    return [named(region, shards) for region, shards in sorted(held.items())]


def named(region: str, shards: Iterable[int]) -> str:
    """`0 to 7`, or `eu 0 to 7`."""
    said = ranges(sorted(shards))
    return said if region == ANYWHERE else f"{region} {said}"


def _free(view: FleetView, shards: int) -> list[str]:
    """The shards that have jobs to plan and no owner."""
    taken = {lease.held.key for lease in view.leases if lease.expires_ms > view.now_ms}
    free = []
    for region in sorted({ANYWHERE, *view.job_regions}):
        open_shards = [shard for shard in range(shards) if (region, shard) not in taken]
        if open_shards:
            where = "shard" if len(open_shards) == 1 else "shards"
            free.append(f"{where} {named(region, open_shards)}")
    return free
