"""I10 in worlds that have more work than slots."""

from tests.simulate.evidence import Evidence
from tests.simulate.laws import judged
from tests.simulate.laws_of_work import i10_fair_shares
from tests.simulate.scenario import crowded
from tests.simulate.world import World


def test_backlogged_tenants_get_their_share() -> None:
    """S3-16: fair execution across tenants; the windows of 60 s in which everybody waited are many."""
    for seed in (1, 2):
        scenario = crowded(seed)
        record = World(scenario).run()
        assert not judged(scenario, record)
        assert sum(len(found) == 3 for _, found in record.waiting) > 12


def test_a_tenant_that_gets_nothing_is_seen() -> None:
    """The law can be broken: the starts of one tenant are taken out of the log."""
    scenario = crowded(1, minutes=4)
    record = World(scenario).run()
    record.begun = [each for each in record.begun if each.stay.tenant != "zeta"]
    assert {each.law for each in i10_fair_shares(Evidence(scenario, record))} == {"I10"}
