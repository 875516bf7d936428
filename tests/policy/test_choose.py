"""What a claim takes, what it parks and where, under slots, lanes, caps, quotas, rates and controls."""

from random import Random
from typing import Any

import pytest

from fleetcron.model.queued import Cap, Control, Holder, Limits, Park, Queued
from fleetcron.model.states import RunState
from fleetcron.model.upstream import Upstream
from fleetcron.policy.choose import choose
from tests.policy.claims import KEY, NOW, facts, run


def free(run_id: int, **fields: Any) -> Queued:
    """A run that waits for no other."""
    return run(run_id, **{"claim_key": None, "overlap": "allow", **fields})


def taken(*runs: Queued, **fields: Any) -> list[int]:
    return [run_id for run_id, _ in choose(facts(*runs, **fields)).claims]


def parked(*runs: Queued, **fields: Any) -> dict[int, str]:
    return {park.run_id: f"{park.gate} {park.key}" for park in choose(facts(*runs, **fields)).parks}


SIX = [free(number, tenant="t1" if number < 4 else "t2", type="xy"[number % 2]) for number in range(1, 7)]


def test_no_more_than_there_are_slots() -> None:
    """Those that find no slot stay in the open queue: the next free one is for them."""
    assert taken(*SIX, room=2) == [1, 2]
    assert parked(*SIX, room=2) == {}
    held = {("p1", "t9", "z"): 3, ("p2", "t9", "z"): 9}
    assert taken(*SIX, limits=Limits(slots=5, held=held)) == [1, 2]  # of the fleet, in this pool
    assert taken(*SIX, limits=Limits(slots=3, held=held)) == taken(*SIX, room=0) == []


def test_catch_up_leaves_the_share_of_live_work() -> None:
    """S2-20, S2-43."""
    late = [free(number, lane="catchup", due=-9_000) for number in (11, 12, 13)]
    assert taken(*late, free(1), room=4, catchup_room=1) == [1, 11]
    assert taken(*late, *SIX, room=4, catchup_room=3) == [1, 2, 3, 4]
    assert taken(*late, *SIX, room=1, catchup_room=1, catchup_first=True) == [11]


def test_catch_up_leaves_the_share_of_live_work_in_the_whole_fleet() -> None:
    """S2-20, S2-43: of the slots that a pool has in the fleet, whoever holds them."""
    late = [free(number, lane="catchup", due=-9_000) for number in range(11, 20)]
    for slots, lent, starts in ((4, 0, 3), (4, 2, 1), (4, 3, 0), (2, 0, 1), (2, 1, 0), (12, 0, 9), (1, 0, 1)):
        limits = Limits(slots=slots, held={("p1", "t1", "x"): lent}, lent={"p1": lent, "p2": 5})
        assert len(taken(*late, limits=limits)) == starts, (slots, lent)
    busy = Limits(slots=8, held={("p1", "t1", "x"): 7}, lent={"p1": 0})
    assert taken(*late, limits=busy) == [11]  # the last free slot: it is idle
    assert taken(*late, free(1), limits=busy) == [1]
    assert taken(*late, limits=Limits(slots=12), catchup_room=2) == [11, 12]  # and of those of the worker


def test_one_slot_of_the_whole_fleet_alternates() -> None:
    """S2-20: whatever slots the workers have, neither lane starves."""
    both = free(1), free(11, lane="catchup", due=-9_000)
    one, two = Limits(slots=1), Limits(slots=2)
    assert taken(*both, limits=one) == taken(*both, limits=two, catchup_turn=True, room=1) == [1]
    assert taken(*both, limits=one, catchup_turn=True) == [11]


def test_a_moment_early_only_as_far_as_there_is_room_for_it() -> None:
    soon = [free(number, due=500) for number in (1, 2)]
    assert taken(*soon) == [1, 2]
    assert taken(*soon, early_room=1) == [1]
    assert taken(*soon, free(3), early_room=0) == [3]


def test_nobody_takes_a_key_early_that_somebody_wants_who_is_due() -> None:
    soon = run(1, due=500)
    waits = run(2, lane="catchup", due=-9_000)
    assert taken(soon, waits) == [2]
    assert parked(soon, waits) == {1: f"key {KEY}"}
    assert taken(soon, waits, catchup_room=0) == [1]  # it could not start now anyway
    assert taken(soon, run(2, lane="catchup", due=-9_000, job_id="2", claim_key="j:other")) == [1, 2]


def test_caps_and_quotas() -> None:
    """S3-55, S3-57: across pools for a tenant, within the pool for quotas; what is claimed here counts too."""
    held = {("p2", "t1", "x"): 1, ("p1", "t2", "x"): 1}
    limits = Limits(tenants={"t1": Cap(2, None, 1)}, held=held)
    assert taken(*SIX, limits=limits) == [1, 4, 5, 6]
    assert parked(*SIX, limits=limits) == {2: "tenant t1", 3: "tenant t1"}
    assert parked(*SIX, limits=Limits(per_tenant=2, held=held)) == {
        3: "quota_tenant p1:t1", 5: "quota_tenant p1:t2", 6: "quota_tenant p1:t2",
    }  # fmt: skip
    assert parked(*SIX, limits=Limits(per_type={"x": 2}, held=held)) == {
        4: "quota_type p1:x", 6: "quota_type p1:x",
    }  # fmt: skip


def test_who_is_parked_pays_nothing() -> None:
    """S3-56: a start that a cap or a key prevents uses nothing of the rate."""
    limits = Limits(tenants={"t1": Cap(0, 1.0, 1)})
    assert choose(facts(SIX[0], limits=limits)).next_us == {}
    one, two = run(1), run(2, due=1, overlap="allow")
    choice = choose(facts(one, two, at=5, limits=Limits(tenants={"t1": Cap(None, 100.0, 9)})))
    assert choice.parks == [Park(2, "key", "j:1")]
    assert choice.next_us == {"t1": (NOW + 5) * 1000 + 10_000}


def test_a_start_deadline_is_the_last_instant() -> None:
    late, just = free(1, deadline_ms=NOW - 1), free(2, deadline_ms=NOW)
    again, replayed = late._replace(run_id=3, rank=3, attempt=1), late._replace(run_id=4, rank=4, round=1)
    choice = choose(facts(late, just, again, replayed))
    assert [run_id for run_id, _ in choice.claims] == [2, 3, 4]  # it bounds the first start only
    [close] = choice.closes
    assert (close.run_id, close.state, close.at_ms) == (1, RunState.EXPIRED, NOW)


def test_upstream_jobs_are_asked_before_slots() -> None:
    """S1-19. The others pass."""
    failed = Upstream("u", "load", "skip", RunState.DEAD, undecided=False, paused=False)
    running = failed._replace(answer=RunState.RUNNING)
    choice = choose(facts(*SIX[:3], upstream={1: [failed], 2: [running], 3: []}))
    assert [run_id for run_id, _ in choice.claims] == [3]
    assert [(close.run_id, close.state, close.at_ms) for close in choice.closes] == [(1, RunState.SKIPPED, None)]
    assert [(park.run_id, park.gate, park.key) for park in choice.parks] == [(2, "upstream", "u")]


# -- incident controls


def control(percent: int, scope: Any = "tenant", name: str = "t1", until: int | None = None) -> Control:
    return Control(scope, name, percent, None, 1.0, None if until is None else NOW + until)


def test_a_control_holds_back_whom_it_names() -> None:
    """S3-105."""
    assert taken(*SIX, limits=Limits(controls=[control(0)])) == [4, 5, 6]
    assert taken(*SIX, limits=Limits(controls=[control(0, "type", "x")])) == [1, 3, 5]
    assert taken(*SIX, limits=Limits(controls=[control(0, "pool", "p1")])) == []
    assert taken(*SIX, limits=Limits(controls=[control(0, "pool", "p2"), control(100)])) == [1, 2, 3, 4, 5, 6]
    choice = choose(facts(SIX[0], limits=Limits(controls=[control(0, until=7)])))
    assert choice.parks == [Park(1, "paused", "tenant:t1", NOW + 7)]
    rests = free(1, attempt=1, leased=True)
    assert taken(rests, limits=Limits(controls=[control(0)])) == []  # what fails is not tried again either


@pytest.mark.parametrize("overlap", ["skip", "queue", "collapse", "cancel_previous"])
def test_a_percentage_lets_jobs_go_whose_runs_exclude_each_other(overlap: Any) -> None:
    """S3-105: all runs of a job or none. A run that is held back would keep the next ones of its job from starting, so
    with a number for each run every job would stand still by and by."""
    before: set[int] = set()
    for percent in range(0, 101, 5):
        went = [
            {
                job
                for job in range(200)
                if taken(
                    run(200 * tick + job, job_id=f"job-{job}", claim_key=f"j:{job}", overlap=overlap),
                    limits=Limits(controls=[control(percent)]),
                )
            }
            for tick in (1, 2, 3)
        ]
        assert went[0] == went[1] == went[2] >= before
        assert abs(len(went[0]) - 2 * percent) < 25, percent
        before = went[0]
    assert len(before) == 200


def test_raising_a_percentage_only_adds_runs() -> None:
    """S3-85, S3-105: a gradual resume. Of many runs about that share starts."""
    many = [free(number) for number in range(1, 1_001)]
    before: set[int] = set()
    for percent in range(0, 101, 5):
        now = set(taken(*many, room=10_000, limits=Limits(controls=[control(percent)])))
        assert before <= now
        assert abs(len(now) - 10 * percent) < 60, percent
        before = now
    assert len(before) == 1_000


# -- rates


class Tenant:
    """A backlog under a rate: runs are asked for again when their look is due, as the store does."""

    def __init__(self, rate: float, burst: int) -> None:
        self.cap = Cap(None, rate, burst)
        self.next_us: dict[str, int] = {}
        self.queue: dict[int, int] = {}  # runs, and when they are looked at
        self.starts: list[int] = []

    def ask(self, at: int) -> None:
        candidates = [free(number) for number, look in self.queue.items() if look <= at]
        limits = Limits(tenants={"t1": self.cap}, next_us=self.next_us)
        choice = choose(facts(*candidates, at=at, room=1_000, limits=limits))
        self.next_us |= choice.next_us
        for run_id, _ in choice.claims:
            del self.queue[run_id]
            self.starts.append(at)
        for park in choice.parks:
            assert park.look_ms is not None
            assert park.look_ms > NOW + at
            self.queue[park.run_id] = park.look_ms - NOW


def exactly(rate: float, burst: int, arrivals: list[int]) -> list[int]:
    """When they start at the earliest: the smallest instants with at most b + r·t of them in any t seconds."""
    step, starts = round(1_000_000 / rate), list[int]()
    for arrival in arrivals:
        start = max(arrival * 1_000, starts[-1] if starts else 0)
        for back, other in enumerate(reversed(starts), 1):
            start = max(start, other + (back - burst + 1) * step) if back >= burst else start
        starts.append(-(-start // 1_000) * 1_000)
    return [start // 1_000 for start in starts]


@pytest.mark.parametrize(("rate", "burst"), [(1.0, 1), (2.0, 3), (0.5, 1), (10.0, 5), (3.0, 2)])
def test_a_rate_is_exact(rate: float, burst: int) -> None:
    """S3-56: in any window of t seconds at most b + r·t starts, and none is later than that asks for."""
    for seed in range(20):
        draw = Random(seed)
        arrivals = sorted(draw.randrange(20_000) for _ in range(40))
        tenant = Tenant(rate, burst)
        for number, arrival in enumerate(arrivals, 1):
            tenant.queue[number] = arrival
        for _ in range(10_000):
            if not tenant.queue:
                break
            tenant.ask(min(tenant.queue.values()))
        starts = tenant.starts
        for i, first in enumerate(starts):
            for j in range(i, len(starts)):
                assert j - i + 1 <= burst + rate * (starts[j] - first) / 1_000 + 1e-9, starts
        expected = exactly(rate, burst, arrivals)
        assert all(abs(one - other) <= len(starts) for one, other in zip(starts, expected, strict=True))
        assert starts[:burst] == expected[:burst]


def test_those_that_wait_for_a_rate_are_looked_at_one_by_one() -> None:
    """A flood of a tenant with a rate does not wake up at once, every time one of it may start."""
    choice = choose(facts(*(free(n) for n in range(1, 6)), limits=Limits(tenants={"t1": Cap(None, 2.0, 2)})))
    assert [run_id for run_id, _ in choice.claims] == [1, 2]
    assert [park.look_ms and park.look_ms - NOW for park in choice.parks] == [500, 1_000, 1_500]


def test_nobody_with_a_rate_is_claimed_early() -> None:
    """It would take the place of somebody who is due before it."""
    limits = Limits(tenants={"t1": Cap(None, 1.0, 1)})
    assert choose(facts(free(1, due=900), limits=limits)).parks == [Park(1, "rate", "t1", NOW + 900)]


def test_a_clock_that_went_back_does_not_stop_a_tenant() -> None:
    """What a rate remembers is never further away than a full burst."""
    limits = Limits(tenants={"t1": Cap(None, 1.0, 2)}, next_us={"t1": (NOW + 3_600_000) * 1000})
    assert choose(facts(free(1), limits=limits)).parks == [Park(1, "rate", "t1", NOW + 1_000)]


def test_places_of_limits() -> None:
    """How many may go on where somebody waits."""
    held = {("p1", "t1", "x"): 2, ("p2", "t1", "y"): 1}
    limits = Limits(
        slots=5, per_tenant=3, per_type={"x": 2}, held=held,
        tenants={"t1": Cap(4, None, 1), "t2": Cap(None, 1.0, 3)}, next_us={"t2": (NOW + 1_000) * 1000},
    )  # fmt: skip
    assert limits.places("tenant", "t1", "p1", NOW) == 1
    assert limits.places("tenant", "t2", "p1", NOW) > 1_000
    assert limits.places("quota_tenant", "p1:t1", "p1", NOW) == 1
    assert limits.places("quota_tenant", "p2:t1", "p1", NOW) == 0  # of another pool
    assert limits.places("quota_type", "p1:x", "p1", NOW) == 0
    assert limits.places("quota_type", "p1:y", "p1", NOW) > 1_000
    assert [limits.places("rate", "t2", "p1", NOW + later) for later in (-2_500, -1_000, 0, 1_000, 9_000)] == [
        0,
        1,
        2,
        3,
        3,
    ]
    assert limits.free_slots("p1") == 3


@pytest.mark.parametrize("overlap", ["skip", "queue", "collapse", "cancel_previous", "allow"])
def test_a_run_waits_for_those_of_its_job_under_a_key_that_it_had(overlap: str) -> None:
    """The job was edited while they ran: they are in its way all the same, each as one."""
    old = Holder(0, 9, "1", False, "n1", "k:t1:old")
    waits = run(1, kind="manual", overlap=overlap)
    assert parked(waits, of_jobs={"1": [old]}) == {1: "former 1"}
    assert taken(waits, of_jobs={"2": [old._replace(job_id="2")]}) == [1]
    assert taken(waits._replace(max_running=2), of_jobs={"1": [old]}) == [1]
    here = old._replace(run_id=8, claim_key=KEY)
    both = {"holders": {KEY: [here]}, "of_jobs": {"1": [old, here]}}
    assert parked(waits._replace(max_running=2), **both) == {1: "former 1"}
    assert parked(waits, **both) == {1: f"key {KEY}"}
    assert taken(waits._replace(claim_key=None), of_jobs={"1": [old]}) == [1]


def test_two_of_a_job_with_different_keys_do_not_start_together() -> None:
    first, second = run(1, kind="manual"), run(2, kind="manual", claim_key="k:t1:new")
    assert (taken(first, second), parked(first, second)) == ([1], {2: "former 1"})


def test_a_tick_takes_the_place_of_one_under_a_key_that_its_job_had() -> None:
    old = Holder(0, 9, "1", True, "n1", "k:t1:old")
    tick = run(1, overlap="cancel_previous")
    asks = choose(facts(tick, of_jobs={"1": [old]}))
    assert (list(asks.cancels), asks.claims) == ([9], [])
    assert parked(tick, of_jobs={"1": [old]}) == {1: "former 1"}
    rests = choose(facts(tick, of_jobs={"1": [old._replace(node_id=None)]}))
    assert ([each.run_id for each in rests.closes], rests.claims) == ([9], [(1, 0)])
    early = run(1, due=500, overlap="cancel_previous")
    assert (choose(facts(early, of_jobs={"1": [old]})).cancels, taken(early, of_jobs={"1": [old]})) == ({}, [])
    assert parked(run(1, due=500, overlap="collapse"), of_jobs={"1": [old]}) == {1: f"key {KEY}"}
