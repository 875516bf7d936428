"""What becomes of ticks that nobody planned in time. Pure: no clock, no store.

No tick of a long outage is walked: skip and latest count, and `all` walks only what it creates.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice, pairwise
from typing import TypeAlias

from fleetcron.model.answer import Answer, Forecast, Gap, Reason
from fleetcron.model.rules import Lane
from fleetcron.model.timing import Timing
from fleetcron.policy.unanswered import Unanswered
from fleetcron.times.timetable import Timetable

Ticks: TypeAlias = Timetable | Unanswered


@dataclass(frozen=True, slots=True)
class Decision:
    """What to create, what to write into the ledger, and the stretch that is left for later."""

    runs: tuple[Forecast, ...] = ()
    answers: tuple[Answer, ...] = ()
    rest: Gap | None = None


def is_late(timetable: Timetable, tick: int, grace_ms: int, now_ms: int, start_deadline_ms: int | None = None) -> bool:
    """Lateness counts from the instant at which the run may start. The next tick ends every grace: so only the last
    tick before now can still be in time, whatever the schedule."""
    deadline = timetable.start_ms(tick) + grace_ms
    if start_deadline_ms is not None:  # past its latest start no grace helps
        deadline = min(deadline, tick + start_deadline_ms)
    following = timetable.next_ms(tick)
    return now_ms > (deadline if following is None else min(deadline, following))


def last_late(
    timetable: Timetable, after_ms: int, grace_ms: int, now_ms: int, start_deadline_ms: int | None = None
) -> int | None:
    """The last late tick after `after_ms`, if there is one."""
    tick = timetable.prev_ms(now_ms + 1)
    while tick is not None and tick > after_ms:
        if is_late(timetable, tick, grace_ms, now_ms, start_deadline_ms):
            return tick
        tick = timetable.prev_ms(tick)
    return None


def decide(
    timing: Timing, timetable: Timetable, gap: Gap, now_ms: int, room: int, kept: Sequence[int] = ()
) -> Decision:
    """Decide a gap, creating at most `room` catch-up runs. What does not fit is the rest, to be asked again.

    Where nobody chose a policy for the gap itself, its last tick may still be in time; then it runs as if nothing had
    happened. Ticks that are `kept` have a run already: nothing is said about them.
    """
    if not kept:
        return _decide(timing, timetable, timetable, gap, now_ms, room)
    unanswered = Unanswered(timetable, kept)
    made = _decide(timing, timetable, unanswered, gap, now_ms, room)
    return replace(made, answers=tuple(piece for each in made.answers for piece in _pieces(unanswered, each)))


def _decide(timing: Timing, whole: Timetable, timetable: Ticks, gap: Gap, now_ms: int, room: int) -> Decision:
    """What is late, the whole timetable tells: a tick that is kept ends the grace of the one before it as well."""
    shade = shaded(timing, timetable, gap.from_ms, gap.to_ms)
    if shade is not None:  # whatever was chosen for the gap: these were never ours
        rest = _decide(timing, whole, timetable, replace(gap, from_ms=shade.to_ms), now_ms, room)
        return replace(rest, answers=(shade, *rest.answers))
    if gap.policy is not None:
        return _late(timing, timetable, gap, now_ms, room)
    late = last_late(whole, gap.from_ms, timing.misfire.grace_ms, _noticed(gap, now_ms), timing.start_deadline_ms)
    late = gap.from_ms if late is None else min(late, gap.to_ms)
    decision = _late(timing, timetable, replace(gap, to_ms=late), now_ms, room)
    if gap.trimmed:  # the ticks in time came with the first piece: they do not wait for room
        return decision
    in_time = tuple(Forecast(tick, timetable.start_ms(tick)) for tick in timetable.ticks_ms(late, gap.to_ms))
    return replace(decision, runs=(*decision.runs, *in_time))


def shaded(timing: Timing, timetable: Ticks, after_ms: int, until_ms: int) -> Answer | None:
    """The ticks of a stretch that belong to the old scheduler, as one line: those before the instant of the hand-over.
    A tick at that very instant is ours."""
    if timing.shadow_ms is None:
        return None
    return next(_answer(timetable, after_ms, min(until_ms, timing.shadow_ms - 1), "skipped", "shadow"), None)


def _late(timing: Timing, timetable: Ticks, gap: Gap, now_ms: int, room: int) -> Decision:
    first = timetable.next_ms(gap.from_ms)
    if first is None or first > gap.to_ms:
        return Decision()
    match gap.policy or timing.misfire.policy:
        case "cancel":
            reason: Reason = "job_deleted" if gap.cause == "delete" else "job_cancelled"
            return Decision(answers=tuple(_answer(timetable, gap.from_ms, gap.to_ms, "cancelled", reason)))
        case "skip":
            reason = "paused" if gap.cause == "pause" else "misfire"
            return Decision(answers=tuple(_answer(timetable, gap.from_ms, gap.to_ms, "skipped", reason)))
        case "latest":
            return _latest(timing, timetable, gap, now_ms)
        case "all":
            return _all(timing, timetable, gap, now_ms, room)


def _latest(timing: Timing, timetable: Ticks, gap: Gap, now_ms: int) -> Decision:
    dropped, kept_from = _too_late(timing, timetable, gap, _noticed(gap, now_ms))
    last = timetable.prev_ms(gap.to_ms + 1)
    if last is None or last <= kept_from:
        return Decision(answers=tuple(dropped))
    ticks = timetable.count_ms(kept_from, last)
    window = None
    if ticks > 1:
        first = timetable.next_ms(kept_from) or last
        whole = timetable.whole if isinstance(timetable, Unanswered) else timetable
        before = whole.prev_ms(first)  # the period of a tick begins at the tick before it
        window = (first if before is None else before, last)
        covered = _answer(timetable, kept_from, last - 1, "skipped", "covered", covered_by_ms=last)
        dropped = [*dropped, *covered]
    run = Forecast(last, timetable.start_ms(last), lane_of(timing, gap), ticks, window)
    return Decision((run,), tuple(dropped))


def _all(timing: Timing, timetable: Ticks, gap: Gap, now_ms: int, room: int) -> Decision:
    answers: list[Answer] = []
    kept_from = gap.from_ms
    if not gap.trimmed:
        answers, kept_from = _too_late(timing, timetable, gap, _noticed(gap, now_ms))
        surplus = timetable.count_ms(kept_from, gap.to_ms) - timing.misfire.limit
        if surplus > 0:
            edge = timetable.nth_ms(kept_from, surplus) or kept_from
            answers += _answer(timetable, kept_from, edge, "missed", "over_limit")
            kept_from = edge
    ticks = list(islice(timetable.ticks_ms(kept_from, gap.to_ms), max(room, 0) + 1))
    runs = tuple(Forecast(tick, timetable.start_ms(tick), lane_of(timing, gap)) for tick in ticks[: max(room, 0)])
    if len(ticks) <= max(room, 0):
        return Decision(runs, tuple(answers))
    left_from = runs[-1].scheduled_for_ms if runs else kept_from
    rest = Gap(left_from, gap.to_ms, gap.cause, gap.policy, _noticed(gap, now_ms), trimmed=True)
    return Decision(runs, tuple(answers), rest)


def lane_of(timing: Timing, gap: Gap) -> Lane:
    """Where what a gap left behind runs. The lane is that of the job's own rule: whoever asks for all ticks of a pause
    does not ask that they come before live work."""
    rule = timing.misfire
    return "catchup" if gap.policy == "all" and rule.policy != "all" else rule.lane


def _noticed(gap: Gap, now_ms: int) -> int:
    """The window and the deadlines count back from when the gap was noticed, however long its decision takes."""
    return now_ms if gap.noticed_ms is None else gap.noticed_ms


def _too_late(timing: Timing, timetable: Ticks, gap: Gap, noticed_ms: int) -> tuple[list[Answer], int]:
    """The ticks that are older than the window or past their latest start, and where the others begin."""
    answers: list[Answer] = []
    at = gap.from_ms
    bounds: list[tuple[int, Reason]] = [(noticed_ms - timing.misfire.window_ms - 1, "too_old")]
    if timing.start_deadline_ms is not None:
        bounds.append((noticed_ms - timing.start_deadline_ms - 1, "start_deadline"))
    for edge, reason in sorted(bounds):
        until = min(edge, gap.to_ms)
        if until > at:
            answers += _answer(timetable, at, until, "missed", reason)
            at = until
    return answers, at


def _answer(
    timetable: Ticks,
    after: int,
    until: int,
    answer: str,
    reason: Reason,
    *,
    covered_by_ms: int | None = None,
) -> Iterator[Answer]:
    first, last = timetable.next_ms(after), timetable.prev_ms(until + 1)
    if first is not None and last is not None and first <= last:
        ticks = 1 if first == last else timetable.count_ms(after, until)
        yield Answer(first, last, ticks, answer, reason, covered_by_ms)  # type: ignore[arg-type]


def _pieces(unanswered: Unanswered, line: Answer) -> Iterator[Answer]:
    """A line of the ledger, without the ticks that are kept."""
    edges = [line.from_ms - 1, *(tick for tick in unanswered.kept if line.from_ms < tick < line.to_ms), line.to_ms]
    for after, until in pairwise(edges):
        yield from _answer(unanswered, after, until, line.answer, line.reason, covered_by_ms=line.covered_by_ms)
