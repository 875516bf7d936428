"""Worlds from seeds: a fleet, its people and its faults for twenty minutes each, judged by I1 … I12.

`python -m tests.simulate SEED` plays one again, tells its story and makes it smaller.
"""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.simulate.campaign import bound
from tests.simulate.scenario import ASKING, KINDS, drawn

pytestmark = pytest.mark.soak  # not yet bounded for the short run

ROOT = Path(__file__).parents[2]
SHARES = 2  # the cores that tests may use
WORLDS = 10  # of each share; two to four seconds each
SOAK = 10_000


def played(*arguments: str, hash_seed: str = "0") -> list[dict[str, Any]]:
    """In a process of its own: what is killed in a world is never cleaned up."""
    command = [sys.executable, "-m", "tests.simulate", *arguments, "--json"]
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert lines, done.stderr
    return lines


def stories(results: list[dict[str, Any]]) -> str:
    return "\n\n".join(each["story"] for each in results if each["laws"])


@pytest.mark.parametrize("share", range(SHARES))
def test_no_law_is_broken_in_any_world(share: int) -> None:
    """S3-11, S3-12, S3-15: at least once, bounded duplicates, safe recovery; the laws are I1 … I12."""
    results = played("--seeds", f"{share * WORLDS}:{(share + 1) * WORLDS}")
    assert len(results) == WORLDS
    assert not stories(results), stories(results)
    print(bound(0, len(results)))


def test_the_same_seed_has_the_same_trace_whatever_the_hash_seed() -> None:
    """Starts, ends and final rows are the same, in another process too."""
    one, other = (played("6", "--minutes", "6", hash_seed=each)[0] for each in ("1", "777"))
    assert one["trace"] == other["trace"]
    assert one["attempts"] > 10


def test_the_worlds_differ_and_have_all_faults() -> None:
    """Each seed switches on its own faults; some have none, and all occur within a few dozen."""
    worlds = [drawn(seed) for seed in range(60)]
    assert {kind for world in worlds for kind in world.faults} == {*KINDS, ASKING}
    assert any(world.is_healthy for world in worlds)
    assert len({world.faults for world in worlds}) > 40
    policies = {each.overlap.policy for world in worlds for each in world.definitions}
    assert policies == {"skip", "queue", "collapse", "allow", "cancel_previous"}


def test_taking_a_fault_away_leaves_the_rest_as_it_was() -> None:
    whole, less = drawn(3), drawn(3, without=drawn(3).faults[:1])
    assert whole.faults[1:] == less.faults
    assert (whole.definitions, whole.slots, whole.manners) == (less.definitions, less.slots, less.manners)


@pytest.mark.soak
@pytest.mark.timeout(0)
def test_ten_thousand_worlds(capfd: pytest.CaptureFixture[str]) -> None:
    """Resumable: `build/soak/worlds.jsonl` has what is done. Every failure is told with its story at once."""
    command = [sys.executable, "-m", "tests.simulate", "--seeds", f"0:{SOAK}", "--resume", "build/soak/worlds.jsonl"]
    with capfd.disabled():
        done = subprocess.run(command, cwd=ROOT, check=False)
    assert done.returncode == 0
