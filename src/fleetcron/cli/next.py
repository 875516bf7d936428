"""`fleetcron next`: the coming ticks."""

import click

from fleetcron.cli.when import When, after_option, json_option, print_json, when_options
from fleetcron.times.preview import Row, preview
from fleetcron.times.zones import zone

MOST = 100_000


@click.command("next")
@click.argument("expr", required=False)
@when_options
@after_option
@click.option("--count", "-n", default=5, show_default=True, type=click.IntRange(1, MOST), help="How many.")
@json_option
def command(when: When, expr: str | None, after: str | None, count: int, as_json: bool) -> None:
    """Show the next ticks of EXPR, a cron expression such as '0 2 * * *'."""
    schedule = when.schedule(expr)
    start = when.instant(after)
    shown = zone(when.timezone)
    rows = preview(schedule, start, count, shown)
    if as_json:
        print_json([row.as_json() for row in rows])
        return
    if not rows:
        click.echo("No tick is left after that instant.")
        return
    click.echo(f"{'UTC':<22}{shown.name}")
    for row in rows:
        click.echo(_line(row))


def _line(row: Row) -> str:
    notes = list(row.notes)
    if row.starts != row.scheduled_for:
        notes.insert(0, f"starts {(row.starts - row.scheduled_for).total_seconds():.3f} s later")
    line = f"{row.as_json()['scheduled_for']:<22}{row.local:%a} {row.local.isoformat(' ')}"
    return f"{line}   {', '.join(notes)}" if notes else line
