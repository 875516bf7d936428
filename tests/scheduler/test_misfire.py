"""What becomes of late ticks, held against a list of all of them. Pure: no store, no clock."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import assume
from hypothesis import strategies as st

from fleetcron.model.answer import Gap
from fleetcron.model.definition import Definition
from fleetcron.model.rules import CronEntry, EveryEntry, MisfireRule
from fleetcron.model.target import CommandTarget
from fleetcron.model.timing import Timing
from fleetcron.policy.misfire import Decision, decide, is_late, last_late
from fleetcron.times.timetable import Timetable
from tests.scheduler.drawn import (
    CHANGES,
    DAY,
    DEFINITIONS,
    HOUR,
    INSTANTS,
    LENGTHS,
    MINUTE,
    Walked,
    made,
    unlimited,
)  # fmt: skip
from tests.scheduler.enumerator import When
from tests.scheduler.expected import Fate, Line, Run, late_fates, late_ones, line
from tests.times.examples import AMOUNT, for_all

NOON = CHANGES[-1] + 12 * HOUR


def told(decision: Decision, ticks: When) -> dict[int, list[Fate]]:
    """A decision, tick by tick; a tick that it names twice has two fates."""
    found: dict[int, list[Fate]] = {}
    for run in decision.runs:
        fate = Run(run.run_after_ms, run.lane, run.covers, run.window_ms)
        found.setdefault(run.scheduled_for_ms, []).append(fate)
    for each in decision.answers:
        meant = ticks.between(each.from_ms - 1, each.to_ms)
        assert (len(meant), meant[0], meant[-1]) == (each.ticks, each.from_ms, each.to_ms)
        for tick in meant:
            found.setdefault(tick, []).append(line(each.answer, each.reason, covered_by=each.covered_by_ms))
    return found


def same(found: dict[int, list[Fate]], wanted: dict[int, Fate]) -> None:
    """One fate each, and the right one. Where two reasons hold, either is right."""
    assert found.keys() == wanted.keys()
    for tick, fates in found.items():
        [fate] = fates
        right = wanted[tick]
        if isinstance(fate, Line) and isinstance(right, Line):
            assert fate.reasons <= right.reasons
            fate = replace(fate, reasons=right.reasons)
        assert fate == right


def expected(definition: Definition, ticks: When, found: list[int], noticed: int) -> dict[int, Fate]:
    rule = definition.misfire
    late = late_ones(ticks, found, rule.grace_ms, noticed, definition.start_deadline_ms)
    fates = late_fates(ticks, late, rule, noticed, start_deadline_ms=definition.start_deadline_ms)
    return fates | {tick: Run(ticks.start(tick)) for tick in found if tick not in fates}


@AMOUNT
def test_a_tick_is_late_when_its_grace_or_its_turn_is_over(amount: float) -> None:
    """Section 5, 9: lateness counts from run_after; the grace is capped by the gap to the next tick."""

    @for_all(300 * amount, DEFINITIONS, INSTANTS, LENGTHS)
    def law(definition: Definition, now: int, length: int) -> None:
        _, timetable, ticks = made(definition)
        grace = definition.misfire.grace_ms
        found = ticks.between(now - length, now)
        late = late_ones(ticks, found, grace, now)
        assert [tick for tick in found if is_late(timetable, tick, grace, now)] == late
        assert last_late(timetable, now - length, grace, now) == (late[-1] if late else None)


@AMOUNT
def test_runs_and_answers_together_are_the_ticks_of_the_gap(amount: float) -> None:
    """S2-16 … S2-19: each policy, with its window, limit and deadline, decided tick by tick, across DST changes."""

    @for_all(600 * amount, DEFINITIONS.map(unlimited), INSTANTS, LENGTHS, st.sampled_from([0, MINUTE, HOUR]))
    def law(definition: Definition, now: int, length: int, ago: int) -> None:
        timing, timetable, ticks = made(definition)
        gap = Gap(now - length, now, "outage", noticed_ms=now)
        decision = decide(timing, timetable, gap, now + ago, room=10_000)
        assert decision.rest is None
        found = ticks.between(gap.from_ms, gap.to_ms)
        same(told(decision, ticks), expected(definition, ticks, found, now))


@AMOUNT
def test_a_tick_that_has_its_run_is_left_out(amount: float) -> None:
    """People cancelled some runs ahead of their time, before an edit. No line of the ledger reaches across them."""
    which = st.tuples(st.integers(1, 4), st.integers(0, 3))

    @for_all(400 * amount, DEFINITIONS.map(unlimited), INSTANTS, LENGTHS, which)
    def law(definition: Definition, now: int, length: int, which: tuple[int, int]) -> None:
        timing, timetable, ticks = made(definition)
        gap = Gap(now - length, now, "outage", noticed_ms=now)
        found = ticks.between(gap.from_ms, gap.to_ms)
        every, first = which
        kept = found[first::every][:50]
        decision = decide(timing, timetable, gap, now, room=10_000, kept=[*kept, now - length - 1, now + 1])
        rule, deadline_ms = definition.misfire, definition.start_deadline_ms
        late = late_ones(ticks, found, rule.grace_ms, now, deadline_ms)
        left = [tick for tick in late if tick not in kept]
        wanted = late_fates(ticks, left, rule, now, start_deadline_ms=deadline_ms)
        wanted |= {tick: Run(ticks.start(tick)) for tick in found if tick not in (*late, *kept)}
        same(told(decision, ticks), wanted)


@AMOUNT
def test_what_is_chosen_for_a_gap_holds_for_all_its_ticks(amount: float) -> None:
    """A paused window is decided by the choice at its resume, also ticks that would be in time; a cancel ends all."""
    choices = st.sampled_from(["skip", "latest", "all", "cancel"])

    @for_all(400 * amount, DEFINITIONS.map(unlimited), INSTANTS, LENGTHS, choices, st.sampled_from(["pause", "delete"]))
    def law(definition: Definition, now: int, length: int, policy: Any, cause: Any) -> None:
        timing, timetable, ticks = made(definition)
        gap = Gap(now - length, now, cause, policy, now)
        found = ticks.between(gap.from_ms, gap.to_ms)
        if policy == "cancel":
            reason = "job_deleted" if cause == "delete" else "job_cancelled"
            wanted: dict[int, Fate] = {tick: line("cancelled", reason) for tick in found}
        else:
            wanted = late_fates(
                ticks, found, definition.misfire, now, policy=policy, start_deadline_ms=definition.start_deadline_ms,
                skipped="paused" if cause == "pause" else "misfire",
            )  # fmt: skip
        same(told(decide(timing, timetable, gap, now, room=10_000), ticks), wanted)


@AMOUNT
def test_a_gap_decided_piece_by_piece_is_decided_the_same(amount: float) -> None:
    """However little room there is, and however late: the oldest first, never more than the room, no tick twice."""

    @for_all(
        400 * amount, DEFINITIONS.map(unlimited), INSTANTS, LENGTHS, st.lists(st.integers(0, 7), min_size=1, max_size=5)
    )
    def law(definition: Definition, now: int, length: int, rooms: list[int]) -> None:
        assume(sum(rooms))
        timing, timetable, ticks = made(definition)
        timing = replace(timing, misfire=replace(timing.misfire, policy="all", lane="catchup"))
        definition = replace(definition, misfire=timing.misfire)
        whole = Gap(now - length, now, "edit", noticed_ms=now)
        gap: Gap | None = whole
        found: dict[int, list[Fate]] = {}
        later, rounds = now, 0
        while gap is not None:
            room = rooms[rounds % len(rooms)]
            decision = decide(timing, timetable, gap, later, room)
            caught_up = [run.scheduled_for_ms for run in decision.runs if run.lane == "catchup"]
            assert len(caught_up) <= room
            assert caught_up == sorted(caught_up)
            for tick, fates in told(decision, ticks).items():
                found.setdefault(tick, []).extend(fates)
            # what the store does with the rest: its beginning moves, and it is trimmed
            rest = decision.rest
            gap = None if rest is None else replace(whole, from_ms=rest.from_ms, trimmed=True)
            later, rounds = later + HOUR, rounds + 1
        same(found, expected(definition, ticks, ticks.between(whole.from_ms, whole.to_ms), now))


def every_minute(policy: str, **rule: int) -> tuple[Timing, Timetable]:
    misfire = MisfireRule(policy, **rule)  # type: ignore[arg-type]
    timing = Timing((EveryEntry(MINUTE, 0),), misfire=misfire)
    return timing, made(Definition("a", timing.entries, CommandTarget(("true",)), misfire=misfire))[1]


@pytest.mark.parametrize("policy", ["skip", "latest"])
@pytest.mark.parametrize("cron", ["* * * * *", "*/5 * * * *", "30 2 * * *", "0 0 1 * *"])
def test_skip_and_latest_do_not_walk_a_year(policy: Any, cron: str) -> None:
    """Counting the ticks of a gap does not walk them: as many steps for a year as for an hour."""
    definition = Definition(
        "a", (CronEntry(cron, "America/New_York"),), CommandTarget(("true",)), misfire=MisfireRule(policy)
    )  # fmt: skip
    steps = []
    for length in (HOUR, 365 * DAY):
        timing, timetable, _ = made(definition)
        walked = Walked(timetable)
        decide(timing, walked, Gap(NOON - length, NOON, "outage", noticed_ms=NOON), NOON, room=1)
        assert walked.ticks <= 2  # those that are in time
        steps.append(walked.looks)
    assert max(steps) <= 25


def test_all_walks_only_what_it_creates() -> None:
    timing, timetable = every_minute("all", limit=100, window_ms=365 * DAY)
    walked = Walked(timetable)
    decision = decide(timing, walked, Gap(NOON - 300 * DAY, NOON - 1, "outage", noticed_ms=NOON + 1), NOON, room=10)
    assert len(decision.runs) == 10
    assert walked.ticks <= 500 + 11  # the edge of the limit is found by counting, then by walking the last few


def test_latest_covers_what_it_stands_for() -> None:
    """S2-18, S3-51: one run for the newest tick, with the number of ticks and the stretch that it stands for."""
    timing, timetable = every_minute("latest")
    _, run = decide(timing, timetable, Gap(NOON - 10 * MINUTE, NOON - 1, "outage", noticed_ms=NOON), NOON, 1).runs
    assert run.scheduled_for_ms == NOON - MINUTE
    assert (run.covers, run.window_ms, run.lane) == (1, None, "live")  # in time: its successor comes just now
    late = Gap(NOON - 10 * MINUTE, NOON - 1, "outage", noticed_ms=NOON + 1)
    decision = decide(timing, timetable, late, NOON + 1, 1)
    [run] = decision.runs
    assert (run.covers, run.window_ms, run.lane) == (9, (NOON - 10 * MINUTE, NOON - MINUTE), "catchup")
    [covered] = decision.answers
    assert (covered.ticks, covered.reason, covered.covered_by_ms) == (8, "covered", NOON - MINUTE)


def test_the_edge_of_the_window_belongs_to_it() -> None:
    timing, timetable = every_minute("all", window_ms=5 * MINUTE, limit=100)
    decision = decide(timing, timetable, Gap(NOON - 10 * MINUTE, NOON - 1, "outage", noticed_ms=NOON + 1), NOON + 1, 99)
    assert [run.scheduled_for_ms for run in decision.runs] == [NOON - n * MINUTE for n in (4, 3, 2, 1)]
    decision = decide(timing, timetable, Gap(NOON - 10 * MINUTE, NOON - 1, "pause", "all", NOON), NOON, 99)
    assert [run.scheduled_for_ms for run in decision.runs] == [NOON - n * MINUTE for n in (5, 4, 3, 2, 1)]
