"""How a job is, in one word: for lists, where people look for what needs them. Pure."""

from typing import Final, Literal, TypeAlias

from fleetcron.store.jobs import JobLine
from fleetcron.views.able import Crew

Health: TypeAlias = Literal["ok", "failing", "late", "stuck", "new", "resting"]
_LATE_MS: Final = 60_000  # a tick is planned ahead of its time
_OPEN: Final = ("planned", "waiting")  # of a tick that has come
_BAD: Final = ("dead", "expired", "retrying")


def health(line: JobLine, next_ms: int | None, now_ms: int, crew: Crew) -> Health:
    """stuck: it has no ticks under the fleet's tables, or its last tick waits and no worker that lives can run it.
    late: a tick is due that nobody has planned. failing: its last run is dead, too late, or being tried again. new: no
    tick has come yet. resting: it is paused or over."""
    if line.job.problem is not None:
        return "stuck"
    if line.job.state != "active":
        return "resting"
    if next_ms is not None and next_ms < now_ms - _LATE_MS:
        return "late"
    if line.last_state is None:
        return "new"
    if line.last_state in _OPEN and crew.unable(line.job.definition) is not None:
        return "stuck"
    return "failing" if line.last_state in _BAD else "ok"
