"""`fleetcron plan`: what `apply` would change, and when jobs would fire then. Writes nothing."""

import asyncio
import sys
from typing import Any, Final

import click

from fleetcron.cli.apply import progress_bar
from fleetcron.cli.apps import database_of
from fleetcron.cli.changes import change_words
from fleetcron.cli.connection import Database, database_options
from fleetcron.cli.main import failed
from fleetcron.cli.names import user
from fleetcron.cli.planning import CalendarPlan, JobPlan, Plan, planned
from fleetcron.cli.schedules import in_a_table
from fleetcron.cli.tables import numbered, printable
from fleetcron.cli.when import json_option, print_json
from fleetcron.cli.wished import Wished, wished_options
from fleetcron.errors import FleetcronError

CHANGES: Final = 2
BAD: Final = 1
_BAD_ELSEWHERE: Final = 2
_SHOWN: Final = 50  # jobs
_FIELDS: Final = 20  # of a job
_COLOURS: Final = {"+": "green", "~": "yellow", "-": "red", "!": "red"}


class _Planning(click.Command):
    """Everywhere else 2 is bad input. Here 2 says that there are changes, as people know it from such commands, so bad
    input is 1: a script must never take a typing mistake for a change."""

    def make_context(self, *arguments: Any, **settings: Any) -> click.Context:
        try:
            return super().make_context(*arguments, **settings)
        except click.ClickException as error:
            error.exit_code = BAD  # type: ignore[misc]
            raise

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except click.ClickException as error:
            error.exit_code = BAD  # type: ignore[misc]
            raise
        except (FleetcronError, OSError) as error:
            code = failed(error, ctx.color)
            sys.exit(BAD if code == _BAD_ELSEWHERE else code)


@click.command("plan", cls=_Planning)
@wished_options
@click.option(
    "--days", default=90, show_default=True, type=click.IntRange(1, 3660), help="How far ahead fire times are compared."
)
@database_options
@json_option
def command(database: Database, wished: Wished, days: int, as_json: bool) -> None:
    """Show what `apply` with the same options would create (+), change (~), pause or delete (-), and refuse (!).

    With the ticks that appear, vanish and move, and a warning if the change itself would double or lose one.
    Exit codes: 0 no changes, 2 changes, 1 bad input or a job that would be refused, 3 the database is not available.
    """
    config = database_of(wished.app, database).config()
    checked = wished.check()
    with progress_bar(2 * len(checked.jobs), "planning") as progress:
        plan = asyncio.run(planned(config, wished, checked, days, user(), progress))
    if as_json:
        print_json(plan.as_json())
    else:
        _show(plan)
    if plan.refused:
        sys.exit(BAD)
    if plan:
        sys.exit(CHANGES)


def _show(plan: Plan) -> None:
    for calendar in plan.calendars:
        _show_calendar(calendar)
    refused = [job for job in plan.jobs if job.mark == "!"][:_SHOWN]
    others = [job for job in plan.jobs if job.mark != "!"]
    # those with a warning first, if not all have room; what is refused comes last, where people look first
    chosen = (
        sorted(others, key=lambda job: not job.warnings)[: _SHOWN - len(refused)] if len(others) > _SHOWN else others
    )
    for job in (*chosen, *refused):
        _show_job(job)
    if more := len(plan.jobs) - len(chosen) - len(refused):
        click.echo(f"… and {numbered(more, 'more job')} (--json lists them all)")
    counts = ", ".join(f"{number:,} {done}" for done, number in plan.counts.items())
    click.echo(f"{numbered(sum(plan.counts.values()), 'job')}: {counts}." if plan.counts else "No jobs.")
    click.echo("Nothing was written." if plan else "Nothing to do.")


def _show_calendar(calendar: CalendarPlan) -> None:
    done = calendar.done
    mark = "+" if done.done == "created" else "~"
    moves = f": moves the ticks of {numbered(done.jobs, 'job')}" if done.jobs else ""
    click.echo(_marked(mark, f"calendar {done.tenant}/{done.name}{moves}"))
    if done.stuck:
        _warn(f"leaves {numbered(done.stuck, 'job')} without a tick")
    for jobs, firing in calendar.moved:
        for at, line in enumerate(firing.lines()):
            click.echo(f"    {numbered(jobs, 'job') + ', ' if not at else ''}{line}")


def _show_job(job: JobPlan) -> None:
    applied = job.done.applied
    if applied.done == "refused":
        click.echo(_marked("!", f"{job.done.full_name} is refused: {printable(applied.reason or '')}"))
        return
    assert applied.job is not None
    schedule = f"   {in_a_table(applied.job.definition)}" if applied.done == "created" else ""
    word = f" is {applied.done}" if applied.done in ("paused", "deleted", "resumed") else ""
    click.echo(_marked(job.mark, job.done.full_name + word + schedule))
    for change in job.done.changed[:_FIELDS]:
        click.echo(f"    {change_words(change)}")
    if len(job.done.changed) > _FIELDS:
        click.echo(f"    … and {len(job.done.changed) - _FIELDS} more fields")
    if job.firing is not None and job.firing.is_other:
        for line in job.firing.lines():
            click.echo(f"    {line}")
    if applied.job.state in ("paused", "finished") and applied.done in ("created", "changed"):
        click.echo(f"    it is {applied.job.state}: nothing fires")
    for warning in job.warnings:
        _warn(warning)


def _marked(mark: str, text: str) -> str:
    return f"{click.style(mark, fg=_COLOURS[mark], bold=True)} {text}"


def _warn(text: str) -> None:
    click.echo(f"    {click.style('warning', fg='yellow')} {text}")
