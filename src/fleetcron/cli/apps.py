"""`--app shop.jobs:app`: jobs that stand in Python code."""

from dataclasses import replace

import click

from fleetcron.app.application import Fleetcron
from fleetcron.cli.connection import Database
from fleetcron.config.kinds import BadValue, DatabaseUrl
from fleetcron.errors import ConfigError, Mistake

app_option = click.option(
    "--app",
    "app_name",
    metavar="MODULE:NAME",
    help="A Fleetcron app, such as shop.jobs:app; imported from this folder, and its jobs synced.",
)


def app_of(name: str | None) -> Fleetcron | None:
    if name is None:
        return None
    from fleetcron.app.loading import load  # brings a whole node, which `apply -f` does without

    return load(name)


def database_of(app: Fleetcron | None, database: Database) -> Database:
    """--database wins over what the code says; the code wins over the environment and the file."""
    if app is None or app.url is None or database.url is not None:
        return database
    try:
        DatabaseUrl().read(app.url)
    except BadValue as error:
        raise ConfigError([Mistake("Fleetcron(url)", error.message, error.hint)]) from None
    return replace(database, url=app.url)
