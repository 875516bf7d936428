"""The checker is scored too: known-bad variants of the code must break a law in some world."""

import asyncio
import os

import pytest

from tests.simulate.playing import asked
from tests.simulate.scoring import FIRST, wanted_of
from tests.simulate.variants import VARIANTS
from tests.soak.code import VARIANTS as CODE
from tests.soak.rounds import Soak, Tally
from tests.store.check_work import CHECKS
from tests.store.test_conformance import world

FEW, MANY = 6, 100
MISSED = 0.05  # at most, of those that can be caught
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


def test_every_variant_can_be_switched_on() -> None:
    """A commit plays few of them: the others must not be left behind by the code that they change."""
    left_behind = []
    for name, variant in VARIANTS.items():
        child = os.fork()
        if not child:
            try:
                variant.apply()
                os._exit(0)
            except BaseException as fault:
                print(f"{name}: {fault}", flush=True)
                os._exit(1)
        if os.waitpid(child, 0)[1]:
            left_behind.append(name)
    assert not left_behind


def test_whoever_may_survive_has_a_reason() -> None:
    """Nineteen of twenty must be caught; for the others somebody has written down why nobody can, and which variants
    take away what hides them: those must be caught."""
    hidden = [name for name, each in VARIANTS.items() if each.hidden is not None]
    assert len(VARIANTS) - len(hidden) >= 15
    bare = {name for name, each in VARIANTS.items() if each.hidden is None}
    for name in hidden:
        assert VARIANTS[name].bared_by, name
        assert set(VARIANTS[name].bared_by) <= bare, name
    assert not [name for name in bare if VARIANTS[name].bared_by]
    assert not set(hidden) & {name for names in QUICK for name in names}
    rare = {name for name in bare if VARIANTS[name].elsewhere}
    assert len(rare) <= MISSED * len(bare)


def test_whoever_worlds_hardly_meet_is_caught_elsewhere() -> None:
    async def checked(name: str) -> None:
        async with world(":memory:") as w:
            await CHECKS[name](w)

    rare = [each for each in VARIANTS.values() if each.elsewhere]
    assert rare
    for each in rare:
        assert each.elsewhere
        asyncio.run(checked(each.elsewhere))  # the code as it is
        child = os.fork()
        if not child:
            try:
                each.apply()
                asyncio.run(checked(each.elsewhere))
            except AssertionError:
                os._exit(7)
            finally:
                os._exit(0)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7


@pytest.mark.soak
@pytest.mark.timeout(0)
def test_mutation_score(soak: Soak) -> None:
    """All variants, a hundred worlds each. Whoever survives has a reason in variants.py (or is one of the few that are
    caught elsewhere), and whoever is caught is caught for what is wrong with it: the code as it is breaks no law in the
    same world."""
    suite = soak.suite("known-bad variants", "sqlite", goal={"variant": len(VARIANTS)}, seed=FIRST, made_of=CODE)
    names = list(VARIANTS)
    for number in suite.rounds(len(names)):
        name = names[number]
        [score] = asked("--score", name, "--most", str(MANY), "--at-once", "2")
        found = Tally()
        if score["laws"]:
            suite.notes = [f"{name} was caught by {', '.join(score['laws'])} in world {score['worlds']}"]
            clean = asked(*wanted_of(name, score["seed"]).words(variant=False))[0]
            found.wrong += [clean["story"]] if clean["laws"] else []
        elif (where := VARIANTS[name].elsewhere) is not None:
            suite.notes = [f"{name} was missed: only {where} catches it"]
        else:
            suite.notes = [f"{name} survived: {VARIANTS[name].hidden}"]
            found.wrong += [] if VARIANTS[name].hidden else [f"nobody caught {name}"]
        found.kinds["other"] += len(found.wrong)
        suite.over({"variant": 1}, found)
    suite.check()
    hidden = sum(each.hidden is not None for each in VARIANTS.values())
    rare = sum(each.elsewhere is not None for each in VARIANTS.values())
    bare = len(VARIANTS) - hidden
    print(f"caught at least {bare - rare} of {bare}; {hidden} more cannot be caught")
