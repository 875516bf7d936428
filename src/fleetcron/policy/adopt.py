"""What new zone tables or calendars do to the jobs that ask them: the same as an edit. Pure."""

from dataclasses import dataclass

from fleetcron.model.standing import Position
from fleetcron.model.states import JobState
from fleetcron.model.timing import Timing
from fleetcron.policy.amend import Left, leave
from fleetcron.policy.bounds import next_tick
from fleetcron.times.timetable import Timetable


@dataclass(frozen=True, slots=True)
class Moved:
    """Where jobs stand under the new tables, and when to look at them."""

    left: Left
    next_due_ms: int | None
    stuck: bool = False  # it had ticks to come, and the new tables leave none


def moved(
    timing: Timing, old: Timetable, new: Timetable, at: Position, state: JobState, next_due_ms: int | None, now_ms: int
) -> Moved | None:
    """None if the new tables change nothing for jobs that stand here.

    What is planned after now is compared, and the next tick; ticks farther away will be computed with the new tables.
    """
    if state not in ("active", "paused"):
        return None
    left = leave(timing, old, at, now_ms)
    if state == "paused":  # its past belongs to the old tables, whatever comes
        return Moved(left, None)
    if left.undecided is None and _are_same(timing, old, new, at, next_due_ms, now_ms):
        return None
    following = next_tick(timing, new, left.at)
    if following is not None:
        return Moved(left, following)
    stuck = next_due_ms is None or next_tick(timing, old, left.at) is not None
    return Moved(left, None if stuck else now_ms, stuck)  # one that has seen its last tick is to be finished


def _are_same(
    timing: Timing, old: Timetable, new: Timetable, at: Position, next_due_ms: int | None, now_ms: int
) -> bool:
    if next_due_ms is None or next_tick(timing, new, at) != next_due_ms:
        return False
    return _forecast(old, now_ms, at.cursor_ms) == _forecast(new, now_ms, at.cursor_ms)


def _forecast(timetable: Timetable, after_ms: int, until_ms: int) -> list[tuple[int, int]]:
    """The ticks with their starts: a new blackout can leave a tick where it is and take its delayed start away."""
    return [(tick, timetable.start_ms(tick)) for tick in timetable.ticks_ms(after_ms, until_ms)]
