"""The speed of the tick calculator next to cronsim, croniter and APScheduler 3: goal 8.

Everybody walks from tick to tick, datetimes in and out, the way the library is meant to be used. What has an iterator
or a trigger object gets it before the clock starts. The walks repeat, so they find warm caches; that alone would reward
tables that cost more than they save, so a second table shows a new schedule with its first ten ticks, from cold.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from importlib.metadata import version
from statistics import fmean
from zoneinfo import ZoneInfo

from apscheduler.triggers.cron import CronTrigger
from croniter import croniter
from cronsim import CronSim

from bench.measure import Contestant, Goal, Result, forget, geometric_mean, progress, race, table
from fleetcron import Cron
from fleetcron.times import cron as calculator
from fleetcron.times import days, daysets, daytimes, expression, localtimes, zones

ZONE = "America/New_York"
START = datetime(2026, 1, 15, 12, 35, tzinfo=UTC)
TEN_YEARS_LATER = START.replace(year=2036)
# Walks next to peers are short, or the slices of a slow one would be long and a busy machine would cut into them all.
# They begin at eight days of a year: together, daily ticks cross its end and both changes of the clock.
STARTS = [START + timedelta(days=45 * n) for n in range(8)]
# expression -> ticks in a walk (16 leap days end before 2100, which has none)
CASES = {
    "* * * * *": 50,
    "0 2 * * *": 50,
    "0 9 * * 1-5": 50,
    "0 0 29 2 *": 16,
    "*/5 9-17 * * 1-5": 50,
}
LONG = 20  # times as many ticks in a walk without peers
GOALS = {"cronsim": 6.0, "croniter": 18.0}
NEVER_BELOW = 2.0
BULK_GOAL = 3.0
FIRST_TICKS = 10

Seconds = dict[str, float]  # by contestant
# Makes ready for so many laps of so many ticks from a start; what it returns walks them and gives the last tick.
Walk = Callable[[str, datetime, int, int], Callable[[], datetime]]


def ours(case: str, start: datetime, ticks: int, laps: int) -> Callable[[], datetime]:
    next_after = Cron(case, ZONE).next_after

    def walk() -> datetime:
        for _ in range(laps):
            t = start
            for _ in range(ticks):
                t = next_after(t)
        return t

    return walk


def cronsim(case: str, start: datetime, ticks: int, laps: int) -> Callable[[], datetime]:
    local_start = start.astimezone(ZoneInfo(ZONE))
    iterators = [CronSim(case, local_start) for _ in range(laps)]

    def walk() -> datetime:
        for iterator in iterators:
            for _ in range(ticks):
                t = next(iterator)
        return t

    return walk


def by_croniter(case: str, start: datetime, ticks: int, laps: int) -> Callable[[], datetime]:
    local_start = start.astimezone(ZoneInfo(ZONE))
    iterators = [croniter(case, local_start, ret_type=datetime) for _ in range(laps)]

    def walk() -> datetime:
        for iterator in iterators:
            for _ in range(ticks):
                t = iterator.get_next()
        return t

    return walk


def apscheduler(case: str, start: datetime, ticks: int, laps: int) -> Callable[[], datetime]:
    # its weekday 0 is Monday, so 1-5 would be another schedule
    local_start = start.astimezone(ZoneInfo(ZONE))
    trigger = CronTrigger.from_crontab(case.replace("1-5", "mon-fri"), ZoneInfo(ZONE))

    def walk() -> datetime:
        for _ in range(laps):
            t = local_start
            for _ in range(ticks):
                t = trigger.get_next_fire_time(t, t)
        return t

    return walk


def bulk(case: str, start: datetime, ticks: int, laps: int) -> Callable[[], datetime]:
    last = ours(case, start, ticks, 1)()
    between = Cron(case, ZONE).between

    def walk() -> datetime:
        for _ in range(laps):
            t = list(between(start, last))[-1]
        return t

    return walk


def backwards(case: str, start: datetime, ticks: int, laps: int) -> Callable[[], datetime]:
    prev_before = Cron(case, ZONE).prev_before

    def walk() -> datetime:
        for _ in range(laps):
            t = start
            for _ in range(ticks):
                t = prev_before(t)
        return t

    return walk


PEERS: dict[str, Walk] = {"cronsim": cronsim, "croniter": by_croniter, "apscheduler": apscheduler}
ALL: dict[str, Walk] = {"ours": ours, **PEERS}
OWN: dict[str, Walk] = {"next_after": ours, "between": bulk, "prev_before": backwards}


@dataclass
class Measured:
    next_to_peers: dict[str, Seconds] = field(default_factory=dict)
    alone: dict[str, Seconds] = field(default_factory=dict)
    cold: dict[str, Seconds] = field(default_factory=dict)
    once: Seconds = field(default_factory=dict)
    elsewhere: list[str] = field(default_factory=list)  # walks that end at another tick than ours


def _contestant(walk: Walk, case: str, start: datetime, ticks: int) -> Contestant:
    def ready(laps: int) -> Callable[[], int]:
        act = walk(case, start, ticks, laps)

        def timed() -> int:
            act()
            return ticks * laps

        return timed

    return ready


def _from_cold(walk: Walk, case: str) -> Contestant:
    """A schedule never seen before, and its first ticks."""

    def ready(_laps: int) -> Callable[[], int]:
        forget(*_COMPILER)

        def timed() -> int:
            walk(case, START, FIRST_TICKS, 1)()
            return 1

        return timed

    return ready


def _count(case: str) -> Contestant:
    count = Cron(case, ZONE).count

    def ready(laps: int) -> Callable[[], int]:
        def timed() -> int:
            for _ in range(laps):
                count(START, TEN_YEARS_LATER)
            return laps

        return timed

    return ready


# -- what is paid once

_COMPILER = (expression, daysets, daytimes, localtimes, calculator)
_NEW = [
    f"{7 * n % 60} {5 * n % 24} {('*', '1', '15', 'L')[n % 4]} * {('*', '1-5', 'MON', '5#2')[n % 3]}"
    for n in range(200)
]


def _compile_first(_laps: int) -> Callable[[], int]:
    forget(days, *_COMPILER)
    return lambda: _compile(_NEW[:1])


def _compile_new(_laps: int) -> Callable[[], int]:
    forget(*_COMPILER)
    return lambda: _compile(_NEW)


def _compile_again(_laps: int) -> Callable[[], int]:
    _compile(_NEW)
    return lambda: _compile(_NEW)


def _compile(texts: list[str]) -> int:
    for text in texts:
        Cron(text, ZONE)
    return len(texts)


def _load_zone(_laps: int) -> Callable[[], int]:
    forget(zones)
    zones.zone("UTC")  # reads the list of names

    def timed() -> int:
        zones.zone(ZONE).offset_at(int(START.timestamp()))
        return 1

    return timed


ONCE: dict[str, Contestant] = {
    "compile, first of the process": _compile_first,
    "compile, new to a warm process": _compile_new,
    "compile, seen before": _compile_again,
    "load a zone": _load_zone,
}


# -- the run


def run(quick: bool) -> Result:
    rounds = 3 if quick else 25
    found = Measured()
    for case, ticks in CASES.items():
        progress(f"ticks: {case}")
        found.next_to_peers[case] = _next_to_peers(case, ticks, rounds)
        long = ticks if case == "0 0 29 2 *" else ticks * LONG
        own = {name: _contestant(walk, case, START, long) for name, walk in OWN.items()}
        found.alone[case] = race({**own, "count": _count(case)}, rounds)
        found.cold[case] = race({name: _from_cold(walk, case) for name, walk in ALL.items()}, rounds * 2)
        our_ends = _ends("ours", case, ticks)
        found.elsewhere += [f"{name} on {case}" for name in PEERS if _ends(name, case, ticks) != our_ends]
    progress("ticks: compile and load")
    found.once = race(ONCE, rounds)
    return _result(found)


def _next_to_peers(case: str, ticks: int, rounds: int) -> Seconds:
    """The mean of the walks."""
    walks = []
    for start in STARTS:
        contestants = {name: _contestant(walk, case, start, ticks) for name, walk in ALL.items()}
        walks.append(race(contestants, rounds))
    return {name: fmean(seconds[name] for seconds in walks) for name in ALL}


def _ends(name: str, case: str, ticks: int) -> list[datetime]:
    return [ALL[name](case, start, ticks, 1)() for start in STARTS]


def _result(found: Measured) -> Result:
    ratios = {name: {case: s[name] / s["ours"] for case, s in found.next_to_peers.items()} for name in PEERS}
    ratios["between"] = {case: s["next_after"] / s["between"] for case, s in found.alone.items()}
    means = {name: geometric_mean(list(of_cases.values())) for name, of_cases in ratios.items()}
    slowest = min((ratio, name, case) for name in PEERS for case, ratio in ratios[name].items())
    goals = [
        Goal(f"next_after ≥ {goal:g} × {name} in geometric mean", f"{means[name]:.1f} ×", means[name] >= goal)
        for name, goal in GOALS.items()
    ]
    goals += [
        Goal(
            f"never below {NEVER_BELOW:g} × any of them",
            f"{slowest[0]:.1f} × {slowest[1]} on {slowest[2]}",
            slowest[0] >= NEVER_BELOW,
        ),
        Goal(
            f"between ≥ {BULK_GOAL:g} × next_after in geometric mean",
            f"{means['between']:.1f} ×",
            means["between"] >= BULK_GOAL,
        ),
    ]
    figures = {
        "us_per_tick": {case: _us(row) for case, row in found.next_to_peers.items()},
        "us_per_tick_long_walks": {case: _us(row) for case, row in found.alone.items()},
        "ratios": ratios,
        "geometric_means": means,
        "us_from_cold": {case: _us(row) for case, row in found.cold.items()},
        "us_once": _us(found.once),
        "walks_that_end_elsewhere": found.elsewhere,
    }
    return Result(figures, _lines(found, ratios, means), goals)


def _us(seconds: Seconds) -> Seconds:
    return {name: s * 1e6 for name, s in seconds.items()}


def _lines(found: Measured, ratios: dict[str, dict[str, float]], means: dict[str, float]) -> list[str]:
    peers = [f"{name} {version(name)}" for name in PEERS]
    warm = [_row(case, _us(row), 2) for case, row in found.next_to_peers.items()]
    warm.append(["geometric mean", "", *(f"({means[name]:.1f} ×)" for name in PEERS)])
    alone = [
        [
            case,
            f"{us['next_after']:.2f}",
            f"{us['between']:.2f} ({ratios['between'][case]:.1f} ×)",
            f"{us['prev_before']:.2f}",
            f"{us['count']:.0f}",
        ]
        for case, us in ((case, _us(row)) for case, row in found.alone.items())
    ]
    alone.append(["geometric mean", "", f"({means['between']:.1f} ×)", "", ""])
    return [
        f"µs per tick, {ZONE} (how many times slower than ours)",
        *table(["", "ours", *peers], warm),
        "",
        f"µs for a new schedule and its first {FIRST_TICKS} ticks, from cold (how many times slower than ours)",
        *table(["", "ours", *peers], [_row(case, _us(row), 0) for case, row in found.cold.items()]),
        "",
        "ours alone, long walks: µs per tick (how many times faster than next_after); µs for a count over ten years",
        *table(["", "next_after", "between", "prev_before", "count"], alone),
        "",
        *table(["once", "µs"], [[name, f"{us:.1f}"] for name, us in _us(found.once).items()]),
        *([f"walks that end at another tick than ours: {', '.join(found.elsewhere)}"] if found.elsewhere else []),
    ]


def _row(case: str, us: Seconds, digits: int) -> list[str]:
    peers = (f"{us[name]:.{digits}f} ({us[name] / us['ours']:.1f} ×)" for name in PEERS)
    return [case, f"{us['ours']:.{digits}f}", *peers]
