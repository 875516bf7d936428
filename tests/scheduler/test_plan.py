"""From where a job stands to what is written, held against a list of all its ticks. Pure: no store, no clock."""

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import strategies as st

from fleetcron.model.definition import Definition
from fleetcron.model.rules import CronEntry, EveryEntry, MisfireRule, OnceEntry
from fleetcron.model.standing import Position
from fleetcron.model.target import CommandTarget
from fleetcron.policy.misfire import Decision, decide
from fleetcron.scheduler.plan import MOST_RUNS, Plan, plan
from fleetcron.times.instants import parse_instant, to_ms
from tests.scheduler.drawn import (
    CHANGES,
    DAY,
    DEFINITIONS,
    HOUR,
    INSTANTS,
    LENGTHS,
    MINUTE,
    SECOND,
    Walked,
    made,
    unlimited,
)
from tests.scheduler.expected import Fate, Run, late_ones
from tests.scheduler.test_misfire import expected, same, told
from tests.times.examples import AMOUNT, for_all

NOON = CHANGES[-1] + 12 * HOUR
LOOKAHEADS = st.sampled_from([0, 5 * SECOND, MINUTE, HOUR])


def job(*entries: object, **fields: object) -> Definition:
    return Definition("a", entries, CommandTarget(("true",)), **fields)  # type: ignore[arg-type]


def fates_of(definition: Definition, found: Plan) -> dict[int, list[Fate]]:
    """Everything that a plan decides; its gap is filled at once."""
    timing, timetable, ticks = made(definition)
    fates = told(Decision(found.runs, found.answers), ticks)
    if found.gap is not None:
        for tick, more in told(decide(timing, timetable, found.gap, NOON, 10**6), ticks).items():
            fates.setdefault(tick, []).extend(more)
    return fates


@AMOUNT
def test_a_plan_answers_the_ticks_up_to_the_horizon_and_no_others(amount: float) -> None:
    """S4-14, S4-15: all ticks between the cursor and now plus the lookahead, late ones by policy, others by a run."""
    moved = st.sampled_from([-MINUTE, 0, 30 * SECOND, 2 * MINUTE, 3 * HOUR, DAY, 3 * DAY])

    @for_all(600 * amount, DEFINITIONS, INSTANTS, moved, LOOKAHEADS, st.integers(0, 3))
    def law(definition: Definition, cursor: int, since: int, lookahead: int, used: int) -> None:
        timing, timetable, ticks = made(definition)
        most = definition.max_ticks
        at, now = Position(cursor, used if most is not None else 0), cursor + since
        found = plan(timing, timetable, at, now, lookahead)
        allowed = ticks.between(cursor, now + lookahead)[: None if most is None else max(0, most - used)]
        same(fates_of(definition, found), expected(definition, ticks, allowed, now))
        assert found.to.cursor_ms == (allowed[-1] if allowed else cursor)
        assert found.to.ticks_used == (used + len(allowed) if most is not None else 0)
        following = ticks.next(found.to.cursor_ms) if most is None or found.to.ticks_used < most else None
        assert found.finished == (following is None and found.to.cursor_ms <= now)
        if following is not None:
            assert found.next_due_ms == following
        elif not found.finished:  # looked at again when its last tick is there, to be finished
            assert found.next_due_ms == found.to.cursor_ms + lookahead
        else:
            assert found.next_due_ms is None


@AMOUNT
def test_rounds_at_any_time_answer_every_tick_once(amount: float) -> None:
    """I1: whenever the scheduler looks and however far ahead, a tick is answered by exactly one of its rounds."""
    steps = st.lists(st.tuples(LENGTHS, LOOKAHEADS), min_size=2, max_size=8)

    @for_all(250 * amount, DEFINITIONS, INSTANTS, steps)
    def law(definition: Definition, begin: int, steps: list[tuple[int, int]]) -> None:
        timing, timetable, ticks = made(definition)
        at, now, finished = Position(begin), begin, False
        fates: dict[int, list[Fate]] = {}
        for since, lookahead in [*steps, (MINUTE, 0)]:
            now += since
            if finished:
                break
            found = plan(timing, timetable, at, now, lookahead)
            for tick, more in fates_of(definition, found).items():
                fates.setdefault(tick, []).extend(more)
            at, finished = found.to, found.finished
        wanted = ticks.between(begin, max(now, at.cursor_ms))[: definition.max_ticks]
        assert sorted(fates) == wanted
        assert {len(each) for each in fates.values()} <= {1}


@pytest.mark.parametrize("policy", ["skip", "latest", "all"])
def test_a_year_of_outage_is_planned_without_walking_it(policy: Any) -> None:
    """More than 100 missed ticks wedge nothing (Kubernetes), and cost no more than a few."""
    definition = job(CronEntry("* * * * *", "America/New_York", "skip", "both"), misfire=MisfireRule(policy))
    timing, timetable, _ = made(definition)
    looks = []
    for away in (2 * HOUR, 365 * DAY):
        walked = Walked(timetable)
        found = plan(timing, walked, Position(NOON - away), NOON, MINUTE)
        assert walked.ticks <= 5  # what is in time, and what is ahead
        looks.append(walked.looks)
        assert found.to.cursor_ms == NOON + MINUTE
        missed = sum(answer.ticks for answer in found.answers) + (found.gap is not None)
        assert missed > 0
    assert max(looks) <= 25


def test_a_plan_of_many_seconds_goes_on_in_the_next_round() -> None:
    definition = job(EveryEntry(SECOND, 0))
    timing, timetable, _ = made(definition)
    at, runs = Position(NOON), []
    for _ in range(3):
        found = plan(timing, timetable, at, NOON, 20 * MINUTE)
        runs += [run.scheduled_for_ms for run in found.runs]
        assert len(found.runs) <= MOST_RUNS
        at = found.to
    assert runs == [NOON + n * SECOND for n in range(1, 20 * 60 + 1)]


def test_the_same_plan_for_every_job_that_stands_alike() -> None:
    definition = job(EveryEntry(MINUTE, 0), misfire=MisfireRule("latest"))
    timing, timetable, _ = made(definition)
    assert plan(timing, timetable, Position(NOON - DAY), NOON, MINUTE) == plan(
        *made(definition)[:2], Position(NOON - DAY), NOON, MINUTE
    )


def test_a_clock_that_goes_back_plans_nothing_again() -> None:
    """S0-10, S4-6: the cursor, not the clock, says what is planned."""
    definition = job(EveryEntry(MINUTE, 0))
    timing, timetable, _ = made(definition)
    first = plan(timing, timetable, Position(NOON - MINUTE), NOON, 5 * MINUTE)
    again = plan(timing, timetable, first.to, NOON - MINUTE, 5 * MINUTE)
    assert again.runs == ()
    assert again.to == first.to
    assert not again.finished


def test_the_last_tick_finishes_the_job_when_it_has_come() -> None:
    definition = job(OnceEntry("2026-10-25T00:30:00Z"))
    timing, timetable, _ = made(definition)
    tick = to_ms(parse_instant("2026-10-25T00:30:00Z"))
    ahead = plan(timing, timetable, Position(tick - HOUR), tick - MINUTE, 2 * MINUTE)
    assert [run.scheduled_for_ms for run in ahead.runs] == [tick]
    assert not ahead.finished
    assert ahead.next_due_ms == tick + 2 * MINUTE  # within the lookahead as soon as the tick is there
    assert plan(timing, timetable, ahead.to, tick, 2 * MINUTE).finished


def test_lateness_counts_from_the_delayed_start() -> None:
    """Section 5, 9: with a jitter of ten minutes, a tick of nine minutes ago may still be on its way."""
    definition = job(CronEntry("0 * * * *"), jitter_ms=50 * MINUTE, misfire=MisfireRule("skip", grace_ms=0))
    timing, timetable, ticks = made(definition)
    start = ticks.start(NOON)
    assert NOON < start < NOON + 50 * MINUTE
    in_time = plan(timing, timetable, Position(NOON - MINUTE), start, 0)
    assert [(run.scheduled_for_ms, run.run_after_ms, run.lane) for run in in_time.runs] == [(NOON, start, "live")]
    late = plan(timing, timetable, Position(NOON - MINUTE), start + 1, 0)
    assert [(answer.from_ms, answer.reason) for answer in late.answers] == [(NOON, "misfire")]


@AMOUNT
def test_no_run_may_start_before_its_tick_or_after_the_next(amount: float) -> None:
    """S4-17, I4: run_after is the tick and its jitter; starts keep the order of the ticks."""

    @for_all(150 * amount, DEFINITIONS.map(unlimited), INSTANTS)
    def law(definition: Definition, now: int) -> None:
        timing, timetable, ticks = made(definition)
        runs = plan(timing, timetable, Position(now), now, 3 * HOUR).runs
        assert all(run.run_after_ms >= run.scheduled_for_ms for run in runs)
        assert all(one.run_after_ms < other.scheduled_for_ms for one, other in pairwise(runs))
        assert all(Run(run.run_after_ms) == Run(ticks.start(run.scheduled_for_ms)) for run in runs)
        assert not late_ones(ticks, [run.scheduled_for_ms for run in runs], definition.misfire.grace_ms, now)
