"""`fleetcron diff`: what a change of schedule does to the ticks."""

import sys
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import click

from fleetcron.cli.when import When, after_option, json_option, print_json, when_options
from fleetcron.errors import ScheduleError
from fleetcron.times.diff import Diff, diff
from fleetcron.times.instants import iso

_SHOWN = 20
_LAST = datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC)


@click.command("diff")
@click.argument("old")
@click.argument("new")
@when_options
@click.option("--new-timezone", metavar="ZONE", help="The zone of NEW, where it differs.")
@after_option
@click.option("--until", metavar="T", help="Compare up to this instant. [default: 30 days later]")
@json_option
def command(
    when: When, old: str, new: str, new_timezone: str | None, after: str | None, until: str | None, as_json: bool
) -> None:
    """Compare the ticks of two cron expressions. Exit code 1 when they differ."""
    if when.every or when.at:
        raise ScheduleError("diff compares two cron expressions", hint="leave out --every and --at")
    start = when.instant(after)
    end = min(start, _LAST - timedelta(days=30)) + timedelta(days=30) if until is None else when.instant(until)
    if end <= start:
        raise ScheduleError(f"{iso(end)} is not after {iso(start)}", hint="--until comes after --after")
    newer = replace(when, timezone=new_timezone or when.timezone)
    found = diff(when.schedule(old), newer.schedule(new), start, end)
    if as_json:
        print_json(found.as_json())
    else:
        _show(found, start)
    if found:
        sys.exit(1)


def _show(found: Diff, start: datetime) -> None:
    lines = [(old, f"~ {iso(old)} -> {iso(new)}", "yellow") for old, new in found.move]
    lines += [(tick, f"- {iso(tick)}", "red") for tick in found.vanish]
    lines += [(tick, f"+ {iso(tick)}", "green") for tick in found.appear]
    for _, text, colour in sorted(lines)[:_SHOWN]:
        click.echo(click.style(text, fg=colour))
    if len(lines) > _SHOWN:
        click.echo(f"  … and {len(lines) - _SHOWN} more (--json lists them all)")
    until = "" if found.until is None else f" to {iso(found.until)}"
    counts = f"{len(found.appear)} appear, {len(found.vanish)} vanish, {len(found.move)} move, {found.kept} stay"
    click.echo(f"{iso(start)}{until}: {counts}")
    if not found.complete:
        click.echo("Only the first 100,000 ticks were compared; a shorter --until sees all of it.")
