"""cronsim and croniter, 2020-2040, each under the DST rule that it follows itself.

Neither knows our policies, so we are asked to play by theirs:
- cronsim is Debian's rule: a job whose minute or hour begins with `*` runs by the clock (skip, both), every other one
  by the time of day (shift, first). It does not count "all 24 hours" among the clock jobs, as our defaults do, and it
  plays six fields by the clock whatever they say.
- croniter moves a gap time to the first valid instant unless every hour is allowed, and fires twice in a fold whatever
  the job is (time.md, Speed): (shift, both), or (skip, both) when all 24 hours are allowed. Its default ORs `*/2` in a
  day field with the weekdays (d0084); `implement_cron_bug` is its name for the rule that Debian and we have.

What is not compared, since they differ from us on purpose or by fault, stands at the line that leaves it out.
"""

import json
import re
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta, tzinfo
from functools import cache
from itertools import islice
from pathlib import Path

import pytest
from croniter import CroniterError, croniter
from cronsim import CronSim, CronSimError

from fleetcron import Cron, ScheduleError
from tests.times import reference

FROM = datetime(2020, 1, 1, tzinfo=UTC)
TO = datetime(2040, 1, 1, tzinfo=UTC)
HOUR = timedelta(hours=1)

# All 20 years, tick by tick: a few a month, or fewer.
SPARSE = [
    "15 1 1 * *",
    "30 1 * * 0",
    "0 2 * 3,10,11 0",
    "0 12 L * *",
    "30 2 8-14 3,11 0",
    "45 23 * * 5L",
    "0 8 * * 2#2",
    "30 0 */9 * 5",
    "0 0 29 2 *",
    "0 3 13 * 5",
]
# Around every change of the zone.
DENSE = [
    "* * * * *",
    "*/15 * * * *",
    "0 * * * *",
    "30 2 * * *",
    "0 0 * * *",
    "0 1,2,3 * * *",
    "0,30 0-3 * * *",
    "30 */2 * * *",
    "*/20 1-3 * * *",
    "0 0-23 * * *",
]
ZONES = ["UTC", "America/New_York", "Europe/Dublin", "Antarctica/Troll", "Pacific/Chatham", "America/Havana"]
MORE_ZONES = [
    "Africa/Casablanca",
    "America/Santiago",
    "America/St_Johns",
    "Asia/Amman",
    "Asia/Beirut",
    "Atlantic/Azores",
    "Australia/Lord_Howe",
    "Europe/Riga",
]


def zone_of(name: str) -> tzinfo:
    return UTC if name == "UTC" else reference.tzdata_zone(name)


def until(ticks: Iterable[datetime], high: datetime) -> Iterator[datetime]:
    for tick in ticks:
        if tick > high:
            return
        yield tick.astimezone(UTC)


class Cronsim:
    def policies(self, expression: str) -> tuple[str, str]:
        *_, minute, hour, _day, _month, _weekday = fields = expression.split()
        by_the_clock = minute.startswith("*") or hour.startswith("*") or len(fields) == 6
        return ("skip", "both") if by_the_clock else ("shift", "first")

    def compares(self, expression: str, zone: str) -> bool:
        # cronsim 2.8 steps by whole hours and misses times on Lord Howe (time.md, Speed) where hours are restricted.
        return zone != "Australia/Lord_Howe" or not expression.startswith("*/20 1-3")

    def between(self, expression: str, zone: str, low: datetime, high: datetime) -> list[datetime]:
        return list(until(CronSim(expression, low.astimezone(zone_of(zone))), high))

    def some(self, expression: str, start: datetime, count: int) -> list[datetime]:
        return list(islice(CronSim(expression, start), count))

    def some_before(self, expression: str, start: datetime, count: int) -> list[datetime]:
        return list(islice(CronSim(expression, start, reverse=True), count))


class Croniter:
    def policies(self, expression: str) -> tuple[str, str]:
        return ("skip", "both") if len(reference.parse(expression).hours) == 24 else ("shift", "both")

    def compares(self, expression: str, zone: str) -> bool:
        # croniter finds the other half of a half-hour change for some expressions only: no policy of ours is its rule.
        # And it notices a fold only if the next tick has another offset: not where Ramadan ends before it (the second
        # 02:00 of 2022-03-27 in Casablanca, for a job that sleeps from March to the autumn).
        sleeps = expression.split()[3].startswith("3,")
        return zone != "Australia/Lord_Howe" and not (zone == "Africa/Casablanca" and sleeps)

    def spelled(self, expression: str) -> str:
        """Last Friday is `L5` here (the note of a2687)."""
        return re.sub(r"(\d)L$", r"L\1", expression)

    def iterator(self, expression: str, start: datetime) -> croniter:
        six = len(expression.split()) == 6
        return croniter(self.spelled(expression), start, datetime, implement_cron_bug=True, second_at_beginning=six)

    def between(self, expression: str, zone: str, low: datetime, high: datetime) -> list[datetime]:
        return list(until(self.iterator(expression, low.astimezone(zone_of(zone))), high))

    def some(self, expression: str, start: datetime, count: int) -> list[datetime]:
        return list(islice(self.iterator(expression, start), count))

    def some_before(self, expression: str, start: datetime, count: int) -> list[datetime]:
        return list(islice(self.iterator(expression, start).all_prev(datetime), count))


PEERS = {"cronsim": Cronsim(), "croniter": Croniter()}
Peer = Cronsim | Croniter
EACH_PEER = pytest.mark.parametrize("peer", PEERS.values(), ids=PEERS)


def schedule(peer: Peer, expression: str, zone: str) -> Cron:
    gap, fold = peer.policies(expression)
    return Cron(expression, zone, dst_gap=gap, dst_fold=fold)


@cache
def changes(zone: str) -> list[datetime]:
    found = reference.changes(zone, FROM.replace(tzinfo=None), TO.replace(tzinfo=None))
    return [change.at.replace(tzinfo=UTC) for change in found]


def assert_same_in_all_years(peer: Peer, zone: str, expressions: list[str]) -> None:
    for expression in expressions:
        if peer.compares(expression, zone):
            ours = list(schedule(peer, expression, zone).between(FROM, TO))
            assert ours == peer.between(expression, zone, FROM, TO), expression


def assert_same_around_changes(peer: Peer, zone: str, expressions: list[str], reach: timedelta) -> None:
    for expression in expressions:
        if peer.compares(expression, zone):
            cron = schedule(peer, expression, zone)
            for change in changes(zone):
                low, high = change - reach, change + reach
                assert list(cron.between(low, high)) == peer.between(expression, zone, low, high), (expression, change)


@EACH_PEER
@pytest.mark.parametrize("zone", ["UTC", "America/New_York"])
def test_twenty_years(peer: Peer, zone: str):
    assert_same_in_all_years(peer, zone, SPARSE)


@EACH_PEER
@pytest.mark.parametrize("zone", ZONES[1:])
def test_around_changes(peer: Peer, zone: str):
    """Every change of twenty years; the expressions take turns."""
    for number, change in enumerate(changes(zone)):
        expression = DENSE[number * 3 % len(DENSE)]
        cron, low, high = schedule(peer, expression, zone), change - 5 * HOUR, change + 5 * HOUR
        assert list(cron.between(low, high)) == peer.between(expression, zone, low, high), (expression, change)


@pytest.mark.soak
@pytest.mark.timeout(3600)
@EACH_PEER
@pytest.mark.parametrize("zone", ZONES + MORE_ZONES)
def test_twenty_years_in_more_zones(peer: Peer, zone: str):
    assert_same_in_all_years(peer, zone, [*SPARSE, "30 2 * * *", "0 0 * * *", "0,30 0-3 * * 6,0"])


@pytest.mark.soak
@pytest.mark.timeout(3600)
@EACH_PEER
@pytest.mark.parametrize("zone", ZONES[1:] + MORE_ZONES)
def test_around_changes_with_every_expression(peer: Peer, zone: str):
    assert_same_around_changes(peer, zone, DENSE, 30 * HOUR)


# --- every expression of the oracles, in UTC --------------------------------------------------------------------------


def expressions_of_the_oracles() -> list[str]:
    lines = (Path(__file__).parents[1] / "oracles" / "ticks.jsonl").read_text().splitlines()
    return sorted({" ".join(case["expr"].split()) for case in map(json.loads, lines) if "expr" in case})


FIELDS = [
    reference.SECONDS,
    reference.MINUTES,
    reference.HOURS,
    reference.DAYS,
    reference.MONTHS_OF_YEAR,
    reference.DAYS_OF_WEEK,
]
STARTS = [FROM, datetime(2024, 2, 28, 23, 59, 59, tzinfo=UTC), datetime(2039, 1, 1, tzinfo=UTC)]


def wraps_with_a_step(expression: str) -> bool:
    for field, part in zip(reversed(FIELDS), reversed(expression.upper().split()), strict=False):
        for first, last in re.findall(r"(\w+)-(\w+)/", part):
            if reference.number(field, first) > reference.number(field, last):
                return True
    return False


def disagreements(peer: Peer, starts: list[datetime], count: int) -> Iterator[tuple]:
    for expression in expressions_of_the_oracles():
        # croniter restarts the step at the wrap, we keep counting (d0126, d0129, d0130)
        if isinstance(peer, Croniter) and wraps_with_a_step(expression):
            continue
        # croniter's 30W is always clamped to the month's end; ours is if the job says so
        clamped = isinstance(peer, Croniter) and re.search(r"\dW", expression, re.IGNORECASE)
        try:
            cron = Cron(expression, month_end="clamp" if clamped else "skip")
        except ScheduleError:
            continue
        for start in starts:
            try:
                theirs = peer.some(expression, start, count), peer.some_before(expression, start, count)
            except (CronSimError, CroniterError):
                break  # not of its grammar
            after, before = [start], [start]
            for _ in range(count):
                after.append(cron.next_after(after[-1]))
                before.append(cron.prev_before(before[-1]))
            if (after[1:], before[1:]) != theirs:
                yield expression, start, after[1:], before[1:], theirs


@EACH_PEER
def test_every_expression_of_the_oracles(peer: Peer):
    assert list(disagreements(peer, STARTS[:1], 2)) == []


@pytest.mark.soak
@EACH_PEER
def test_every_expression_of_the_oracles_at_length(peer: Peer):
    assert list(disagreements(peer, STARTS, 20)) == []
