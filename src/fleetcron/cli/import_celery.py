"""`fleetcron import celery`."""

import json
import os
import re
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import click

from fleetcron.cli import beat_probe
from fleetcron.cli.importing import import_options, read_text
from fleetcron.errors import ConfigError, Mistake
from fleetcron.imports.beat import add_beat
from fleetcron.imports.beat_source import read_beat_source
from fleetcron.imports.plan import Plan, Wish

_APP = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*(?::[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*)?")
_PATIENCE_S = 60
_BESIDE = 2  # standard error


@click.command("celery")
@click.argument("source", metavar="MODULE:APP|FILE.py")
@click.option("--python", metavar="PATH", help="The interpreter that has Celery and the app. [default: this one]")
@click.option("--celery-app", metavar="NAME", help="What `celery -A` is given. [default: the module]")
@import_options
def command(wish: Wish, source: str, python: str | None, celery_app: str | None) -> Plan:
    """Import the beat schedule of a Celery app, such as `proj.celery:app`; every job sends its task with `celery call`.

    The app is imported in a process of its own: THAT RUNS ITS CODE. A file, such as proj/celery.py or settings.py, is
    only read: nothing of it is run, and what is not written out in it is said.
    """
    plan = Plan(wish)
    if source == "-" or source.endswith(".py"):
        shown = "standard input" if source == "-" else source
        described = read_beat_source(read_text(source), shown)
        module = Path(source).with_suffix("").as_posix().strip("./").replace("/", ".")
        app = celery_app or module or "proj"
        if celery_app is None:
            plan.say("note", f"the commands say celery -A {app}", "--celery-app says otherwise")
    elif _APP.fullmatch(source):
        shown, described, app = source, _probed(source, python or sys.executable), celery_app or source
    else:
        raise ConfigError([Mistake(source, "is neither an app nor a Python file", "such as proj.celery:app")])
    add_beat(plan, shown, described, app)
    return plan


def _probed(name: str, python: str) -> dict[str, Any]:
    reading, writing = os.pipe()
    probe = [python, str(Path(beat_probe.__file__)), name, str(writing)]
    try:
        # what the app prints is its own affair, and goes beside ours
        process = subprocess.Popen(probe, pass_fds=[writing], stdin=subprocess.DEVNULL, stdout=_BESIDE)
    except OSError as error:
        os.close(reading)
        raise ConfigError([Mistake("--python", f"{python} cannot be started: {error.strerror}", None)]) from None
    finally:
        os.close(writing)
    overdue = threading.Timer(_PATIENCE_S, process.kill)
    overdue.start()
    try:
        with os.fdopen(reading, "r", encoding="utf-8") as answer:
            text = answer.read()
        process.wait()
    finally:
        overdue.cancel()
    if not text:
        raise ConfigError(
            [Mistake(name, f"the app was not imported: its process ended with {process.returncode}", None)]
        )
    described: dict[str, Any] = json.loads(text)
    if "error" in described:
        hint = "start it in the folder that has the app; --python names an interpreter that has Celery"
        raise ConfigError([Mistake(name, f"cannot be imported: {described['error']}", hint)])
    return described
