"""What the old scheduler did next to what we would have done, and the plan of a job in shadow. Pure: no store."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleetcron.model.almanac import Almanac
from fleetcron.model.ping import Ping
from fleetcron.model.rules import CronEntry, MisfireRule
from fleetcron.model.standing import Position
from fleetcron.model.timing import Timing
from fleetcron.policy import shadow
from fleetcron.policy.shadow import Comparison, compare
from fleetcron.scheduler.plan import plan
from fleetcron.times.instants import LAST_MS
from fleetcron.times.timetable import Timetable

MINUTE, HOUR, DAY = 60_000, 3_600_000, 86_400_000
T0 = 1_800_000_000_000  # a full hour
HOURLY = [T0 + n * HOUR for n in range(6)]
NOW = HOURLY[-1] + 30 * MINUTE


def started(at_ms: int, host: str = "web1", exit_code: int | None = 0, **more: int) -> Ping:
    return Ping(f"{host}-{at_ms}", at_ms, at_ms, at_ms + 5_000, exit_code, host, **more)


def ended(at_ms: int, host: str = "web1") -> Ping:
    return Ping(f"{host}-{at_ms}", at_ms, None, at_ms, 0, host)


def compared(*pings: Ping, ticks: list[int] = HOURLY, now_ms: int = NOW, shadow_ms: int | None = None) -> Comparison:
    return compare(ticks, pings, since_ms=T0 - HOUR, now_ms=now_ms, shadow_ms=shadow_ms)


def found(comparison: Comparison) -> list[tuple[str, int]]:
    return [(each.what, each.at_ms) for each in comparison.differences()]


def test_a_ping_for_each_tick_is_the_same() -> None:
    got = compared(*(started(tick + 900) for tick in HOURLY))
    assert (got.verdict, got.matched, found(got), got.delays_ms()) == ("same", 6, [], (900, 900))
    assert compared().verdict == "differs"
    assert compared(ticks=[]).verdict == "nothing yet"


def test_missed_doubled_unexpected_and_failed() -> None:
    pings = [
        started(HOURLY[0] + 200, "web1"), started(HOURLY[0] + 300, "web2"), started(HOURLY[0] + 250, "web3"),
        started(HOURLY[2] + 100, exit_code=7),
        started(HOURLY[3] + 20 * MINUTE),  # nobody's tick: cron starts within the minute
        started(HOURLY[3] + 100), started(HOURLY[4] + 100), started(HOURLY[5] + 100),
    ]  # fmt: skip
    got = compared(*pings)
    assert found(got) == [
        ("doubled", HOURLY[0]), ("missed", HOURLY[1]), ("failed", HOURLY[2]), ("unexpected", HOURLY[3] + 20 * MINUTE),
    ]  # fmt: skip
    assert [ping.host for ping in next(got.differences()).pings] == ["web1", "web3", "web2"]
    assert got.verdict == "differs"


def test_a_failure_alone_is_no_difference() -> None:
    got = compared(*(started(tick, exit_code=1) for tick in HOURLY))
    assert got.verdict == "same"
    assert [what for what, _ in found(got)] == ["failed"] * 6


def test_a_clock_that_is_behind_pings_early() -> None:
    assert compared(*(started(tick - 29_000) for tick in HOURLY)).verdict == "same"
    minutes = [T0 + n * MINUTE for n in range(10)]  # a quarter of the way at most
    assert compared(*(started(tick - 14_000) for tick in minutes), ticks=minutes).verdict == "same"
    assert compared(*(started(tick - 16_000) for tick in minutes), ticks=minutes).verdict == "differs"


def test_only_an_end_may_come_hours_later() -> None:
    daily = [T0, T0 + DAY]
    late = [ended(tick + 3 * HOUR) for tick in daily]
    assert compared(*late, ticks=daily, now_ms=T0 + DAY + 4 * HOUR).verdict == "same"
    assert compared(*(started(ping.at_ms) for ping in late), ticks=daily, now_ms=T0 + 2 * DAY).verdict == "differs"


def test_the_last_tick_may_still_wait() -> None:
    pings = [started(tick + 100) for tick in HOURLY[:-1]]
    got = compared(*pings)
    assert (got.verdict, got.waiting, got.matched) == ("same", 1, 5)
    assert found(compared(*pings, now_ms=HOURLY[-1] + HOUR)) == [("missed", HOURLY[-1])]
    assert found(compared(*pings[:-1])) == [("missed", HOURLY[-2])], "its next tick has come"


def test_who_pings_after_the_hand_over_runs_it_twice() -> None:
    over = HOURLY[-1] + 10 * MINUTE
    pings = [started(tick + 100) for tick in HOURLY]
    assert compared(*pings, shadow_ms=over).verdict == "same"
    stray = started(over + 20 * MINUTE)
    assert found(compared(*pings, stray, shadow_ms=over)) == [("after hand-over", stray.at_ms)]
    soon = HOURLY[-1] + 2 * MINUTE
    hasty = [*pings[:-1], started(soon + MINUTE)]  # a late start, unless a tick of ours has come
    assert compared(*hasty, shadow_ms=soon).verdict == "same"
    early = compare(HOURLY, hasty, since_ms=T0, now_ms=NOW, shadow_ms=soon, ours_ms=soon)
    assert [what for what, _ in found(early)] == ["after hand-over"]
    slow = [*pings[:-1], ended(over + 15 * MINUTE)]  # of the last tick, and only its end is known
    assert compared(*slow, shadow_ms=over).verdict == "same"


def test_what_was_before_the_first_tick_or_the_period_does_not_count() -> None:
    assert compared(started(T0 - 40 * MINUTE), *(started(tick) for tick in HOURLY)).verdict == "same"
    got = compare(HOURLY, [ended(HOURLY[1] + 50 * MINUTE)], since_ms=HOURLY[2] - MINUTE, now_ms=NOW, shadow_ms=None)
    assert [each.tick_ms for each in got.ticks] == HOURLY[2:]
    assert not got.unexpected


@given(st.lists(st.integers(-HOUR, 7 * HOUR), max_size=30), st.sampled_from([None, HOURLY[3], HOURLY[3] + 1]))
def test_every_ping_is_counted_once(offsets: list[int], shadow_ms: int | None) -> None:
    pings = [Ping(str(n), T0 + at, T0 + at, None, 0, "") for n, at in enumerate(offsets)]
    ticks = [tick for tick in HOURLY if shadow_ms is None or tick < shadow_ms]
    got = compare(ticks, pings, since_ms=T0 - DAY, now_ms=NOW + DAY, shadow_ms=shadow_ms)
    of_ticks = [ping for each in got.ticks for ping in each.pings]
    everywhere = [ping.ping_id for ping in (*of_ticks, *got.unexpected, *got.after)]
    assert len(everywhere) == len(set(everywhere))
    assert {ping.ping_id for ping in pings if ping.at_ms >= ticks[0]} <= set(everywhere)
    assert [each.tick_ms for each in got.ticks] == ticks


# -- the plan


def table(timing: Timing) -> Timetable:
    return timing.timetable(Almanac(1, {}, {}))


@pytest.mark.parametrize("policy", ["skip", "latest", "all"])
@given(
    over=st.integers(1, 30 * MINUTE), looks=st.lists(st.integers(1, 10 * MINUTE), min_size=1, max_size=12), by=st.data()
)
def test_every_tick_is_noted_or_ours_by_the_instant_alone(
    policy: str, over: int, looks: list[int], by: st.DataObject
) -> None:
    """Whenever somebody plans, however far ahead: what is before the instant is noted, in time; the rest is not."""
    shadow_ms = T0 + (over // MINUTE * MINUTE if by.draw(st.booleans()) else over)
    rule = MisfireRule(policy)  # type: ignore[arg-type]
    timing = Timing((CronEntry("* * * * *", "UTC", "skip", "both"),), misfire=rule, shadow_ms=shadow_ms)
    timetable, at, now = table(timing), Position(T0), T0
    noted: list[int] = []
    ours: list[int] = []
    for wait in looks:
        now += wait
        made = plan(timing, timetable, at, now, 60_000)
        shades = [each for each in made.answers if each.reason == "shadow"]
        for each in shades:
            assert each.to_ms <= now, "never ahead of its time"
            noted += timetable.ticks_ms(each.from_ms - 1, each.to_ms)
        others = [(each.from_ms - 1, each.to_ms) for each in made.answers if each.reason != "shadow"]
        others += [(made.gap.from_ms, made.gap.to_ms)] if made.gap else []
        ours += [tick for after, to in others for tick in timetable.ticks_ms(after, to)]
        ours += [run.scheduled_for_ms for run in made.runs]
        assert made.next_due_ms is not None
        at = made.to
    assert sorted([*noted, *ours]) == list(timetable.ticks_ms(T0, at.cursor_ms))
    assert all(tick < shadow_ms for tick in noted)
    assert all(tick >= shadow_ms for tick in ours)
    assert at.cursor_ms >= min(now // MINUTE * MINUTE, shadow_ms - MINUTE)


def test_a_job_in_shadow_is_looked_at_when_its_tick_has_come() -> None:
    timing = Timing((CronEntry("* * * * *", "UTC", "skip", "both"),), shadow_ms=LAST_MS)
    made = plan(timing, table(timing), Position(T0), T0 + 1, 60_000)
    assert (made.runs, made.answers, made.to, made.next_due_ms) == ((), (), Position(T0), T0 + 2 * MINUTE)


def test_pings_for_ticks_that_nobody_has_noted_wait() -> None:
    timetable = table(Timing((CronEntry("0 * * * *", "UTC", "skip", "both"),)))
    assert shadow.horizon_ms(timetable, T0, LAST_MS, []) == T0 + HOUR - 30_000
    assert shadow.horizon_ms(timetable, T0, T0 + HOUR, []) is None, "the next tick is ours"
    assert shadow.horizon_ms(timetable, T0 + 5 * HOUR, T0 + 3 * HOUR, [(T0, T0 + 2 * HOUR)]) == T0 + 1
    assert shadow.hand_over_ms(timetable, T0) == T0 + HOUR
    assert shadow.hand_over_ms(timetable, T0 + 55 * MINUTE) == T0 + 2 * HOUR
