"""A single instant, given as such or as a local time in a zone."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from fleetcron.errors import ScheduleError
from fleetcron.times import policies
from fleetcron.times.instants import FIRST_MS, LAST_MS, from_ms, iso, not_an_instant, to_ms
from fleetcron.times.schedule import Schedule
from fleetcron.times.zone import Zone
from fleetcron.times.zones import zone as zone_named

if TYPE_CHECKING:
    from fleetcron.times.explain import Explanation


class Once(Schedule):
    """`Once(instant)`, or `Once("2027-03-14 02:30", "America/New_York")` resolved with the DST policies.

    A local time that never exists is an error under dst_gap=skip; one that exists twice is two ticks under
    dst_fold=both. Instants are kept to the millisecond.
    """

    __slots__ = ("at", "dst_fold", "dst_gap", "instants_ms", "local_ms", "rolled_from", "timezone", "zone")

    def __init__(
        self,
        at: datetime | str,
        timezone: str | Zone | None = None,
        dst_gap: str | None = None,
        dst_fold: str | None = None,
    ) -> None:
        self.dst_gap = policies.dst_gap(dst_gap)
        self.dst_fold = policies.dst_fold(dst_fold)
        self.zone = timezone if isinstance(timezone, Zone) else zone_named("UTC" if timezone is None else timezone)
        self.timezone = self.zone.name
        self.rolled_from: int | None = None  # the day from which a calendar moved it
        moment = _read(at)
        if moment.tzinfo is not None:
            self.instants_ms: tuple[int, ...] = (to_ms(moment),)
            self.local_ms = self.instants_ms[0] + self.zone.offset_at(self.instants_ms[0] // 1000) * 1000
        elif timezone is None:
            raise ScheduleError(f"'{at}' has no zone", hint=f"write {moment.isoformat()}Z for UTC, or give a timezone")
        else:
            self.local_ms = to_ms(moment.replace(tzinfo=UTC))
            self.instants_ms = self._resolve()
        if not (self.instants_ms[0] >= FIRST_MS and self.instants_ms[-1] <= LAST_MS):
            raise ScheduleError(f"{at} is outside the years 1 to 9999 of UTC")
        self.at = from_ms(self.instants_ms[0])

    def _resolve(self) -> tuple[int, ...]:
        second, rest = divmod(self.local_ms, 1000)
        found = self.zone.resolve(second, self.dst_gap, self.dst_fold)
        if not found:
            local = from_ms(self.local_ms).replace(tzinfo=None)
            raise ScheduleError(
                f"{local} does not exist in {self.timezone}, so it never fires",
                hint="with dst_gap=shift it runs when the clock has changed",
            )
        # the change of a clock happens at a whole second: a time that was moved there loses its fraction
        gone = second != found[0] + self.zone.offset_at(found[0])
        return tuple(instant * 1000 + (0 if gone else rest) for instant in found)

    def next_ms(self, after: int) -> int | None:
        return next((tick for tick in self.instants_ms if tick > after), None)

    def prev_ms(self, before: int) -> int | None:
        return next((tick for tick in reversed(self.instants_ms) if tick < before), None)

    def ticks_ms(self, after: int, until: int) -> Iterator[int]:
        return (tick for tick in self.instants_ms if after < tick <= until)

    def count_ms(self, after: int, until: int) -> int:
        return max(0, bisect_right(self.instants_ms, until) - bisect_right(self.instants_ms, after))

    def day_shape(self, day: int) -> object:
        start = day * 86_400_000
        low, high = bisect_left(self.instants_ms, start), bisect_left(self.instants_ms, start + 86_400_000)
        return "once", tuple(tick - start for tick in self.instants_ms[low:high])

    def explain(self, after: datetime | None = None) -> "Explanation":
        from fleetcron.times.explain import explain

        return explain(self, after)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Once) and other.instants_ms == self.instants_ms

    def __hash__(self) -> int:
        return hash(self.instants_ms)

    def __repr__(self) -> str:
        return f"Once({iso(self.at)!r})"


def _read(at: datetime | str) -> datetime:
    if isinstance(at, str):
        try:
            at = datetime.fromisoformat(at.strip())
        except ValueError:
            raise ScheduleError(f"'{at}' is not an instant", hint="write it as 2027-01-01T09:00:00Z") from None
    if not isinstance(at, datetime):
        raise not_an_instant(at)
    return at
