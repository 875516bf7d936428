"""`fleetcron runs show`: one run with everything about it, and how the commands about one run find it."""

import json
from collections.abc import Sequence
from typing import Any

import click

from fleetcron.cli.connection import Database, database_options
from fleetcron.cli.moments import as_json as instant_json
from fleetcron.cli.moments import distance, utc
from fleetcron.cli.runs import covers_words, line_json
from fleetcron.cli.tables import coloured, printable, table
from fleetcron.cli.when import json_option, print_json
from fleetcron.errors import RefusedError
from fleetcron.model.run import RunLine
from fleetcron.policy.why import why
from fleetcron.store.attempts import PastAttempt
from fleetcron.store.history import RunShown
from fleetcron.store.store import Store
from fleetcron.times.durations import rough_text

_HEADS = ("ATTEMPT", "WORKER", "STARTED", "TOOK", "OUTCOME", "PRINTED", "ERROR")

run_argument = click.argument("run_id", metavar="RUN", type=click.IntRange(1, 2**63 - 1))


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
        return shown, await store.past_attempts.of_run(run_id), why(situation), situation.now_ms

    shown, attempts, sentence, now_ms = database.run(work)
    if as_json:
        print_json(_as_json(shown, attempts, sentence, now_ms))
    else:
        _show(shown, attempts, sentence, now_ms)


def no_such_run(run_id: int) -> RefusedError:
    return RefusedError(f"there is no run {run_id}; `fleetcron runs` lists them, and what was archived is not there")


def _show(shown: RunShown, attempts: Sequence[PastAttempt], sentence: str, now_ms: int) -> None:
    line = shown.line
    click.echo(click.style(f"run {line.run.run_id} of {line.job}", bold=True))
    for head, text in _said(line, sentence, now_ms):
        click.echo(f"  {head:<14}{text}")
    if shown.next is not None:
        after = shown.next.run
        state = coloured(after.state.value)
        click.echo(f"  {'next tick':<14}{utc(after.scheduled_for_ms)}: run {after.run_id} is {state}")
    click.echo(f"  {'payload':<14}{json.dumps(shown.payload, ensure_ascii=True)}")
    if not attempts:
        click.echo("\nNo attempt has begun.")
        return
    click.echo(f"\n{table(_HEADS, [_row(each, now_ms) for each in attempts])}")
    if attempts[-1].result is not None:
        click.echo(f"\nResult: {printable(attempts[-1].result)}")
    failed = [each.error for each in attempts if each.error is not None and each.error.trace]
    if failed:
        trace = "\n".join(f"  {printable(text)}" for text in (failed[-1].trace or "").splitlines())
        click.echo(f"\nThe last error:\n{trace}")
    click.echo(f"\nWhat it printed: fleetcron runs log {line.run.run_id}")


def _said(line: RunLine, sentence: str, now_ms: int) -> list[tuple[str, str]]:
    run = line.run
    jitter_ms = run.run_after_ms - run.scheduled_for_ms
    said = [
        ("state", coloured(run.state.value)),
        ("why", printable(sentence)),
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


def _row(attempt: PastAttempt, now_ms: int) -> list[str]:
    error = attempt.error
    lasted = attempt.lasted_ms
    far = "" if attempt.progress is None else f" {attempt.progress:.0%} {attempt.note or ''}"
    return [
        str(attempt.attempt),
        attempt.node_id,
        utc(attempt.started_ms),
        f"{rough_text(max(0, now_ms - attempt.started_ms))} so far" if lasted is None else rough_text(lasted),
        coloured(attempt.outcome or "running") + printable(far).rstrip(),
        f"{attempt.log_bytes:,} bytes" if attempt.log_bytes else "",
        "" if error is None else printable(f"{error.code}: {error.text}".rstrip(": "))[:100],
    ]


def _as_json(shown: RunShown, attempts: Sequence[PastAttempt], sentence: str, now_ms: int) -> dict[str, Any]:
    after = shown.next and shown.next.run
    return {
        **line_json(shown.line, now_ms),
        "why": sentence,
        "payload": dict(shown.payload),
        "next_run": after
        and {
            "run_id": after.run_id,
            "scheduled_for": instant_json(after.scheduled_for_ms),
            "state": after.state.value,
        },
        "attempts": [_attempt_json(each) for each in attempts],
    }


def _attempt_json(attempt: PastAttempt) -> dict[str, Any]:
    error = attempt.error
    return {
        "attempt": attempt.attempt,
        "node_id": attempt.node_id,
        "outcome": attempt.outcome,
        "started_at": instant_json(attempt.started_ms),
        "finished_at": instant_json(attempt.finished_ms),
        "duration_ms": attempt.lasted_ms,
        "error": error and {"code": error.code, "text": error.text, "trace": error.trace},
        "result": None if attempt.result is None else json.loads(attempt.result),
        "log_bytes": attempt.log_bytes,
        "progress": attempt.progress,
        "note": attempt.note,
    }
