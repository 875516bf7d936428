"""The whole WHEN of a job: its schedules, calendars, bounds and jitter, as one set of ticks.

In this order: each schedule gives its ticks; calendars of days drop or move them; blackouts drop or defer them; the
bounds cut off what lies before `starts_at` or from `ends_at` on; `max_ticks` ends the row. Jitter delays the start and
never changes the tick.
"""

from collections.abc import Iterable, Iterator
from copy import copy
from datetime import datetime, timedelta

from fleetcron.errors import ScheduleError
from fleetcron.times.blackouts import BlackoutRule, Blackouts
from fleetcron.times.calendars import DayRule
from fleetcron.times.durations import duration_ms
from fleetcron.times.instants import FIRST_MS, LAST_MS, from_ms, iso, to_ms
from fleetcron.times.jitter import checked_seed, offset_ms
from fleetcron.times.merged import Merged
from fleetcron.times.observed import observe
from fleetcron.times.schedule import Schedule
from fleetcron.times.without import Without

# Where a schedule without a beginning is asked for a tick: 2026, 2000, 2050, 1970 and the year 1. One is enough.
_PROBES = (1_767_225_600_000, 946_684_800_000, 2_524_608_000_000, 0, FIRST_MS - 1)
_YEAR_MS = 366 * 86_400_000


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
        self.entries = tuple(entries) if isinstance(entries, Iterable) else (entries,)
        self.calendars = tuple(calendars)
        self.starts_ms = FIRST_MS if starts_at is None else to_ms(starts_at)
        self.ends_ms = LAST_MS + 1 if ends_at is None else to_ms(ends_at)
        self.jitter_ms = 0 if jitter is None else duration_ms(jitter, "jitter")
        self.seed = checked_seed(seed)
        self._check_arguments(starts_at, ends_at, max_ticks)
        rules = [rule for rule in self.calendars if isinstance(rule, BlackoutRule)]
        self.blackouts = Blackouts(rules) if rules else None
        self.observed = self._observed()
        whole: Schedule = self.observed[0] if len(self.observed) == 1 else Merged(self.observed)
        self.whole = whole if self.blackouts is None else Without(whole, self.blackouts)
        self.last_ms = self.ends_ms - 1
        if max_ticks is not None:
            last = self.whole.nth_ms(self.starts_ms - 1, max_ticks, self.last_ms)
            self.last_ms = self.last_ms if last is None else last
        probes = _PROBES if starts_at is None else (self.starts_ms - 1,)
        if all(self.next_ms(probe) is None for probe in probes):
            raise ScheduleError("the schedule never fires: its calendars and bounds leave no tick")

    def _observed(self) -> tuple[Schedule, ...]:
        rules = [rule for rule in self.calendars if isinstance(rule, DayRule)]
        found = [observe(entry, rules) for entry in self.entries] if rules else self.entries
        left = tuple(entry for entry in found if entry is not None)
        if not left:
            raise ScheduleError("the schedule never fires: its calendars leave no day for it")
        return left

    def _check_arguments(self, starts_at: datetime | None, ends_at: datetime | None, max_ticks: int | None) -> None:
        for entry in self.entries:
            if not isinstance(entry, Schedule):
                raise ScheduleError(f"{entry!r} is not a schedule", hint="pass Cron(…), Every(…) or Once(…)")
        if not self.entries:
            raise ScheduleError("a job needs at least one schedule")
        for rule in self.calendars:
            if not isinstance(rule, DayRule | BlackoutRule):
                raise ScheduleError(
                    f"{rule!r} is not a rule", hint="wrap it: DayRule(calendar) or BlackoutRule(blackout)"
                )
        if starts_at is not None and ends_at is not None and self.ends_ms <= self.starts_ms:
            raise ScheduleError(f"ends_at {iso(ends_at)} is not after starts_at {iso(starts_at)}")
        if max_ticks is not None and (isinstance(max_ticks, bool) or not isinstance(max_ticks, int) or max_ticks < 1):
            raise ScheduleError(f"max_ticks: {max_ticks} is not at least 1", hint="a whole number")
        if max_ticks is not None and starts_at is None:
            raise ScheduleError("max_ticks needs starts_at", hint="a job counts from its creation")
        if self.jitter_ms and self.seed is None:
            raise ScheduleError("jitter needs a seed: tenant/name of the job", hint="--job on the command line")

    def __repr__(self) -> str:
        more = f", {len(self.calendars)} calendars" if self.calendars else ""
        return f"Timetable({', '.join(map(repr, self.entries))}{more})"

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
        window = None if self.blackouts is None else self.blackouts.ending_after(tick)
        gaps.append(None if window is None else window[0] - tick)
        return min(tick + offset_ms(self.seed, self.jitter_ms, *gaps), LAST_MS)

    def seeded(self, seed: str) -> "Timetable":
        """The same ticks with the jitter of another job. Not for expressions with H, whose ticks have a seed too."""
        other = copy(self)
        other.seed = checked_seed(seed)
        return other

    def start_after(self, tick: datetime) -> datetime:
        return from_ms(self.start_ms(to_ms(tick)))

    def check(self, after: datetime) -> None:
        """A ScheduleError when the calendars leave nothing for a year of what the schedules would give."""
        now = to_ms(after)
        planned = Merged(self.entries).next_ms(max(now, self.starts_ms - 1))
        if planned is None or planned > self.last_ms or not self.calendars:
            return  # over, or rare by itself
        tick = self.next_ms(now)
        if tick is None or tick > planned + _YEAR_MS:
            names = [r.calendar.name if isinstance(r, DayRule) else r.blackout.name for r in self.calendars]
            raise ScheduleError(
                f"the schedule yields nothing for a year after {iso(from_ms(planned))}",
                hint=f"the calendars leave no tick: {', '.join(names)}",
            )


__all__ = ["BlackoutRule", "DayRule", "Timetable"]
