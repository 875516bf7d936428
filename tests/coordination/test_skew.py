"""Clocks of nodes against the database's."""

import pytest

from fleetcron.coordination.skew import Offset, Verdict, measured, with_good_clocks
from fleetcron.store.nodes import SeenNode
from tests.coordination.fleet import node


@pytest.mark.parametrize("true_ms", [-250_000, -3, 0, 3, 250_000])
@pytest.mark.parametrize("there_ms", [0, 1, 40, 200])
def test_the_truth_lies_within_the_uncertainty(true_ms: int, there_ms: int) -> None:
    """S2-41: a node compares its clock with the database's, whatever the reply took on either way."""
    sent_ms, round_trip_ms = 1_000_000, 200
    offset = measured(sent_ms, round_trip_ms, sent_ms + there_ms + true_ms)
    assert abs(offset.ms - true_ms) <= offset.uncertainty_ms == 100


def test_a_slow_reply_is_no_skew() -> None:
    assert Offset(1400, 500).verdict(1000, 300_000) is Verdict.FINE
    assert Offset(-1600, 500).verdict(1000, 300_000) is Verdict.WARN
    assert Offset(300_600, 500).verdict(1000, 300_000) is Verdict.REFUSE
    assert str(Offset(1500, 2)) == "1.500 s behind the database's"
    assert str(Offset(-1500, 2)) == "1.500 s ahead of the database's"


def test_the_odd_one_out_steps_aside_unless_all_are_odd() -> None:
    def seen(name: str, offset_ms: int) -> SeenNode:
        return SeenNode(node(name), 0, 0, 1, offset_ms, True)

    good, bad, worse = seen("a", 299_000), seen("b", -301_000), seen("c", 400_000)
    assert with_good_clocks([good, bad, worse], 300_000) == [good]
    assert with_good_clocks([bad, worse], 300_000) == [bad, worse]  # then it is the database's clock
