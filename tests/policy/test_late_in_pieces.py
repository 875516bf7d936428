"""Late ticks that are decided a few at a time get the answers that they get at once."""

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleetcron.model.queued import Close, Late, Unqueued
from fleetcron.model.rules import MisfireRule
from fleetcron.policy.late import late

NOW = 1_000_000

rules = st.builds(
    MisfireRule,
    policy=st.sampled_from(["skip", "latest", "all"]),
    window_ms=st.integers(0, 300),
    limit=st.integers(1, 6),
    grace_ms=st.integers(0, 30),
    lane=st.sampled_from(["catchup", "live"]),
)


@st.composite
def backlogs(draw: st.DrawFn, *, planned_late: bool, least: int = 1) -> list[Unqueued]:
    """All ticks of a job that are due, one after the other. They were planned before, or, some of them, after that."""
    gaps = draw(st.lists(st.integers(1, 40), min_size=least, max_size=25))
    due_ms = [NOW - sum(gaps[number:]) for number in range(len(gaps))]
    ahead = st.integers(-60, 45 if planned_late else 0)
    return [Unqueued(run_id, at_ms, at_ms + draw(ahead)) for run_id, at_ms in enumerate(due_ms, start=1)]


def in_pieces(ticks: Sequence[Unqueued], rule: MisfireRule, first: int, last: int) -> Late:
    """As the store does it: what was decided is gone, and the next look begins behind it."""
    closes: list[Close] = []
    while len(ticks) >= first + last:
        said = late(ticks[:first], rule, NOW, ticks[len(ticks) - last :])
        assert said.decided is not None
        assert not said.caught_up
        assert {each.run_id for each in said.closes} <= {each.run_id for each in ticks[: said.decided]}
        if not said.decided:
            break
        closes += said.closes
        ticks = ticks[said.decided :]
    said = late(ticks, rule, NOW)
    return Late([*closes, *said.closes], said.caught_up)


def answers(said: Late) -> tuple[dict[int, object], list[int]]:
    """A run that was merged into one that was merged is merged into where that ended."""
    by = {each.run_id: each.covered_by for each in said.closes}

    def stands(run_id: int | None) -> int | None:
        return stands(by[run_id]) if run_id in by else run_id

    def reason(close: Close) -> str:
        return close.reason.replace(f"run {close.covered_by}", "a run")

    assert len(by) == len(said.closes)  # one answer each
    closed = {each.run_id: (each.state, reason(each), each.at_ms, stands(each.covered_by)) for each in said.closes}
    return dict(closed), list(said.caught_up)


@given(backlogs(planned_late=True), rules, st.integers(2, 8), st.integers(0, 8))
def test_pieces_say_what_all_of_them_say(ticks: list[Unqueued], rule: MisfireRule, first: int, last: int) -> None:
    assert answers(in_pieces(ticks, rule, first, last)) == answers(late(ticks, rule, NOW))


@given(st.data(), rules, st.integers(2, 8))
def test_whoever_sees_as_many_of_the_newest_as_are_run_gets_on(
    data: st.DataObject, rule: MisfireRule, first: int
) -> None:
    """One more than that: the last may be in its grace. All but the one whose next tick is not known are decided."""
    last = 1 + (rule.limit if rule.policy == "all" else 1)
    ticks = data.draw(backlogs(planned_late=False, least=first + last))
    newest = ticks[len(ticks) - last :]
    if rule.policy != "skip":  # all of them may be run
        rule = replace(rule, window_ms=max(rule.window_ms, NOW - newest[0].due_ms))
    assert late(ticks[:first], rule, NOW, newest).decided == first - 1


@given(backlogs(planned_late=True), rules)
def test_a_tick_that_is_still_to_come_changes_nothing(ticks: list[Unqueued], rule: MisfireRule) -> None:
    """So they need not be read."""
    coming = [Unqueued(99, NOW), Unqueued(100, NOW + 5)]
    assert late([*ticks, *coming], rule, NOW) == late(ticks, rule, NOW)


@pytest.mark.parametrize(("policy", "decided"), [("skip", 2), ("latest", 1), ("all", 0)])
def test_nothing_is_said_that_the_others_could_change(policy: str, decided: int) -> None:
    """Three of a hundred ticks: when the third was missed is known by the fourth only. One of the first two stands for
    the other, whoever will stand for both; and all of them may be among those that run."""
    ticks = [Unqueued(number, NOW - 1_000 + number) for number in range(3)]
    rule = MisfireRule(policy, limit=2, grace_ms=1)  # type: ignore[arg-type]
    assert late(ticks, rule, NOW, []).decided == decided
    newest = [Unqueued(number, NOW - 1_000 + number) for number in (98, 99)]
    assert late(ticks, rule, NOW, newest).decided == 2
    assert {each.covered_by for each in late(ticks, rule, NOW, newest).closes} == (
        {99} if policy == "latest" else {None}
    )
