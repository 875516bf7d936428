"""Whose turn it is to have a key that several jobs share."""

import pytest

from fleetcron.model.queued import Holder, Queued, Rival
from fleetcron.policy.choose import choose
from fleetcron.policy.turns import TURN_MS
from tests.policy.claims import NOW, facts, run

KEY = "k:t1:shop-db"


def mine(run_id: int = 9, due: int = 0, **fields: object) -> Queued:
    return run(run_id, due, job_id="1", claim_key=KEY, overlap="allow", **fields)


def rival(run_id: int = 5, due: int = -1, look: int | None = 0, **fields: object) -> Rival:
    """Of another pool; called so many ms after NOW."""
    given = {"job_id": "2", "pool": "p2", "claim_key": KEY, "overlap": "queue", **fields}
    return Rival(run(run_id, due, **given), None if look is None else NOW + look)


def holder(run_id: int = 1, node_id: str | None = "n1") -> Holder:
    return Holder(run_id, run_id, "1", True, node_id)


def parks(*rivals: Rival, at: int = 0, of: Queued | None = None, holders: tuple[Holder, ...] = ()) -> object:
    """When it is looked at again if it gives way, from NOW on; False if it takes the key."""
    wanted = of or mine()
    choice = choose(facts(wanted, at=at, holders={KEY: holders}, rivals={KEY: rivals}))
    if choice.claims:
        assert (choice.parks, choice.gave_way) == ([], set())
        return False
    [park] = choice.parks
    assert (park.gate, park.key, choice.gave_way) == ("key", KEY, {wanted.run_id})
    return None if park.look_ms is None else park.look_ms - NOW


def test_a_free_key_is_left_to_whoever_was_called_in_another_pool() -> None:
    assert parks() is False
    assert parks(rival()) == TURN_MS
    assert parks(rival(), at=TURN_MS - 1) == TURN_MS


def test_only_for_a_moment() -> None:
    """Its pool is full, or has no worker: the key must not stay free because of it."""
    assert parks(rival(), at=TURN_MS) is False
    assert parks(rival(look=-TURN_MS)) is False


def test_whoever_waits_and_was_not_called_is_in_nobodys_way() -> None:
    assert parks(rival(look=None)) is False
    assert parks(rival(look=1)) is False


def test_in_the_own_pool_the_order_of_the_queue_decides() -> None:
    assert parks(rival(pool="p1")) is False


@pytest.mark.parametrize(
    ("other", "comes_first"),
    [
        (rival(due=-1), True),
        (rival(5, due=0), True),
        (rival(10, due=0), False),
        (rival(due=1), False),
        (rival(due=-1, lane="catchup"), False),  # live work comes first
        (rival(due=-1, priority=-1), False),
        (rival(due=-60_000, priority=-1), True),  # waiting raises it
        (rival(due=0, priority=1), True),
    ],
)
def test_who_comes_first(other: Rival, comes_first: bool) -> None:
    assert bool(parks(other)) is comes_first


def test_nobody_takes_it_early_before_one_that_is_due() -> None:
    early = mine(due=500)._replace(scheduled_for_ms=NOW - 1000)
    assert parks(rival(due=0, lane="catchup"), of=early) == TURN_MS


def test_nobody_comes_beside_those_who_keep_an_older_one_out() -> None:
    """It wants the key for itself, and would never find it free."""
    three = mine(max_running=3)
    alone = rival(look=None)
    assert parks(alone, of=three) is False  # nobody keeps it out
    assert parks(alone, of=three, holders=(holder(),)) is None
    assert parks(alone._replace(run=alone.run._replace(pool="p1")), of=three, holders=(holder(),)) is None
    assert parks(rival(due=1, look=None), of=three, holders=(holder(),)) is False
    assert parks(rival(look=None, max_running=2), of=three, holders=(holder(),)) is False
    assert parks(rival(look=None, max_running=2), of=three, holders=(holder(), holder(2))) is None


def test_it_does_not_wait_for_one_that_it_cannot_help() -> None:
    """A run that rests between two attempts holds the key for hours; and whoever was called in vain has no worker."""
    three = mine(max_running=3)
    assert parks(rival(look=None), of=three, holders=(holder(node_id=None),)) is False
    assert parks(rival(look=None), of=three, holders=(holder(node_id=None), holder(2))) is False
    assert parks(rival(look=-TURN_MS), of=three, holders=(holder(),)) is False
