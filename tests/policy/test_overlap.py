"""What a tick does that is due while its job still runs: for each policy, and the same whenever somebody asks."""

from dataclasses import dataclass, field, replace
from random import Random
from typing import Any, Literal

import pytest

from fleetcron.model.queued import Choice, Close, Facts, Holder, Park, Previous, Queued, Waiting
from fleetcron.model.rules import OverlapPolicy
from fleetcron.model.states import RunState
from fleetcron.model.upstream import Upstream
from fleetcron.policy.choose import LEFT_OUT, choose
from tests.policy.claims import KEY, NOW, facts, run

POLICIES: tuple[OverlapPolicy, ...] = ("skip", "queue", "collapse", "allow", "cancel_previous")
KINDS: dict[str, dict[str, Any]] = {
    "catch-up": {"lane": "catchup"},
    "backfill": {"kind": "backfill", "lane": "catchup"},
    "manual": {"kind": "manual"},
    "replayed": {"round": 1, "lane": "catchup"},
    "retrying": {"attempt": 1, "leased": True},
}


def verdict(choice: Choice, run_id: int) -> str:
    if any(run_id == each for each, _ in choice.claims):
        return "starts"
    for close in choice.closes:
        if close.run_id == run_id:
            return str(close.state)
    for park in choice.parks:
        if park.run_id == run_id:
            return f"waits at {park.gate}" + ("" if park.look_ms is None else f" until {park.look_ms - NOW}")
    return "stays"


def holder(run_id: int = 9, node_id: str | None = "n1", live: bool = True, job_id: str = "1") -> Holder:
    return Holder(0, run_id, job_id, live, node_id)


# the run before: final at so many ms after the tick was due, or held; asked: so many ms after that


@pytest.mark.parametrize(
    ("before", "asked", "expected"),
    [
        (-1, -500, "starts"),  # claimed a moment early
        (-1, 500, "starts"),
        (0, 0, "starts"),  # finished exactly then is no overlap
        (0, 500, "starts"),
        (1, 500, "skipped"),
        (None, -500, "waits at key until 1"),  # nothing is decided before that
        (None, 0, "waits at key until 1"),  # it may still end at this very instant
        (None, 1, "skipped"),
        (None, 500, "skipped"),
    ],
)
def test_skip(before: int | None, asked: int, expected: str) -> None:
    """S0-37, S3-45."""
    previous = {1: Previous(9, None if before is None else NOW + before)}
    holders = {KEY: [holder()]} if before is None else {}
    choice = choose(facts(run(), at=asked, previous=previous, holders=holders))
    assert verdict(choice, 1) == expected
    if expected == "skipped":
        [close] = choice.closes
        assert (close.at_ms, close.reason) == (NOW, "overlap: run 9 was not finished")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("policy", POLICIES)
def test_others_than_live_ticks_wait(policy: OverlapPolicy, kind: str) -> None:
    """Never skipped, and they cancel nothing; one that rests has its key already."""
    mine = run(overlap=policy, **KINDS[kind])
    held = {KEY: [holder()]} if not mine.leased else {KEY: [holder(1, None)]}
    choice = choose(facts(mine, at=500, previous={1: Previous(9, None)}, holders=held))
    assert verdict(choice, 1) == ("starts" if mine.leased else "waits at key")
    assert (choice.closes, choice.cancels) == ([], {})


@pytest.mark.parametrize("policy", POLICIES)
def test_a_live_tick_is_never_skipped_because_of_others(policy: OverlapPolicy) -> None:
    """A catch-up run has the key: the tick waits for it, and asks nobody to stop."""
    choice = choose(facts(run(overlap=policy), at=500, holders={KEY: [holder(live=False)]}))
    assert (verdict(choice, 1), choice.cancels) == ("waits at key", {})


@pytest.mark.parametrize(("ended", "expected"), [(2_500, "starts"), (1_500, "skipped"), (None, "skipped")])
def test_skip_knows_the_fate_of_who_waits_elsewhere(ended: int | None, expected: str) -> None:
    """Run 2 waits behind a gate, for an upstream run perhaps. If run 9 still ran when run 2 was due, that one will be
    skipped whenever somebody looks at it, and so run 3 does not overlap it."""
    previous = {
        3: Previous(2, None, has_started=False, skips_at_ms=NOW + 2_000),
        2: Previous(9, None if ended is None else NOW + ended),
    }
    held = {} if ended is not None else {KEY: [holder()]}
    assert verdict(choose(facts(run(3, due=3_000), at=3_100, previous=previous, holders=held)), 3) == expected


@pytest.mark.parametrize(
    ("before", "expected"),
    [(None, "starts"), (Previous(8, NOW + 2_900), "starts"), (Previous(8, None), "skipped")],
)
def test_skip_sees_past_one_that_was_left_out_while_another_waited(before: Previous | None, expected: str) -> None:
    """Run 2 waits behind a gate and will be skipped, because run 9 was there; run 9 was then too late itself, before
    run 3 was due. What counts is the one before that."""
    previous = {
        3: Previous(2, None, has_started=False, skips_at_ms=NOW + 2_000),
        2: Previous(9, NOW + 2_500, left_out=True),
        9: before,
    }
    choice = choose(facts(run(3, due=3_000), at=3_100, previous=previous))
    assert (verdict(choice, 3), choice.undecided) == (expected, False)
    previous.pop(9)
    assert not choose(facts(run(3, due=3_000), at=3_100, previous=previous)).undecided  # asked again, it were the same


@pytest.mark.parametrize(
    ("before", "asked", "expected"),
    [
        (None, -500, "waits at key until 1"),
        (None, 1, "skipped"),
        (-1, -500, "waits at upstream"),
        (-1, 1, "waits at upstream"),
    ],
)
def test_skip_is_decided_when_it_is_due_whatever_upstream_jobs_do(
    before: int | None, asked: int, expected: str
) -> None:
    previous = {1: Previous(9, None if before is None else NOW + before)}
    upstream = {1: [Upstream("2", "load", "wait", None, undecided=True, paused=False)]}
    choice = choose(facts(run(depends=True), at=asked, previous=previous, upstream=upstream))
    assert verdict(choice, 1).startswith(expected)


def test_skip_follows_the_facts_from_tick_to_tick() -> None:
    """Asked late for three at once: run 9 ended between the first two; the third one overlaps the second."""
    ticks = [run(number, due=number * 1_000) for number in (1, 2, 3)]
    previous = {1: Previous(9, NOW + 1_500), 2: Previous(1, None), 3: Previous(2, None)}
    for candidates in (ticks, ticks[::-1]):  # whoever comes first in the queue
        ranked = [each._replace(rank=rank) for rank, each in enumerate(candidates)]
        choice = choose(facts(*ranked, at=9_000, previous=previous))
        assert [verdict(choice, number) for number in (1, 2, 3)] == ["skipped", "starts", "skipped"]


def test_queue_keeps_the_order_of_ticks() -> None:
    """S0-55, S3-44: across lanes; behind whoever is first, wherever that one waits."""
    first, second = run(1, due=-2, overlap="queue", lane="catchup", rank=9), run(2, due=-1, overlap="queue")
    choice = choose(facts(first, second, earlier={2: 1}))
    assert (verdict(choice, 1), verdict(choice, 2)) == ("starts", "waits at key")
    choice = choose(facts(second, earlier={2: 1}))
    assert verdict(choice, 2) == "waits at key"
    late = first._replace(deadline_ms=NOW - 1, lane="live", rank=0)
    choice = choose(facts(late, second, earlier={2: 1}))  # there may be another one between the two
    assert (verdict(choice, 1), verdict(choice, 2), choice.undecided) == ("expired", "stays", True)


def waiting(*runs: Queued) -> dict[str, list[Waiting]]:
    return {
        "1": [Waiting(each.run_id, each.lane, each.scheduled_for_ms, each.due_ms, each.deadline_ms) for each in runs]
    }


def test_collapse_keeps_the_newest() -> None:
    """S3-46: it stands for all that waited, wherever they waited, and starts when the key is free."""
    ticks = [run(number, due=number * 1_000, overlap="collapse") for number in (1, 2, 3)]
    known = waiting(*ticks)
    for held in ({}, {KEY: [holder()]}):
        choice = choose(facts(ticks[1], ticks[2], at=3_000, waiting=known, holders=held))  # run 1 is parked somewhere
        assert [(close.run_id, close.covered_by, close.at_ms) for close in choice.closes] == [
            (2, 3, NOW + 3_000),
            (1, 3, NOW + 2_000),
        ]
        assert {close.state for close in choice.closes} == {RunState.MERGED}
        assert verdict(choice, 3) == ("waits at key" if held else "starts")
    choice = choose(facts(*ticks, at=2_999, waiting=known))
    assert [verdict(choice, number) for number in (1, 2, 3)] == ["merged", "starts", "waits at key until 3000"]


@pytest.mark.parametrize("overlap", ["collapse", "cancel_previous"])
def test_the_newest_takes_the_place_of_those_that_gave_way(overlap: OverlapPolicy) -> None:
    """In its own place it would stand behind everybody who came before it, and the next one again."""
    old, new = (run(number, due=number * 1_000, overlap=overlap) for number in (1, 3))
    other = run(2, due=2_000, overlap="allow", job_id="2", claim_key=None)
    known = waiting(old, new)
    choice = choose(facts(old, other, new, at=3_000, waiting=known, room=1))
    assert [verdict(choice, number) for number in (2, 3)] == ["stays", "starts"]
    assert choice.reached == {("live", 0): 1}  # nobody was served but the place of the first
    assert [(close.run_id, close.heir) for close in choice.closes] == [(1, 3)]
    # behind more others than were read: the next look finds it in front, and its slot is still free
    choice = choose(facts(old, other, at=3_000, waiting=known, room=1))
    assert (verdict(choice, 2), choice.undecided) == ("stays", True)
    choice = choose(facts(old, other, at=3_000, waiting=known, room=2))
    assert (verdict(choice, 2), choice.undecided) == ("starts", True)


def test_a_place_is_not_taken_over_in_another_lane() -> None:
    old, new = run(1, due=0, overlap="collapse", lane="catchup"), run(3, due=3_000, overlap="collapse")
    other = run(2, due=2_000, overlap="allow", job_id="2", claim_key=None)
    choice = choose(facts(old, other, new, at=3_000, waiting=waiting(old, new), room=1))
    assert [verdict(choice, number) for number in (1, 2, 3)] == ["merged", "starts", "stays"]
    assert [close.heir for close in choice.closes] == [None]


def test_collapse_does_not_merge_what_was_too_late_by_then() -> None:
    ticks = [run(n, due=n * 1_000, overlap="collapse", deadline_ms=NOW + n * 1_000 + 1_500) for n in (1, 2, 4)]
    choice = choose(facts(*ticks, at=4_000, waiting=waiting(*ticks)))
    assert [verdict(choice, number) for number in (1, 2, 4)] == ["merged", "expired", "starts"]
    assert [(close.run_id, close.covered_by, close.at_ms) for close in choice.closes] == [
        (1, 2, NOW + 2_000),
        (2, None, NOW + 3_501),
    ]


def test_cancel_previous() -> None:
    """S0-56: the running one is asked to stop; the waiting ones and one that rests end at once; nobody else."""
    ticks = [run(number, due=number * 1_000, overlap="cancel_previous") for number in (1, 2)]
    old = run(3, due=-9_000, overlap="cancel_previous", lane="catchup")
    known = waiting(old, *ticks)
    choice = choose(facts(*ticks, old, at=2_000, waiting=known, holders={KEY: [holder()]}))
    assert [verdict(choice, number) for number in (1, 2, 3)] == ["cancelled", "waits at key", "waits at key"]
    assert choice.cancels == {9: "cancel_previous: run 2 takes its place"}
    choice = choose(facts(ticks[1], at=2_000, waiting=waiting(ticks[1]), holders={KEY: [holder(node_id=None)]}))
    assert (verdict(choice, 9), verdict(choice, 2), choice.cancels) == ("cancelled", "starts", {})
    rests = run(9, due=0, overlap="cancel_previous", attempt=1, leased=True)
    choice = choose(facts(rests, ticks[1], at=2_000, waiting=waiting(ticks[1]), holders={KEY: [holder(node_id=None)]}))
    assert (verdict(choice, 9), verdict(choice, 2)) == ("cancelled", "starts")
    choice = choose(facts(ticks[1], at=2_000, waiting=waiting(ticks[1]), holders={KEY: [holder(job_id="7")]}))
    assert (verdict(choice, 2), choice.cancels) == ("waits at key", {})  # another job has the shared key
    choice = choose(facts(ticks[1], at=1_999, waiting=waiting(ticks[1]), holders={KEY: [holder()]}))
    assert (verdict(choice, 2), choice.cancels) == ("waits at key until 2000", {})


def test_an_older_tick_cancels_no_newer_one() -> None:
    """It came after it, as from a stretch that an edit has left undecided. Whoever runs or rests goes on."""
    late = run(1, due=-5_000, overlap="cancel_previous")
    for node_id in ("n1", None):
        newer = holder(node_id=node_id)._replace(scheduled_for_ms=NOW - 1_000, due_ms=NOW - 1_000)
        choice = choose(facts(late, waiting=waiting(late), holders={KEY: [newer]}))
        assert (verdict(choice, 1), verdict(choice, 9), choice.cancels) == ("cancelled", "stays", {})
        assert [close.reason for close in choice.closes] == ["cancel_previous: run 9 takes its place"]
        former = newer._replace(claim_key="k:t1:old")
        choice = choose(facts(late, waiting=waiting(late), of_jobs={"1": [former]}))
        assert (verdict(choice, 1), verdict(choice, 9), choice.cancels) == ("cancelled", "stays", {})
    early = holder()._replace(scheduled_for_ms=NOW + 500, due_ms=NOW + 500)  # claimed, and not begun
    choice = choose(facts(late, waiting=waiting(late), holders={KEY: [early]}))
    assert (verdict(choice, 1), choice.cancels) == ("waits at key until 500", {})


def test_allow_has_a_bound_or_none() -> None:
    """S3-47."""
    three = [run(number, overlap="allow", max_running=2) for number in (1, 2, 3)]
    choice = choose(facts(*three))
    assert choice.claims == [(1, 0), (2, 1)]
    assert choice.parks == [Park(3, "key", KEY)]
    assert choose(facts(three[2], holders={KEY: [holder(8)._replace(slot=1)]})).claims == [(3, 0)]
    assert len(choose(facts(*(each._replace(claim_key=None) for each in three))).claims) == 3


# -- the same answer, whenever somebody asks


@dataclass
class Past:
    """One job: ticks every second, of which some start when they are asked for and take their time. (Who is asked to
    stop does not listen: otherwise looking would change the facts.)"""

    policy: Literal["skip", "collapse", "cancel_previous"]
    seed: int
    runs: list[Queued] = field(default_factory=list)
    answers: dict[int, tuple[str, int | None]] = field(default_factory=dict)
    ends: dict[int, int] = field(default_factory=dict)  # of those that started
    lasts: dict[int, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        draw = Random(self.seed)
        deadline = draw.choice((None, 1_500, 2_500))
        for number in range(1, 8):
            due = number * 1_000
            last = None if deadline is None else NOW + due + deadline
            self.runs.append(run(number, due=due, overlap=self.policy, deadline_ms=last))
            self.lasts[number] = draw.choice((0, 300, 1_000, 1_700, 3_200))

    def ask(self, at: int, room: int) -> None:
        for _ in range(20):
            choice = choose(self._facts(at, room))
            for close in choice.closes:
                self.answers[close.run_id] = (str(close.state), close.at_ms)
            for run_id, _ in choice.claims:
                start = max(at, self.runs[run_id - 1].due_ms - NOW)
                self.answers[run_id] = ("started", NOW + start)
                self.ends[run_id] = start + self.lasts[run_id]
            if not (choice.closes or choice.claims or choice.undecided):
                return
        raise AssertionError("it does not come to rest")

    def _facts(self, at: int, room: int) -> Facts:
        queue = [each for each in self.runs if each.run_id not in self.answers and each.due_ms <= NOW + at + 700]
        held = [run_id for run_id, end in self.ends.items() if end > at]
        previous = {each.run_id: found for each in queue if (found := self._previous(each, at)) is not None}
        holders = {KEY: [holder(run_id) for run_id in held]} if held else {}
        given = facts(*queue, at=at, room=room, holders=holders, waiting=waiting(*queue))
        return replace(given, previous=previous if self.policy == "skip" else {})

    def _previous(self, mine: Queued, at: int) -> Previous | None:
        for each in reversed(self.runs[: mine.run_id - 1]):
            state, at_ms = self.answers.get(each.run_id, ("planned", None))
            if state == "started":
                end = self.ends[each.run_id]
                return Previous(each.run_id, NOW + end if end <= at else None)
            left_out = state in {str(one) for one in LEFT_OUT}
            found = Previous(each.run_id, at_ms, left_out, each.deadline_ms if state == "planned" else None)
            if not found.is_left_out_by(mine.due_ms):
                return found
        return None


@pytest.mark.parametrize("policy", ["skip", "collapse", "cancel_previous"])
def test_asking_early_and_again_changes_nothing(policy: Literal["skip", "collapse", "cancel_previous"]) -> None:
    """Starts are facts, and happen at the same instants in both pasts; in one of them somebody also looks in between,
    without a free slot, as often as he likes. Every tick has the same answer, of the same instant."""
    for seed in range(300):
        draw = Random(seed)
        starts = [*sorted(draw.sample(range(0, 12_000, 100), 5)), 20_000]
        once, often = Past(policy, seed), Past(policy, seed)
        looks = sorted([(at, 1) for at in starts] + [(draw.randrange(20_000), 0) for _ in range(40)])
        for at in starts:
            once.ask(at, 1)
        for at, room in looks:
            often.ask(at, room)
        assert once.answers == often.answers, seed


def test_a_closed_run_is_not_closed_again() -> None:
    ticks = [run(number, due=number, overlap="collapse") for number in (1, 2)]
    choice = choose(facts(*ticks, at=9, waiting=waiting(*ticks)))
    assert [type(close) for close in choice.closes] == [Close]
