"""`fleetcron lint`: what is allowed but probably not meant."""

import sys

import click

from fleetcron.cli.when import When, after_option, json_option, print_json, when_options
from fleetcron.times.lint import lint

_COLOURS = {"warning": "yellow", "info": "cyan"}


@click.command("lint")
@click.argument("expr", required=False)
@when_options
@after_option
@json_option
def command(when: When, expr: str | None, after: str | None, as_json: bool) -> None:
    """Find what is allowed in EXPR but probably not meant. Exit code 1 when there is a warning."""
    findings = lint(when.schedule(expr), when.instant(after), when.timezone)
    if as_json:
        print_json([finding.as_json() for finding in findings])
    for finding in findings:
        if not as_json:
            level = click.style(finding.level, fg=_COLOURS[finding.level])
            click.echo(f"{level} {finding.code}: {finding.message}\n  {finding.hint}")
    if not findings and not as_json:
        click.echo("Nothing to remark.")
    if any(finding.level == "warning" for finding in findings):
        sys.exit(1)
