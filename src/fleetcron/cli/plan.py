"""`fleetcron plan`: what `apply` would change, and when jobs would fire then. Writes nothing."""

import asyncio
import sys
from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

import click

from fleetcron.applying.apply import gone_from
from fleetcron.applying.plan import planned
from fleetcron.cli.apply import LONGEST_S, progress_bar
from fleetcron.cli.apps import database_of
from fleetcron.cli.asking import Doc
from fleetcron.cli.changes import change_words
from fleetcron.cli.connection import Database, database_options
from fleetcron.cli.main import failed
from fleetcron.cli.names import user
from fleetcron.cli.parts import whole
from fleetcron.cli.rehearsal import rehearsing
from fleetcron.cli.schedules import in_a_table
from fleetcron.cli.tables import numbered, printable
from fleetcron.cli.when import json_option, print_json
from fleetcron.cli.wished import Wished, wished_options
from fleetcron.config import Config
from fleetcron.errors import FleetcronError
from fleetcron.model.job import Change
from fleetcron.model.reading import Documents

if TYPE_CHECKING:
    from fleetcron.client.blocking import Client

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
    where = database_of(wished.app, database)
    client = where.client(LONGEST_S)
    checked = wished.check()
    if client is None:
        with progress_bar(2 * len(checked.jobs), "planning") as progress:
            plan = asyncio.run(_of_store(where.config(), wished, checked, days, progress))
    else:
        with client:
            plan = _of_api(client, wished, checked, days)
    jobs = plan["jobs"]
    is_something = any(job["change"] != "!" for job in jobs) or bool(plan["calendars"])
    if as_json:
        print_json(plan)
    else:
        _show(plan, is_something)
    if any(job["change"] == "!" for job in jobs):
        sys.exit(BAD)
    if is_something:
        sys.exit(CHANGES)


async def _of_store(
    config: Config, wished: Wished, checked: Documents, days: int, progress: Callable[[int], None]
) -> Doc:
    """`progress` hears of each job twice at most: when it was rehearsed, and when its ticks were compared."""
    async with rehearsing(config) as store:
        documents = await wished.documents(store, checked)
        gone = await gone_from(store, documents, wished.managed_by, wished.prune)
        report = await wished.carry_out(
            store, documents, gone, by=user(), shards=config.scheduler.shards, progress=progress
        )
        return (await planned(store, report, days, progress)).as_json()


def _of_api(client: "Client", wished: Wished, checked: Documents, days: int) -> Doc:
    told = [client.plan(**whole(body), days=days) for body in wished.bodies(client, checked)]
    counts: Counter[str] = Counter()
    for each in told:
        counts.update(each["counts"])
    return {
        **told[0],
        "counts": dict(sorted(counts.items())),
        "calendars": [calendar for each in told for calendar in each["calendars"]],
        "jobs": [job for each in told for job in each["jobs"]],
    }


def _show(plan: Doc, is_something: bool) -> None:
    for calendar in plan["calendars"]:
        _show_calendar(calendar)
    jobs = plan["jobs"]
    refused = [job for job in jobs if job["change"] == "!"][:_SHOWN]
    others = [job for job in jobs if job["change"] != "!"]
    # those with a warning first, if not all have room; what is refused comes last, where people look first
    chosen = (
        sorted(others, key=lambda job: not job["warnings"])[: _SHOWN - len(refused)] if len(others) > _SHOWN else others
    )
    for job in (*chosen, *refused):
        _show_job(job)
    if more := len(jobs) - len(chosen) - len(refused):
        click.echo(f"… and {numbered(more, 'more job')} (--json lists them all)")
    counts = ", ".join(f"{number:,} {done}" for done, number in plan["counts"].items())
    click.echo(f"{numbered(sum(plan['counts'].values()), 'job')}: {counts}." if plan["counts"] else "No jobs.")
    click.echo("Nothing was written." if is_something or refused else "Nothing to do.")


def _show_calendar(calendar: Doc) -> None:
    mark, moved, stuck = "+" if calendar["done"] == "created" else "~", calendar["jobs_moved"], calendar["jobs_stuck"]
    moves = f": moves the ticks of {numbered(moved, 'job')}" if moved else ""
    click.echo(_marked(mark, f"calendar {calendar['tenant']}/{calendar['name']}{moves}"))
    if stuck:
        _warn(f"leaves {numbered(stuck, 'job')} without a tick")
    for ticks in calendar["ticks"]:
        for at, line in enumerate(ticks["words"]):
            click.echo(f"    {numbered(ticks['jobs'], 'job') + ', ' if not at else ''}{line}")


def _show_job(job: Doc) -> None:
    full, done = f"{job['tenant']}/{job['name']}", job["done"]
    if done == "refused":
        click.echo(_marked("!", f"{full} is refused: {printable(job['reason'] or '')}"))
        return
    schedule = f"   {in_a_table(job['schedule'])}" if done == "created" else ""
    word = f" is {done}" if done in ("paused", "deleted", "resumed") else ""
    click.echo(_marked(job["change"], full + word + schedule))
    for change in job["changes"][:_FIELDS]:
        click.echo(f"    {change_words(Change(**change))}")
    if len(job["changes"]) > _FIELDS:
        click.echo(f"    … and {len(job['changes']) - _FIELDS} more fields")
    for line in job["ticks"]["words"] if job["ticks"] else ():
        click.echo(f"    {line}")
    if job["state"] in ("paused", "finished") and done in ("created", "changed"):
        click.echo(f"    it is {job['state']}: nothing fires")
    for warning in job["warnings"]:
        _warn(warning)


def _marked(mark: str, text: str) -> str:
    return f"{click.style(mark, fg=_COLOURS[mark], bold=True)} {text}"


def _warn(text: str) -> None:
    click.echo(f"    {click.style('warning', fg='yellow')} {text}")
