"""What the old scheduler did, next to what we would have done. Pure.

Each ping belongs to the latest tick before it. A command that said when it started is of a tick only if it started soon
after it; one that only said when it ended may have run for hours. A machine whose clock is a little behind pings a
little early, which counts as the tick that was meant.
"""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Final, Literal, TypeAlias

from fleetcron.model.ping import Ping
from fleetcron.times.timetable import Timetable

EARLY_MS: Final = 30_000  # at most; never more than a quarter of the way between two ticks
STARTED_WITHIN_MS: Final = 600_000
ENDED_WITHIN_MS: Final = 86_400_000
PATIENCE_MS: Final = 3_600_000  # without a ping a tick is missed after the next tick, or after so long
LEAD_MS: Final = 600_000  # time enough to take a line out of a crontab

Verdict: TypeAlias = Literal["same", "differs", "nothing yet"]
What: TypeAlias = Literal["missed", "doubled", "unexpected", "failed", "after hand-over"]


@dataclass(frozen=True, slots=True)
class Matched:
    """A tick in shadow, and the pings that belong to it, the earliest first."""

    tick_ms: int
    pings: tuple[Ping, ...] = ()
    waits: bool = False  # a ping may still come

    @property
    def delay_ms(self) -> int | None:
        return max(0, self.pings[0].at_ms - self.tick_ms) if self.pings else None


@dataclass(frozen=True, slots=True)
class Difference:
    """`at_ms` is a tick, or the instant of a ping that belongs to none."""

    what: What
    at_ms: int
    pings: tuple[Ping, ...] = ()


@dataclass(frozen=True, slots=True)
class Comparison:
    """The ticks that were compared, and the pings that belong to none of them."""

    ticks: tuple[Matched, ...] = ()
    unexpected: tuple[Ping, ...] = ()
    after: tuple[Ping, ...] = ()  # since the hand-over

    @property
    def matched(self) -> int:
        return sum(bool(each.pings) for each in self.ticks)

    @property
    def waiting(self) -> int:
        return sum(each.waits for each in self.ticks)

    @property
    def verdict(self) -> Verdict:
        if any(each.what != "failed" for each in self.differences()):
            return "differs"
        return "same" if self.matched else "nothing yet"

    def differences(self) -> Iterator[Difference]:
        """In the order of time. A command that failed is no difference between two schedulers, but worth knowing."""
        yield from sorted(self._differences(), key=lambda each: each.at_ms)

    def _differences(self) -> Iterator[Difference]:
        for each in self.ticks:
            if not each.pings and not each.waits:
                yield Difference("missed", each.tick_ms)
            if len(each.pings) > 1:
                yield Difference("doubled", each.tick_ms, each.pings)
            if failed := tuple(ping for ping in each.pings if ping.failed):
                yield Difference("failed", each.tick_ms, failed)
        for ping in self.unexpected:
            yield Difference("unexpected", ping.at_ms, (ping,))
        for ping in self.after:
            yield Difference("after hand-over", ping.at_ms, (ping,))

    def delays_ms(self) -> tuple[int, int] | None:
        """The median and the longest."""
        found = [each.delay_ms for each in self.ticks if each.delay_ms is not None]
        return (round(median(found)), max(found)) if found else None


def compare(
    ticks: Sequence[int],
    pings: Sequence[Ping],
    *,
    since_ms: int,
    now_ms: int,
    shadow_ms: int | None,
    ours_ms: int | None = None,
) -> Comparison:
    """`ticks` are those in shadow, sorted; some from before `since_ms` may be among them, since what was started then
    may have ended later. `shadow_ms`: the instant of the hand-over; `ours_ms`: the first tick from it on. What starts
    after that tick is no late start of the one before the hand-over; what only ended may be."""
    mine: dict[int, list[Ping]] = {tick: [] for tick in ticks}
    strays: list[Ping] = []
    for ping in sorted(pings, key=lambda each: (each.at_ms, each.ping_id)):
        tick = _tick_of(ping, ticks)
        is_after = shadow_ms is not None and ping.at_ms >= shadow_ms
        is_new = ping.started_ms is not None and ours_ms is not None and ping.started_ms >= ours_ms
        if tick is None or (is_after and (is_new or mine[tick])):
            strays.append(ping)
        else:
            mine[tick].append(ping)
    first = ticks[0] - _early(ticks, 0) if ticks else now_ms
    strays = [ping for ping in strays if ping.at_ms >= max(since_ms, first)]  # before that we were not asked
    after = tuple(ping for ping in strays if shadow_ms is not None and ping.at_ms >= shadow_ms)
    return Comparison(
        tuple(
            Matched(tick, tuple(mine[tick]), not mine[tick] and _waits(ticks, at, now_ms))
            for at, tick in enumerate(ticks)
            if tick >= since_ms
        ),
        tuple(ping for ping in strays if ping not in after),
        after,
    )


def horizon_ms(
    timetable: Timetable, cursor_ms: int, shadow_ms: int | None, gaps: Sequence[tuple[int, int]]
) -> int | None:
    """Pings from here on wait: they may belong to ticks in shadow that nobody has answered yet. None: none does."""
    tick = timetable.next_ms(cursor_ms)
    starts = [after + 1 for after, _ in gaps if shadow_ms is not None and after < shadow_ms]
    if tick is not None and shadow_ms is not None and tick < shadow_ms:
        starts.append(tick - min(EARLY_MS, max(0, tick - cursor_ms) // 4))
    return min(starts, default=None)


def hand_over_ms(timetable: Timetable, now_ms: int) -> int | None:
    """When to hand a job over: at the first tick that leaves people some time. The instant of a tick is the one that is
    furthest from the tick before it, which a slow cron may start late; the tick itself is ours."""
    return timetable.next_ms(now_ms + LEAD_MS - 1)


def _tick_of(ping: Ping, ticks: Sequence[int]) -> int | None:
    at = bisect_right(ticks, ping.at_ms)
    if at < len(ticks) and ticks[at] - ping.at_ms <= _early(ticks, at):
        return ticks[at]
    within = ENDED_WITHIN_MS if ping.started_ms is None else STARTED_WITHIN_MS
    return ticks[at - 1] if at and ping.at_ms - ticks[at - 1] <= within else None


def _early(ticks: Sequence[int], at: int) -> int:
    return EARLY_MS if at == 0 else min(EARLY_MS, (ticks[at] - ticks[at - 1]) // 4)


def _waits(ticks: Sequence[int], at: int, now_ms: int) -> bool:
    patience = ticks[at] + PATIENCE_MS
    return now_ms < (min(patience, ticks[at + 1] + EARLY_MS) if at + 1 < len(ticks) else patience)
