"""`fleetcron jobs backfill`: runs for ticks of the past that have none."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from fleetcron.cli.asking import Doc
from fleetcron.cli.connection import Database, database_options
from fleetcron.cli.moments import as_json as instant_json
from fleetcron.cli.moments import instant_ms
from fleetcron.cli.names import by_option, naming, split_there, the_job
from fleetcron.cli.tables import numbered
from fleetcron.cli.when import json_option, print_json
from fleetcron.clock import utc_now
from fleetcron.scheduler.backfill import LIMIT
from fleetcron.scheduler.backfill import backfill as fill
from fleetcron.store.store import Store
from fleetcron.times.instants import to_ms
from fleetcron.views.runs import backfilled_json

if TYPE_CHECKING:
    from fleetcron.client.blocking import Client


@click.command("backfill")
@click.argument("name")
@click.option("--from", "since", metavar="T", required=True, help="Ticks from this instant on; 7d: a week ago.")
@click.option("--to", "until", metavar="T", help="Ticks before this instant. [default: now]")
@click.option("--limit", default=LIMIT, show_default=True, type=click.IntRange(1), help="More ticks are refused.")
@click.option("--dry-run", is_flag=True, help="Say what would happen; write nothing.")
@by_option
@database_options
@json_option
def backfill(
    database: Database, name: str, since: str, until: str | None, limit: int, dry_run: bool, by: str, as_json: bool
) -> None:
    """Create the runs of NAME for the ticks of the past that have none, in the catch-up lane.

    The ticks are those of its schedule as it is now. Ticks that have a run are left alone, whatever became of it; ticks
    that are still to be decided are left to the scheduler. Safe to repeat.
    """
    begin_ms = instant_ms(since, "--from") or 0
    end_ms = instant_ms(until, "--to")
    until_ms = to_ms(utc_now()) + 1 if end_ms is None else end_ms

    async def of_store(store: Store) -> Doc:
        job = (await the_job(store, name)).job.definition
        with _progress() as progress:
            done = await fill(
                store, job.tenant, job.name, begin_ms, until_ms,
                actor=by, limit=limit, dry_run=dry_run, progress=progress,
            )  # fmt: skip
        return backfilled_json(job.tenant, job.name, begin_ms, until_ms, done, dry_run=dry_run)

    def of_api(client: "Client") -> Doc:
        tenant, own = split_there(name)
        stretch = instant_json(begin_ms) or "", instant_json(until_ms)
        with naming(client, name):
            return client.jobs.backfill(own, *stretch, limit=min(limit, LIMIT), dry_run=dry_run, tenant=tenant)

    done = database.ask(of_store, of_api)
    if as_json:
        print_json(done)
    else:
        _say(done, dry_run)


@contextmanager
def _progress() -> Iterator[Callable[[int, int], None]]:
    """A bar that knows its length when the first piece is done."""
    if not sys.stderr.isatty():
        yield lambda _done, _all: None
        return
    with click.progressbar(length=1, label="backfilling", file=sys.stderr, show_pos=True) as bar:

        def told(done: int, total: int) -> None:
            bar.length = total
            bar.update(done - bar.pos)

        yield told


def _say(done: Doc, dry_run: bool) -> None:
    full, would = f"{done['tenant']}/{done['name']}", "would be " if dry_run else ""
    if not done["ticks"]:
        click.echo(f"{full}: there is no tick in this stretch of the past.")
        return
    click.echo(f"{full}: {numbered(done['created'], 'run')} {would}created for {numbered(done['ticks'], 'tick')}.")
    if superseded := done["superseded"]:
        click.echo(f"{numbered(superseded, 'tick')} had been answered in the ledger: {would}taken out of it.")
    if existing := done["existing"]:
        click.echo(f"{numbered(existing, 'tick')} had a run already: fleetcron runs --job {full}")
    if shadowed := done["shadowed"]:
        click.echo(f"{numbered(shadowed, 'tick')} had the old scheduler while the job was in shadow: left out.")
    if undecided := done["undecided"]:
        be = "is" if undecided == 1 else "are"
        click.echo(f"{numbered(undecided, 'tick')} {be} still to be decided by the scheduler, and {be} left to it.")
