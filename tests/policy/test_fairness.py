"""Start-time fair queueing between tenants, and priority that waiting raises."""

from collections import Counter
from collections.abc import Mapping, Sequence
from random import Random

from fleetcron.model.queued import Queued
from fleetcron.policy.fairness import AGING_MS, STEP, Place, Wanted, order, places, ranks
from tests.policy.claims import NOW, run

MINUTE = AGING_MS
QUEUE: Place = ("p1", "live", 0, "")


class Queue:
    """What the store does with ranks: runs come, the first ones are served, and the queue remembers how far it came."""

    def __init__(self) -> None:
        self.shares: dict[Place, int] = {}
        self.waiting: list[tuple[int, int, str]] = []
        self.count = 0

    def come(self, weights: Mapping[str, int], tenants: Sequence[str]) -> None:
        wanted = [Wanted("p1", "live", 0, tenant, weights[tenant]) for tenant in tenants]
        found, moved = ranks(wanted, {place: self.shares[place] for place in places(wanted) if place in self.shares})
        for rank, tenant in zip(found, tenants, strict=True):
            self.count += 1
            self.waiting.append((rank, self.count, tenant))
        self.shares |= moved
        self.waiting.sort()

    def serve(self, most: int) -> list[str]:
        served, self.waiting = self.waiting[:most], self.waiting[most:]
        if served:
            self.shares[QUEUE] = max(self.shares[QUEUE], served[-1][0])
        return [tenant for _, _, tenant in served]


def test_backlogged_tenants_get_their_shares() -> None:
    """S3-16, I10: weights 1, 1, 2, 4 get 1/8, 1/8, 1/4 and 1/2 of the starts: in every round of eight, within one."""
    weights = {"a": 1, "b": 1, "c": 2, "d": 4}
    queue = Queue()
    for tenant in weights:  # one after the other, each with everything that it has
        queue.come(weights, [tenant] * 1_000)
    served: Counter[str] = Counter()
    for turn in range(8, 1_601, 8):
        served.update(queue.serve(8))
        for tenant, weight in weights.items():
            assert abs(served[tenant] - turn * weight / 8) <= 1, (turn, served)


def test_shares_hold_while_runs_come_and_go() -> None:
    """Whoever always has something waiting gets his share, whatever the sizes of the batches."""
    draw = Random(1)
    weights = {"a": 1, "b": 2, "c": 5}
    queue, served = Queue(), Counter[str]()
    queue.come(weights, ["a", "b", "c"] * 200)
    for _ in range(200):
        mine = queue.serve(draw.randint(1, 9))
        served.update(mine)
        queue.come(weights, sorted(mine, key=lambda _: draw.random()))
    total = sum(served.values())
    for tenant, weight in weights.items():
        assert abs(served[tenant] / total - weight / 8) < 0.01, served


def test_a_newcomer_is_served_in_its_first_turns() -> None:
    """Against a backlog of 95,000 of somebody else: side by side, from its first run on."""
    queue = Queue()
    queue.come({"big": 1}, ["big"] * 95_000)
    queue.serve(1_234)
    queue.come({"small": 1}, ["small"] * 10)
    assert queue.serve(22).count("small") == 10


def test_who_was_away_has_neither_credit_nor_debt() -> None:
    queue = Queue()
    weights = {"a": 1, "b": 1}
    queue.come(weights, ["a"] * 500)
    queue.serve(500)
    queue.come(weights, ["b"] * 100 + ["a"] * 100)  # a had everything so far, b nothing
    served = queue.serve(100)
    assert abs(served.count("a") - 50) <= 1


def test_ranks_are_given_where_shares_stand() -> None:
    wanted = [Wanted("p1", "live", 0, "a", 2), Wanted("p1", "live", 0, "a", 2), Wanted("p1", "live", 5, "a", 1)]
    assert places(wanted) == {("p1", "live", 0, "a"), QUEUE, ("p1", "live", 5, "a"), ("p1", "live", 5, "")}
    found, moved = ranks(wanted, {QUEUE: 700, ("p1", "live", 0, "a"): 300})
    assert found == [700, 700 + STEP // 2, 0]
    assert moved == {
        ("p1", "live", 0, "a"): 700 + STEP,
        QUEUE: 700,
        ("p1", "live", 5, "a"): STEP,
        ("p1", "live", 5, ""): 0,
    }


# -- order


def ordered(*runs: Queued, now: int = NOW, catchup_first: bool = False) -> list[int]:
    return [each.run_id for each in order(runs, now, catchup_first=catchup_first)]


def test_live_before_catch_up_and_due_before_early() -> None:
    """S2-20. In a pool with one slot the lanes take turns."""
    runs = (
        run(1, lane="catchup", priority=9),
        run(2, due=500, priority=9),
        run(3, due=-1),
        run(4, due=-5 * MINUTE, priority=-2, lane="catchup"),
    )
    assert ordered(*runs) == [3, 2, 1, 4]
    assert ordered(*runs, catchup_first=True) == [1, 4, 3, 2]


def test_the_fair_order_stands_within_a_priority() -> None:
    runs = [run(number, rank=rank, due=-number) for number, rank in ((1, 30), (2, 10), (3, 20), (4, 10))]
    assert ordered(*runs) == [2, 4, 3, 1]


def test_waiting_raises_priority_by_one_a_minute() -> None:
    """S3-58: with a gap of 3, whoever has waited three minutes longer comes first, and not before."""
    high = run(1, priority=5)
    assert ordered(high, run(2, priority=2, due=-3 * MINUTE + 1)) == [1, 2]
    assert ordered(high, run(2, priority=2, due=-3 * MINUTE)) == [2, 1]


def test_a_low_priority_is_served_after_its_gap_at_the_latest() -> None:
    """However much of a higher priority keeps coming: one slot, always taken by the first in order."""
    gap = 4
    low = run(0, priority=0, rank=0)
    backlog = [run(number, priority=gap, due=0, rank=number) for number in range(1, 50)]
    for second in range(3_600):
        now = NOW + second * 1_000
        backlog.append(run(100 + second, priority=gap, due=second * 1_000, rank=100 + second))
        first = next(iter(order([low, *backlog], now)))
        if first is low:
            # whatever of the higher priority was due up to `gap` minutes after it may come first, and nothing else
            assert second <= gap * 60 + 49
            return
        backlog.remove(first)
    raise AssertionError("it was never served")


def test_only_heads_compete() -> None:
    """A run that waits long behind the head of its own queue does not lift the head."""
    runs = [run(1, priority=0, rank=1), run(2, priority=0, rank=2, due=-60 * MINUTE), run(3, priority=1, rank=1)]
    assert ordered(*runs) == [3, 1, 2]
