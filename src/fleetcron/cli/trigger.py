"""`fleetcron jobs trigger`: a run at once, outside the schedule."""

import json
import secrets
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fleetcron.cli.asking import Doc
from fleetcron.cli.connection import Database, database_options
from fleetcron.cli.names import by_option, naming, split_there, the_job
from fleetcron.cli.when import json_option, print_json
from fleetcron.errors import DefinitionError, Mistake
from fleetcron.model.payload import MAX_DEPTH
from fleetcron.store.steering import LONGEST_KEY
from fleetcron.store.store import Store
from fleetcron.views.asking import answer
from fleetcron.views.runs import triggered_json

if TYPE_CHECKING:
    from fleetcron.client.blocking import Client


@click.command("trigger")
@click.argument("name")
@click.option("--payload", metavar="JSON|@FILE", help="Instead of the job's own; @- is standard input.")
@click.option("--key", metavar="TEXT", help="Asking again with the same key gives the same run. [default: a new one]")
@by_option
@database_options
@json_option
def trigger(database: Database, name: str, payload: str | None, key: str | None, by: str, as_json: bool) -> None:
    """Run NAME now, whatever its schedule says. Also a paused or finished job.

    The run has an identity of its own: it never takes the place of a tick.
    """
    if key is not None and not 0 < len(key) <= LONGEST_KEY:
        raise click.BadParameter(f"write 1 to {LONGEST_KEY} characters", param_hint="--key")
    given = None if payload is None else _payload(payload)

    async def of_store(store: Store) -> Doc:
        job = (await the_job(store, name)).job
        own = key or secrets.token_hex(16)
        return triggered_json(await answer(lambda: store.steering.trigger(job.job_id, given, actor=by, key=own)))

    def of_api(client: "Client") -> Doc:
        tenant, job = split_there(name)
        with naming(client, name):
            return client.jobs.trigger(job, payload=given, key=key, tenant=tenant)

    made = database.ask(of_store, of_api)
    if as_json:
        print_json(made)
        return
    full, run_id = f"{made['tenant']}/{made['name']}", made["run_id"]
    click.echo(f"{full}: run {run_id} is on its way." if made["created"] else f"{full}: it is run {run_id}.")
    click.echo(f"What becomes of it: fleetcron runs show {run_id}")


def _payload(text: str) -> dict[str, Any]:
    written = _read(text)
    try:
        found = json.loads(written, object_pairs_hook=_once)
    except RecursionError:
        wrong = f"nested deeper than {MAX_DEPTH} levels"
        raise DefinitionError([Mistake("--payload", wrong, "make the payload flatter")]) from None
    except DefinitionError:
        raise
    except ValueError as error:
        hint = """such as '{"kind": "full"}', or @file.json"""
        raise DefinitionError([Mistake("--payload", f"it is not JSON: {error}", hint)]) from None
    if not isinstance(found, dict):
        raise DefinitionError([Mistake("--payload", "must be a JSON object", """such as '{"kind": "full"}'""")])
    return found


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """As in YAML: of a key that is written twice nobody knows which one was meant."""
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise DefinitionError([Mistake("--payload", f"the key {key[:60]!r} is written twice", "keep one of them")])
        found[key] = value
    return found


def _read(text: str) -> str:
    if not text.startswith("@"):
        return text
    if text == "@-":
        return sys.stdin.read()
    try:
        return Path(text[1:]).read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not text"
        raise DefinitionError([Mistake("--payload", f"{text[1:]} cannot be read: {why}")]) from None
