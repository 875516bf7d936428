"""Ticks that were planned and that nobody queued in time: the misfire rule of their job holds for them."""

import pytest

from fleetcron.model.queued import Late, Unqueued
from fleetcron.model.rules import MisfireRule
from fleetcron.policy.late import late

SECOND, MINUTE, HOUR = 1_000, 60_000, 3_600_000
TICKS = [Unqueued(number, number * MINUTE) for number in range(1, 6)]


def told(found: Late) -> tuple[dict[int, str], list[int]]:
    return {each.run_id: f"{each.state}: {each.reason}" for each in found.closes}, list(found.caught_up)


def test_skip_latest_all() -> None:
    """The fifth tick is in its grace, whatever becomes of the others."""
    now = 5 * MINUTE + 30 * SECOND
    nobody = "skipped: misfire: nobody was there to start it"
    covered = "merged: misfire: nobody was there to start it, and run 4 stands for it"
    assert told(late(TICKS, MisfireRule("skip"), now)) == (dict.fromkeys([1, 2, 3, 4], nobody), [])
    assert told(late(TICKS, MisfireRule("latest"), now)) == (dict.fromkeys([1, 2, 3], covered), [4])
    assert {each.covered_by for each in late(TICKS, MisfireRule("latest"), now).closes} == {4}
    assert told(late(TICKS, MisfireRule("all"), now)) == ({}, [1, 2, 3, 4])
    assert told(late(TICKS, MisfireRule("all", limit=3), now)) == ({1: "skipped: misfire: over its limit"}, [2, 3, 4])
    assert told(late(TICKS, MisfireRule("latest", lane="live"), now))[1] == []


@pytest.mark.parametrize("policy", ["skip", "latest", "all"])
def test_whatever_is_in_its_grace_is_not_late(policy: str) -> None:
    rule = MisfireRule(policy, grace_ms=20 * SECOND)  # type: ignore[arg-type]
    assert late(TICKS[:1], rule, MINUTE + 20 * SECOND) == Late()
    assert late(TICKS[:1], rule, MINUTE + 20 * SECOND + 1) != Late()
    assert late([], rule, HOUR) == Late()


def test_the_grace_ends_with_the_next_tick() -> None:
    often = [Unqueued(1, SECOND), Unqueued(2, 2 * SECOND), Unqueued(3, 3 * SECOND)]
    found = late(often, MisfireRule("skip"), 2 * SECOND + 1)
    assert [(each.run_id, each.at_ms) for each in found.closes] == [(1, 2 * SECOND)]


@pytest.mark.parametrize("policy", ["skip", "latest", "all"])
def test_what_was_late_when_it_was_planned_is_not_decided_again(policy: str) -> None:
    """Whoever planned it after an outage or a pause decided that it is to run."""
    rule = MisfireRule(policy, grace_ms=20 * SECOND, lane="live")  # type: ignore[arg-type]
    assert late([Unqueued(1, MINUTE, planned_ms=MINUTE + 20 * SECOND + 1)], rule, HOUR) == Late()
    in_time = late([Unqueued(1, MINUTE, planned_ms=MINUTE + 20 * SECOND)], rule, 2 * HOUR)
    assert [each.run_id for each in in_time.closes] == ([1] if policy == "skip" else [])


def test_what_is_older_than_the_window_is_not_caught_up() -> None:
    rule = MisfireRule("latest", window_ms=HOUR)
    old = "skipped: misfire: older than its window"
    assert told(late(TICKS, rule, 2 * HOUR)) == (dict.fromkeys([1, 2, 3, 4, 5], old), [])
    assert told(late(TICKS, rule, HOUR + 4 * MINUTE)) == (
        {1: old, 2: old, 3: old, 4: "merged: misfire: nobody was there to start it, and run 5 stands for it"}, [5],
    )  # fmt: skip
