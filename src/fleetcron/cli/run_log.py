"""`fleetcron runs log`: what an attempt printed; with --follow also what it prints from now on."""

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import click

from fleetcron.cli.asking import Doc
from fleetcron.cli.connection import Database, database_options
from fleetcron.cli.run_ids import no_such_run, numbering, run_argument
from fleetcron.cli.tables import harmless
from fleetcron.cli.when import json_option, json_text
from fleetcron.errors import RefusedError
from fleetcron.model.states import RunState
from fleetcron.store.store import Store
from fleetcron.views.logs import followed, piece_json

if TYPE_CHECKING:
    from fleetcron.client.blocking import Client

_LEFT_OUT: Final = "[something is left out here: of each attempt the first 8 MiB and the last 64 KiB are kept]"


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

    printer = _Printer(follow and attempt is None, raw=raw, as_json=as_json)

    async def of_store(store: Store) -> _State:
        async def state() -> _State:
            page = await store.past_attempts.log(run_id, attempt, limit=1)
            if page is None:
                raise no_such_run(run_id)
            return _State(page.latest or 0, page.is_final)

        printer.begin(first := await state(), run_id, attempt, follow=follow)
        async for page, piece in followed(store, run_id, attempt, follow=follow):
            printer.piece(piece_json(page.attempt, piece))
        return await state() if follow else first

    def of_api(client: "Client") -> _State:
        def state() -> _State:
            with numbering(run_id):
                run = client.runs.get(run_id)
            return _State(max((each["attempt"] for each in run["attempts"]), default=0), is_final(run))

        printer.begin(first := state(), run_id, attempt, follow=follow)
        there = client.runs.follow if follow else client.runs.log
        for piece in there(run_id, attempt=attempt):
            printer.piece(piece)
        return state() if follow else first

    now = database.ask(of_store, of_api)
    if not printer.attempts and not as_json:
        click.echo(_nothing(now, run_id, attempt), err=True)


@dataclass(frozen=True, slots=True)
class _State:
    """Of a run: the last attempt that has begun (0: none), and whether it is over."""

    latest: int
    is_final: bool

    @property
    def has_started(self) -> bool:
        return self.latest > 0


class _Printer:
    """`marked`: each attempt after the first begins with a line that says so."""

    def __init__(self, marked: bool, *, raw: bool, as_json: bool) -> None:
        self._marked, self._raw, self._as_json = marked, raw, as_json
        self.attempts: set[int] = set()

    def begin(self, state: _State, run_id: int, attempt: int | None, *, follow: bool) -> None:
        if attempt is not None and attempt > state.latest and state.has_started and (state.is_final or not follow):
            raise RefusedError(f"run {run_id} has no attempt {attempt}: the latest is {state.latest}")
        if follow and not self._as_json and not state.has_started and not state.is_final:
            click.echo(_nothing(state, run_id, attempt), err=True)

    def piece(self, piece: Doc) -> None:
        if self._as_json:
            click.echo(json_text(piece))
            return
        attempt = piece["attempt"]
        if self._marked and attempt not in self.attempts and (self.attempts or attempt > 1):
            click.secho(f"--- attempt {attempt}", fg="cyan", err=True)
        self.attempts.add(attempt)
        sys.stdout.write(piece["text"] if self._raw else harmless(piece["text"]))
        sys.stdout.flush()
        if piece["truncated"]:
            click.secho(f"\n{_LEFT_OUT}", fg="yellow", err=True)


def is_final(run: Doc) -> bool:
    return RunState(run["state"]).is_final


def _nothing(state: _State, run_id: int, attempt: int | None) -> str:
    if not state.has_started:
        said = "It never started" if state.is_final else "It has not started"
        return f"{said}; why: fleetcron why {run_id}"
    return "Nothing was printed." if attempt is None else f"Attempt {attempt} printed nothing."
