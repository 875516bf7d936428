"""`fleetcron import crontab`."""

import os
from pathlib import Path

import click

from fleetcron.cli.importing import check_any, import_options, read_of_folder, read_text
from fleetcron.errors import ConfigError, Mistake, ScheduleError
from fleetcron.imports.crontab_jobs import CrontabFile, add_crontab, read_by_cron
from fleetcron.imports.plan import Origin, Plan, Wish
from fleetcron.times.zones import zone

_ZONEINFO = "zoneinfo/"


@click.command("crontab")
@click.argument("files", nargs=-1, required=True, metavar="FILE|FOLDER...")
@click.option(
    "--system/--user-form",
    "system",
    default=None,
    help="Whether the sixth field is a user. [default: in /etc/crontab and in folders]",
)
@click.option("--timezone", "--tz", metavar="ZONE", help="The zone of the crontab's machine. [default: this machine's]")
@click.option("--pool-by-user", is_flag=True, help="The user of a line names the pool of its job.")
@click.option("--pings", metavar="FOLDER", help="With --shadow: write the crontabs there, with pings put in.")
@import_options
def command(
    wish: Wish,
    files: tuple[str, ...],
    system: bool | None,
    timezone: str | None,
    pool_by_user: bool,
    pings: str | None,
) -> Plan:
    """Import crontabs: `crontab -l | fleetcron import crontab -`, /etc/crontab, /etc/cron.d.

    Of a folder, files are read that cron would read: those without a dot in the name.
    """
    if pings is not None and not wish.shadow:
        raise click.UsageError("--pings goes with --shadow")
    plan = Plan(wish)
    where, why = (zone(timezone).name, None) if timezone else _of_this_machine()
    if why is not None:
        plan.say("note", f"the times are read in {where}, {why}", "--timezone says otherwise")
    read: dict[str, bool] = {}
    for name in files:
        path = Path(name)
        shown = "standard input" if name == "-" else name
        if name != "-" and path.is_dir():
            read[name] = _add_folder(plan, path, where, True if system is None else system, pool_by_user)
            continue
        text = read_text(name)
        read[shown] = bool(text.strip())
        is_system = _looks_like_system(path) if system is None else system
        stem = path.name if path.parent.name.startswith("cron.") and is_system else None
        add_crontab(plan, CrontabFile(shown, text, is_system, where, stem), pool_by_user)
    check_any(read)
    if pings is not None:
        _place_pinged(plan, Path(pings))
    return plan


def _place_pinged(plan: Plan, folder: Path) -> None:
    """Under the names that they had: `crontab`, `cron.d/sysstat`. None is put over another one, or over what was
    read."""
    read = {Path(each.file).resolve() for each in plan.pinged}
    for each in plan.pinged:
        path = Path(each.file) if each.file != "standard input" else Path("crontab")
        own = folder / (Path(path.parent.name) / path.name if path.parent.name.startswith("cron.") else path.name)
        if own in plan.places:
            raise ConfigError([Mistake(each.file, f"another crontab is called {own.name} too", "import them apart")])
        if own.resolve() in read:
            hint = "name another folder for --pings, look at what is there, then install it"
            raise ConfigError([Mistake(each.file, "would be written over with its own pings", hint)])
        plan.places[own] = each.file


def _add_folder(plan: Plan, folder: Path, timezone: str, system: bool, pool_by_user: bool) -> bool:
    """Whether there was anything in it."""
    try:
        paths = sorted(path for path in folder.iterdir() if not path.name.startswith("."))
    except OSError as error:
        raise ConfigError([Mistake(str(folder), f"cannot be read: {error.strerror}", None)]) from None
    for path in paths:
        if path.is_dir():
            plan.say("note", "cron does not look into folders: skipped", origin=Origin(str(path)))
        elif not read_by_cron(path.name):
            plan.say("note", f"cron does not read files called {path.name}: skipped", origin=Origin(str(path)))
        elif path.is_file() and (text := read_of_folder(plan, path)) is not None:
            add_crontab(plan, CrontabFile(str(path), text, system, timezone, path.name), pool_by_user)
    return bool(paths)


def _looks_like_system(path: Path) -> bool:
    return path.parts[-2:] == ("etc", "crontab") or path.parent.name == "cron.d"


def _of_this_machine() -> tuple[str, str]:
    """The zone that cron has here, and how it is known."""
    for text, why in (
        (os.environ.get("TZ", "").lstrip(":"), "as TZ says"),
        (_line("/etc/timezone"), "as /etc/timezone says"),
        (os.path.realpath("/etc/localtime").partition(_ZONEINFO)[2], "as /etc/localtime says"),
    ):
        try:
            if text:
                return zone(text).name, why
        except ScheduleError:
            continue
    return "UTC", "since this machine does not say which zone it has"


def _line(name: str) -> str:
    try:
        return Path(name).read_text("utf-8").strip()
    except (OSError, UnicodeDecodeError):
        return ""
