"""The database's time, as far as replies tell: never ahead of it."""

from math import floor

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleetcron.store.dbclock import Reading
from fleetcron.worker.dbtime import DatabaseTime


@given(
    offset_ms=st.floats(-1e9, 1e9),
    replies=st.lists(st.tuples(st.floats(0, 5), st.floats(0, 0.5), st.floats(0, 0.5)), min_size=1, max_size=30),
    later_s=st.floats(0, 10),
)
def test_a_start_is_never_early(offset_ms: float, replies: list[tuple[float, float, float]], later_s: float) -> None:
    """S4-17, promise 4: whatever the network does, the lower bound is not above the database's clock."""
    time = DatabaseTime()
    now_s = 100.0
    for pause_s, there_s, back_s in replies:
        sent_s = now_s + pause_s
        read_s = sent_s + there_s
        now_s = read_s + back_s
        time.heard(floor(read_s * 1000 + offset_ms), sent_s, now_s)
    truth_ms = (now_s + later_s) * 1000 + offset_ms
    assert time.surely_ms(now_s + later_s) <= truth_ms + 1e-3
    assert time.at_most_ms(now_s + later_s) >= truth_ms - 1e-3


def test_many_replies_make_the_bounds_narrow() -> None:
    time = DatabaseTime()
    for number in range(200):
        at_s = 10 + number * 0.0107
        time.heard(int((at_s + 0.0002) * 1000), at_s, at_s + 0.0004)
    assert time.at_most_ms(13) - time.surely_ms(13) < 1.0


def test_a_clock_that_was_set_is_noticed() -> None:
    time = DatabaseTime()
    time.heard(1_000_000, 10.0, 10.001)
    time.heard(940_100, 10.1, 10.101)  # a minute back
    assert time.surely_ms(10.101) <= 940_101
    time.heard(1_100_000, 10.2, 10.201)  # and far ahead
    assert time.at_most_ms(10.201) >= 1_100_000
    assert time.surely_ms(10.201) >= 1_099_998


def test_when_an_instant_has_come() -> None:
    time = DatabaseTime()
    time.heard(5_000, 1.0, 1.002)
    assert time.surely_ms(time.when_s(6_000)) == pytest.approx(6_000, abs=1e-6)
    assert 2.002 < time.when_s(6_000) < 2.0023  # the other clock may be slower than ours


def test_a_slower_clock_is_waited_for() -> None:
    """Nothing starts early by the database's clock, however long ago it was heard."""
    time = DatabaseTime()
    time.heard(0, 0.0, 0.0)
    for at_s in (0.5, 8.0, 60.0):
        assert time.surely_ms(at_s) <= at_s * 1000 * (1 - 0.0001)


def test_a_faster_clock_is_reckoned_with_and_the_guess_leans_to_neither_side() -> None:
    """Who has heard nothing for ten minutes guessed 60 ms too early: the next run began before the end of this one."""
    time = DatabaseTime()
    time.read(Reading(1_000_000_000, 10.0, 10.0))
    for silent_s in (0.5, 60.0, 600.0):
        assert time.at_most_ms(10.0 + silent_s) >= 1_000_000 + silent_s * 1000 * (1 + 0.0001)
        assert time.guess_ms(10.0 + silent_s) == 1_000_000 + silent_s * 1000


def test_one_exact_reading_is_enough() -> None:
    """The bounds are as narrow as the statement was short, and widen with time: clocks drift apart."""
    time = DatabaseTime()
    time.heard(1_000_010, 10.0, 10.005)
    assert time.slack_ms(10.005) > 5
    time.read(Reading(1_000_100_500, 10.1, 10.1002))
    assert time.slack_ms(10.1002) < 0.21
    assert time.slack_ms(11.1002) > 0.5
    assert time.surely_ms(10.1002) <= 1_000_100.7
    assert time.at_most_ms(10.1002) >= 1_000_100.5
