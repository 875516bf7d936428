"""A program of its own, for the Python that has the app: imports a Celery app and prints its beat schedule as JSON.

It needs nothing of fleetcron, because that interpreter may not have it. The app may print while it is imported, so the
answer goes to the descriptor that the caller names.
"""

import importlib
import json
import os
import sys
from typing import Any

FIELDS = ("minute", "hour", "day_of_month", "month_of_year", "day_of_week")


def described(app: Any) -> dict[str, Any]:
    app.loader.import_default_modules()  # tasks that add themselves with add_periodic_task
    app.finalize()
    configured = app.conf.beat_schedule or {}
    return {
        "timezone": str(app.timezone),
        "entries": [entry(app, str(name), given) for name, given in sorted(configured.items())],
    }


def entry(app: Any, name: str, given: Any) -> dict[str, Any]:
    given = dict(given)
    found = {key: given.get(key) for key in ("task", "args", "kwargs", "options", "relative")}
    found["args"] = list(found["args"] or ())
    return {"name": name, **found, "schedule": schedule(app, given.get("schedule"))}


def schedule(app: Any, given: Any) -> dict[str, Any]:
    schedules: Any = importlib.import_module("celery.schedules")
    found = schedules.maybe_schedule(given, app=app)
    if isinstance(found, schedules.crontab):
        written = {field: getattr(found, f"_orig_{field}", None) for field in FIELDS}
        return {"kind": "crontab", "written": written} | {field: sorted(getattr(found, field)) for field in FIELDS}
    if isinstance(found, schedules.solar):
        return {"kind": "solar", "event": f"{found.event} at {found.lat}, {found.lon}"}
    if type(found) is schedules.schedule:
        return {"kind": "interval", "seconds": found.run_every.total_seconds(), "relative": found.relative}
    return {"kind": "other", "type": type(given).__name__}


def loaded(name: str) -> Any:
    module, _, attribute = name.partition(":")
    found: Any = importlib.import_module(module)
    for part in (attribute or "app").split("."):
        found = getattr(found, part)
    return found


def main() -> None:
    answer = int(sys.argv[2])
    sys.path.insert(0, os.getcwd())
    try:
        text = json.dumps(described(loaded(sys.argv[1])), default=lambda value: {"__not_json__": type(value).__name__})
    except BaseException as error:  # a module may do anything, also sys.exit
        text = json.dumps({"error": f"{type(error).__name__}: {error}"})
    with os.fdopen(answer, "w", encoding="utf-8") as out:
        out.write(text)


if __name__ == "__main__":
    main()
