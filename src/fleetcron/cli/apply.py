"""`fleetcron apply`: jobs and calendars from files, and the jobs of an app."""

import asyncio
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import click

from fleetcron.cli.applying import JobDone, Report
from fleetcron.cli.apps import database_of
from fleetcron.cli.changes import change_words
from fleetcron.cli.connection import Database, database_options, opened
from fleetcron.cli.many import confirm, yes_option
from fleetcron.cli.names import by_option
from fleetcron.cli.rehearsal import rehearsing
from fleetcron.cli.schedules import in_a_table
from fleetcron.cli.tables import coloured, numbered, printable, table
from fleetcron.cli.when import json_option, print_json
from fleetcron.cli.wished import Wished, wished_options
from fleetcron.config import Config
from fleetcron.model.job import Job
from fleetcron.model.reading import Documents

_SHOWN = 50  # lines
_FIELDS = 4  # of a job
_LONG = 2_000  # jobs from which people want to see that something moves
_ASKED = 10  # names in a question
_MARKS = {
    "created": "+", "changed": "~", "unchanged": "=", "refused": "!", "resumed": "+", "paused": "-", "deleted": "-",
}  # fmt: skip
_TOLD = ("created", "changed", "resumed", "paused", "deleted")


@click.command("apply")
@wished_options
@click.option("--dry-run", is_flag=True, help="Show what would happen; write nothing.")
@yes_option
@by_option
@database_options
@json_option
def command(database: Database, wished: Wished, dry_run: bool, yes: bool, by: str, as_json: bool) -> None:
    """Create and change jobs and calendars as the files say. Deletes and pauses nothing, unless --prune says so.

    All files are checked first: nothing is written as long as there is one mistake. Exit code 1 when a job was refused.
    With --app the jobs of a Python app come after the files; those that vanished from its code are paused.
    """
    config = database_of(wished.app, database).config()
    checked = wished.check()
    report = asyncio.run(_run(config, wished, checked, by, dry_run=dry_run, yes=yes, as_json=as_json))
    if as_json:
        told = {"calendars": [each.as_json() for each in report.calendars]}
        print_json(
            {"dry_run": dry_run, "counts": report.counts} | told | {"jobs": [job.as_json() for job in report.jobs]}
        )
    else:
        _show(report, dry_run, wished.app_name)
    if report.refused:
        sys.exit(1)


async def _run(
    config: Config, wished: Wished, checked: Documents, by: str, *, dry_run: bool, yes: bool, as_json: bool
) -> Report:
    async with rehearsing(config) if dry_run else opened(config, "made") as store:
        documents = await wished.documents(store, checked)
        gone = await wished.gone(store, documents)
        if gone and not dry_run:
            verb = "Delete" if wished.prune == "delete" else "Pause"
            confirm(_question(verb, gone, wished.managed_by, "files no longer have"), yes=yes, as_json=as_json)
        if not dry_run and wished.app is not None and (deleted := await wished.deleted(store)):
            asked = _question("Delete", deleted, wished.app.managed_by, "code no longer has")
            confirm(asked, yes=yes, as_json=as_json)
        with progress_bar(len(documents.jobs), "applying") as progress:
            return await wished.carry_out(
                store, documents, gone, by=by, shards=config.scheduler.shards, progress=progress
            )


def _question(verb: str, gone: Sequence[Job], managed_by: str | None, where: str) -> str:
    """Names, so that nobody says yes to a number."""
    names = [job.definition.seed for job in gone]
    more = f" and {len(names) - _ASKED} more" if len(names) > _ASKED else ""
    listed = ", ".join(names[:_ASKED]) + more
    return f"{verb} {numbered(len(gone), 'job')} of {managed_by} that the {where} ({listed})?"


@contextmanager
def progress_bar(jobs: int, label: str) -> Iterator[Callable[[int], None]]:
    if jobs <= _LONG or not sys.stderr.isatty():
        yield lambda _: None
        return
    with click.progressbar(length=jobs, label=label, file=sys.stderr, show_pos=True) as bar:
        yield bar.update


def _show(report: Report, dry_run: bool, app_name: str | None) -> None:
    rows = [
        [_MARKS[each.done], f"calendar {each.tenant}/{each.name}", coloured(each.done), _moved(each.jobs, each.stuck)]
        for each in report.calendars
        if each.done != "unchanged"
    ]
    done = [job for job in report.jobs if job.applied.done in _TOLD]
    # what went wrong comes last, where people look first, and is not lost behind a thousand lines of what went well
    refused = report.refused[:_SHOWN]
    told = [*done[: _SHOWN - len(refused)], *refused]
    rows += [[_MARKS[job.applied.done], job.full_name, coloured(job.applied.done), _words(job)] for job in told]
    if rows:
        click.echo(table((), rows))
    if more := len(done) + len(report.refused) - len(told):
        click.echo(f"… and {numbered(more, 'more job')} (--json lists them all)")
    where = app_name or "these files"
    counts = ", ".join(f"{number:,} {done}" for done, number in report.counts.items() if number)
    click.echo(f"{numbered(len(report.jobs), 'job')}: {counts}." if report.jobs else f"No jobs in {where}.")
    for warning, names in report.warnings.items():
        click.echo(f"{click.style('warning', fg='yellow')} {warning}: {', '.join(names)}")
    if dry_run:
        click.echo("This was a dry run: nothing was written.")
    elif report.jobs:
        serve = f"fleetcron serve --app {app_name}" if app_name else "fleetcron serve"
        click.echo(f"Look at them: fleetcron jobs. Run them: {serve}.")


def _words(done: JobDone) -> str:
    applied = done.applied
    if applied.done == "refused":
        return printable(applied.reason or "")
    if applied.done in ("paused", "deleted"):
        return "no longer in the code" if _is_of_an_app(done) else "no longer in the files"
    if applied.done == "resumed" and not done.changed:
        return "in the code again" if _is_of_an_app(done) else "in the files again"
    if applied.done in ("changed", "resumed"):
        more = f", and {len(done.changed) - _FIELDS} more" if len(done.changed) > _FIELDS else ""
        return ", ".join(map(change_words, done.changed[:_FIELDS])) + more
    assert applied.job is not None
    finished = "   finished at once: nothing of its schedule is left" if applied.job.state == "finished" else ""
    return in_a_table(applied.job.definition) + finished


def _is_of_an_app(done: JobDone) -> bool:
    job = done.applied.job
    return job is not None and (job.definition.managed_by or "").startswith("app:")


def _moved(jobs: int, stuck: int) -> str:
    moved = f"moves the ticks of {numbered(jobs, 'job')}" if jobs else ""
    return (
        f"{moved}, AND LEAVES {numbered(stuck, 'job')} WITHOUT A TICK: fleetcron jobs shows which" if stuck else moved
    )
