"""`fleetcron runs show`: one run with everything about it."""

import json
from collections.abc import Sequence
from typing import Final

import click

from fleetcron.cli.connection import Database, database_options
from fleetcron.cli.moments import distance, utc
from fleetcron.cli.run_ids import no_such_run, run_argument
from fleetcron.cli.runs import covers_words
from fleetcron.cli.tables import coloured, numbered, printable, shortened, table
from fleetcron.cli.when import json_option, print_json
from fleetcron.model.outcome import Fault
from fleetcron.model.run import RunLine
from fleetcron.store.attempts import PastAttempt
from fleetcron.store.history import RunShown
from fleetcron.store.store import Store
from fleetcron.times.durations import rough_text
from fleetcron.views.runs import payload_of, printed, run_json
from fleetcron.views.sentence import sentence, stands

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

    async def work(store: Store) -> tuple[RunShown, Sequence[PastAttempt], str, int]:
        shown, situation = await store.history.run(run_id), await store.situations.of_run(run_id)
        if shown is None or situation is None:
            raise no_such_run(run_id)
        said = sentence(situation, shown)
        return shown, await store.past_attempts.of_run(run_id), said, situation.now_ms

    shown, attempts, said, now_ms = database.run(work)
    if as_json:
        print_json(run_json(shown, attempts, said, now_ms))
    else:
        _show(shown, attempts, said, now_ms)


def _show(shown: RunShown, attempts: Sequence[PastAttempt], sentence: str, now_ms: int) -> None:
    line = shown.line
    click.echo(click.style(f"run {line.run.run_id} of {line.job}", bold=True))
    for head, text in _said(line, sentence, now_ms):
        click.echo(f"  {head:<14}{text}")
    if shown.discarded is not None:
        gone = shown.discarded
        who = "" if gone.by is None else f" by {gone.by}"
        click.echo(f"  {'discarded':<14}{utc(gone.at_ms)}{printable(f'{who}: {gone.why}')}")
    if shown.next is not None:
        after = shown.next.run
        click.echo(f"  {'next tick':<14}{utc(after.scheduled_for_ms)}: run {after.run_id} {stands(after.state)}")
    click.echo(f"  {'payload':<14}{_value(json.dumps(payload_of(shown), ensure_ascii=False))}")
    if not attempts:
        click.echo("\nNo attempt has begun.")
        return
    click.echo(f"\n{table(_HEADS, [_row(each, shown, now_ms) for each in attempts])}")
    if attempts[-1].result is not None:
        click.echo(f"\nResult: {_value(attempts[-1].result)}")
    errors = [each.error for each in attempts if each.error is not None]
    if errors:
        _show_error(errors[-1])
    if any(printed(each, shown) for each in attempts):
        click.echo(f"\nWhat it printed: fleetcron runs log {line.run.run_id}")
    else:
        click.echo("\nIt has printed nothing.")


def _show_error(error: Fault) -> None:
    """The end of it, which says most; nothing if the table has said it all."""
    text = error.trace or error.text
    if not error.trace and text == shortened(text, _CELL - len(error.code) - 2) and "\n" not in text:
        return
    lines = text.splitlines()
    click.echo("\nThe last error:")
    if len(lines) > _LINES:
        click.echo(f"  … {len(lines) - _LINES:,} lines before these: --json has them all")
    for each in lines[-_LINES:]:
        click.echo(f"  {shortened(printable(each), _LINE)}")


def _value(text: str) -> str:
    return printable(text) if len(text) <= _VALUE else f"{printable(shortened(text, _VALUE))}   (--json has all of it)"


def _said(line: RunLine, sentence: str, now_ms: int) -> list[tuple[str, str]]:
    run = line.run
    jitter_ms = run.run_after_ms - run.scheduled_for_ms
    said = [
        ("state", coloured(run.state.value)),
        ("why", shortened(printable(sentence), _VALUE)),
        ("scheduled for", f"{utc(run.scheduled_for_ms)}   {distance(run.scheduled_for_ms, now_ms)}"),
    ]
    if jitter_ms:
        said.append(("may start", f"{utc(run.run_after_ms)}   ({jitter_ms / 1000:g} s jitter)"))
    if run.started_ms is not None and line.delay_ms is not None:
        said.append(("started", f"{utc(run.started_ms)}   {rough_text(max(0, line.delay_ms))} after it might"))
    if run.finished_ms is not None:
        lasted = line.lasted_ms(now_ms)
        said.append(("finished", utc(run.finished_ms) + ("" if lasted is None else f"   took {rough_text(lasted)}")))
    kind = "" if run.kind == "tick" else f", {run.kind}"
    said.append(("lane, pool", f"{run.lane}{kind}; pool {line.pool}"))
    if run.window_ms is not None:
        said.append(("covers", covers_words(line)))
    if run.round:
        said.append(("replayed", f"{run.round} times" if run.round > 1 else "once"))
    if run.asked_by is not None:
        said.append(("asked by", printable(run.asked_by)))
    said.append(("planned", f"{utc(run.created_ms)} by revision {run.revision} of the job"))
    said.append(("idempotency", run.idempotency_key))
    return said


def _row(attempt: PastAttempt, shown: RunShown, now_ms: int) -> list[str]:
    error = attempt.error
    lasted = attempt.lasted_ms
    size = printed(attempt, shown)
    far = "" if attempt.progress is None else f" {attempt.progress:.0%} {attempt.note or ''}"
    return [
        str(attempt.attempt),
        printable(attempt.node_id),
        utc(attempt.started_ms),
        f"{rough_text(max(0, now_ms - attempt.started_ms))} so far" if lasted is None else rough_text(lasted),
        coloured(attempt.outcome or "running") + printable(far).rstrip(),
        numbered(size, "byte") if size else "",
        "" if error is None else shortened(printable(_fault(error)), _CELL),
    ]


def _fault(error: Fault) -> str:
    """That it was cancelled stands beside it already; what is of interest is by whom."""
    return error.text if error.code == "cancelled" and error.text else f"{error.code}: {error.text}".rstrip(": ")
