"""`fleetcron import k8s`."""

import re
from pathlib import Path

import click

from fleetcron.cli.importing import check_any, import_options, read_of_folder, read_text
from fleetcron.imports.cronjobs import add_manifests
from fleetcron.imports.plan import Origin, Plan, Wish

_ENDINGS = ("*.yaml", "*.yml", "*.json")
_NOTHING = re.compile(r"\s*(#.*|---\s*)?")  # a line that is no manifest


@click.command("k8s")
@click.argument("files", nargs=-1, required=True, metavar="FILE|FOLDER...")
@click.option("--suspended", is_flag=True, help="Import suspended CronJobs too.")
@import_options
def command(wish: Wish, files: tuple[str, ...], suspended: bool) -> Plan:
    """Import CronJobs: `kubectl get cronjobs -A -o yaml | fleetcron import k8s -`, or manifests.

    A folder stands for the YAML and JSON files in it.
    """
    plan = Plan(wish)
    read: dict[str, bool] = {}
    for name in files:
        path = Path(name)
        if name != "-" and path.is_dir():
            read[name] = _add_folder(plan, path, suspended)
            continue
        shown, text = "standard input" if name == "-" else name, read_text(name)
        read[shown] = any(not _NOTHING.fullmatch(line) for line in text.split("\n"))
        add_manifests(plan, shown, text, suspended)
    check_any(read)
    return plan


def _add_folder(plan: Plan, folder: Path, suspended: bool) -> bool:
    """Whether there was a manifest in it."""
    paths = sorted(found for ending in _ENDINGS for found in folder.glob(ending) if found.is_file())
    for each in sorted(folder.iterdir()):
        if each.is_dir() and not each.name.startswith("."):
            plan.say("note", "folders in a folder are not looked into: name it too", origin=Origin(str(each)))
    for each in paths:
        if (text := read_of_folder(plan, each)) is not None:
            add_manifests(plan, str(each), text, suspended)
    return bool(paths)
