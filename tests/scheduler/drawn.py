"""Schedules, rules and stretches of time for the laws of pure decisions, with DST changes in most stretches."""

from dataclasses import replace

from hypothesis import strategies as st

from fleetcron.errors import ScheduleError
from fleetcron.model.calendar import CalendarDocument, local_almanac
from fleetcron.model.definition import Definition
from fleetcron.model.rules import CalendarUse, CronEntry, EveryEntry, MisfireRule, OnceEntry
from fleetcron.model.target import CommandTarget
from fleetcron.model.timing import Timing
from fleetcron.times import zones
from fleetcron.times.instants import parse_instant, to_ms
from fleetcron.times.timetable import Timetable
from tests.scheduler.enumerator import Book, When, when

SECOND, MINUTE, HOUR, DAY = 1000, 60_000, 3_600_000, 86_400_000
ZONES = ("UTC", "America/New_York", "Europe/Berlin", "Australia/Lord_Howe")
# the clocks change in New York, Berlin (forward and back) and Lord Howe; and an ordinary day
CHANGES = tuple(
    to_ms(parse_instant(text))
    for text in (
        "2026-11-01T06:00:00Z",
        "2026-10-25T01:00:00Z",
        "2027-03-28T01:00:00Z",
        "2026-10-03T15:30:00Z",
        "2026-06-10T00:00:00Z",
    )
)
FREEZE = CalendarDocument("freeze", windows=tuple((at - HOUR, at + 2 * HOUR) for at in CHANGES))
BOOK = Book({name: zones.zone(name).dump() for name in ZONES if name != "UTC"}, {"freeze": FREEZE})


def made(definition: Definition) -> tuple[Timing, Timetable, When]:
    """The timing and its timetable as the scheduler has them, and the slow ticks."""
    timing = definition.timing(CHANGES[0])
    almanac = local_almanac(timing.parts(), [FREEZE])
    return timing, timing.timetable(almanac), when(definition, CHANGES[0], BOOK)


ENTRIES = st.one_of(
    st.builds(
        EveryEntry,
        st.sampled_from([MINUTE, 7 * MINUTE, HOUR, 25 * HOUR]),
        st.sampled_from([0, CHANGES[0] + 5 * SECOND]),
    ),
    st.builds(
        CronEntry,
        st.sampled_from(
            ["*/5 * * * *", "30 1 * * *", "15,45 0-3 * * *", "0 */6 * * *", "0 9 * * MON-FRI", "0 0 1 * *"]
        ),
        st.sampled_from(ZONES),
        st.sampled_from(["skip", "shift"]),
        st.sampled_from(["first", "second", "both"]),
    ),
    st.builds(OnceEntry, st.sampled_from(["2026-11-01T07:30:00Z", "2026-10-25T00:30:00Z"])),
)
RULES = st.builds(
    MisfireRule,
    policy=st.sampled_from(["skip", "latest", "all"]),
    window_ms=st.sampled_from([0, 10 * MINUTE, 3 * HOUR, DAY]),
    limit=st.sampled_from([1, 3, 100]),
    grace_ms=st.sampled_from([0, MINUTE, 30 * MINUTE]),
    lane=st.sampled_from(["catchup", "live"]),
)
_ANY = st.builds(
    Definition,
    st.sampled_from(["a", "b", "c"]),
    st.lists(ENTRIES, min_size=1, max_size=2).map(tuple),
    st.just(CommandTarget(("true",))),
    calendars=st.sampled_from([(), (), (CalendarUse("freeze"),), (CalendarUse("freeze", on="defer"),)]),
    starts_ms=st.sampled_from([None, None, None, CHANGES[0] - 5 * HOUR]),
    ends_ms=st.sampled_from([None, None, CHANGES[0] + DAY]),
    max_ticks=st.sampled_from([None, None, 1, 4, 30]),
    jitter_ms=st.sampled_from([0, 0, 40 * SECOND, 20 * MINUTE]),
    misfire=RULES,
    start_deadline_ms=st.sampled_from([None, None, 40 * MINUTE, 2 * DAY]),
)


def _has_ticks(definition: Definition) -> bool:
    try:
        made(definition)
    except ScheduleError:
        return False
    return True


DEFINITIONS = _ANY.filter(_has_ticks)
# around a change, to the second and sometimes on a tick
INSTANTS = st.builds(
    lambda change, away, second: change + away + second * SECOND,
    st.sampled_from(CHANGES),
    st.sampled_from([-2 * DAY, -5 * HOUR, -HOUR, 0, 20 * MINUTE, HOUR, 7 * HOUR, 2 * DAY]),
    st.sampled_from([0, 0, 0, 1, 30, 90]),
)
LENGTHS = st.sampled_from([0, 30 * SECOND, 2 * MINUTE, 20 * MINUTE, 3 * HOUR, DAY, 3 * DAY])


def unlimited(definition: Definition) -> Definition:
    return replace(definition, max_ticks=None)


class Walked(Timetable):
    """A timetable that counts what is asked of it: ticks that were walked, and looks at single ones."""

    def __init__(self, inner: Timetable) -> None:
        self.inner, self.ticks, self.looks = inner, 0, 0

    def next_ms(self, after: int) -> int | None:
        self.looks += 1
        return self.inner.next_ms(after)

    def prev_ms(self, before: int) -> int | None:
        self.looks += 1
        return self.inner.prev_ms(before)

    def ticks_ms(self, after: int, until: int):  # type: ignore[no-untyped-def]
        for tick in self.inner.ticks_ms(after, until):
            self.ticks += 1
            yield tick

    def count_ms(self, after: int, until: int) -> int:
        self.looks += 1
        return self.inner.count_ms(after, until)

    def start_ms(self, tick: int) -> int:
        return self.inner.start_ms(tick)
