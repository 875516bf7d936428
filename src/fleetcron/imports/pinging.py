"""A crontab with pings put in: the same lines, each run by `fleetcron ping JOB -- …`. Pure.

The rest of the file stays as it is, to the last blank. The command is handed to the shell that cron would have given it
to, in quotes; what stands behind a `%` is its input, as before, and so is a `\\%` in it.
"""

import re
from collections.abc import Mapping
from shlex import quote
from typing import Final

from fleetcron.imports.plan import Pinged, Plan
from fleetcron.model.tenant import DEFAULT_TENANT
from fleetcron.model.writing import instant_text

_INPUT: Final = re.compile(r"(?<!\\)%")  # the first one begins the command's input


def with_pings(plan: Plan, file: str, text: str, commands: Mapping[int, str]) -> Pinged:
    """`commands` are those of the lines, by number. A line whose job was left out stays as it is."""
    names = {job.origin.line: _full(job.document) for job in plan.jobs if job.origin.file == file}
    lines = text.split("\n")
    changed: dict[int, str] = {}
    before: dict[int, str] = {}
    for number, command in commands.items():
        name = names.get(number)
        line = lines[number - 1]
        at = line.rfind(command)
        if name is None or at < 0:
            continue
        before[number] = line
        changed[number] = lines[number - 1] = line[:at] + _pinged(plan, name, command) + line[at + len(command) :]
    return Pinged(file, "\n".join(lines), changed, before)


def _pinged(plan: Plan, name: str, command: str) -> str:
    given = _INPUT.search(command)
    run, fed = (command, "") if given is None else (command[: given.start()], command[given.start() :])
    return f'{plan.wish.ping} {name}{_until(plan)} -- "$SHELL" -c {quote(run)}{fed}'


def _until(plan: Plan) -> str:
    """A hand-over that is known already ends the line by itself."""
    at_ms = plan.wish.hand_over_ms
    return "" if at_ms is None else f" --until {instant_text(at_ms)}"


def _full(document: Mapping[str, object]) -> str:
    tenant = document.get("tenant", DEFAULT_TENANT)
    return str(document["name"]) if tenant == DEFAULT_TENANT else f"{tenant}/{document['name']}"
