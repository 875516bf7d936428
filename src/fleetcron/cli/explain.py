"""`fleetcron explain`: a schedule in words."""

import click

from fleetcron.cli.when import When, after_option, json_option, print_json, when_options
from fleetcron.times.explain import explain


@click.command("explain")
@click.argument("expr", required=False)
@when_options
@after_option
@json_option
def command(when: When, expr: str | None, after: str | None, as_json: bool) -> None:
    """Say in words what EXPR does, which policies hold, and what the clock changes of two years do to it."""
    told = explain(when.schedule(expr), when.instant(after), when.timezone)
    if as_json:
        print_json(told.as_json())
    else:
        click.echo(told)
