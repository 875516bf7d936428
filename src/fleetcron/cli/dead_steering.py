"""`fleetcron dead replay` and `discard`."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

import click

from fleetcron.cli.asking import answer
from fleetcron.cli.connection import Database, database_options
from fleetcron.cli.dead import Which, which_options
from fleetcron.cli.names import by_option
from fleetcron.cli.run_ids import RUN_ID, checked_ids
from fleetcron.cli.run_steering import checked_reason, steer
from fleetcron.cli.tables import numbered
from fleetcron.cli.when import json_option, print_json
from fleetcron.store.steering import BATCH, DeadCount, DeadFilter
from fleetcron.store.store import Store


@click.command("replay")
@click.argument("run_ids", metavar="[RUN]...", nargs=-1, type=RUN_ID, callback=checked_ids)
@which_options
@click.option("--all", "everything", is_flag=True, help="All dead letters.")
@click.option("--limit", type=click.IntRange(1), help="At most so many, the oldest first.")
@click.option("--dry-run", is_flag=True, help="Only count.")
@by_option
@database_options
@json_option
def replay(
    database: Database,
    run_ids: tuple[int, ...],
    which: Which,
    everything: bool,
    limit: int | None,
    dry_run: bool,
    by: str,
    as_json: bool,
) -> None:
    """Open dead runs again: those with the given numbers, or all that the options describe.

    The same runs with the same idempotency keys, in the catch-up lane. Runs of deleted and cancelled jobs stay dead.
    """
    if run_ids:
        if everything or dry_run or limit is not None or not which.is_for_all:
            raise click.UsageError("Give numbers of runs, or options that choose them; not both.")
        steer(database, lambda store: store.steering.replay(run_ids, actor=by), as_json)
        return
    if which.is_for_all != everything:
        what = (
            "--all and other options exclude each other"
            if everything
            else "Which ones? Give numbers of runs, options such as --job NAME, or --all"
        )
        raise click.UsageError(f"{what}.")
    count, done = database.run(lambda store: _replay(store, which, limit, by, dry_run))
    if as_json:
        print_json({"dead": count.runs, "can_be_replayed": count.open, "replayed": done, "dry_run": dry_run})
        return
    if not count.runs:
        click.echo("No dead letter is like that: nothing to replay.")
    elif dry_run:
        click.echo(f"{numbered(min(count.open, limit or count.open), 'run')} would be replayed.")
    else:
        click.echo(f"{numbered(done, 'run')} replayed.")
    if count.runs > count.open:
        closed = count.runs - count.open
        stay = "stays" if closed == 1 else "stay"
        click.echo(f"{numbered(closed, 'run')} of deleted or cancelled jobs {stay} dead.")


async def _replay(store: Store, which: Which, limit: int | None, by: str, dry_run: bool) -> tuple[DeadCount, int]:
    wanted = await which.filter(store)
    count = await store.steering.count_dead(wanted)
    if dry_run:
        return count, 0
    with _progress(min(count.open, limit or count.open)) as progress:
        return count, await _batches(store, wanted, limit, by, progress)


async def _batches(
    store: Store, wanted: DeadFilter, limit: int | None, by: str, progress: Callable[[int], None]
) -> int:
    done, after_id = 0, 0
    while limit is None or done < limit:
        most = BATCH if limit is None else min(BATCH, limit - done)
        verb = partial(store.steering.replay_many, wanted, actor=by, after_id=after_id, limit=most)
        batch = await answer(verb)
        done += batch.runs
        progress(batch.runs)
        if batch.after_id is None:
            break
        after_id = batch.after_id
    return done


@contextmanager
def _progress(runs: int) -> Iterator[Callable[[int], None]]:
    if runs <= BATCH or not sys.stderr.isatty():
        yield lambda _: None
        return
    with click.progressbar(length=runs, label="replaying", file=sys.stderr, show_pos=True) as bar:
        yield bar.update


@click.command("discard")
@click.argument("run_ids", metavar="RUN...", nargs=-1, required=True, type=RUN_ID, callback=checked_ids)
@click.option("--reason", metavar="TEXT", required=True, callback=checked_reason, help="Why nobody has to look at it.")
@by_option
@database_options
@json_option
def discard(database: Database, run_ids: tuple[int, ...], reason: str, by: str, as_json: bool) -> None:
    """Take dead runs from the list. They stay dead and in the history; a replay takes it back.

    Exit code 1 when a run is not dead, or there is no such run.
    """
    steer(database, lambda store: store.steering.discard(run_ids, reason, actor=by), as_json)
