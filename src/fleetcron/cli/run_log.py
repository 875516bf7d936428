"""`fleetcron runs log`: what an attempt printed; with --follow also what it prints from now on."""

import sys
from typing import Final

import click

from fleetcron.cli.connection import Database, database_options
from fleetcron.cli.run_ids import no_such_run, run_argument
from fleetcron.cli.tables import harmless
from fleetcron.cli.when import json_option, json_text
from fleetcron.store.attempts import LogPage
from fleetcron.store.store import Store
from fleetcron.views.logs import followed, piece_json

_LEFT_OUT: Final = "[the rest is left out: of each attempt the first 8 MiB are kept]"


@click.command("log")
@run_argument
@click.option(
    "--attempt", type=click.IntRange(1, 2**31 - 1), metavar="N", help="Of this attempt. [default: the latest]"
)
@click.option("--follow", "-f", is_flag=True, help="Go on until the run is final, from attempt to attempt.")
@click.option("--raw", is_flag=True, help="As it was written, also what commands a terminal, such as colours.")
@database_options
@json_option
def log(database: Database, run_id: int, attempt: int | None, follow: bool, raw: bool, as_json: bool) -> None:
    """Print what RUN wrote to its standard output and error.

    Control characters are shown as \\x1b, beside line ends and tabs: what a job prints cannot command your terminal,
    also not through a pager. --raw prints them. With --json each piece is one line: attempt, seq, at, text, truncated.
    """
    if raw and as_json:
        raise click.UsageError("--raw and --json exclude each other: in JSON nothing is lost.")

    async def work(store: Store) -> None:
        attempts: set[int] = set()
        first = await store.past_attempts.log(run_id, attempt, limit=1)
        if first is None:
            raise no_such_run(run_id)
        if follow and not as_json and first.latest is None and not first.is_final:
            click.echo(_nothing(first, run_id, attempt), err=True)
        async for page, piece in followed(store, run_id, attempt, follow=follow):
            if as_json:
                click.echo(json_text(piece_json(page.attempt, piece)))
                continue
            if follow and attempt is None and page.attempt not in attempts and (attempts or page.attempt > 1):
                click.secho(f"--- attempt {page.attempt}", fg="cyan", err=True)
            attempts.add(page.attempt)
            sys.stdout.write(piece.text if raw else harmless(piece.text))
            sys.stdout.flush()
            if piece.truncated:
                click.secho(f"\n{_LEFT_OUT}", fg="yellow", err=True)
        if not attempts and not as_json:
            now = await store.past_attempts.log(run_id, attempt, limit=1) if follow else first
            click.echo(_nothing(now or first, run_id, attempt), err=True)

    database.run(work)


def _nothing(page: LogPage, run_id: int, attempt: int | None) -> str:
    if page.latest is None:
        said = "It never started" if page.is_final else "It has not started"
        return f"{said}; why: fleetcron why {run_id}"
    return "Nothing was printed." if attempt is None else f"Attempt {attempt} printed nothing."
