"""`fleetcron why`: one sentence about a run, or about a tick that has none."""

from typing import TYPE_CHECKING

import click

from fleetcron.cli.asking import Doc
from fleetcron.cli.connection import Database, database_options
from fleetcron.cli.moments import as_json as as_json_instant
from fleetcron.cli.moments import instant_ms
from fleetcron.cli.names import naming, no_such_job, split, split_there
from fleetcron.cli.run_ids import no_such_run, numbering
from fleetcron.cli.tables import printable
from fleetcron.cli.when import json_option, print_json
from fleetcron.errors import ScheduleError
from fleetcron.store.store import Store
from fleetcron.views.why import of_run, of_tick, why_json

if TYPE_CHECKING:
    from fleetcron.client.blocking import Client

_DIGITS = 19  # of a number that every database knows


@click.command("why")
@click.argument("what", metavar="RUN|JOB@INSTANT")
@database_options
@json_option
def command(database: Database, what: str, as_json: bool) -> None:
    """Say why a run waits, why it ended as it did, or what became of a tick.

    RUN is the number that `fleetcron runs` gives; JOB@INSTANT names a tick, such as
    acme/nightly-report@2027-01-01T02:00:00Z.
    """
    job, at, instant = what.partition("@")
    if not at and not (what.isascii() and what.isdigit() and len(what) < _DIGITS):
        raise ScheduleError(
            f"'{what}' is neither the number of a run nor JOB@INSTANT",
            hint="such as: fleetcron why 812 (numbers are in: fleetcron runs),"
            " or: fleetcron why nightly-report@2027-01-01T02:00:00Z",
        )
    at_ms = instant_ms(instant, "INSTANT") if at else None

    told = database.ask(
        lambda store: _of_run(store, int(what)) if at_ms is None else _of_tick(store, job, at_ms),
        lambda client: _run_there(client, int(what)) if at_ms is None else _tick_there(client, job, at_ms),
    )
    if as_json:
        print_json(told)
    else:
        click.echo(printable(told["why"]))


async def _of_run(store: Store, run_id: int) -> Doc:
    found = await of_run(store, run_id)
    if found is None:
        raise no_such_run(run_id)
    return why_json(found)


async def _of_tick(store: Store, job: str, at_ms: int) -> Doc:
    found = await of_tick(store, *split(job), at_ms)
    if found is None:
        raise await no_such_job(store, job)
    return why_json(found)


def _run_there(client: "Client", run_id: int) -> Doc:
    with numbering(run_id):
        return client.runs.why(run_id)


def _tick_there(client: "Client", job: str, at_ms: int) -> Doc:
    tenant, name = split_there(job)
    with naming(client, job):
        return client.jobs.why(name, as_json_instant(at_ms) or "", tenant=tenant)
