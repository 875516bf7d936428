"""Durations: `30s`, `15m`, `1h`, `7d`, sums of these, a number of seconds, or a timedelta."""

from datetime import timedelta
from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fleetcron import ScheduleError
from fleetcron.times.durations import duration_ms, duration_text

HUNDRED_YEARS_MS = 100 * 366 * 86_400_000


@pytest.mark.parametrize(
    ("written", "ms"),
    [
        ("30s", 30_000),
        ("15m", 900_000),
        ("1h", 3_600_000),
        ("7d", 604_800_000),
        ("2w", 1_209_600_000),
        ("250ms", 250),
        ("1h30m", 5_400_000),
        ("1d 2h 3m 4s 5ms", 93_784_005),
        ("90", 90_000),
        (" 15 M ", 900_000),
        ("1.5h", 5_400_000),
        ("0.001s", 1),
        ("1m1m", 120_000),
        ("007s", 7000),
        (90, 90_000),
        (0.25, 250),
        (timedelta(minutes=15), 900_000),
        (timedelta(microseconds=1500), 2),
        (timedelta(days=36_600), HUNDRED_YEARS_MS),
        ("36600d", HUNDRED_YEARS_MS),
    ],
)
def test_what_is_written_and_what_it_means(written: str | float | timedelta, ms: int):
    assert duration_ms(written) == ms


@pytest.mark.parametrize(
    "bad",
    [
        "", " ", "soon", "15 minutes", "m", "1x", "1h30", "1h-30m", "-5m", "+5m", "1,5h", "1e3s", "1_000s", "0x10s",
        "1.s", "1.2345s", ".5h", "1h,30m", "٣s", "１５m", "P1D", "PT15M", "15m;", "15m\n30s", "1234567890123s",
        "nan", "inf", None, True, False, [], {}, b"15m", Decimal("1.5"), object(),
    ],
)  # fmt: skip
def test_what_is_no_duration(bad: object):
    with pytest.raises(ScheduleError, match=r"every: .* is not a duration") as refusal:
        duration_ms(bad, "every")
    assert refusal.value.hint == "write it as 30s, 15m, 1h, 7d or 1h30m"
    assert isinstance(refusal.value, ValueError)


@pytest.mark.parametrize(
    "bad", ["0", "0s", "0h0m", 0, 0.0, -1, -0.5, timedelta(0), timedelta(seconds=-1), 0.0004, "0.4ms"]
)
def test_nothing_and_less_is_refused(bad: str | float | timedelta):
    with pytest.raises(ScheduleError, match=r"jitter: .* is not longer than 0"):
        duration_ms(bad, "jitter")


@pytest.mark.parametrize(
    "bad",
    [
        "36601d",
        "999999999999w",
        10**12,
        10**400,
        1e300,
        float("inf"),
        float("nan"),
        timedelta(days=36_601),
        timedelta.max,
    ],
)
def test_more_than_a_hundred_years_is_refused(bad: str | float | timedelta):
    with pytest.raises(ScheduleError, match=r"duration: .* is longer than 100 years"):
        duration_ms(bad)


@pytest.mark.parametrize(
    ("ms", "text"),
    [
        (1, "1ms"), (1500, "1500ms"), (1000, "1s"), (90_000, "90s"), (60_000, "1m"), (5_400_000, "90m"),
        (3_600_000, "1h"), (86_400_000, "1d"), (604_800_000, "7d"), (129_600_000, "36h"),
    ],
)  # fmt: skip
def test_the_shortest_way_to_write_it(ms: int, text: str):
    assert duration_text(ms) == text


@settings(max_examples=100, derandomize=True, database=None, deadline=None)
@given(
    st.one_of(st.integers(1, HUNDRED_YEARS_MS), st.integers(1, HUNDRED_YEARS_MS // 60_000).map(lambda n: n * 60_000))
)
def test_what_is_written_is_read_again(ms: int):
    assert duration_ms(duration_text(ms)) == ms
    assert duration_ms(timedelta(milliseconds=ms)) == ms


@settings(max_examples=100, derandomize=True, database=None, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 999), st.sampled_from(["ms", "s", "m", "h", "d", "w"])), min_size=1, max_size=6)
)
def test_a_sum_is_the_sum_of_its_parts(parts: list[tuple[int, str]]):
    sizes = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000, "w": 604_800_000}
    total = sum(n * sizes[unit] for n, unit in parts)
    for between in ("", " "):
        text = between.join(f"{n}{unit}" for n, unit in parts)
        if 0 < total <= HUNDRED_YEARS_MS:
            assert duration_ms(text) == total
        else:
            with pytest.raises(ScheduleError):
                duration_ms(text)
