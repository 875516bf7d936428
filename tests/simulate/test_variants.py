"""The checker is scored too: known-bad variants of the code must break a law in some world."""

import subprocess
import sys

import pytest

from tests.simulate.playing import ROOT, asked
from tests.simulate.variants import VARIANTS

FEW, MANY = 6, 100
# what the few worlds of a commit are enough for; the soak asks all of them
QUICK = (
    ("finish_by_run_only", "leases_by_node_clocks", "insert_and_advance_apart", "unwritten_plans_are_forgotten"),
    ("finish_by_state_only", "reaper_without_guard", "recovery_drops_silently", "start_by_the_nodes_clock"),
    ("claim_without_looking_at_keys", "only_the_fence", "only_the_compare_and_set", "starts_two_seconds_late"),
    ("unknown_renewal_counts", "deadline_not_asked", "served_as_they_come", "no_jitter"),
)


@pytest.mark.parametrize("names", QUICK, ids=range(len(QUICK)))
def test_known_bad_variants_are_caught(names: tuple[str, ...]) -> None:
    """The mutation score of a commit, over variants that few worlds are enough for."""
    scores = asked("--score", ",".join(names), "--most", str(FEW))
    missed = [each["name"] for each in scores if not each["laws"]]
    print(f"caught {len(names) - len(missed)} of {len(names)} known-bad variants")
    assert len(scores) == len(names)
    assert not missed


def test_whoever_may_survive_has_a_reason() -> None:
    """Nineteen of twenty must be caught; for the others somebody has written down why nobody can."""
    hidden = [name for name, each in VARIANTS.items() if each.hidden is not None]
    assert len(VARIANTS) - len(hidden) >= 15
    assert not set(hidden) & {name for names in QUICK for name in names}


@pytest.mark.soak
@pytest.mark.timeout(0)
def test_mutation_score(capfd: pytest.CaptureFixture[str]) -> None:
    """All variants, a hundred worlds each. Whoever survives has a reason in variants.py, and whoever is caught is
    caught for what is wrong with it: the code as it is breaks no law in the same world."""
    command = [sys.executable, "-m", "tests.simulate", "--score", "all", "--most", str(MANY), "--compared"]
    with capfd.disabled():
        done = subprocess.run([*command, "--at-once", "2"], cwd=ROOT, check=False)
    assert done.returncode == 0
