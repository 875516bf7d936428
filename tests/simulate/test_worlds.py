"""Worlds from seeds: a fleet, its people and its faults for twenty minutes each, judged by I1 … I12.

`python -m tests.simulate SEED` plays one again, tells its story and makes it smaller.
"""

import pytest

from fleetcron.model.entry import is_hashed
from fleetcron.model.rules import CronEntry, EveryEntry, OnceEntry
from tests.simulate.campaign import bound
from tests.simulate.playing import answers, asked
from tests.simulate.scenario import ASKING, KINDS, drawn
from tests.soak.code import WORLDS as CODE
from tests.soak.rounds import Soak, Tally

SHARES = 5
WORLDS = 10  # of each share
SOAK, A_ROUND = 10_000, 50
BROKEN = {"I1": "lost", "I2": "duplicated", "I3": "concurrent", "I4": "early", "I9": "stale"}


@pytest.mark.parametrize("share", range(SHARES))
def test_no_law_is_broken_in_any_world(share: int) -> None:
    """S3-11, S3-12, S3-15: at least once, bounded duplicates, safe recovery; the laws are I1 … I12."""
    results = asked("--seeds", f"{share * WORLDS}:{(share + 1) * WORLDS}")
    stories = "\n\n".join(each["story"] for each in results if each["laws"])
    assert len(results) == WORLDS
    assert not stories, stories
    print(bound(0, len(results)))


def test_the_same_seed_has_the_same_trace_whatever_the_hash_seed() -> None:
    """Starts, ends and final rows are the same, in another process too."""
    one, other = (asked("6", "--minutes", "6", hash_seed=each)[0] for each in ("1", "777"))
    assert one["trace"] == other["trace"]
    assert one["attempts"] > 10


def test_the_worlds_differ_and_have_all_faults() -> None:
    """Each seed switches on its own faults; some have none, and all occur within a few dozen."""
    worlds = [drawn(seed) for seed in range(SHARES * WORLDS)]
    assert {kind for world in worlds for kind in world.faults} == {*KINDS, ASKING}
    assert any(world.is_healthy for world in worlds)
    assert len({world.faults for world in worlds}) > 30


def test_the_worlds_have_all_kinds_of_jobs() -> None:
    """What a definition can say occurs in the few worlds of a commit."""
    jobs = [each for seed in range(SHARES * WORLDS) for each in drawn(seed).definitions]
    entries = [entry for each in jobs for entry in each.schedule]
    crons = [entry for entry in entries if isinstance(entry, CronEntry)]
    assert {type(entry) for entry in entries} == {CronEntry, EveryEntry, OnceEntry}
    assert {len(each.schedule) for each in jobs} >= {1, 2, 3}
    assert {entry.month_end for entry in crons} == {"skip", "clamp"}
    assert {(e.dst_gap, e.dst_fold) for e in crons} == {
        (g, f) for g in ("skip", "shift") for f in ("first", "second", "both")
    }
    assert any(map(is_hashed, crons))
    assert {each.overlap.policy for each in jobs} == {"skip", "queue", "collapse", "allow", "cancel_previous"}
    assert {each.misfire.policy for each in jobs} == {"skip", "latest", "all"}
    assert {each.misfire.lane for each in jobs} == {"live", "catchup"}
    assert {each.on_upstream_failure for each in jobs if each.depends_on} == {"skip", "run", "wait"}
    assert {(use.name, use.on) for each in jobs for use in each.calendars} == {
        ("days", "skip"), ("freeze", "skip"), ("freeze", "defer")
    }  # fmt: skip
    assert {each.retry.backoff for each in jobs} == {"list", "fixed", "exponential"}
    assert {each.region for each in jobs} == {None, "eu", "us"}
    assert len({each.tenant for each in jobs}) == 3
    for optional in ("max_ticks", "start_deadline_ms", "pause_after_failures"):
        assert {getattr(each, optional) is None for each in jobs} == {True, False}, optional
    assert any(each.overlap.concurrency_key for each in jobs)
    assert any(each.overlap.max_running for each in jobs)
    assert any(each.jitter_ms for each in jobs)


def test_taking_a_fault_away_leaves_the_rest_as_it_was() -> None:
    whole, less = drawn(3), drawn(3, without=drawn(3).faults[:1])
    assert whole.faults[1:] == less.faults
    assert (whole.definitions, whole.slots, whole.manners) == (less.definitions, less.slots, less.manners)


@pytest.mark.soak
@pytest.mark.timeout(0)
def test_ten_thousand_worlds(soak: Soak) -> None:
    """What is done is written down after every round; each failure has its story, and how to play it again."""
    suite = soak.suite("simulated worlds", "sqlite", goal={"world": SOAK}, seed=0, made_of=CODE)
    for number in suite.rounds(SOAK // A_ROUND):
        found, done = Tally(), 0
        seeds = f"{number * A_ROUND}:{(number + 1) * A_ROUND}"
        for done, result in enumerate(answers("--seeds", seeds, "--at-once", "2"), 1):
            found.counted["attempts"] += result["attempts"]
            found.kinds.update(BROKEN.get(law, "other") for law in result["laws"])
            found.wrong += [result["story"]] if result["laws"] else []
            suite.tell(done)
        suite.over({"world": done}, found)
    suite.check()
    print(bound(0, SOAK))
