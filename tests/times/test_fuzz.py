"""Whatever is written for a schedule: it is refused with the reason and its place, or it ticks, in a bounded number of
steps.

The schedules come from `bench.expressions`: the grammar, damaged expressions of other projects' tests, and noise, the
same for a seed. 100,000 of them run in `make test`, a million others in `make soak`. No clock is read: a step is a line
of Python that is executed, counted for every 100th schedule and for those that are made to be hard.
"""

import gc
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from itertools import product
from types import FrameType
from typing import Any

import pytest

from bench.expressions import FAR_ZONES, ZONES, Case, fuzzed
from bench.measure import forget
from fleetcron import Cron, ScheduleError
from fleetcron.times import cron as cron_module
from fleetcron.times import days, daysets, daytimes, localtimes
from fleetcron.times import expression as expression_module
from fleetcron.times.expression import MAX_LENGTH
from fleetcron.times.fields import MAX_ITEMS
from fleetcron.times.zones import zone

PART = 25_000
COUNTED = 100  # every 100th has its steps counted: that costs ten times as much as the rest
SEEDS = [*range(4), *(pytest.param(seed, marks=pytest.mark.soak) for seed in range(4, 44))]
# An answer may be missing only where the calendar ends: it repeats every 400 years.
EARLIEST, LATEST = 1 + 400, 9999 - 400


def test_the_corpus_is_what_it_says():
    """About half of it ticks; all forms, lengths and scripts occur; it is the same every time."""
    cases = list(fuzzed(0, 4000))
    assert cases == list(fuzzed(0, 4000))
    texts = [case.expression for case in cases]
    assert len(set(texts)) > 3500
    assert {len(text) > MAX_LENGTH for text in texts} == {True, False}
    assert max(map(len, texts)) > 350
    for form in ("L", "LW", "L-", "W,", "#", "?", "+", "H", "H(", "@", "*/", "\t", "\n", "\x00", "\ud800"):
        assert any(form in text for text in texts), form
    ticking = sum(isinstance(_made(case), Cron) for case in cases)
    assert 0.3 < ticking / len(cases) < 0.65


@pytest.fixture
def _no_collector() -> Iterator[None]:
    """The collector would look through the tables of the zones again and again: a seventh of the time."""
    gc.disable()
    yield
    gc.enable()


@pytest.mark.usefixtures("_no_collector")
@pytest.mark.parametrize("seed", SEEDS)
def test_refused_with_its_place_or_ticks(seed: int):
    _warm_zones()
    for number, case in enumerate(fuzzed(seed, PART)):
        if number % COUNTED:
            _hold(case)
        else:
            steps = _steps(lambda case=case: _hold(case))
            assert steps < MOST_STEPS, (steps, case)


def _hold(case: Case) -> None:
    made = _made(case)
    if isinstance(made, ScheduleError):
        _has_a_place(made, case)
    else:
        _ticks(made, case)


def _made(case: Case) -> Cron | ScheduleError:
    """Any other exception is a bug."""
    try:
        return case.cron()
    except ScheduleError as error:
        return error


def _has_a_place(error: ScheduleError, case: Case) -> None:
    assert error.mistake.strip(), case
    assert str(error).startswith(error.mistake), case
    pointer = error.pointer()
    if pointer is None:
        assert not error.source or "never fires" in error.mistake, case
        return
    assert 0 <= error.start < error.end <= len(error.source), (error.start, error.end, error.source, case)
    shown, marker = pointer.rsplit("\n", 1)
    assert len(shown.splitlines()) == 1, (pointer, case)
    assert marker.strip(" ") == "^" * (error.end - error.start), (pointer, case)
    assert shown.isprintable(), (pointer, case)


def _ticks(cron: Cron, case: Case) -> None:
    at = case.at
    following, previous = cron.next_after(at), cron.prev_before(at)
    if following is None:
        assert at.year > LATEST, case
    else:
        assert following > at, (following, case)
        assert following in cron, (following, case)
        assert cron.prev_before(following) in (previous, at), (following, case)
    if previous is None:
        assert at.year < EARLIEST, case
    else:
        assert previous < at, (previous, case)
        assert previous in cron, (previous, case)
        assert cron.next_after(previous) in (following, at), (previous, case)


# --- steps -----------------------------------------------------------------------------------------------------------

# Seen at most: 22,310 for a fuzzed schedule (60 stars in a field, and the list of its times of day, built twice), and
# 94,416 for a hard one from a cold start (31 nW in 14 kinds of year and 12 months, under skip and again under clamp).
MOST_STEPS = 50_000
MOST_STEPS_COLD = 200_000


def _steps(act: Callable[[], object]) -> int:
    """How many lines of Python an act executes."""
    count = 0

    def on_line(frame: FrameType, event: str, arg: Any) -> Callable:
        nonlocal count
        count += 1
        return on_line

    before = sys.gettrace()
    sys.settrace(on_line)
    try:
        act()
    finally:
        sys.settrace(before)
    return count


def _warm_zones() -> None:
    """Spell out the zones, some up to the year 9999: that is paid once in a process, not by a schedule."""
    for name in ZONES:
        zone(name).periods("both", LAST_SECOND if name in FAR_ZONES else IN_2500)


IN_2500 = 16_725_225_600
LAST_SECOND = 253_402_300_799  # 9999-12-31T23:59:59Z
MOMENTS = [datetime(2026, 1, 15, tzinfo=UTC), datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)]
EVERY_W = ",".join(f"{day}W" for day in range(1, 32))
EVERY_LW = ",".join(f"L-{back}W" for back in range(31))
EVERY_LAST = ",".join(f"L-{back}" for back in range(31))
EVERY_NTH = ",".join(f"{day}#{nth}" for day in range(7) for nth in range(1, 6))
MOST_ITEMS = {
    "*": ",".join("*" * MAX_ITEMS),
    "0": ",".join("0" * MAX_ITEMS),
    "1": ",".join("1" * MAX_ITEMS),
}

NEVER_UNDER_SKIP = [
    ("30 2 * 3 SUNL", "Europe/Berlin"),
    ("30 2 25-31 3 +SUN", "Europe/Berlin"),
    ("*/20 */10 2 25-31 3 +7", "Europe/Berlin"),
    ("30 2 8-14 3 +SUN", "America/New_York"),
    ("59 59 2 * 3 0#2", "America/New_York"),
    ("30 0 8-14 3 +SUN", "America/Havana"),
    ("30 2 * 9 SUNL", "Pacific/Auckland"),
    ("15 2 * 10 SUN#1", "Australia/Lord_Howe"),
]
HARD = [
    # rare: 28 or 40 years apart
    "0 0 29 2 +MON",
    "0 0 29 2 +MON#5",
    "0 0 L 2 +SUN#5",
    "30 2 29 2 +SUN",
    "59 59 23 31W 2-12/2 +FRI#5",
    # never
    "0 0 30 2 *",
    "0 0 31 2,4,6,9,11 *",
    "0 0 1-28 2 +1#5",
    "0 0 LW * +0,6",
    f"0 0 {EVERY_W} * +SUN,SAT",
    # much
    "* * * * * *",
    "*/1 0-59 0-23 1-31 1-12 0-7",
    "0/1 * * * * *",
    f"* * {EVERY_W} * *",
    f"* * {EVERY_W} * {EVERY_NTH}",
    f"* * {EVERY_LW} * 1L,2L,3L,4L,5L,6L,7L",
    f"* * {EVERY_LAST} * +{EVERY_NTH}",
    f"{MOST_ITEMS['*']} * {MOST_ITEMS['1']} * *",
    f"{MOST_ITEMS['*']} {MOST_ITEMS['*']} * * *",
    f"* * {MOST_ITEMS['*']} * {MOST_ITEMS['*']}",
    f"* * * {MOST_ITEMS['*']} {MOST_ITEMS['*']}",
    f"* {MOST_ITEMS['0']} * * {MOST_ITEMS['0']}",
    f"{MOST_ITEMS['*']},* * * * *",
    "* " * 128,
    ("* " * 5).ljust(MAX_LENGTH),
    ("*\t" * 6).rjust(MAX_LENGTH + 1),
    # nonsense, as long as may be: regular expressions and near names must not go wild
    *(f"* * * * {letter * (MAX_LENGTH - 8)}" for letter in "1MSLWH#?/-(+,@ "),
    *(f"* * * {name * ((MAX_LENGTH - 8) // len(name))} *" for name in ("JA", "JAN", "FEBR", "1-", "*/", "H(", "L-")),
    *(f"* * {name * ((MAX_LENGTH - 8) // len(name))} * *" for name in ("L-1W", "L-", "1W", "W", "H(1-2)/")),
    "@" + "every_minute" * 20,
    "@every " + "9" * 200,
]


@pytest.mark.parametrize("expression", HARD, ids=lambda text: f"{text[:24].strip()} of {len(text)}")
def test_hard_ones_take_few_steps(expression: str):
    _warm_zones()
    for dst_gap, month_end, moment in product(("skip", "shift"), ("skip", "clamp"), MOMENTS):
        case = Case(expression, "Europe/Berlin", dst_gap, "both", month_end, "tenant/name", moment)
        _forget()
        steps = _steps(lambda case=case: _hold(case))
        assert steps < MOST_STEPS_COLD, (steps, case)


@pytest.mark.parametrize(("expression", "name"), NEVER_UNDER_SKIP)
def test_never_under_skip_is_decided_in_few_steps(expression: str, name: str):
    """All matches are in the hour that the clock leaves out. No search through the centuries."""
    zone(name).periods("both", IN_2500)
    refused = Case(expression, name, "skip", "first", "skip", None, MOMENTS[0])
    _forget()
    assert _steps(lambda: _hold(refused)) < MOST_STEPS_COLD
    with pytest.raises(ScheduleError, match="never fires"):
        refused.cron()
    _ticks(replace(refused, dst_gap="shift").cron(), refused)


def _forget() -> None:
    """Steps are counted from a cold start, so that they do not depend on the tests before."""
    forget(days, expression_module, daysets, daytimes, localtimes, cron_module)
