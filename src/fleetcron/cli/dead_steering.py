"""`fleetcron dead replay` and `discard`."""

from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

import click

from fleetcron.cli.asking import Doc
from fleetcron.cli.connection import Database, database_options
from fleetcron.cli.dead import Which, which_options
from fleetcron.cli.many import confirm, progress, steered, steered_there, yes_option
from fleetcron.cli.names import by_option
from fleetcron.cli.run_ids import RUN_ID, checked_ids
from fleetcron.cli.run_steering import checked_reason, steer
from fleetcron.cli.tables import numbered
from fleetcron.cli.when import json_option, print_json
from fleetcron.store.steering import BATCH, DeadFilter
from fleetcron.store.store import Store
from fleetcron.views.asking import answer
from fleetcron.views.replaying import replay as replayed

if TYPE_CHECKING:
    from fleetcron.client.blocking import Client


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
    if _by_number(run_ids, which, everything, dry_run or limit is not None):
        steer(
            database,
            lambda store: replayed(store.steering, run_ids, actor=by),
            lambda client: client.runs.replay_many(run_ids),
            as_json,
        )
        return
    done = database.ask(
        lambda store: _replay(store, which, limit, by, dry_run),
        lambda client: _replay_there(client, which, limit, dry_run),
    )
    if as_json:
        print_json(done)
        return
    runs, can_be = done["dead"], done["can_be_replayed"]
    if not runs:
        click.echo("No dead letter is like that: nothing to replay.")
    elif dry_run:
        click.echo(f"{numbered(min(can_be, limit or can_be), 'run')} would be replayed.")
    else:
        click.echo(f"{numbered(done['replayed'], 'run')} replayed.")
    if runs > can_be:
        closed = runs - can_be
        stay = "stays" if closed == 1 else "stay"
        click.echo(f"{numbered(closed, 'run')} of deleted or cancelled jobs {stay} dead.")


async def _replay(store: Store, which: Which, limit: int | None, by: str, dry_run: bool) -> Doc:
    wanted = await which.filter(store)
    count = await store.steering.count_dead(wanted)
    done = 0
    if not dry_run:
        with progress(min(count.open, limit or count.open), "replaying") as told:
            done = await _batches(store, wanted.until(count.now_ms), limit, by, told)
    return {"dead": count.runs, "can_be_replayed": count.open, "replayed": done, "dry_run": dry_run}


def _replay_there(client: "Client", which: Which, limit: int | None, dry_run: bool) -> Doc:
    """Some at a time: one answer is not to take longer than somebody waits for it."""
    query = which.query(client)
    first = client.dead.replay(**query, dry_run=True)
    most = min(first["can_be_replayed"], limit or first["can_be_replayed"])
    done = 0
    if not dry_run:
        with progress(most, "replaying") as told:
            while done < most:
                replayed = client.dead.replay(**query, limit=min(BATCH, most - done))["replayed"]
                done += replayed
                told(replayed)
                if not replayed:
                    break
    return {**first, "replayed": done, "dry_run": dry_run}


async def _batches(store: Store, wanted: DeadFilter, limit: int | None, by: str, told: Callable[[int], None]) -> int:
    done, after_id = 0, 0
    while limit is None or done < limit:
        most = BATCH if limit is None else min(BATCH, limit - done)
        verb = partial(store.steering.replay_many, wanted, actor=by, after_id=after_id, limit=most)
        batch = await answer(verb)
        done += batch.runs
        told(batch.runs)
        if batch.after_id is None:
            break
        after_id = batch.after_id
    return done


@click.command("discard")
@click.argument("run_ids", metavar="[RUN]...", nargs=-1, type=RUN_ID, callback=checked_ids)
@which_options
@click.option("--all", "everything", is_flag=True, help="All dead letters.")
@click.option("--reason", metavar="TEXT", required=True, callback=checked_reason, help="Why nobody has to look at it.")
@click.option("--dry-run", is_flag=True, help="Only count.")
@yes_option
@by_option
@database_options
@json_option
def discard(
    database: Database,
    run_ids: tuple[int, ...],
    which: Which,
    everything: bool,
    reason: str,
    dry_run: bool,
    yes: bool,
    by: str,
    as_json: bool,
) -> None:
    """Take dead runs from the list: those with the given numbers, or all that the options describe.

    They stay dead and in the history; a replay takes it back. By number, exit code 1 when a run is not dead, or there
    is no such run.
    """
    if _by_number(run_ids, which, everything, dry_run):
        steer(
            database,
            lambda store: answer(lambda: store.steering.discard(run_ids, reason, actor=by)),
            lambda client: client.runs.discard_many(run_ids, reason),
            as_json,
        )
        return
    found = database.ask(
        lambda store: _letters(store, which),
        lambda client: [each["run_id"] for each in client.dead.list(**which.query(client))],
    )
    done: Counter[str] = Counter()
    if found and not dry_run:
        confirm(f"Discard {numbered(len(found), 'dead letter')}?", yes=yes, as_json=as_json)
        done = database.ask(
            lambda store: steered(found, "discarding", lambda some: store.steering.discard(some, reason, actor=by)),
            lambda client: steered_there(found, "discarding", lambda some: client.runs.discard_many(some, reason)),
        )
    if as_json:
        print_json({"dead": len(found), "discarded": done["discarded"], "dry_run": dry_run})
    elif not found:
        click.echo("No dead letter is like that: nothing to discard.")
    elif dry_run:
        click.echo(f"{numbered(len(found), 'run')} would be discarded.")
    else:
        click.echo(f"{numbered(done['discarded'], 'run')} discarded.")
        if other := done.total() - done["discarded"]:
            click.echo(f"{numbered(other, 'run')} had been replayed or discarded in the meantime.")


async def _letters(store: Store, which: Which) -> list[int]:
    wanted = await which.filter(store)
    found: list[int] = []
    while True:
        page = await store.steering.dead(wanted, limit=BATCH, before_id=found[-1] if found else None)
        found += [each.run_id for each in page]
        if len(page) < BATCH:
            return found


def _by_number(run_ids: tuple[int, ...], which: Which, everything: bool, chosen: bool) -> bool:
    """Whether numbers say which ones; if neither they nor options do, or both, that is a mistake."""
    if run_ids:
        if everything or chosen or not which.is_for_all:
            raise click.UsageError("Give numbers of runs, or options that choose them; not both.")
        return True
    if which.is_for_all and not everything:
        raise click.UsageError("Which ones? Give numbers of runs, options such as --job NAME, or --all.")
    if everything and not which.is_for_all:
        raise click.UsageError("--all and other options exclude each other.")
    return False
