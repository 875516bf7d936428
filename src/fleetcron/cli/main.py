"""The list of commands. A command's module is imported only when it runs, so that every command starts fast."""

import os
import sys

import click

from fleetcron import __version__
from fleetcron.cli.lazy import LazyGroup, Table
from fleetcron.cli.tables import harmless
from fleetcron.client.errors import ApiError, TooManyRequests, Unavailable
from fleetcron.errors import (
    ConfigError,
    DefinitionError,
    FleetcronError,
    Mistake,
    ScheduleError,
    StoreError,
    StoreUnavailable,
)

FINE, FINDINGS, BAD_INPUT, UNAVAILABLE = range(4)  # exit codes; those of `plan` are its own
_HINTS = {401: "set FLEETCRON_API_KEY, or FLEETCRON_API_KEY_FILE to a file that has the key in it"}

COMMANDS: Table = {
    "serve": ("fleetcron.cli.serve", "Plan runs, execute them and serve the API until it is stopped."),
    "scheduler": ("fleetcron.cli.serve:scheduler", "Only plan runs."),
    "worker": ("fleetcron.cli.serve:worker", "Only execute runs."),
    "api": ("fleetcron.cli.serve:api", "Only serve the API."),
    "apply": ("fleetcron.cli.apply", "Create and change jobs and calendars from files."),
    "import": ("fleetcron.cli.importing", "Turn a crontab, CronJobs, Celery beat or APScheduler into jobs."),
    "shadow": ("fleetcron.cli.shadow", "Compare jobs in shadow with what the old scheduler did; hand them over."),
    "ping": ("fleetcron.cli.ping", "In a crontab: say that the old scheduler has run a job in shadow."),
    "plan": ("fleetcron.cli.plan", "Show what apply would change, and which ticks would appear, vanish or move."),
    "export": ("fleetcron.cli.export:export", "Print jobs and calendars as YAML that apply accepts."),
    "schema": ("fleetcron.cli.schema", "Print the JSON Schema of job files, for editors."),
    "jobs": ("fleetcron.cli.jobs", "List jobs; show, pause, resume, cancel, delete or export them."),
    "runs": ("fleetcron.cli.runs", "List runs; show one, read its log, ask why it waits."),
    "dead": ("fleetcron.cli.dead", "List runs that have failed for good; replay or discard them."),
    "why": ("fleetcron.cli.why", "Say why a run waits or ended so, or what became of a tick."),
    "ledger": ("fleetcron.cli.ledger", "List the ticks that did not run, and why."),
    "events": ("fleetcron.cli.events", "List what left the normal path."),
    "tenants": ("fleetcron.cli.tenants", "List tenants, or set what one may have: shares, caps and rates."),
    "pools": ("fleetcron.cli.pools", "List pools, or set their slots and quotas."),
    "hold": ("fleetcron.cli.holds:hold", "Incident: let nothing of a tenant, a pool or a type start."),
    "slow": ("fleetcron.cli.holds:slow", "Incident: retry a tenant or a type less."),
    "release": ("fleetcron.cli.holds:release", "Undo hold and slow, at once or by and by."),
    "holds": ("fleetcron.cli.holds:holds", "List what is held or slowed down now."),
    "keys": ("fleetcron.cli.keys", "List API keys; create and revoke them."),
    "nodes": ("fleetcron.cli.nodes", "List the nodes, and who plans which shard."),
    "shards": ("fleetcron.cli.shards", "Show or change how many shards the fleet has."),
    "top": ("fleetcron.cli.top", "Watch the fleet: pools, nodes, what runs, and what fails."),
    "completion": ("fleetcron.cli.completion", "Print what bash, zsh or fish need to complete commands and job names."),
    "migrate": ("fleetcron.cli.migrate", "Create or update the tables."),
    "config": ("fleetcron.cli.settings", "Show the settings and where each was said."),
    "next": ("fleetcron.cli.next", "Show the next ticks of a schedule."),
    "explain": ("fleetcron.cli.explain", "Say in words what a schedule does, and what clock changes do to it."),
    "lint": ("fleetcron.cli.lint", "Find what is allowed in a schedule but probably not meant."),
    "diff": ("fleetcron.cli.diff", "Compare two schedules: which ticks appear, vanish or move."),
    "simulate": ("fleetcron.cli.simulate", "Say what would run, be skipped, missed or late in a period."),
    "torture": ("fleetcron.cli.torture", "Hurt real nodes on your own database, and judge every promise."),
    "demo": ("fleetcron.cli.demo", "Show the tick calculator at work."),
}


@click.group(
    cls=LazyGroup, table=COMMANDS, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100}
)
@click.version_option(__version__, prog_name="fleetcron")
def root() -> None:
    """fleetcron: a distributed cron and job scheduler.

    Exit codes: 0 fine, 1 findings, differences or refused jobs, 2 bad input, 3 the database or the API is not
    available.
    Of plan: 0 no changes, 2 changes, 1 bad input or refused jobs.
    """


def main() -> None:
    """Run a command; a mistake of the user is a message and an exit code, never a traceback."""
    colour = False if os.environ.get("NO_COLOR") else None
    try:
        root(prog_name="fleetcron", color=colour)
    except (FleetcronError, OSError) as error:
        sys.exit(failed(error, colour))


def failed(error: FleetcronError | OSError, colour: bool | None) -> int:
    """Say what went wrong; the exit code."""
    if isinstance(error, ScheduleError):
        print_error(error, colour)
    elif isinstance(error, DefinitionError | ConfigError):
        for mistake in error.mistakes:
            place = f"{mistake.pointer}: " if mistake.pointer else ""
            _print(f"{place}{mistake.message}", mistake.hint, colour)
    elif isinstance(error, StoreError):
        _print(error.message, error.hint, colour)
    elif isinstance(error, ApiError):
        for each in error.mistakes or [Mistake("", error.detail, error.hint or _HINTS.get(error.status or 0))]:
            _print(f"{each.pointer}: {each.message}" if each.pointer else each.message, each.hint, colour)
    else:  # an OSError: the output cannot be written, a full disk, say
        _print(str(error), None, colour)
    return exit_code_of(error)


def exit_code_of(error: FleetcronError | OSError) -> int:
    return UNAVAILABLE if isinstance(error, StoreUnavailable | TooManyRequests | Unavailable) else BAD_INPUT


def one_line(error: FleetcronError | OSError) -> str:
    """For a log: what went wrong, and nothing about what to do."""
    if isinstance(error, DefinitionError | ConfigError | ApiError) and error.mistakes:
        return "; ".join(harmless(f"{mistake.pointer}: {mistake.message}") for mistake in error.mistakes)
    message = error.message if isinstance(error, StoreError) else error.detail if isinstance(error, ApiError) else error
    return harmless(str(message)).replace("\n", " ")


def print_error(error: ScheduleError, colour: bool | None) -> None:
    pointer = error.pointer() or ""
    _print("\n".join([error.mistake, *(f"  {line}" for line in pointer.splitlines())]), error.hint, colour)


def _print(message: str, hint: str | None, colour: bool | None) -> None:
    lines = [f"{click.style('error', fg='red', bold=True)}: {harmless(message)}"]
    if hint:
        lines.append(f"{click.style('hint', fg='cyan')}: {harmless(hint)}")
    click.echo("\n".join(lines), err=True, color=colour)
