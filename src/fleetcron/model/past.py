"""A stretch of a job's past as it stands, and what is to be written when its ticks are asked for again."""

from collections.abc import Sequence
from dataclasses import dataclass

from fleetcron.model.answer import Answer, Forecast


@dataclass(frozen=True, slots=True)
class Entry:
    """A line of the ledger, with what its ticks were counted with."""

    entry_id: int
    answer: Answer
    revision: int
    timing_id: int
    almanac: int
    noted_ms: int


@dataclass(frozen=True, slots=True)
class Past:
    """`runs` are the ticks that have a run; the ticks in a gap (from, to] and those after the cursor are undecided."""

    now_ms: int
    cursor_ms: int
    gaps: Sequence[tuple[int, int]]
    entries: Sequence[Entry]
    runs: frozenset[int]


@dataclass(frozen=True, slots=True)
class Superseded:
    """A line some of whose ticks get a run; `rest` is what stays of it."""

    entry: Entry
    taken: tuple[int, ...]
    rest: tuple[Answer, ...]


@dataclass(frozen=True, slots=True)
class Filling:
    """What is to be written for some ticks, and how many are left as they are."""

    runs: Sequence[Forecast]
    superseded: Sequence[Superseded]
    existing: int
    undecided: int
    shadowed: int = 0  # the old scheduler had them: they keep their line

    @property
    def taken(self) -> int:
        return sum(len(each.taken) for each in self.superseded)
