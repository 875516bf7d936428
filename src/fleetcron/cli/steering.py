"""`fleetcron jobs pause`, `resume`, `cancel`, `delete`: what people do to a job between two edits."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import click

from fleetcron.cli.connection import Database, database_options
from fleetcron.cli.moments import as_json as instant_json
from fleetcron.cli.moments import utc
from fleetcron.cli.names import by_option, the_job
from fleetcron.cli.tables import coloured
from fleetcron.cli.when import json_option, print_json
from fleetcron.model.rules import MisfirePolicy
from fleetcron.scheduler.desk import Applied, Desk
from fleetcron.store.store import Store

POLICIES = ("skip", "latest", "all")
_COUNTED: Final = 1_000  # as far as people count runs

Steer: TypeAlias = Callable[[Desk, str, str], Awaitable[Applied]]


@click.command("pause")
@click.argument("name")
@click.option("--on-resume", type=click.Choice(POLICIES), help="What becomes of the ticks meanwhile. [default: skip]")
@by_option
@database_options
@json_option
def pause(database: Database, name: str, on_resume: MisfirePolicy | None, by: str, as_json: bool) -> None:
    """Stop planning NAME until it is resumed."""
    done = _steered(database, name, by, lambda desk, tenant, own: desk.pause(tenant, own, on_resume))
    kept = done.applied.job.on_resume if done.applied.job else None
    _say(done, as_json, f"When it is resumed, the ticks meanwhile: {kept}. Resume it: fleetcron jobs resume {name}")


@click.command("resume")
@click.argument("name")
@click.option("--missed", type=click.Choice(POLICIES), help="What becomes of the paused ticks. [default: as paused]")
@by_option
@database_options
@json_option
def resume(database: Database, name: str, missed: MisfirePolicy | None, by: str, as_json: bool) -> None:
    """Plan NAME again, from now on."""
    done = _steered(database, name, by, lambda desk, tenant, own: desk.resume(tenant, own, missed))
    _say(done, as_json, f"What became of the ticks meanwhile: fleetcron ledger --job {name}")


@click.command("cancel")
@click.argument("name")
@by_option
@database_options
@json_option
def cancel(database: Database, name: str, by: str, as_json: bool) -> None:
    """End NAME for good: it keeps its name and its history, and never runs again."""
    _end(database, name, by, lambda desk, tenant, own: desk.cancel(tenant, own), as_json)


@click.command("delete")
@click.argument("name")
@by_option
@database_options
@json_option
def delete(database: Database, name: str, by: str, as_json: bool) -> None:
    """Delete NAME. Its runs, ledger and revisions stay, and the name is free again."""
    more = f"Its history stays: fleetcron jobs history {name}"
    _end(database, name, by, lambda desk, tenant, own: desk.delete(tenant, own), as_json, more)


@dataclass(frozen=True, slots=True)
class Done:
    """What became of it, when, and how many runs are left that have not started; `more`: there may be others."""

    applied: Applied
    now_ms: int
    left: int
    more: bool


def _end(database: Database, name: str, by: str, steer: Steer, as_json: bool, more: str | None = None) -> None:
    """Cancel or delete. What was planned for later is withdrawn with it; what is due or was asked for is left."""
    done = _steered(database, name, by, steer)
    _say(done, as_json, more, {"not_started": done.left})
    if done.left and not as_json:
        many = f"{done.left:,} or more" if done.more else f"{done.left:,}"
        runs, have, each = ("run", "has", "it is") if done.left == 1 and not done.more else ("runs", "have", "each is")
        said = f"{many} {runs} that {have} not started will not start either"
        click.echo(f"{said}: {each} closed as cancelled when its turn comes.")


def _steered(database: Database, name: str, by: str, steer: Steer) -> Done:
    shards = database.config().scheduler.shards

    async def work(store: Store) -> Done:
        job = (await the_job(store, name)).job
        tenant, own = job.definition.tenant, job.definition.name
        applied = await steer(Desk(store, actor=by, shards=shards), tenant, own)
        left = await store.history.open(job.job_id, limit=_COUNTED)
        now_ms = (await store.jobs.find(())).now_ms
        return Done(applied, now_ms, sum(not run.started for run in left), len(left) == _COUNTED)

    return database.run(work)


def _say(done: Done, as_json: bool, more: str | None = None, data: Mapping[str, Any] | None = None) -> None:
    applied = done.applied
    job = applied.job
    if as_json:
        told = {"tenant": applied.tenant, "name": applied.name, "done": applied.done}
        state = {"state": job.state, "revision": job.revision, "on_resume": job.on_resume} if job else {}
        print_json({**told, **state, "next": instant_json(applied.next_due_ms), **(data or {})})
        return
    still = f" (it is {job.state})" if applied.done == "unchanged" and job else ""
    click.echo(f"{applied.tenant}/{applied.name}: {coloured(applied.done)}{still}{_coming(done)}.")
    if more and applied.done != "unchanged":
        click.echo(more)


def _coming(done: Done) -> str:
    """A scheduler plans a tick ahead of its time; one that is past has none."""
    next_ms = done.applied.next_due_ms
    if next_ms is None:
        return ""
    if next_ms > done.now_ms:
        return f", next at {utc(next_ms)}"
    return f"; nobody has planned its tick of {utc(next_ms)} yet: is a scheduler running? fleetcron nodes"
