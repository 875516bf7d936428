"""`fleetcron events`: the log of what left the normal path."""

import json
from collections.abc import Mapping
from typing import Any

import click

from fleetcron.cli.connection import Database, database_options
from fleetcron.cli.moments import utc
from fleetcron.cli.nodes import named
from fleetcron.cli.past import Asked, Page
from fleetcron.cli.tables import limit_option, printable, say_more, shortened, table
from fleetcron.cli.watching import watchable
from fleetcron.cli.when import json_option, print_json
from fleetcron.events import KINDS
from fleetcron.store.history import EventLine
from fleetcron.store.store import Store
from fleetcron.views.past import event_json

_LONGEST = 80
_NAMED = ("tenant", "name")  # shown as the job
_WHOLE = ("before", "after")  # documents, which come last


@click.command("events")
@watchable
@click.option("--kind", metavar="KIND", help="Only events of this kind, such as job_paused.")
@click.option("--job", metavar="NAME", help="Only this job: NAME or TENANT/NAME.")
@click.option("--before", metavar="NUMBER", type=int, help="The page after the one that ended with this number.")
@limit_option
@database_options
@json_option
def command(
    database: Database, kind: str | None, job: str | None, before: int | None, limit: int, as_json: bool
) -> None:
    """List what left the normal path, the newest first: changes of jobs, nodes and shards, conflicts, refusals."""
    if kind is not None and kind not in KINDS:
        raise click.UsageError(f"There is no kind of event '{kind}'. There are: {', '.join(KINDS)}.")
    asked = Asked(job, None, None, None, before, limit)

    async def work(store: Store) -> Page[EventLine]:
        return await asked.page(store, lambda span, limit: store.history.events(span, kind=kind, limit=limit))

    page = database.run(work)
    more = page.before(lambda line: line.event_id)
    if as_json:
        print_json({"events": [event_json(line) for line in page.lines], "before": more})
    elif page.lines:
        click.echo(table(("AT", "KIND", "JOB", "COUNT", "BY", "DETAIL"), [_row(line) for line in page.lines]))
        if more is not None:
            say_more(len(page.lines), f"--before {more}")
    else:
        click.echo("No event is like that. Without options, fleetcron events lists them all.")


def _row(line: EventLine) -> list[str]:
    detail = {key: value for key, value in line.detail.items() if not (line.name and key in _NAMED)}
    return [
        utc(line.at_ms),
        line.kind,
        f"{line.tenant}/{line.name}" if line.name else "",
        str(line.count) if line.count != 1 else "",
        printable(line.actor or line.node_id or ""),
        _words(detail),
    ]


def _words(detail: Mapping[str, Any]) -> str:
    """`revision 2, zone Europe/Berlin`."""
    short_first = sorted(detail.items(), key=lambda item: item[0] in _WHOLE)
    said = ", ".join(f"{key.removesuffix('_ms')} {_value(key, value)}" for key, value in short_first)
    return printable(shortened(said, _LONGEST))


def _value(key: str, value: Any) -> str:
    if key == "shards" and isinstance(value, list):  # of region, shard and term
        regions = sorted({region for region, *_ in value})
        return "; ".join(named(region, [shard for one, shard, _ in value if one == region]) for region in regions)
    if key.endswith("_ms") and isinstance(value, int):
        return utc(value)
    return value if isinstance(value, str) else json.dumps(value)
