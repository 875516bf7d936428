"""`fleetcron apply`: jobs and calendars from files, and the jobs of an app."""

import asyncio
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import replace

import click

from fleetcron.app.application import PRUNES, Fleetcron
from fleetcron.cli.applying import JobDone, Report, apply, apply_app, mark_unserved
from fleetcron.cli.apps import app_of, app_option, database_of
from fleetcron.cli.changes import change_words
from fleetcron.cli.connection import Database, database_options, opened, sqlite_path
from fleetcron.cli.files import files_option, load, read
from fleetcron.cli.names import by_option
from fleetcron.cli.rehearsal import RehearsalStore
from fleetcron.cli.schedules import in_a_table
from fleetcron.cli.tables import coloured, numbered, printable, table
from fleetcron.cli.when import json_option, print_json
from fleetcron.config import Config, StoreConfig
from fleetcron.scheduler.sync import Prune
from fleetcron.store.migrations import require_current, status
from fleetcron.store.store import Store
from fleetcron.views.calendars import stored_calendars

_SHOWN = 50  # lines
_FIELDS = 4  # of a job
_LONG = 2_000  # jobs from which people want to see that something moves
_MARKS = {
    "created": "+", "changed": "~", "unchanged": "=", "refused": "!", "resumed": "+", "paused": "-", "deleted": "-",
}  # fmt: skip
_TOLD = ("created", "changed", "resumed", "paused", "deleted")


@click.command("apply")
@click.argument("more", nargs=-1, metavar="[FILE]...")
@files_option
@app_option
@click.option("--prune", type=click.Choice(PRUNES), help="What becomes of jobs that vanished from the app's code.")
@click.option("--dry-run", is_flag=True, help="Show what would happen; write nothing.")
@by_option
@database_options
@json_option
def command(
    database: Database,
    more: tuple[str, ...],
    files: tuple[str, ...],
    app_name: str | None,
    prune: Prune | None,
    dry_run: bool,
    by: str,
    as_json: bool,
) -> None:
    """Create and change jobs and calendars as the files say. Never deletes.

    All files are checked first: nothing is written as long as there is one mistake. Exit code 1 when a job was refused.
    With --app the jobs of a Python app come after the files; those that vanished from its code are paused.
    """
    if not files and not more and app_name is None:
        raise click.UsageError("Which file? For example: fleetcron apply -f jobs.yaml")
    if prune is not None and app_name is None:
        raise click.UsageError("--prune is about the jobs of an app: add --app MODULE:NAME")
    app = app_of(app_name)
    config = database_of(app, database).config()
    report = asyncio.run(_run(config, (*files, *more), app, prune, by, dry_run))
    if as_json:
        told = {"calendars": [each.as_json() for each in report.calendars]}
        print_json(
            {"dry_run": dry_run, "counts": report.counts} | told | {"jobs": [job.as_json() for job in report.jobs]}
        )
    else:
        _show(report, dry_run, app_name)
    if report.refused:
        sys.exit(1)


async def _run(
    config: Config, names: tuple[str, ...], app: Fleetcron | None, prune: Prune | None, by: str, dry_run: bool
) -> Report:
    loaded = load(names)
    documents = read(loaded)  # first without the database: a mistake is told even if nobody answers there
    if app is not None:
        app.definitions()
    shards = config.scheduler.shards
    async with _rehearsing(config) if dry_run else opened(config, "made") as store:
        if known := await stored_calendars(store):
            documents = read(loaded, known)
        with _progress(len(documents.jobs)) as progress:
            report = await apply(store, documents, actor=by, shards=shards, progress=progress)
        if app is not None:
            report.jobs += await apply_app(store, app, by=by, shards=shards, prune=prune)
        await mark_unserved(store, report)
        return report


@asynccontextmanager
async def _rehearsing(config: Config) -> AsyncIterator[Store]:
    """The store as it is, but nothing is kept. Where there are no jobs yet, an empty one in memory stands for it."""
    path = sqlite_path(config.store.url)
    if path is None or path.exists():
        async with opened(config, "any") as store:
            if (await status(store.engine)).applied:
                await require_current(store.engine)
                if await store.shards.number() is not None:  # nobody has made a job as long as nobody has fixed it
                    yield RehearsalStore(store)
                    return
    async with opened(replace(config, store=StoreConfig(url=":memory:")), "made") as store:
        yield store


@contextmanager
def _progress(jobs: int) -> Iterator[Callable[[int], None]]:
    if jobs <= _LONG or not sys.stderr.isatty():
        yield lambda _: None
        return
    with click.progressbar(length=jobs, label="applying", file=sys.stderr, show_pos=True) as bar:
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
        return "no longer in the code"
    if applied.done == "resumed" and not done.changed:
        return "in the code again"
    if applied.done in ("changed", "resumed"):
        more = f", and {len(done.changed) - _FIELDS} more" if len(done.changed) > _FIELDS else ""
        return ", ".join(map(change_words, done.changed[:_FIELDS])) + more
    assert applied.job is not None
    finished = "   finished at once: nothing of its schedule is left" if applied.job.state == "finished" else ""
    return in_a_table(applied.job.definition) + finished


def _moved(jobs: int, stuck: int) -> str:
    moved = f"moves the ticks of {numbered(jobs, 'job')}" if jobs else ""
    return (
        f"{moved}, AND LEAVES {numbered(stuck, 'job')} WITHOUT A TICK: fleetcron jobs shows which" if stuck else moved
    )
