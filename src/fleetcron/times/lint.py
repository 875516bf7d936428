"""What is allowed but probably not meant."""

from dataclasses import dataclass
from datetime import datetime
from itertools import islice, pairwise
from typing import Literal

from fleetcron.times import days
from fleetcron.times.cron import Cron
from fleetcron.times.durations import duration_text
from fleetcron.times.every import Every
from fleetcron.times.fields import DAY as DAY_FIELD
from fleetcron.times.fields import HOUR, MINUTE, MONTH, SECOND, WEEKDAY, FieldKind, Values
from fleetcron.times.instants import from_ms, iso, to_ms
from fleetcron.times.localtimes import DAY
from fleetcron.times.notes import clock_text, date_text
from fleetcron.times.schedule import Schedule
from fleetcron.times.timetable import Timetable
from fleetcron.times.zone import Period
from fleetcron.times.zones import zone

Level = Literal["warning", "info"]
_DAY_MS = 86_400_000
_TWO_YEARS_MS = 731 * _DAY_MS
_LOOKED_AT = 2000  # ticks, for the shortest gap


@dataclass(frozen=True, slots=True)
class Finding:
    """`code` is stable, for scripts; `hint` says what to write instead."""

    level: Level
    code: str
    message: str
    hint: str

    def as_json(self) -> dict[str, str]:
        return {"level": self.level, "code": self.code, "message": self.message, "hint": self.hint}


def lint(schedule: Schedule, after: datetime, timezone: str | None = None) -> list[Finding]:
    """Findings about a schedule, looking two years ahead of `after`. `timezone` is what was given with an interval."""
    found: list[Finding] = []
    if isinstance(schedule, Timetable):
        for entry in schedule.entries:
            found += lint(entry, after, timezone)
        return found + _jitter(schedule, after)
    if isinstance(schedule, Cron):
        found += _fields(schedule)
        found += _day_rule(schedule)
        found += _month_end(schedule)
        found += _dst(schedule, after)
        found += _far(schedule, after)
    if isinstance(schedule, Every) and schedule.every_ms % _DAY_MS == 0 and _changes_clocks(timezone, after):
        text = duration_text(schedule.every_ms)
        found.append(
            Finding(
                "warning",
                "interval-of-days",
                f"every {text} is real time: in {timezone} it moves by an hour at each clock change",
                "did you mean a daily cron, such as 0 9 * * *?",
            )
        )
    return found


def _changes_clocks(timezone: str | None, after: datetime) -> bool:
    start = to_ms(after) // 1000
    return timezone is not None and bool(zone(timezone).changes_between(start, start + _TWO_YEARS_MS // 1000))


def _fields(schedule: Cron) -> list[Finding]:
    parsed = schedule.parsed
    found = []
    kinds: list[tuple[FieldKind, Values]] = [
        (SECOND, parsed.second),
        (MINUTE, parsed.minute),
        (HOUR, parsed.hour),
        (DAY_FIELD, parsed.day),
        (MONTH, parsed.month),
        (WEEKDAY, parsed.weekday),
    ]
    for kind, values in kinds:
        for item in values.text.split(","):
            body, slash, step = item.partition("/")
            whole = ("*", "?", f"{kind.low}", f"{kind.low}-{kind.low + kind.cycle - 1}")
            if slash and body in whole and kind.cycle % int(step):
                found.append(_uneven(kind, values, item))
    if len(parsed.minute.listed()) == 60 and parsed.second.listed() == [0]:
        hours = parsed.hour.listed()
        if len(hours) == 1:
            found.append(
                Finding(
                    "warning",
                    "every-minute-of-an-hour",
                    f"fires 60 times, every minute from {hours[0]:02}:00 to {hours[0]:02}:59",
                    f"for once a day write 0 {hours[0]} in the first two fields",
                )
            )
    if schedule.times.minutes == (0,) and schedule.times.count == 1 and schedule.days.every_day:
        found.append(
            Finding(
                "info",
                "midnight",
                "starts at midnight together with everything else that is daily",
                "H H in the first two fields, or jitter, spreads jobs over time",
            )
        )
    return found


def _uneven(kind: FieldKind, values: Values, item: str) -> Finding:
    listed = values.listed()
    if kind is DAY_FIELD:
        return Finding(
            "warning",
            "step-restarts",
            f"{item} in the {kind.name} field starts again on day 1 of each month: day 31 may be followed by day 1",
            f"for a fixed distance use an interval (every: {item.partition('/')[2]}d), or list the days",
        )
    left = kind.cycle - listed[-1] + listed[0]
    return Finding(
        "warning",
        "uneven-step",
        f"{item} does not divide the {kind.name} field: from {listed[-1]} it is {left} to the next",
        f"use a step that divides {kind.cycle}, or an interval (every: …)",
    )


def _day_rule(schedule: Cron) -> list[Finding]:
    parsed = schedule.parsed
    if not parsed.both_days:
        return [
            Finding(
                "warning",
                "either-day",
                f"both day fields are restricted, so it fires on day {parsed.day.text} and also on "
                f"{parsed.weekday.text}, whichever comes",
                f"for days that match both write +{parsed.weekday.text}",
            )
        ]
    stepped = [f for f in (parsed.day, parsed.weekday) if f.text.startswith("*/")]
    if stepped and not parsed.plus and not any(f.text in ("*", "?") for f in (parsed.day, parsed.weekday)):
        return [
            Finding(
                "warning",
                "both-days",
                f"{stepped[0].text} begins with *, so a day must match both day fields",
                "list the days instead of the step to fire on either",
            )
        ]
    return []


def _month_end(schedule: Cron) -> list[Finding]:
    last = schedule.parsed.day.clampable.bit_length() - 1
    if schedule.month_end == "clamp" or last < 29 or schedule.parsed.day.values.bit_count() > 3:
        return []
    if last == 29 and schedule.parsed.month.listed() == [2]:
        message = "February 29th exists in leap years only"
        return [Finding("warning", "missing-days", message, "month_end=clamp takes the 28th in other years")]
    short = [m for m in schedule.parsed.month.listed() if days.MONTH_LENGTHS[False][m - 1] < last]
    if not short:
        return []
    return [
        Finding(
            "warning",
            "missing-days",
            f"day {last} does not exist in {len(short)} of its months, which are left out",
            "month_end=clamp takes the last day instead; L is always the last day",
        )
    ]


def _dst(schedule: Cron, after: datetime) -> list[Finding]:
    if schedule.parsed.is_clock_job:
        return []
    start = to_ms(after) // 1000
    changes = schedule.zone.changes_between(start, start + _TWO_YEARS_MS // 1000)
    for before, here in changes:
        low, high = sorted((before.high, here.low))
        matches = schedule.matching.listed(low, high - 1)
        if not matches:
            continue
        time = f"{date_text(matches[0] // DAY)} {clock_text(matches[0])}"
        if here.offset > before.offset:
            does = f"runs at {clock_text(here.low)}" if schedule.dst_gap == "shift" else "is skipped"
            message = f"{time} does not exist in {schedule.timezone}: it {does}"
        else:
            does = "runs both times" if schedule.dst_fold == "both" else f"runs the {schedule.dst_fold} time"
            message = f"{time} comes twice in {schedule.timezone}: it {does}"
        return [Finding("info", "dst-hour", message, _quiet_hours(changes))]
    return []


def _quiet_hours(changes: list[tuple[Period, Period]]) -> str:
    """Which times no clock change of these touches."""
    low, high = DAY, 0
    for before, here in changes:
        start, end = sorted((before.high, here.low))
        low, high = min(low, start % DAY), max(high, start % DAY + end - start)
    if high > DAY:
        return "choose dst_gap and dst_fold"
    return f"times outside {clock_text(low)} and {clock_text(high)} are never touched by a clock change"


def _far(schedule: Cron, after: datetime) -> list[Finding]:
    tick = schedule.next_ms(to_ms(after))
    if tick is None:
        return [Finding("warning", "no-more", f"never fires after {iso(after)}", "check the expression")]
    years = (tick - to_ms(after)) // (365 * _DAY_MS)
    if years < 2:
        return []
    return [Finding("warning", "far", f"next in {years} years, on {from_ms(tick):%Y-%m-%d}", "check the day fields")]


def _jitter(schedule: Timetable, after: datetime) -> list[Finding]:
    start = to_ms(after)
    ticks = islice(schedule.ticks_ms(start, start + _TWO_YEARS_MS), _LOOKED_AT)
    shortest = min((later - earlier for earlier, later in pairwise(ticks)), default=None)
    if shortest is None or schedule.jitter_ms <= shortest:
        return []
    message = f"jitter {duration_text(schedule.jitter_ms)} is longer than the gap between ticks"
    return [Finding("warning", "jitter-too-long", message, f"it is cut to {duration_text(shortest)}")]
