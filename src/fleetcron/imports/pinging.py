"""A crontab with pings put in: the same lines, each run by `fleetcron ping JOB -- …`. Pure.

The rest of the file stays as it is, to the last blank. The command is handed to the shell that cron would have given it
to, in quotes; what stands behind a `%` is its input, as before, and so is a `\\%` in it.
"""

from collections.abc import Mapping
from shlex import quote
from typing import Final

from fleetcron.imports.crontab import parted
from fleetcron.imports.plan import Origin, Pinged, Plan
from fleetcron.model.tenant import DEFAULT_TENANT
from fleetcron.model.writing import instant_text

_LONGEST: Final = 998  # of a command, says crontab(5) of Debian


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
        pinged = _pinged(plan, name, command)
        if (size := len(pinged.encode())) > _LONGEST:
            _say_long(plan, Origin(file, number), size)
            continue
        before[number] = line
        changed[number] = lines[number - 1] = line[:at] + pinged + line[at + len(command) :]
    return Pinged(file, "\n".join(lines), changed, before)


def _say_long(plan: Plan, origin: Origin, size: int) -> None:
    text = f"with a ping its command has {size:,} characters, and cron takes {_LONGEST}: the line stays as it is"
    plan.say("differs", text, "put the command into a script, and import again", origin)


def _pinged(plan: Plan, name: str, command: str) -> str:
    run, fed = parted(command)
    return f'{plan.wish.ping} {name}{_until(plan)} -- "$SHELL" -c {quote(run)}{fed}'


def _until(plan: Plan) -> str:
    """A hand-over that is known already ends the line by itself."""
    at_ms = plan.wish.hand_over_ms
    return "" if at_ms is None else f" --until {instant_text(at_ms)}"


def _full(document: Mapping[str, object]) -> str:
    tenant = document.get("tenant", DEFAULT_TENANT)
    return str(document["name"]) if tenant == DEFAULT_TENANT else f"{tenant}/{document['name']}"
