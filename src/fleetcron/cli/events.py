"""`fleetcron events`: the log of what left the normal path."""

import json
from collections.abc import Mapping
from typing import Any

import click

from fleetcron.cli.asking import Doc
from fleetcron.cli.connection import Database, database_options
from fleetcron.cli.moments import shown, utc
from fleetcron.cli.nodes import named
from fleetcron.cli.past import Asked
from fleetcron.cli.tables import limit_option, printable, say_more, shortened, table
from fleetcron.cli.watching import watchable
from fleetcron.cli.when import json_option, print_json
from fleetcron.events import KINDS
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

    page = database.ask(
        lambda store: asked.of_store(
            store,
            lambda span, limit: store.history.events(span, kind=kind, limit=limit),
            lambda line, _: event_json(line),
        ),
        lambda client: asked.of_api(client, client.events.page, "events", kind=kind),
    )
    more = page.before("event_id")
    if as_json:
        print_json({"events": page.lines, "before": more})
    elif page.lines:
        click.echo(table(("AT", "KIND", "JOB", "COUNT", "BY", "DETAIL"), [_row(line) for line in page.lines]))
        if more is not None:
            say_more(len(page.lines), f"--before {more}")
    else:
        click.echo("No event is like that. Without options, fleetcron events lists them all.")


def _row(line: Doc) -> list[str]:
    name = line["name"]
    detail = {key: value for key, value in line["detail"].items() if not (name and key in _NAMED)}
    return [
        shown(line["at"]),
        line["kind"],
        f"{line['tenant']}/{name}" if name else "",
        str(line["count"]) if line["count"] != 1 else "",
        printable(line["by"] or line["node_id"] or ""),
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
