"""`fleetcron apply`: jobs and calendars from files, and the jobs of an app."""

import asyncio
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Final, TypeAlias

import click

from fleetcron.applying.apply import counted, gone_from
from fleetcron.cli.apps import database_of
from fleetcron.cli.asking import Doc
from fleetcron.cli.changes import change_words
from fleetcron.cli.connection import Database, database_options, opened
from fleetcron.cli.many import confirm, yes_option
from fleetcron.cli.names import by_option
from fleetcron.cli.parts import full, in_order, parts, whole
from fleetcron.cli.rehearsal import rehearsing
from fleetcron.cli.schedules import in_a_table
from fleetcron.cli.tables import coloured, numbered, printable, table
from fleetcron.cli.when import json_option, print_json
from fleetcron.cli.wished import Wished, wished_options
from fleetcron.config import Config
from fleetcron.model.job import Change
from fleetcron.model.reading import Documents

if TYPE_CHECKING:
    from fleetcron.client.blocking import Client

Ask: TypeAlias = Callable[[str], None]
LONGEST_S: Final = 600  # that one answer about many jobs may take
_SHOWN = 50  # lines
_FIELDS = 4  # of a job
_LONG = 2_000  # jobs from which people want to see that something moves
_ASKED = 10  # names in a question
_MARKS = {
    "created": "+", "changed": "~", "unchanged": "=", "refused": "!", "resumed": "+", "paused": "-", "deleted": "-",
}  # fmt: skip
_GONE = ("paused", "deleted")
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
    where = database_of(wished.app, database)
    client = where.client(LONGEST_S)
    ask = partial(confirm, yes=yes, as_json=as_json)
    with _interruptible(dry_run=dry_run) as told:
        checked = wished.check()
        if client is None:
            report = asyncio.run(_of_store(where.config(), wished, checked, by, dry_run=dry_run, ask=ask, told=told))
        else:
            with client:
                report = _of_api(client, wished, checked, dry_run=dry_run, ask=ask, told=told)
    if as_json:
        print_json(report)
    else:
        _show(report, wished.app_name)
    if report["counts"]["refused"]:
        sys.exit(1)


async def _of_store(
    config: Config, wished: Wished, checked: Documents, by: str, *, dry_run: bool, ask: Ask, told: Counter[str]
) -> Doc:
    async with rehearsing(config) if dry_run else opened(config, "made") as store:
        documents = await wished.documents(store, checked)
        gone = await gone_from(store, documents, wished.managed_by, wished.prune)
        if gone and not dry_run:
            verb = "Delete" if wished.prune == "delete" else "Pause"
            names = [job.definition.seed for job in gone]
            ask(_question(verb, names, wished.managed_by, "files no longer have"))
        if not dry_run and wished.app is not None and (deleted := await wished.deleted(store)):
            names = [job.definition.seed for job in deleted]
            ask(_question("Delete", names, wished.app.managed_by, "code no longer has"))
        told["all"] = len(documents.jobs) + (0 if wished.app is None else len(wished.app.definitions()))
        with _counting(len(documents.jobs), told) as progress:
            report = await wished.carry_out(
                store, documents, gone, by=by, shards=config.scheduler.shards, progress=progress
            )
        return report.as_json(dry_run=dry_run)


def _of_api(
    client: "Client", wished: Wished, checked: Documents, *, dry_run: bool, ask: Ask, told: Counter[str]
) -> Doc:
    bodies = wished.bodies(client, checked)
    for body in bodies if not dry_run else ():
        is_app = (body["managed_by"] or "").startswith("app:")
        if body["prune"] == "delete" or (body["prune"] == "pause" and not is_app):
            gone = _gone_there(client, body)
            verb, where = "Delete" if body["prune"] == "delete" else "Pause", "code" if is_app else "files"
            if gone:
                ask(_question(verb, gone, body["managed_by"], f"{where} no longer ha{'s' if is_app else 've'}"))
    jobs: list[Doc] = []
    calendars: list[Doc] = []
    told["all"] = sum(len(body["jobs"]) for body in bodies)
    with _counting(told["all"], told) as progress:
        for body in bodies:
            done: list[Doc] = []
            for part in [whole(body)] if dry_run else parts(body):
                report = client.apply(**part, dry_run=dry_run)
                done += report["jobs"]
                calendars += report["calendars"]
                progress(len(part["jobs"]))
            jobs += in_order(done, body["jobs"])
    counts = dict(counted(job["done"] for job in jobs))
    return {"dry_run": dry_run, "counts": counts, "calendars": calendars, "jobs": jobs}


def _gone_there(client: "Client", body: Doc) -> list[str]:
    """Of many jobs only the names are sent. Then nobody there knows what they depend on from now on, and what seems to
    be needed may be gone as well: people are asked about it."""
    if len(parts(body)) == 1:
        return [full(job) for job in client.apply(**body, dry_run=True)["jobs"] if job["done"] in _GONE]
    names = [full(job) for job in body["jobs"]]
    rest = client.apply(managed_by=body["managed_by"], prune=body["prune"], besides=names, dry_run=True)
    return [full(job) for job in rest["jobs"]]


@contextmanager
def _interruptible(*, dry_run: bool) -> Iterator[Counter[str]]:
    """What was done until Ctrl-C, and that it may be done again; somebody counts it."""
    told: Counter[str] = Counter()
    try:
        yield told
    except KeyboardInterrupt:
        if dry_run or not told["all"]:
            raise click.ClickException("Interrupted: nothing was written.") from None
        some = (
            f"at least {told['done']:,} of {told['all']:,} jobs were applied"
            if told["done"]
            else "maybe some jobs were applied"
        )
        raise click.ClickException(
            f"Interrupted: {some}, each of them whole. Apply again: that is safe, and goes on with the rest."
        ) from None


@contextmanager
def _counting(jobs: int, told: Counter[str]) -> Iterator[Callable[[int], None]]:
    with progress_bar(jobs, "applying") as progress:

        def both(number: int) -> None:
            told["done"] += number
            progress(number)

        yield both


def _question(verb: str, names: Sequence[str], managed_by: str | None, where: str) -> str:
    """Names, so that nobody says yes to a number."""
    more = f" and {len(names) - _ASKED} more" if len(names) > _ASKED else ""
    listed = ", ".join(names[:_ASKED]) + more
    return f"{verb} {numbered(len(names), 'job')} of {managed_by} that the {where} ({listed})?"


@contextmanager
def progress_bar(jobs: int, label: str) -> Iterator[Callable[[int], None]]:
    if jobs <= _LONG or not sys.stderr.isatty():
        yield lambda _: None
        return
    with click.progressbar(length=jobs, label=label, file=sys.stderr, show_pos=True) as bar:
        yield bar.update


def _show(report: Doc, app_name: str | None) -> None:
    rows = [
        [
            _MARKS[each["done"]],
            f"calendar {full(each)}",
            coloured(each["done"]),
            _moved(each["jobs_moved"], each["jobs_stuck"]),
        ]
        for each in report["calendars"]
        if each["done"] != "unchanged"
    ]
    jobs = report["jobs"]
    done = [job for job in jobs if job["done"] in _TOLD]
    # what went wrong comes last, where people look first, and is not lost behind a thousand lines of what went well
    refused = [job for job in jobs if job["done"] == "refused"]
    told = [*done[: _SHOWN - len(refused[:_SHOWN])], *refused[:_SHOWN]]
    rows += [[_MARKS[job["done"]], full(job), coloured(job["done"]), _words(job)] for job in told]
    if rows:
        click.echo(table((), rows))
    if more := len(done) + len(refused) - len(told):
        click.echo(f"… and {numbered(more, 'more job')} (--json lists them all)")
    where = app_name or "these files"
    counts = ", ".join(f"{number:,} {done}" for done, number in report["counts"].items() if number)
    click.echo(f"{numbered(len(jobs), 'job')}: {counts}." if jobs else f"No jobs in {where}.")
    warnings: dict[str, list[str]] = {}
    for job in jobs:
        if job["warning"] is not None:
            warnings.setdefault(job["warning"], []).append(full(job))
    for warning, names in warnings.items():
        click.echo(f"{click.style('warning', fg='yellow')} {warning}: {', '.join(names)}")
    if report["dry_run"]:
        click.echo("This was a dry run: nothing was written.")
    elif any(job["done"] != "refused" for job in jobs):
        serve = f"fleetcron serve --app {app_name}" if app_name else "fleetcron serve"
        click.echo(f"Look at them: fleetcron jobs. Run them: {serve}.")


def _words(job: Doc) -> str:
    done, changes = job["done"], job["changes"]
    source = "code" if (job["managed_by"] or "").startswith("app:") else "files"
    if done == "refused":
        return printable(job["reason"] or "")
    if done in ("paused", "deleted"):
        return f"no longer in the {source}"
    if done == "resumed" and not changes:
        return f"in the {source} again"
    if done in ("changed", "resumed"):
        more = f", and {len(changes) - _FIELDS} more" if len(changes) > _FIELDS else ""
        return ", ".join(change_words(Change(**each)) for each in changes[:_FIELDS]) + more
    finished = "   finished at once: nothing of its schedule is left" if job["state"] == "finished" else ""
    return in_a_table(job["schedule"]) + finished


def _moved(jobs: int, stuck: int) -> str:
    moved = f"moves the ticks of {numbered(jobs, 'job')}" if jobs else ""
    return (
        f"{moved}, AND LEAVES {numbered(stuck, 'job')} WITHOUT A TICK: fleetcron jobs shows which" if stuck else moved
    )
