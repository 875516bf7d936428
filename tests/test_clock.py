"""Clocks and identifiers."""

import os
import time
from uuid import UUID

import pytest

from fleetcron.clock import HandClock, SystemClock
from fleetcron.ids import uuid7


def test_the_clocks_of_the_machine() -> None:
    clock = SystemClock()
    assert abs(clock.now_ms() - time.time() * 1000) < 10_000
    assert clock.monotonic_ms() <= clock.monotonic_ms()


def test_a_clock_moved_by_hand() -> None:
    clock = HandClock(1_000)
    clock.advance(500)
    assert (clock.now_ms(), clock.monotonic_ms()) == (1_500, 500)
    clock.set(100)  # somebody corrected it: no time has passed
    assert (clock.now_ms(), clock.monotonic_ms()) == (100, 500)
    clock.set(300)
    assert (clock.now_ms(), clock.monotonic_ms()) == (300, 700)
    with pytest.raises(ValueError, match="time does not pass backwards"):
        clock.advance(-1)


def test_the_example_of_the_standard() -> None:
    """RFC 9562, appendix A.6."""
    chance = 0xCC3 << 62 | 0x18C4DC0C0C07398F
    assert uuid7(0x017F22E279B0, lambda n: chance.to_bytes(n, "big")) == "017f22e2-79b0-7cc3-98c4-dc0c0c07398f"


def test_ids_sort_by_time_and_differ_within_a_millisecond() -> None:
    made = [uuid7(now_ms) for now_ms in (0, 1, 1_700_000_000_000, (1 << 48) - 1)]
    assert sorted(made) == made
    assert len({uuid7(1_700_000_000_000) for _ in range(1_000)}) == 1_000
    for text in (*made, uuid7(7, lambda n: b"\xff" * n), uuid7(7, lambda n: b"\0" * n), uuid7(7, os.urandom)):
        made_uuid = UUID(text)
        assert (made_uuid.version, made_uuid.variant) == (7, "specified in RFC 4122")


@pytest.mark.parametrize("now_ms", [-1, 1 << 48])
def test_a_time_that_no_id_can_hold(now_ms: int) -> None:
    with pytest.raises(ValueError, match="does not fit into the 48 bits"):
        uuid7(now_ms)
