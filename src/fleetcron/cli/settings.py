"""`fleetcron config`: which settings hold, and where each was said."""

import click

from fleetcron.cli.connection import Database, database_options
from fleetcron.cli.tables import printable, table
from fleetcron.cli.when import json_option, print_json


@click.group("config")
def command() -> None:
    """Settings. docs/operate/configuration.md explains each."""


@command.command("show")
@database_options
@json_option
def show(database: Database, as_json: bool) -> None:
    """Show every setting with its value and its source; passwords are masked."""
    shown = database.settings().shown()
    if as_json:
        print_json({"settings": [each._asdict() for each in shown]})
        return
    rows = [[each.name, printable(each.value) or "-", printable(each.source)] for each in shown]
    click.echo(table(("SETTING", "VALUE", "FROM"), rows))
