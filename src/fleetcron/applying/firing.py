"""What a change does to when a job fires: ticks that appear, vanish or move, and what the moment of the change does."""

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any, Final

from fleetcron.times import zones
from fleetcron.times.diff import compare
from fleetcron.times.explain import Change, clock_changes, length_text
from fleetcron.times.instants import from_ms, iso, to_ms
from fleetcron.times.schedule import Schedule
from fleetcron.times.switchover import Switchover, switchover
from fleetcron.times.zone import Zone
from fleetcron.views.instants import as_json, local
from fleetcron.views.numbers import numbered

_EXAMPLES: Final = 10  # of a kind, as data
_SHOWN: Final = 3  # lines of a kind, for people
# ticks that are compared: of a job (90 days of every minute are 129,600), and of a whole plan
_LEAST, _MOST, _BUDGET = 1_000, 132_000, 2_000_000
_DAY_MS: Final = 86_400_000
_UTC: Final = zones.zone("UTC")
_TIMES: Final = {0: "not at all", 1: "once", 2: "twice"}
_THIS: Final = {"hour": "this hour", "day": "today", "week": "this week", "month": "this month", "year": "this year"}


def compared(jobs: int) -> int:
    """How many ticks of each of so many jobs are looked at: a plan of 10,000 jobs is not to take all day."""
    return max(_LEAST, min(_MOST, _BUDGET // max(jobs, 1)))


class Bounded(Schedule):
    """A schedule up to its last allowed tick: `max_ticks` counts from where a job stands."""

    __slots__ = ("_inner", "_last_ms")

    def __init__(self, inner: Schedule, last_ms: int) -> None:
        self._inner, self._last_ms = inner, last_ms

    def next_ms(self, after: int) -> int | None:
        tick = self._inner.next_ms(after)
        return tick if tick is not None and tick <= self._last_ms else None

    def prev_ms(self, before: int) -> int | None:
        return self._inner.prev_ms(min(before, self._last_ms + 1))

    def ticks_ms(self, after: int, until: int) -> Iterator[int]:
        return self._inner.ticks_ms(after, min(until, self._last_ms))

    def count_ms(self, after: int, until: int) -> int:
        high = min(until, self._last_ms)
        return self._inner.count_ms(after, high) if high > after else 0


@dataclass(frozen=True, slots=True)
class Side:
    """A schedule before or after the change: what it ticks (nothing, if the job does not run), and its clock changes.
    `since_ms` is when the job was created. Sides that tick `alike` differ in nothing else."""

    ticks: Schedule
    whole: Schedule
    since_ms: int
    alike: Hashable = None


@dataclass(frozen=True, slots=True)
class Ticks:
    """So many ticks, and the first of them."""

    number: int = 0
    first: Sequence[datetime] = ()

    @classmethod
    def of(cls, ticks_ms: Sequence[int]) -> "Ticks":
        return cls(len(ticks_ms), [from_ms(tick) for tick in ticks_ms[:_EXAMPLES]])

    def as_json(self) -> list[str]:
        return [iso(tick) for tick in self.first]


@dataclass(frozen=True, slots=True)
class Moved:
    """Ticks that move by so much. A clock change in the period makes a second group."""

    by_ms: int
    number: int
    first: datetime

    def as_json(self) -> dict[str, Any]:
        to = self.first + timedelta(milliseconds=self.by_ms)
        return {"by": self.by, "ticks": self.number, "from": iso(self.first), "to": iso(to)}

    @property
    def by(self) -> str:
        return f"{'+' if self.by_ms > 0 else '-'}{length_text(abs(self.by_ms))}"


@dataclass(frozen=True, slots=True)
class Firing:
    """The ticks up to `until`; not complete: up to there they were compared, and there are more."""

    zone: Zone
    until: datetime
    appear: Ticks = field(default_factory=Ticks)
    vanish: Ticks = field(default_factory=Ticks)
    moves: Sequence[Moved] = ()
    stay: int = 0
    complete: bool = True
    clock_changes: Sequence[Change] = ()
    switch: Switchover | None = None

    def __bool__(self) -> bool:
        return self.is_other or self.switch is not None

    @property
    def is_other(self) -> bool:
        """Whether any tick differs."""
        return bool(self.appear.number or self.vanish.number or self.moves)

    @property
    def moved(self) -> int:
        return sum(each.number for each in self.moves)

    @property
    def warning(self) -> str | None:
        return None if self.switch is None else switch_words(self.switch, self.zone)

    def as_json(self) -> dict[str, Any]:
        return {
            "until": iso(self.until),
            "complete": self.complete,
            "appear": self.appear.number,
            "vanish": self.vanish.number,
            "move": self.moved,
            "stay": self.stay,
            "examples": {"appear": self.appear.as_json(), "vanish": self.vanish.as_json()},
            "moves": [each.as_json() for each in self.moves[:_EXAMPLES]],
            "clock_changes": [{"date": each.date, "text": each.text} for each in self.clock_changes],
            "switch_over": None if self.switch is None else _switch_json(self.switch, self.zone),
            "words": self.lines() if self.is_other else [],
        }

    def lines(self) -> list[str]:
        """For people: counts, the first of each kind, clock changes."""
        counts = {
            "appear": self.appear.number, "vanish": self.vanish.number, "move": self.moved, "stay": self.stay,
        }  # fmt: skip
        part = "" if self.complete else " (those after it were not compared)"
        said = ", ".join(f"{number:,} {what}" for what, number in counts.items() if number)
        lines = [f"ticks until {self._local(self.until)[:10]}{part}: {said}"]
        for each in self.moves[:_SHOWN]:
            first = f"{self._local(each.first)} -> {self._local(each.first + timedelta(milliseconds=each.by_ms))}"
            more = ", …" if each.number > 1 else ""
            lines.append(f"  ~ {numbered(each.number, 'tick')} by {each.by}: {first}{more}")
        if len(self.moves) > _SHOWN:
            lines.append(f"  ~ … and {len(self.moves) - _SHOWN} more distances")
        lines += self._listed("-", self.vanish) + self._listed("+", self.appear)
        return lines + [f"  clock change {each.date}: {each.text}" for each in self.clock_changes[:_SHOWN]]

    def _listed(self, mark: str, ticks: Ticks) -> list[str]:
        shown = ", ".join(map(self._local, ticks.first[:_SHOWN]))
        more = f", … and {ticks.number - _SHOWN:,} more" if ticks.number > _SHOWN else ""
        return [f"  {mark} {shown}{more}"] if ticks.number else []

    def _local(self, tick: datetime) -> str:
        return local(to_ms(tick), self.zone)


def firing(old: Side | None, new: Side | None, now_ms: int, days: int, zone: Zone, limit: int) -> Firing:
    """The ticks after now. None: there is no such job, before or after the change."""
    now = from_ms(now_ms)
    until = now + timedelta(days=days)
    last_day = local(to_ms(until), zone)[:10]
    touching = [] if new is None else [each for each in clock_changes(new.whole, now) if each.date <= last_day]
    if old is None or new is None:
        appear, vanish = _counted(new, now, until), _counted(old, now, until)
        return Firing(zone, until, appear, vanish, clock_changes=touching)
    switch = switchover(old.ticks, new.ticks, now_ms, zone, old.since_ms)
    compared = _compared(old.ticks, new.ticks, now, until, limit)
    return replace(compared, zone=zone, clock_changes=touching, switch=switch)


def _counted(side: Side | None, after: datetime, until: datetime) -> Ticks:
    if side is None:
        return Ticks()
    return Ticks(side.ticks.count(after, until), list(side.ticks.between(after, until, _EXAMPLES)))


def _compared(old: Schedule, new: Schedule, after: datetime, until: datetime, limit: int) -> Firing:
    """A tick whose partner lies a little behind the end of the period has moved, and not vanished."""
    last_ms = to_ms(until)
    found = compare(old, new, to_ms(after), last_ms + _DAY_MS, limit)
    end = min(last_ms, found.until)
    vanish = [tick for tick in found.vanish if tick <= end]
    moves: dict[int, list[int]] = {}
    for before, behind in found.move:
        if min(before, behind) <= end:
            moves.setdefault(behind - before, []).append(before)
    gone = sum(tick <= end for ticks in moves.values() for tick in ticks)
    return Firing(
        _UTC,
        from_ms(end),
        Ticks.of([tick for tick in found.appear if tick <= end]),
        Ticks.of(vanish),
        [Moved(by, len(ticks), from_ms(ticks[0])) for by, ticks in moves.items()],  # as they were met
        old.count_ms(to_ms(after), end) - len(vanish) - gone,
        complete=end == last_ms,
    )


def switch_words(switch: Switchover, zone: Zone) -> str:
    """`applied now it fires twice today: it did at 02:00-05:00, and does again at 03:00-05:00; …`."""
    this, instead = _THIS[switch.period], _instead(switch)
    past = "" if switch.past_ms is None else local(switch.past_ms, zone)
    coming = "" if switch.coming_ms is None else local(switch.coming_ms, zone)
    if switch.kind == "doubled":
        said = f"applied now it fires {_times(switch.fires)} {this} ({instead}): at {past}, and again at {coming}"
    else:
        fires = "does not fire" if switch.fires == 0 else f"fires {_times(switch.fires)}"
        gone = [f"{past} has passed"] if past else []
        gone += [f"{coming} will not come"] if coming else []
        said = f"applied now it {fires} {this} ({instead}): {', and '.join(gone)}"
    better = "" if switch.better_ms is None else f"; apply it after {local(switch.better_ms, zone)} instead"
    return said + better


def _switch_json(switch: Switchover, zone: Zone) -> dict[str, Any]:
    return {
        "kind": switch.kind,
        "period": switch.period,
        "fires": switch.fires,
        "before": switch.old,
        "after": switch.new,
        "past": as_json(switch.past_ms),
        "coming": as_json(switch.coming_ms),
        "better_after": as_json(switch.better_ms),
        "words": switch_words(switch, zone),
    }


def _instead(switch: Switchover) -> str:
    if switch.old == switch.new:
        return f"{_times(switch.new)} under either schedule"
    return f"{_times(switch.old)} under the old schedule, {_times(switch.new)} under the new one"


def _times(number: int) -> str:
    return _TIMES.get(number, f"{number:,} times")
