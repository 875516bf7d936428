"""The checker is scored too: known-bad variants of the code must break a law in some world."""

from collections.abc import Iterator

import pytest

from tests.simulate.campaign import Result, Wanted, apart
from tests.simulate.variants import VARIANTS, Variant

pytestmark = pytest.mark.soak  # not yet bounded for the short run

FIRST = 1000
FEW, MANY = 3, 100
MINUTES = 6.0
# what the few worlds of a commit are enough for; the soak asks all of them
QUICK = (
    "drain_stops_the_heartbeat_first", "no_dead_mans_switch", "start_by_the_nodes_clock", "start_when_claimed",
    "deadline_not_asked", "insert_and_advance_apart", "recovery_drops_silently", "no_jitter",
    "claim_without_looking_at_keys",
)  # fmt: skip


def worlds(name: str, variant: Variant, most: int) -> Iterator[Result]:
    for seed in range(FIRST, FIRST + most):
        wanted = Wanted(seed, MINUTES, only=variant.faults, variant=name, is_dense=True)
        yield from apart([wanted], variant.apply)


def caught(name: str, most: int, *, compared: bool) -> Result | None:
    """The first world in which it breaks a law; `compared`: the code as it is breaks none there."""
    found = next((each for each in worlds(name, VARIANTS[name], most) if each.laws), None)
    if found is not None and compared:
        [clean] = list(apart([Wanted(found.seed, MINUTES, only=VARIANTS[name].faults, is_dense=True)]))
        assert not clean.laws, clean.story
    return found


def test_known_bad_variants_are_caught() -> None:
    """The mutation score of a commit, over variants that few worlds are enough for."""
    found = {name: caught(name, FEW, compared=False) for name in QUICK}
    missed = [name for name, each in found.items() if each is None]
    print(f"caught {len(QUICK) - len(missed)} of {len(QUICK)} known-bad variants")
    assert not missed


@pytest.mark.soak
@pytest.mark.timeout(0)
def test_mutation_score(capfd: pytest.CaptureFixture[str]) -> None:
    """All variants, a hundred worlds each. Whoever survives has a reason that this file knows."""
    with capfd.disabled():
        survivors = []
        for name, variant in VARIANTS.items():
            result = caught(name, MANY, compared=True)
            laws = "" if result is None else f"{', '.join(result.laws)} in seed {result.seed}"
            print(f"{name}: {'caught: ' + laws if laws else 'SURVIVED: ' + (variant.hidden or 'nobody knows why')}")
            if result is None and variant.hidden is None:
                survivors.append(name)
        print(f"caught, or known to be hidden: {len(VARIANTS) - len(survivors)} of {len(VARIANTS)}")
    assert not survivors
