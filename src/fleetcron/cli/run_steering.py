"""`fleetcron runs cancel` and `replay`, and what all commands that steer runs say."""

import sys
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeAlias

import click

from fleetcron.cli.asking import answer
from fleetcron.cli.connection import Database, database_options
from fleetcron.cli.names import by_option
from fleetcron.cli.run_ids import RUN_ID, checked_ids
from fleetcron.cli.tables import coloured, table
from fleetcron.cli.when import json_option, print_json
from fleetcron.store.steering import Steered
from fleetcron.store.store import Store
from fleetcron.store.written import Written

LONGEST_REASON = 300

Steer: TypeAlias = Callable[[Store], Awaitable[Written[list[Steered]]]]


def checked_reason(_context: click.Context, _option: click.Parameter, value: str | None) -> str | None:
    """A text that every database can keep."""
    if value is None:
        return None
    text = value.encode(errors="replace").decode().replace("\0", "?").strip()
    if not text or len(text) > LONGEST_REASON:
        raise click.BadParameter(f"write 1 to {LONGEST_REASON} characters")
    return text


@click.command("cancel")
@click.argument("run_ids", metavar="RUN...", nargs=-1, required=True, type=RUN_ID, callback=checked_ids)
@click.option("--reason", metavar="TEXT", callback=checked_reason, help="What the history says.")
@by_option
@database_options
@json_option
def cancel(database: Database, run_ids: tuple[int, ...], reason: str | None, by: str, as_json: bool) -> None:
    """Cancel runs: planned, waiting and retrying ones at once; a running one is asked to stop.

    Exit code 1 when a run has ended already, or there is no such run.
    """
    steer(database, lambda store: store.steering.cancel(run_ids, reason, actor=by), as_json)


@click.command("replay")
@click.argument("run_ids", metavar="RUN...", nargs=-1, required=True, type=RUN_ID, callback=checked_ids)
@by_option
@database_options
@json_option
def replay(database: Database, run_ids: tuple[int, ...], by: str, as_json: bool) -> None:
    """Open dead or cancelled runs again: the same runs with the same idempotency keys, in the catch-up lane.

    Exit code 1 when a run cannot be replayed.
    """
    steer(database, lambda store: store.steering.replay(run_ids, actor=by), as_json)


def steer(database: Database, verb: Steer, as_json: bool) -> None:
    """Do it and say it; exit code 1 when a run was refused."""

    async def work(store: Store) -> list[Steered]:
        return await answer(lambda: verb(store))

    done = database.run(work)
    if as_json:
        print_json({"runs": [_as_json(each) for each in done]})
    else:
        _say(done)
    if any(each.done == "refused" for each in done):
        sys.exit(1)


def _say(done: Sequence[Steered]) -> None:
    click.echo(
        table([], [[str(each.run_id), each.job or "-", coloured(each.done), each.reason or ""] for each in done])
    )
    if any(each.done == "stopping" for each in done):
        click.echo("What is stopping ends when its worker has stopped it.")


def _as_json(each: Steered) -> dict[str, object]:
    return {"run_id": each.run_id, "job": each.job, "done": each.done, "reason": each.reason}
