"""`fleetcron import k8s`."""

from pathlib import Path

import click

from fleetcron.cli.importing import import_options, read_text
from fleetcron.imports.cronjobs import add_manifests
from fleetcron.imports.plan import Plan, Wish

_ENDINGS = ("*.yaml", "*.yml", "*.json")


@click.command("k8s")
@click.argument("files", nargs=-1, required=True, metavar="FILE|FOLDER...")
@click.option("--suspended", is_flag=True, help="Import suspended CronJobs too.")
@import_options
def command(wish: Wish, files: tuple[str, ...], suspended: bool) -> Plan:
    """Import CronJobs: `kubectl get cronjobs -A -o yaml | fleetcron import k8s -`, or manifests.

    A folder stands for the YAML and JSON files in it.
    """
    plan = Plan(wish)
    for name in files:
        path = Path(name)
        if name != "-" and path.is_dir():
            for each in sorted(found for ending in _ENDINGS for found in path.glob(ending)):
                add_manifests(plan, str(each), read_text(str(each)), suspended)
        else:
            add_manifests(plan, "standard input" if name == "-" else name, read_text(name), suspended)
    return plan
