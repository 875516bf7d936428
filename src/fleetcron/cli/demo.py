"""`fleetcron demo`: the calculator at work, for somebody who has just cloned the repository."""

import json
from datetime import UTC, datetime

import click

from fleetcron.clock import utc_now
from fleetcron.times import Cron
from fleetcron.times.explain import clock_changes
from fleetcron.times.instants import iso
from fleetcron.times.preview import preview
from fleetcron.times.zones import release

_EXAMPLES = (
    ("0 2 * * *", "America/New_York", "nightly report, at 02:00 where the customers are"),
    ("*/5 * * * *", "UTC", "health check"),
    ("0 0 1 * *", "Europe/Berlin", "monthly billing"),
    ("30 9 LW * *", "Asia/Tokyo", "payroll on the last weekday of the month"),
)


@click.command("demo")
def command() -> None:
    """Show the tick calculator at work."""
    now = utc_now()
    bold = {"bold": True}
    click.echo(click.style("fleetcron: the tick calculator", **bold) + f"   (zone data {release()}, now {iso(now)})")
    click.echo("This shows WHEN jobs run, and runs none: fleetcron serve does.\n")
    for expression, zone, purpose in _EXAMPLES:
        schedule = Cron(expression, zone)
        click.echo(f"{click.style(expression, **bold):<20}  {zone}   {purpose}")
        for row in preview(schedule, now, 2):
            click.echo(f"    {iso(row.scheduled_for)}   {row.local.isoformat(' ')}")
    _clock_changes(now)
    click.echo("\nNext steps")
    click.echo("    .venv/bin/fleetcron next '30 2 * * *' --timezone America/New_York")
    click.echo("    .venv/bin/fleetcron explain '0 9 * * 1-5' --timezone Europe/Berlin")
    click.echo("    .venv/bin/fleetcron apply -f examples/jobs.yaml     five jobs into a SQLite file in this folder")
    click.echo("    .venv/bin/fleetcron serve                           plans their runs until Ctrl-C")
    click.echo("    docs/learn/first-jobs.md goes through it; README.md says what exists and what comes next")


def _clock_changes(now: datetime) -> None:
    schedule = Cron("30 2 * * *", "America/New_York")
    click.echo("\nWhere other schedulers run twice or not at all: 02:30 in New York")
    for change in clock_changes(schedule, now)[:1]:
        click.echo(f"    {change.date}: {change.text}")
    fold = Cron("30 1 * * *", "America/New_York")
    for change in clock_changes(fold, now)[:1]:
        click.echo(f"    {change.date}: {change.text}")
    gap = preview(Cron("30 2 * * *", "America/New_York"), datetime(2027, 3, 13, 12, tzinfo=UTC), 1)[0]
    click.echo(f"    as JSON: {json.dumps(gap.as_json())}")
