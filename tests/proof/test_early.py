"""The judge of early starts under jumps of the database's clock: what it lets pass, and what it must not."""

import pytest

from tests.proof.early import Jump, is_early, latest_ms

START = Jump(0, 0)
BACK = (START, Jump(100_000, -6_000))
AHEAD = (START, Jump(100_000, 60_000))
THERE_AND_BACK = (START, Jump(100_000, 60_000), Jump(101_000, 0))
BACK_AND_BACK = (START, Jump(100_000, -4_000), Jump(102_000, -8_000))
BELIEVED_MS = 3_000

PASS = {
    "without a jump, at its instant": ((START,), 50_000, 50_000),
    "without a jump, later": ((START,), 50_000, 57_000),
    "after a jump back, by the clock before it": (BACK, 101_000, 101_000),
    "after a jump back, at the very last": (BACK, 102_999, 102_999),
    "after a jump back, by the new clock": (BACK, 110_000, 116_000),
    "after a jump ahead, by the new clock at once": (AHEAD, 160_000, 100_000),
    "after a jump ahead, by the old one": (AHEAD, 101_000, 101_000),
    "heard of the first of two jumps, not of the second": (THERE_AND_BACK, 162_000, 102_000),
    "heard of neither of two jumps back": (BACK_AND_BACK, 102_500, 102_500),
    "heard of one of two jumps back": (BACK_AND_BACK, 100_500, 104_500),
}
EARLY = {
    "without a jump, a millisecond too soon": ((START,), 50_000, 49_999),
    "before a jump ahead that makes it due": (AHEAD, 150_000, 99_999),
    "after a jump ahead, a millisecond too soon by the new clock": (AHEAD, 160_001, 100_000),
    "after a jump back, by the old clock, a millisecond too soon": (BACK, 101_001, 101_000),
    "after a jump back, when every worker knows the new clock": (BACK, 103_001, 103_001),
    "by a clock that was shown too long ago": (THERE_AND_BACK, 165_000, 104_001),
    "by the clock before two jumps, when the first is known": (BACK_AND_BACK, 103_500, 103_500),
    "by no clock that was ever shown": (BACK_AND_BACK, 102_501, 102_500),
}


@pytest.mark.parametrize("case", PASS.values(), ids=PASS)
def test_in_time(case: tuple[tuple[Jump, ...], int, int]) -> None:
    jumps, due_ms, at_ms = case
    assert not is_early(due_ms, at_ms, jumps, BELIEVED_MS)


@pytest.mark.parametrize("case", EARLY.values(), ids=EARLY)
def test_early(case: tuple[tuple[Jump, ...], int, int]) -> None:
    jumps, due_ms, at_ms = case
    assert is_early(due_ms, at_ms, jumps, BELIEVED_MS)


def test_without_doubt_it_is_the_clock_itself() -> None:
    """Who believes nothing old is judged by the database's clock alone, whatever it did before."""
    for at_ms in range(99_000, 106_000, 250):
        shift_ms = [jump.shift_ms for jump in BACK_AND_BACK if jump.at_ms <= at_ms][-1]
        assert latest_ms(at_ms, BACK_AND_BACK, 0) == at_ms + shift_ms
        assert latest_ms(at_ms, BACK_AND_BACK, BELIEVED_MS) >= at_ms + shift_ms
