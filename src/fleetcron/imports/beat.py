"""The beat schedule of Celery as jobs: each sends its task to the same workers, with `celery call`, as beat does.

What comes in is a description in plain values, of a live app (`cli/beat_probe.py` makes it, in a process of its own) or
of source text (`beat_source.py`). All fields of a crontab() must match, also both day fields: `+` in ours. Beat runs
what it has missed once, when it starts again: our misfire `latest`. A run of ours is over as soon as the broker has the
message; retries and overlaps of the task itself stay Celery's.
"""

import json
from collections.abc import Mapping
from typing import Any, Final

from fleetcron.errors import ScheduleError
from fleetcron.imports.dialect import CELERY, Read, Unreadable, cron_document, expression, read_field
from fleetcron.imports.plan import Document, Finding, Origin, Plan
from fleetcron.times.durations import duration_ms, duration_text
from fleetcron.times.expression import FIVE
from fleetcron.times.zones import zone

FIELDS: Final = ("minute", "hour", "day_of_month", "month_of_year", "day_of_week")
NOT_JSON: Final = "__not_json__"  # the key under which a value stands that JSON does not have
_MINUTE_MS: Final = 60_000
_OPTIONS: Final = {
    "queue": "--queue",
    "exchange": "--exchange",
    "routing_key": "--routing-key",
    "serializer": "--serializer",
    "expires": "--expires",
    "countdown": "--countdown",
}


def add_beat(plan: Plan, source: str, described: Mapping[str, Any], app: str) -> None:
    """All entries. `app` is what `celery -A` is to be given."""
    timezone = zone(str(described.get("timezone") or "UTC")).name
    if why := described.get("unknown_timezone"):
        plan.say("differs", f"times are read in UTC, because of the timezone {why}", "name the app instead of the file")
    for entry in described.get("entries") or ():
        origin = Origin(source, entry.get("line"), str(entry.get("name")))
        try:
            _add(plan, origin, entry, timezone, app)
        except (Unreadable, ScheduleError) as error:
            text = error.mistake if isinstance(error, ScheduleError) else str(error)
            plan.leave_out(origin, text, error.hint)


def _add(plan: Plan, origin: Origin, entry: Mapping[str, Any], timezone: str, app: str) -> None:
    findings: list[Finding] = []
    if entry.get("trouble"):
        raise Unreadable(str(entry["trouble"]), entry.get("hint"))
    if entry.get("replaces") is not None:
        findings.append(Finding("note", f"the entry of the same name in line {entry['replaces']} does not count"))
    if entry.get("relative") or entry["schedule"].get("relative"):
        text = "relative: beat keeps to the clock, and rounds; here an interval is counted from the job's creation"
        findings.append(Finding("differs", text, "write it as crontab(…)"))
    document: Document = {
        "description": f"{entry['task']}, from {origin}",
        "schedule": _schedule(entry["schedule"], timezone, findings),
        "run": {"command": _command(entry, app, findings)},
    }
    if not plan.wish.defaults:
        # Sending is short: ticks a minute apart never meet, unless no worker comes for a while or the broker is away.
        # Then beat sends once, not once for each tick. Of what is sent every few seconds each is a message of its own.
        often = "every" in document["schedule"] and duration_ms(document["schedule"]["every"]) < _MINUTE_MS
        document |= {"timeout": "5m", "overlap": "allow" if often else "collapse", "misfire": "latest"}
    plan.add(origin, str(entry["name"]), document, findings)


def _command(entry: Mapping[str, Any], app: str, findings: list[Finding]) -> list[str]:
    command = ["celery", "-A", app, "call", str(entry["task"])]
    for name in ("args", "kwargs"):
        value = entry.get(name)
        if value:
            text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
            if NOT_JSON in text:
                raise Unreadable(f"its {name} have a value that JSON does not have", "write them as texts and numbers")
            command.append(f"--{name}={text}")
    for name, value in (entry.get("options") or {}).items():
        if name in _OPTIONS and isinstance(value, str | int | float) and not isinstance(value, bool):
            command.append(f"{_OPTIONS[name]}={value}")
        else:
            findings.append(
                Finding("differs", f"the option {name} of the entry is left out", "celery call has no such")
            )
    return command


def _schedule(given: Mapping[str, Any], timezone: str, findings: list[Finding]) -> Document:
    kind = given.get("kind")
    if kind == "crontab":
        return cron_document(_crontab(given, findings), timezone)
    if kind == "interval":
        ms = round(float(given["seconds"]) * 1000)
        if ms < 1000:
            raise Unreadable(f"it runs every {given['seconds']} s", "the shortest interval is 1s")
        findings.append(
            Finding("differs", "beat counts an interval from the last send; here it is fixed, from the job's creation")
        )
        return {"every": duration_text(ms)}
    if kind == "solar":
        raise Unreadable(f"solar ({given.get('event')}): the sun has no cron expression", "choose a fixed time of day")
    raise Unreadable(f"a schedule of type {given.get('type')} cannot be read", "write it as crontab(…) or seconds")


def _crontab(given: Mapping[str, Any], findings: list[Finding]) -> str:
    fields = []
    for kind, name in zip(FIVE, FIELDS, strict=True):
        values = given[name]
        if isinstance(values, str):
            fields.append(read_field(kind, values, CELERY))
        else:
            if not values or not all(isinstance(each, int) and kind.low <= each <= kind.high for each in values):
                raise Unreadable(f"{name} is {values!r}")
            fields.append(Read(sum(1 << each for each in set(values)), star=False))
    words = [given["written"].get(name) if "written" in given else given[name] for name in FIELDS]
    text = " ".join(map(str, words)) if all(isinstance(word, str | int) for word in words) else None
    made = expression(fields, both_days=True, text=text)
    if "+" in made:
        findings.append(Finding("note", f"'{made}': both day fields must match, as in Celery; + says so"))
    return made
