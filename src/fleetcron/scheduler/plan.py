"""From where a job stands to what is to be written. Pure: the same plan for every job with this timing and cursor.

Every tick up to the cursor has its answer. A plan answers the ticks from the cursor to the horizon (now and the
lookahead): late ones by the misfire policy, the others by a run each, and says when to look again. The ticks of a job
in shadow are noted when they have come and not before, so that a hand-over finds no answer to take back.
"""

from dataclasses import dataclass
from itertools import islice

from fleetcron.model.answer import Answer, Forecast, Gap
from fleetcron.model.standing import Position
from fleetcron.model.timing import Timing
from fleetcron.policy import misfire
from fleetcron.policy.bounds import last_allowed, used
from fleetcron.times.timetable import Timetable

# A schedule of every second has 60 ticks in the default lookahead; with a longer one the rest comes in the next round.
MOST_RUNS = 500


@dataclass(frozen=True, slots=True)
class Plan:
    to: Position
    next_due_ms: int | None  # when to look again; None: never
    runs: tuple[Forecast, ...] = ()
    answers: tuple[Answer, ...] = ()
    gap: Gap | None = None
    late_to_ms: int | None = None  # what is decided here up to this instant was late
    finished: bool = False

    @property
    def rows(self) -> int:
        return max(1, len(self.runs) + len(self.answers) + (self.gap is not None))


def plan(timing: Timing, timetable: Timetable, at: Position, now_ms: int, lookahead_ms: int) -> Plan:
    """What to write for a job that stands at `at`. Under `all` the late ticks become a gap, decided piece by piece."""
    last = last_allowed(timing, timetable, at)
    shade = misfire.shaded(timing, timetable, at.cursor_ms, min(now_ms, last))
    shades = () if shade is None else (shade,)
    start = at.cursor_ms if shade is None else shade.to_ms
    if timing.shadow_ms is not None:
        following = timetable.next_ms(start)
        if following is not None and following < timing.shadow_ms and following <= last:
            to = Position(start, at.ticks_used + used(timing, timetable, at.cursor_ms, start))
            due_ms = following + lookahead_ms  # when that tick has come
            return Plan(to, due_ms, answers=shades, late_to_ms=start if shades else None)
    late = misfire.last_late(timetable, start, timing.misfire.grace_ms, now_ms, timing.start_deadline_ms)
    past = Gap(start, start if late is None else min(late, last), "outage", noticed_ms=now_ms)
    horizon = min(now_ms + lookahead_ms, last)
    coming = tuple(islice(timetable.ticks_ms(past.to_ms, horizon), MOST_RUNS))
    decision, gap = misfire.Decision(), None
    if past.to_ms > past.from_ms:
        if timing.misfire.policy == "all":
            gap = past
        else:
            decision = misfire.decide(timing, timetable, past, now_ms, room=1)
    runs = decision.runs + tuple(Forecast(tick, timetable.start_ms(tick)) for tick in coming)
    cursor = coming[-1] if coming else past.to_ms
    to = Position(cursor, at.ticks_used + used(timing, timetable, at.cursor_ms, cursor))
    following = timetable.next_ms(cursor)
    if following is not None and following > last:
        following = None
    finished = following is None and cursor <= now_ms
    if following is None and not finished:
        following = cursor + lookahead_ms  # due again when the last tick has come, so that the job is finished then
    late_to_ms = past.to_ms if shades or decision != misfire.Decision() else None
    return Plan(to, following, runs, (*shades, *decision.answers), gap, late_to_ms, finished)
