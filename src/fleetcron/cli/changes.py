"""What differs between two revisions of a job, in words."""

import json

from fleetcron.cli.tables import printable, shortened
from fleetcron.model.job import Change

_LONGEST = 60


def change_words(change: Change) -> str:
    """`schedule.cron: 0 2 * * * -> 0 3 * * *`."""
    return f"{change.field}: {_value(change.old)} -> {_value(change.new)}"


def _value(value: object) -> str:
    text = value if isinstance(value, str) else "nothing" if value is None else json.dumps(value, ensure_ascii=False)
    return printable(shortened(text, _LONGEST))
