"""`fleetcron runs show`: one run with everything about it."""

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import click

from fleetcron.cli.asking import Doc
from fleetcron.cli.connection import Database, database_options
from fleetcron.cli.moments import distance, ms_of, now_ms, shown, utc
from fleetcron.cli.run_ids import no_such_run, numbering, run_argument
from fleetcron.cli.runs import covers_words
from fleetcron.cli.tables import coloured, numbered, printable, shortened, table
from fleetcron.cli.when import json_option, print_json
from fleetcron.model.states import RunState
from fleetcron.store.store import Store
from fleetcron.times.durations import rough_text
from fleetcron.views.runs import run_json
from fleetcron.views.sentence import sentence, stands

if TYPE_CHECKING:
    from fleetcron.client.blocking import Client

_HEADS = ("ATTEMPT", "WORKER", "STARTED", "TOOK", "OUTCOME", "PRINTED", "ERROR")
_CELL: Final = 100  # characters of an error in the table
_VALUE: Final = 300  # of the payload and the result
_LINES: Final = 20  # of the last error
_LINE: Final = 200  # characters of each


@click.command("show")
@run_argument
@database_options
@json_option
def show(database: Database, run_id: int, as_json: bool) -> None:
    """Show RUN (the number that `fleetcron runs` gives): its state and why, its attempts, its payload."""

    run, now = database.ask(lambda store: _of_store(store, run_id), lambda client: _of_api(client, run_id))
    if as_json:
        print_json(run)
    else:
        _show(run, now)


async def _of_store(store: Store, run_id: int) -> tuple[Doc, int]:
    found, situation = await store.history.run(run_id), await store.situations.of_run(run_id)
    if found is None or situation is None:
        raise no_such_run(run_id)
    attempts = await store.past_attempts.of_run(run_id)
    return run_json(found, attempts, sentence(situation, found), situation.now_ms), situation.now_ms


def _of_api(client: "Client", run_id: int) -> tuple[Doc, int]:
    with numbering(run_id):
        return client.runs.get(run_id), now_ms()


def _show(run: Doc, now: int) -> None:
    click.echo(click.style(f"run {run['run_id']} of {run['tenant']}/{run['name']}", bold=True))
    for head, text in _said(run, now):
        click.echo(f"  {head:<14}{text}")
    if (gone := run["discarded"]) is not None:
        said = "" if gone["by"] is None else f" by {gone['by']}"
        said += f": {gone['reason']}"
        click.echo(f"  {'discarded':<14}{shown(gone['at'])}{printable(said)}")
    if (after := run["next_run"]) is not None:
        stood = stands(RunState(after["state"]))
        click.echo(f"  {'next tick':<14}{shown(after['scheduled_for'])}: run {after['run_id']} {stood}")
    click.echo(f"  {'payload':<14}{_value(json.dumps(run['payload'], ensure_ascii=False))}")
    attempts: Sequence[Doc] = run["attempts"]
    if not attempts:
        click.echo("\nNo attempt has begun.")
        return
    click.echo(f"\n{table(_HEADS, [_row(each, now) for each in attempts])}")
    if (result := attempts[-1]["result"]) is not None:
        click.echo(f"\nResult: {_value(json.dumps(result, ensure_ascii=False))}")
    errors = [each["error"] for each in attempts if each["error"] is not None]
    if errors:
        _show_error(errors[-1])
    if any(each["log_bytes"] for each in attempts):
        click.echo(f"\nWhat it printed: fleetcron runs log {run['run_id']}")
    else:
        click.echo("\nIt has printed nothing.")


def _show_error(error: Doc) -> None:
    """The end of it, which says most; nothing if the table has said it all."""
    text = error["trace"] or error["text"]
    if not error["trace"] and text == shortened(text, _CELL - len(error["code"]) - 2) and "\n" not in text:
        return
    lines = text.splitlines()
    click.echo("\nThe last error:")
    if len(lines) > _LINES:
        click.echo(f"  … {len(lines) - _LINES:,} lines before these: --json has them all")
    for each in lines[-_LINES:]:
        click.echo(f"  {shortened(printable(each), _LINE)}")


def _value(text: str) -> str:
    return printable(text) if len(text) <= _VALUE else f"{printable(shortened(text, _VALUE))}   (--json has all of it)"


def _said(run: Doc, now: int) -> list[tuple[str, str]]:
    scheduled_ms = ms_of(run["scheduled_for"])
    jitter_ms = ms_of(run["run_after"]) - scheduled_ms
    said = [
        ("state", coloured(run["state"])),
        ("why", shortened(printable(run["why"]), _VALUE)),
        ("scheduled for", f"{utc(scheduled_ms)}   {distance(scheduled_ms, now)}"),
    ]
    if jitter_ms:
        said.append(("may start", f"{shown(run['run_after'])}   ({jitter_ms / 1000:g} s jitter)"))
    if run["started_at"] is not None and run["delay_ms"] is not None:
        late = rough_text(max(0, run["delay_ms"]))
        said.append(("started", f"{shown(run['started_at'])}   {late} after it might"))
    if run["finished_at"] is not None:
        lasted = run["duration_ms"]
        took = "" if lasted is None else f"   took {rough_text(lasted)}"
        said.append(("finished", shown(run["finished_at"]) + took))
    kind = "" if run["kind"] == "tick" else f", {run['kind']}"
    said.append(("lane, pool", f"{run['lane']}{kind}; pool {run['pool']}"))
    if run["window"] is not None:
        said.append(("covers", covers_words(run)))
    if run["round"]:
        said.append(("replayed", f"{run['round']} times" if run["round"] > 1 else "once"))
    if run["asked_by"] is not None:
        said.append(("asked by", printable(run["asked_by"])))
    said.append(("planned", f"{shown(run['created_at'])} by revision {run['revision']} of the job"))
    said.append(("idempotency", run["idempotency_key"]))
    return said


def _row(attempt: Doc, now: int) -> list[str]:
    error, lasted, size = attempt["error"], attempt["duration_ms"], attempt["log_bytes"]
    so_far = max(0, now - ms_of(attempt["started_at"]))
    far = "" if attempt["progress"] is None else f" {attempt['progress']:.0%} {attempt['note'] or ''}"
    return [
        str(attempt["attempt"]),
        printable(attempt["node_id"]),
        shown(attempt["started_at"]),
        f"{rough_text(so_far)} so far" if lasted is None else rough_text(lasted),
        coloured(attempt["outcome"] or "running") + printable(far).rstrip(),
        numbered(size, "byte") if size else "",
        "" if error is None else shortened(printable(_fault(error)), _CELL),
    ]


def _fault(error: Doc) -> str:
    """That it was cancelled stands beside it already; what is of interest is by whom."""
    code, text = error["code"], error["text"]
    return str(text) if code == "cancelled" and text else f"{code}: {text}".rstrip(": ")
