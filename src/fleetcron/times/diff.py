"""What a change of schedule does to the ticks: which appear, which vanish, which move."""

from dataclasses import dataclass, field
from datetime import datetime
from itertools import islice, pairwise

from fleetcron.times.instants import from_ms, iso, to_ms
from fleetcron.times.schedule import Schedule

# Two ticks that are farther apart than this are not one tick that moved.
_FARTHEST_MOVE_MS = 86_400_000


@dataclass(slots=True)
class Diff:
    """`move` pairs a tick that vanishes with the nearest neighbour that appears, with no other tick between."""

    appear: list[datetime] = field(default_factory=list)
    vanish: list[datetime] = field(default_factory=list)
    move: list[tuple[datetime, datetime]] = field(default_factory=list)
    kept: int = 0
    complete: bool = True  # False: the limit was reached, and only ticks up to `until` were compared
    until: datetime | None = None

    def __bool__(self) -> bool:
        return bool(self.appear or self.vanish or self.move)

    def as_json(self) -> dict[str, object]:
        return {
            "appear": [iso(t) for t in self.appear],
            "vanish": [iso(t) for t in self.vanish],
            "move": [{"from": iso(old), "to": iso(new)} for old, new in self.move],
            "kept": self.kept,
            "complete": self.complete,
            "until": None if self.until is None else iso(self.until),
        }


@dataclass(slots=True)
class Compared:
    """A diff in milliseconds: whoever compares many schedules counts more ticks than it shows."""

    until: int
    complete: bool = True
    kept: int = 0
    appear: list[int] = field(default_factory=list)
    vanish: list[int] = field(default_factory=list)
    move: list[tuple[int, int]] = field(default_factory=list)


def diff(old: Schedule, new: Schedule, after: datetime, until: datetime, limit: int = 100_000) -> Diff:
    """Compare the ticks in (after, until]. At most `limit` ticks of each schedule are looked at."""
    found = compare(old, new, to_ms(after), to_ms(until), limit)
    return Diff(
        [from_ms(tick) for tick in found.appear],
        [from_ms(tick) for tick in found.vanish],
        [(from_ms(before), from_ms(behind)) for before, behind in found.move],
        found.kept,
        found.complete,
        until if found.complete else from_ms(found.until),
    )


def compare(old: Schedule, new: Schedule, low: int, high: int, limit: int) -> Compared:
    before = list(islice(old.ticks_ms(low, high), limit + 1))
    behind = list(islice(new.ticks_ms(low, high), limit + 1))
    found = Compared(high)
    if len(before) > limit or len(behind) > limit:
        high = min(ticks[limit - 1] for ticks in (before, behind) if len(ticks) > limit)
        before, behind = [t for t in before if t <= high], [t for t in behind if t <= high]
        found.complete, found.until = False, high
    olds, news = set(before), set(behind)
    found.kept = len(olds & news)
    alone: list[int] = []  # ticks of one schedule only, since the last tick that both have
    for tick in sorted(olds | news):
        if tick in olds and tick in news:
            _pair(alone, olds, found)
            alone = []
        else:
            alone.append(tick)
    _pair(alone, olds, found)
    return found


def _pair(alone: list[int], olds: set[int], found: Compared) -> None:
    """Neighbours of which one vanishes and one appears are one tick that moved, the nearest pairs first."""
    pairs = [(b - a, a, b) for a, b in pairwise(alone) if (a in olds) != (b in olds) and b - a <= _FARTHEST_MOVE_MS]
    moved: dict[int, int] = {}
    for _, a, b in sorted(pairs):
        if a not in moved and b not in moved:
            moved[a], moved[b] = b, a
    for tick in alone:
        if tick in moved and tick in olds:
            found.move.append((tick, moved[tick]))
        elif tick not in moved:
            (found.vanish if tick in olds else found.appear).append(tick)
