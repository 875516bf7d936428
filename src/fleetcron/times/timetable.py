"""The whole WHEN of a job: its schedules, calendars, bounds and jitter, as one set of ticks.

In this order: each schedule gives its ticks; calendars of days drop or move them; blackouts drop or defer them; the
bounds cut off what lies before `starts_at` or from `ends_at` on; `max_ticks` ends the row. Jitter delays the start and
never changes the tick.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal

from fleetcron.errors import ScheduleError
from fleetcron.times.calendars import DayRule
from fleetcron.times.durations import duration_ms
from fleetcron.times.instants import FIRST_MS, LAST_MS, from_ms, iso, to_ms
from fleetcron.times.jitter import offset_ms
from fleetcron.times.merged import Merged
from fleetcron.times.observed import observe
from fleetcron.times.schedule import Schedule
from fleetcron.times.windows import Blackout
from fleetcron.times.without import Without

OnWindow = Literal["skip", "defer"]
_AGES_AGO = -2_208_988_800_000  # 1900
_YEAR_MS = 366 * 86_400_000


@dataclass(frozen=True, slots=True)
class BlackoutRule:
    """How a job uses a blackout."""

    blackout: Blackout
    on: OnWindow = "skip"

    def __post_init__(self) -> None:
        if self.on not in ("skip", "defer"):
            raise ScheduleError(f"blackout {self.blackout.name}: '{self.on}' is not one of skip, defer")


class Timetable(Schedule):
    """`Timetable([Cron(…)], calendars=[…], starts_at=…, jitter="5m", seed="acme/report")`."""

    def __init__(
        self,
        entries: Schedule | Iterable[Schedule],
        *,
        calendars: Iterable[DayRule | BlackoutRule] = (),
        starts_at: datetime | None = None,
        ends_at: datetime | None = None,
        max_ticks: int | None = None,
        jitter: str | int | timedelta | None = None,
        seed: str | None = None,
    ) -> None:
        self.entries = (entries,) if isinstance(entries, Schedule) else tuple(entries)
        self.calendars = tuple(calendars)
        self.starts_ms = FIRST_MS if starts_at is None else to_ms(starts_at)
        self.ends_ms = LAST_MS + 1 if ends_at is None else to_ms(ends_at)
        self.jitter_ms = 0 if jitter is None else duration_ms(jitter, "jitter")
        self.seed = seed
        self.blackouts = [rule for rule in self.calendars if isinstance(rule, BlackoutRule)]
        self.whole = self._observed()
        self._check_bounds(starts_at, ends_at, max_ticks)
        self.last_ms = self.ends_ms - 1
        if max_ticks is not None:
            last = self.whole.nth_ms(self.starts_ms - 1, max_ticks)
            self.last_ms = self.last_ms if last is None else min(self.last_ms, last)
        if self.next_ms(self.starts_ms - 1 if starts_at else _AGES_AGO) is None:
            raise ScheduleError("the schedule never fires: its calendars and bounds leave no tick")

    def _observed(self) -> Schedule:
        day_rules = [rule for rule in self.calendars if isinstance(rule, DayRule)]
        self.observed = tuple(observe(entry, day_rules) for entry in self.entries) if day_rules else self.entries
        whole: Schedule = self.observed[0] if len(self.observed) == 1 else Merged(self.observed)
        for rule in self.blackouts:
            whole = Without(whole, rule.blackout, rule.on == "defer")
        return whole

    def _check_bounds(self, starts_at: datetime | None, ends_at: datetime | None, max_ticks: int | None) -> None:
        if starts_at is not None and ends_at is not None and self.ends_ms <= self.starts_ms:
            raise ScheduleError(f"ends_at {iso(ends_at)} is not after starts_at {iso(starts_at)}")
        if max_ticks is not None and max_ticks < 1:
            raise ScheduleError(f"max_ticks: {max_ticks} is not at least 1")
        if max_ticks is not None and starts_at is None:
            raise ScheduleError("max_ticks needs starts_at", hint="a job counts from its creation")
        if self.jitter_ms and self.seed is None:
            raise ScheduleError("jitter needs a seed", hint="tenant/name of the job")

    def next_ms(self, after: int) -> int | None:
        tick = self.whole.next_ms(max(after, self.starts_ms - 1))
        return tick if tick is not None and tick <= self.last_ms else None

    def prev_ms(self, before: int) -> int | None:
        tick = self.whole.prev_ms(min(before, self.last_ms + 1))
        return tick if tick is not None and tick >= self.starts_ms else None

    def ticks_ms(self, after: int, until: int) -> Iterator[int]:
        return self.whole.ticks_ms(max(after, self.starts_ms - 1), min(until, self.last_ms))

    def count_ms(self, after: int, until: int) -> int:
        return self.whole.count_ms(max(after, self.starts_ms - 1), min(until, self.last_ms))

    def start_ms(self, tick: int) -> int:
        """When the run of a tick may start: the tick and its jitter."""
        if not self.jitter_ms or self.seed is None:
            return tick
        following = self.whole.next_ms(tick)
        gaps = [None if following is None else following - tick]
        for rule in self.blackouts:
            window = rule.blackout.ending_after(tick)
            gaps.append(None if window is None else window[0] - tick)
        return tick + offset_ms(self.seed, self.jitter_ms, *gaps)

    def start_after(self, tick: datetime) -> datetime:
        return from_ms(self.start_ms(to_ms(tick)))

    def check(self, after: datetime) -> None:
        """A ScheduleError when the calendars leave nothing for a year of what the schedules would give."""
        now = to_ms(after)
        planned = Merged(self.entries).next_ms(max(now, self.starts_ms - 1))
        if planned is None or not self.calendars:
            return
        tick = self.next_ms(now)
        if tick is None or tick > planned + _YEAR_MS:
            names = [r.calendar.name if isinstance(r, DayRule) else r.blackout.name for r in self.calendars]
            raise ScheduleError(
                f"the schedule yields nothing for a year after {iso(from_ms(planned))}",
                hint=f"the calendars leave no tick: {', '.join(names)}",
            )
