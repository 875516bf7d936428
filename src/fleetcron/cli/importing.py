"""`fleetcron import`: jobs of other schedulers as documents of ours. It shows a plan, and applies only if asked."""

import shlex
import shutil
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import Any, TypeVar

import click

from fleetcron.cli.connection import DEFAULT_FILE, Database, database_options, is_named, sqlite_path
from fleetcron.cli.imported import Outcome, finish
from fleetcron.cli.lazy import LazyGroup, Table
from fleetcron.cli.names import by_option
from fleetcron.cli.when import json_option
from fleetcron.clock import utc_now
from fleetcron.config.kinds import masked
from fleetcron.errors import ConfigError, Mistake, ScheduleError
from fleetcron.imports.plan import Origin, Plan, Wish
from fleetcron.times.instants import parse_instant, to_ms

Command = TypeVar("Command", bound=Callable[..., Any])
_KEY = "a key of the role ping, in a file that FLEETCRON_API_KEY_FILE names above the lines"
_NO_DATABASE = (
    "the database URL has a password in it, which does not belong into a crontab: the lines name no database",
    "set FLEETCRON_DATABASE_URL above the lines if only its user reads the file, or import with --config FILE that has"
    f" store.url in it, or with --api URL and {_KEY}",
)
_NO_KEY = ("the lines name the API and no key", f"each ping needs {_KEY}")

COMMANDS: Table = {
    "crontab": ("fleetcron.cli.import_crontab", "A user's crontab, /etc/crontab, or a folder like /etc/cron.d."),
    "k8s": ("fleetcron.cli.import_k8s", "CronJob manifests of Kubernetes."),
    "celery": ("fleetcron.cli.import_celery", "The beat schedule of a Celery app."),
    "apscheduler": ("fleetcron.cli.import_apscheduler", "A job store, or an export, of APScheduler 3."),
}


@click.group("import", cls=LazyGroup, table=COMMANDS)
def command() -> None:
    """Turn what another scheduler has into jobs of fleetcron.

    Writes YAML for `fleetcron apply` to standard output (or --output), and a plan beside it: what could not be
    translated, and what will behave in another way. Nothing is applied without --apply, and that asks first.

    Exit code 1 when something was left out.
    """


_OPTIONS = (
    click.option("-o", "--output", metavar="FILE", help="Write the YAML there. [default: standard output]"),
    click.option("--force", is_flag=True, help="Write over a file that is there already and says something else."),
    click.option("--tenant", metavar="NAME", help="Who owns the jobs. [default: default]"),
    click.option("--pool", metavar="NAME", help="The workers that run them. [default: default]"),
    click.option("--prefix", default="", metavar="TEXT", help="Put this in front of every name."),
    click.option("--defaults", is_flag=True, help="fleetcron's own policies for overlaps, misses, failures and clock "
                 "changes, instead of those of the old scheduler."),
    click.option("--hand-over", metavar="T", help="No tick before this instant: the old scheduler has those."),
    click.option("--shadow", is_flag=True, help="The old scheduler goes on and pings us; nothing of the jobs runs "
                 "until they are handed over, or until --hand-over."),
    click.option("--apply", "wants_apply", is_flag=True, help="After the plan: ask, and apply."),
    click.option("--anyway", is_flag=True, help="With --hand-over and --apply: also what no living worker could run."),
    click.option("-y", "--yes", is_flag=True, help="With --apply: do not ask."),
)  # fmt: skip


def import_options(function: Command) -> Command:
    """The options that all imports share. The command makes a plan of the `wish`; showing and applying is done here."""

    @wraps(function)
    def wrapped(
        output: str | None,
        force: bool,
        tenant: str | None,
        pool: str | None,
        prefix: str,
        defaults: bool,
        hand_over: str | None,
        shadow: bool,
        wants_apply: bool,
        anyway: bool,
        yes: bool,
        **values: Any,
    ) -> None:
        if yes and not wants_apply:
            raise click.UsageError("--yes goes with --apply")
        if anyway and not (wants_apply and hand_over):
            raise click.UsageError("--anyway goes with --hand-over and --apply")
        outcome = Outcome(
            output=output,
            apply=wants_apply,
            yes=yes,
            anyway=anyway,
            force=force,
            by=values.pop("by"),
            database=values.pop("database"),
            as_json=values.pop("as_json"),
        )
        if wants_apply:
            outcome.database.config()  # whoever cannot reach the database is told before the plan, not after it
        ping = ping_command(outcome.database) if shadow else None
        wish = Wish(tenant, pool, prefix, defaults, _instant(hand_over), shadow, "" if ping is None else ping.text)
        plan: Plan = function(wish=wish, **values)
        if ping is not None and ping.note is not None and any(each.lines for each in plan.pinged):
            plan.say("note", *ping.note)
        finish(plan, outcome)

    for option in reversed(_OPTIONS):
        wrapped = option(wrapped)
    return json_option(by_option(database_options(wrapped)))  # type: ignore[return-value]


def _instant(text: str | None) -> int | None:
    if text is None:
        return None
    try:
        instant = parse_instant(text)
    except ScheduleError as error:
        raise ScheduleError(f"--hand-over: {error.mistake}", hint=error.hint) from None
    if instant <= utc_now():
        raise ScheduleError("--hand-over: this instant has passed", hint="ticks since then would be in nobody's half")
    return to_ms(instant)


@dataclass(frozen=True, slots=True)
class PingCommand:
    """How a crontab calls us, and what else it needs for that: a text and a hint."""

    text: str
    note: tuple[str, str] | None = None


def ping_command(database: Database) -> PingCommand:
    """A crontab has another folder, another PATH and no settings. A password is no text for it, and neither is the key
    of an API."""
    found = shutil.which("fleetcron")
    program = [*([found] if found else [sys.executable, "-m", "fleetcron"]), "ping"]
    if database.there is not None and (database.api is not None or not is_named(database.settings())):
        return PingCommand(_quoted([*program, "--api", database.there]), _NO_KEY)
    file = database.file or (str(DEFAULT_FILE) if DEFAULT_FILE.exists() else None)
    note = None
    if file is None or not _says_where(database):
        url = database.config().store.url
        path = sqlite_path(url)
        if path is not None:
            program += ["--database", f"sqlite:///{path.resolve()}"]
        elif masked(url) == url:
            program += ["--database", url]
        else:
            file, note = None, _NO_DATABASE  # the settings may well name another database than this one
    if file is not None:
        program += ["--config", str(Path(file).resolve())]
    return PingCommand(_quoted(program), note)


def _says_where(database: Database) -> bool:
    """Whether a file of settings names the database, and not a flag or a variable that no crontab has."""
    return not database.config().source_of("store.url").startswith(("flag", "environment", "default"))


def _quoted(program: list[str]) -> str:
    return shlex.join(program).replace("%", "\\%")


def read_text(name: str) -> str:
    """A file as text; `-` is standard input."""
    try:
        return (sys.stdin.buffer.read() if name == "-" else Path(name).read_bytes()).decode("utf-8")
    except OSError as error:
        raise ConfigError(
            [Mistake(name, f"cannot be read: {error.strerror}", "look at the name and the rights")]
        ) from None
    except UnicodeDecodeError:
        raise ConfigError([Mistake(name, "is not UTF-8", "save the file as UTF-8")]) from None


def read_of_folder(plan: Plan, path: Path) -> str | None:
    """A file that a folder happens to have: one that cannot be read is left out, and the others go on."""
    try:
        return read_text(str(path))
    except ConfigError as error:
        for mistake in error.mistakes:
            plan.leave_out(Origin(str(path)), mistake.message, mistake.hint)
        return None


def check_any(read: Mapping[str, bool]) -> None:
    """Somebody who imports nothing at all has given the wrong name, or a pipe whose first half has failed. `read`:
    whether there was anything, by name."""
    if not any(read.values()):
        hint = "look at the name, or at the command in front of the pipe"
        raise ConfigError([Mistake(name, "is empty: there is nothing to import", hint) for name in read])
