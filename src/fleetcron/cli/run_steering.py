"""`fleetcron runs cancel` and `replay`, and what all commands that steer runs say."""

import sys
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Final, TypeAlias, get_args

import click

from fleetcron.cli.asking import Doc
from fleetcron.cli.connection import Database, database_options
from fleetcron.cli.many import confirm, steered, steered_there, yes_option
from fleetcron.cli.names import by_option, naming, no_such_job, split, split_there
from fleetcron.cli.run_ids import RUN_ID, checked_ids
from fleetcron.cli.tables import coloured, numbered, table
from fleetcron.cli.when import json_option, print_json
from fleetcron.client.run_shapes import State, SteeredRuns
from fleetcron.model.run import RunKind
from fleetcron.store.steering import Steered
from fleetcron.store.store import Store
from fleetcron.views.asking import answer
from fleetcron.views.replaying import replay as replayed
from fleetcron.views.runs import steered_json

if TYPE_CHECKING:
    from fleetcron.client.blocking import Client

LONGEST_REASON = 300
_MOST_OF_A_JOB: Final = 1_000_000  # of one call

Steer: TypeAlias = Callable[[Store], Awaitable[list[Steered]]]
Ask: TypeAlias = "Callable[[Client], SteeredRuns]"  # the same over an API
_OPEN: Final[tuple[State, ...]] = ("planned", "waiting", "running", "retrying", "dispatched")


def checked_reason(_context: click.Context, _option: click.Parameter, value: str | None) -> str | None:
    """A text that every database can keep."""
    if value is None:
        return None
    text = value.encode(errors="replace").decode().replace("\0", "?").strip()
    if not text or len(text) > LONGEST_REASON:
        raise click.BadParameter(f"write 1 to {LONGEST_REASON} characters")
    return text


@click.command("cancel")
@click.argument("run_ids", metavar="[RUN]...", nargs=-1, type=RUN_ID, callback=checked_ids)
@click.option("--job", metavar="NAME", help="All runs of this job that have not ended: NAME or TENANT/NAME.")
@click.option("--kind", type=click.Choice(get_args(RunKind)), help="With --job: only runs of this kind.")
@click.option("--reason", metavar="TEXT", callback=checked_reason, help="What the history says.")
@click.option("--dry-run", is_flag=True, help="With --job: only count.")
@yes_option
@by_option
@database_options
@json_option
def cancel(
    database: Database,
    run_ids: tuple[int, ...],
    job: str | None,
    kind: RunKind | None,
    reason: str | None,
    dry_run: bool,
    yes: bool,
    by: str,
    as_json: bool,
) -> None:
    """Cancel runs: planned, waiting and retrying ones at once; a running one is asked to stop.

    By number; exit code 1 when one has ended already, or there is no such run. Or, with --job, all of a job that have
    not ended: to undo a backfill, --job NAME --kind backfill.
    """
    if bool(run_ids) == (job is not None):
        raise click.UsageError("Give numbers of runs, or --job NAME for all runs of a job that have not ended.")
    if job is None:
        if kind is not None or dry_run:
            raise click.UsageError("--kind and --dry-run choose among the runs of a job: add --job NAME.")
        steer(
            database,
            lambda store: answer(lambda: store.steering.cancel(run_ids, reason, actor=by)),
            lambda client: client.runs.cancel_many(run_ids, reason=reason),
            as_json,
        )
    else:
        _cancel_of_job(database, job, kind, reason, dry_run=dry_run, yes=yes, by=by, as_json=as_json)


def _cancel_of_job(
    database: Database,
    job: str,
    kind: RunKind | None,
    reason: str | None,
    *,
    dry_run: bool,
    yes: bool,
    by: str,
    as_json: bool,
) -> None:
    found = database.ask(lambda store: _open(store, job, kind), lambda client: _open_there(client, job, kind))
    full = "/".join(split(job))
    runs = numbered(len(found), f"{kind} run" if kind else "run")
    done: Counter[str] = Counter()
    if found and not dry_run:
        confirm(f"Cancel {runs} of {full}?", yes=yes, as_json=as_json)
        done = database.ask(
            lambda store: steered(found, "cancelling", lambda some: store.steering.cancel(some, reason, actor=by)),
            lambda client: steered_there(
                found, "cancelling", lambda some: client.runs.cancel_many(some, reason=reason)
            ),
        )
    if as_json:
        counts = {"cancelled": done["cancelled"], "stopping": done["stopping"]}
        print_json({"job": full, "kind": kind, "dry_run": dry_run, "open": len(found), **counts})
    elif not found:
        click.echo(f"No {f'{kind} ' if kind else ''}run of {full} is open: nothing to cancel.")
    elif dry_run:
        click.echo(f"{runs} of {full} would be cancelled.")
    else:
        _say_counts(full, done)


async def _open(store: Store, job: str, kind: RunKind | None) -> list[int]:
    """Also of jobs that had this name and were deleted: `runs --job` shows their runs too."""
    jobs = await store.jobs.named(*split(job))
    if not jobs:
        raise await no_such_job(store, job)
    found = [await store.history.open(each.job_id, kind=kind, limit=_MOST_OF_A_JOB) for each in jobs]
    return sorted(run.run_id for runs in found for run in runs)


def _open_there(client: "Client", job: str, kind: RunKind | None) -> list[int]:
    tenant, name = split_there(job)
    with naming(client, job):
        found = [
            run["run_id"]
            for state in _OPEN
            for run in client.jobs.runs(name, tenant=tenant, state=state, planned=True)
            if kind in (None, run["kind"])
        ]
    return sorted(set(found))


def _say_counts(full: str, done: Counter[str]) -> None:
    click.echo(f"{full}: {numbered(done['cancelled'], 'run')} cancelled.")
    if stopping := done["stopping"]:
        click.echo(f"{numbered(stopping, 'run')} {'is' if stopping == 1 else 'are'} asked to stop.")
    if ended := done.total() - done["cancelled"] - stopping:
        click.echo(f"{numbered(ended, 'run')} had ended by then, or had been asked to stop before.")


@click.command("replay")
@click.argument("run_ids", metavar="RUN...", nargs=-1, required=True, type=RUN_ID, callback=checked_ids)
@by_option
@database_options
@json_option
def replay(database: Database, run_ids: tuple[int, ...], by: str, as_json: bool) -> None:
    """Open dead or cancelled runs again: the same runs with the same idempotency keys, in the catch-up lane.

    Exit code 1 when a run cannot be replayed.
    """
    steer(
        database,
        lambda store: replayed(store.steering, run_ids, actor=by),
        lambda client: client.runs.replay_many(run_ids),
        as_json,
    )


def steer(database: Database, verb: Steer, ask: Ask, as_json: bool) -> None:
    """Do it and say it; exit code 1 when a run was refused."""

    async def of_store(store: Store) -> Sequence[Doc]:
        return [steered_json(each) for each in await verb(store)]

    done = database.ask(of_store, lambda client: ask(client)["runs"])
    if as_json:
        print_json({"runs": done})
    else:
        _say(done)
    if any(each["done"] == "refused" for each in done):
        sys.exit(1)


def _say(done: Sequence[Doc]) -> None:
    rows = [[str(each["run_id"]), each["job"] or "-", coloured(each["done"]), each["reason"] or ""] for each in done]
    click.echo(table([], rows))
    if any(each["done"] == "stopping" for each in done):
        click.echo("What is stopping ends when its worker has stopped it.")
