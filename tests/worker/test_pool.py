"""Slots of a pool: what may run, what may be held for later, and what catch-up may borrow."""

from typing import Any, cast

import pytest

from fleetcron.model.errand import Errand
from fleetcron.model.rules import Lane
from fleetcron.model.target import CommandTarget
from fleetcron.store.claims import Claimed
from fleetcron.worker.pool import Attempt, Pool

ERRAND = Errand(CommandTarget(("true",)))


def attempt(run_id: int, due_ms: int = 0, lane: Lane = "live") -> Attempt:
    run = Claimed(run_id, 1, "j", "default", "a", lane, "tick", due_ms, due_ms, None, 0, 0, None, 1, 1, None, "b1")
    return Attempt(run, ERRAND)


def pool(slots: int, running: int = 0, catchup: int = 0) -> Pool:
    made = Pool("default", slots, cast(Any, None))
    for number in range(running):
        made.running[number, 1] = attempt(number)
    for number in range(catchup):
        made.running[1000 + number, 1] = attempt(1000 + number, lane="catchup")
    return made


@pytest.mark.parametrize(
    ("slots", "running", "catchup", "lent"),
    [(8, 0, 0, 6), (8, 0, 6, 0), (8, 2, 3, 3), (8, 5, 0, 3), (4, 0, 0, 3), (2, 0, 0, 1), (2, 0, 1, 0), (3, 0, 0, 2)],
)
def test_catch_up_leaves_a_quarter_of_the_slots(slots: int, running: int, catchup: int, lent: int) -> None:
    """S2-20, S2-43: catch-up borrows idle slots, and max(1, 25 %) of them stay free for live work."""
    assert pool(slots, running, catchup).catchup_room == lent


def test_one_slot_alternates() -> None:
    """S2-20: neither lane starves in a pool with one slot."""
    one = pool(1)
    turns = []
    for _ in range(4):
        lane: Lane = "catchup" if one.catchup_first else "live"
        turns.append(lane)
        one.last_was_catchup = lane == "catchup"
    assert turns == ["live", "catchup", "live", "catchup"]
    some = pool(2)
    some.last_was_catchup = False
    assert (some.catchup_first, some.catchup_turn) == (False, True)  # its turn, if the fleet has one slot


def test_what_is_held_for_later_takes_no_slot() -> None:
    """No slot stays idle for a run whose instant is still to come."""
    some = pool(2)
    some.hold(attempt(1, 1000))
    some.hold(attempt(2, 1000))
    assert (some.room, some.early_room) == (2, 0)


def test_held_runs_come_in_the_order_of_their_instants() -> None:
    some = pool(5)
    for run_id, due_ms in ((1, 300), (2, 100), (3, 200), (4, 900)):
        some.hold(attempt(run_id, due_ms))
    del some.held[3, 1]  # cancelled meanwhile
    assert [each.run.run_id for each in some.due(300)] == [2, 1]
    assert some.next_due_ms() == 900
    assert [each.run.run_id for each in some.take_held()] == [4]
    assert some.next_due_ms() is None
