"""`fleetcron ledger`: the ticks that did not run, and why."""

from typing import Final

import click

from fleetcron.cli.asking import Doc
from fleetcron.cli.connection import Database, database_options
from fleetcron.cli.moments import local, ms_of, shown
from fleetcron.cli.past import Asked, asked_options
from fleetcron.cli.tables import coloured, say_more, table
from fleetcron.cli.watching import watchable
from fleetcron.cli.when import json_option, print_json
from fleetcron.times.zone import Zone
from fleetcron.views.past import ledger_json

ANSWERS: Final = ("skipped", "missed", "cancelled")
_RUNS = "runs that were skipped or cancelled are in: fleetcron runs --state skipped"
_HEADS = ("TICK", "TO", "LOCAL", "TICKS", "JOB", "ANSWER", "REASON")


@click.command("ledger")
@watchable
@asked_options
@click.option("--answer", "--state", "answer", type=click.Choice(ANSWERS), help="Only these answers.")
@database_options
@json_option
def command(database: Database, asked: Asked, answer: str | None, as_json: bool) -> None:
    """List the ticks that did not run, the newest entries first, each with its reason.

    A stretch of ticks with one reason is one line.
    """

    page = database.ask(
        lambda store: asked.of_store(
            store,
            lambda span, limit: store.history.ledger(span, answer=answer, limit=limit),
            lambda line, _: ledger_json(line),
        ),
        lambda client: asked.of_api(client, client.ledger.page, "ledger", answer=answer),
    )
    before = page.before("entry_id")
    if as_json:
        print_json({"ledger": page.lines, "before": before})
    elif page.lines:
        click.echo(table(_HEADS, [_row(line, page.zone) for line in page.lines]))
        if before is not None:
            say_more(len(page.lines), f"--before {before}")
    elif asked.is_for_all and answer is None:
        click.echo(f"Nothing: no tick without a run so far; {_RUNS}")
    else:
        click.echo(f"No tick without a run is like that; {_RUNS}")


def _row(line: Doc, zone: Zone | None) -> list[str]:
    return [
        shown(line["from"]),
        shown(line["to"]) if line["to"] != line["from"] else "",
        local(ms_of(line["from"]), zone) if zone else "",
        f"{line['ticks']:,}",
        f"{line['tenant']}/{line['name']}",
        coloured(line["answer"]),
        line["words"],
    ]
