"""The schedule of a job in one line."""

from fleetcron.model.definition import Definition
from fleetcron.model.rules import CronEntry, Entry, EveryEntry
from fleetcron.times.durations import duration_text


def short(definition: Definition) -> str:
    """`0 2 * * * America/New_York`, `every 15m`, `at 2027-01-01T09:00:00Z`; several with a semicolon between."""
    return "; ".join(map(_entry, definition.schedule))


def _entry(entry: Entry) -> str:
    if isinstance(entry, CronEntry):
        return f"{entry.cron} {entry.timezone}"
    if isinstance(entry, EveryEntry):
        return f"every {duration_text(entry.every_ms)}"
    return f"at {entry.at}" + (f" {entry.timezone}" if entry.timezone else "")
