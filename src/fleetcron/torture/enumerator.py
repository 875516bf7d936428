"""The ticks of a job, counted the slow way: every second is looked at, and asked whether the schedule names it.

Nothing here is shared with the calculator that plans. It understands no more than the jobs of a torture need: `* * * *
* *`, `*/N` in the field of the seconds, `* * * * *`, intervals of whole seconds, and single instants.
"""

import re
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

_EVERY: Final = re.compile(r"(\d+)([smh])")
_SECONDS: Final = {"s": 1, "m": 60, "h": 3600}
_CRON: Final = re.compile(r"(\*|\*/\d+) \* \* \* \* \*")


def ticks(document: Mapping[str, Any], from_ms: int, to_ms: int) -> list[int]:
    """The instants in (from, to] that the definition names, in order, before any bound on their number."""
    found = []
    for second in range(from_ms // 1000, to_ms // 1000 + 1):
        at_ms = second * 1000
        if from_ms < at_ms <= to_ms and any(_names(entry, second) for entry in document["schedule"]):
            found.append(at_ms)
    # a single instant need not be a whole second
    single = [_instant_ms(entry["at"]) for entry in document["schedule"] if "at" in entry]
    found += [at_ms for at_ms in single if from_ms < at_ms <= to_ms and at_ms % 1000]
    return sorted(found)


def _names(entry: Mapping[str, Any], second: int) -> bool:
    if "every" in entry:
        return (second - _instant_ms(entry["anchor"]) // 1000) % _interval_s(entry["every"]) == 0
    if "at" in entry:
        return second * 1000 == _instant_ms(entry["at"])
    if entry["cron"] == "* * * * *":
        return second % 60 == 0  # in every zone: an offset of today is a whole number of minutes
    seconds = _CRON.fullmatch(entry["cron"])
    if seconds is None:
        raise ValueError(f"the enumerator does not understand {entry['cron']}")
    step = int(seconds[1].partition("/")[2] or 1)
    return second % 60 % step == 0


def _interval_s(text: str) -> int:
    parts = _EVERY.fullmatch(text)
    if parts is None:
        raise ValueError(f"the enumerator does not understand every {text}")
    return int(parts[1]) * _SECONDS[parts[2]]


def _instant_ms(text: str) -> int:
    return round(datetime.fromisoformat(text).timestamp() * 1000)
