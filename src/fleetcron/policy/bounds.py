"""How far a job may go: its ticks as far as max_ticks allows. Pure.

`max_ticks` counts ticks after calendars, run or not, and the count lives with the cursor: editing a schedule does not
start it anew.
"""

from fleetcron.model.standing import Position
from fleetcron.model.timing import Timing
from fleetcron.times.instants import LAST_MS
from fleetcron.times.timetable import Timetable


def last_allowed(timing: Timing, timetable: Timetable, at: Position) -> int:
    """No tick later than this."""
    if timing.max_ticks is None:
        return LAST_MS
    left = timing.max_ticks - at.ticks_used
    if left <= 0:
        return at.cursor_ms
    last = timetable.nth_ms(at.cursor_ms, left)
    return LAST_MS if last is None else last


def next_tick(timing: Timing, timetable: Timetable, at: Position) -> int | None:
    """The first tick after the cursor that the bounds allow."""
    tick = timetable.next_ms(at.cursor_ms)
    return tick if tick is not None and tick <= last_allowed(timing, timetable, at) else None


def used(timing: Timing, timetable: Timetable, after_ms: int, until_ms: int) -> int:
    """How many ticks of a stretch count. Without max_ticks nobody counts, so that equal jobs stay equal."""
    return 0 if timing.max_ticks is None else timetable.count_ms(after_ms, until_ms)
