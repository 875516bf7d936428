"""How a benchmark measures and what it hands back.

Contestants take turns in short slices of equal length, round after round, and each keeps its best slice: a busy machine
slows all of them, and no one more than the others. So ratios hold where figures do not.
"""

import gc
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import exp, log
from time import perf_counter
from types import ModuleType
from typing import Any

# Makes ready for so many laps, outside the timed part; what it returns is timed and says how many units it did.
Contestant = Callable[[int], Callable[[], int]]
_SLICE_S = 0.002


@dataclass(frozen=True, slots=True)
class Goal:
    text: str
    value: str
    met: bool


@dataclass(slots=True)
class Result:
    """`figures` for a machine, `lines` for a reader, `goals` for both."""

    figures: dict[str, Any]
    lines: list[str] = field(default_factory=list)
    goals: list[Goal] = field(default_factory=list)


def race(contestants: Mapping[str, Contestant], rounds: int) -> dict[str, float]:
    """Seconds per unit, the best of all rounds."""
    laps = {name: _laps(contestant) for name, contestant in contestants.items()}
    best = dict.fromkeys(contestants, float("inf"))
    for _ in range(rounds):
        for name, contestant in contestants.items():
            best[name] = min(best[name], timed(contestant(laps[name])))
    return best


def timed(act: Callable[[], int]) -> float:
    """Seconds per unit. The garbage collector waits, as with `timeit`."""
    gc.collect(0)
    gc.disable()
    try:
        begin = perf_counter()
        units = act()
        return (perf_counter() - begin) / units
    finally:
        gc.enable()


def _laps(contestant: Contestant) -> int:
    """So many that a slice is long enough to be timed and short enough to be left alone."""
    begin = perf_counter()
    contestant(1)()  # the first one warms up
    begin = perf_counter()
    contestant(1)()
    return max(1, round(_SLICE_S / (perf_counter() - begin)))


def forget(*modules: ModuleType) -> None:
    """Empty the caches of these modules, so that what comes next is cold."""
    for module in modules:
        for thing in vars(module).values():
            if hasattr(thing, "cache_clear") and thing.__module__ == module.__name__:
                thing.cache_clear()


def geometric_mean(values: Sequence[float]) -> float:
    return exp(sum(map(log, values)) / len(values))


def quantile(ordered: Sequence[float], share: float) -> float:
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """The first column to the left, numbers to the right."""
    widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
    return [
        "  ".join(
            [row[0].ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True))]
        )
        for row in (head, *rows)
    ]


def progress(text: str) -> None:
    """One line on stderr that is written over, or a line each where stderr is a file."""
    if sys.stderr.isatty():
        sys.stderr.write(f"\r\x1b[K{text}")
    elif text:
        sys.stderr.write(f"{text}\n")
    sys.stderr.flush()
