"""A schedule in words, with its coming ticks and what the clock changes of two years do to it."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import islice, pairwise
from typing import Any

from fleetcron.clock import utc_now
from fleetcron.times import words
from fleetcron.times.cron import Cron
from fleetcron.times.durations import duration_text
from fleetcron.times.every import Every
from fleetcron.times.instants import iso, to_ms
from fleetcron.times.lint import Finding, lint
from fleetcron.times.localtimes import DAY
from fleetcron.times.merged import Merged
from fleetcron.times.notes import clock_text, date_text, zone_of
from fleetcron.times.once import Once
from fleetcron.times.preview import Row, preview
from fleetcron.times.schedule import Schedule
from fleetcron.times.timetable import Timetable
from fleetcron.times.without import Without
from fleetcron.times.zone import Period
from fleetcron.times.zones import zone

_AHEAD = timedelta(days=731)
_MOST_WALKED = 20_000


@dataclass(frozen=True, slots=True)
class Change:
    """What a clock change does to the schedule."""

    date: str
    text: str


class Explanation(str):
    """The text for people; the same as data in its attributes and in `as_json`."""

    __slots__ = ("data",)
    data: dict[str, Any]

    def __new__(cls, data: dict[str, Any]) -> "Explanation":
        self = super().__new__(cls, _text(data))
        self.data = data
        return self

    def as_json(self) -> dict[str, Any]:
        return self.data

    def __reduce__(self) -> tuple[type["Explanation"], tuple[dict[str, Any]]]:
        return Explanation, (self.data,)


def explain(schedule: Schedule, after: datetime | None = None, timezone: str | None = None) -> Explanation:
    """Words, next ticks and dated notes. `after` is now unless somebody says otherwise."""
    now = utc_now() if after is None else after
    shown = zone_of(schedule) if timezone is None else zone(timezone)
    rows = preview(schedule, now, 5, shown)
    shortest, longest = _gaps(schedule, now)
    data: dict[str, Any] = {
        "schedule": _described(schedule),
        "timezone": shown.name,
        "next": [row.as_json() for row in rows],
        "clock_changes": [{"date": c.date, "text": c.text} for c in clock_changes(schedule, now)],
        "shortest_gap": shortest,
        "longest_gap": longest,
        "verdict": _verdict(rows, now),
        "findings": [finding.as_json() for finding in lint(schedule, now, timezone)],
    }
    return Explanation(data)


def clock_changes(schedule: Schedule, after: datetime) -> list[Change]:
    """The clock changes within two years that touch the schedule's times."""
    if isinstance(schedule, Timetable):
        return clock_changes(schedule.whole, after)
    if isinstance(schedule, Without):
        return clock_changes(schedule.inner, after)
    if isinstance(schedule, Merged):
        found = [change for entry in schedule.entries for change in clock_changes(entry, after)]
        return list(dict.fromkeys(found))
    if not isinstance(schedule, Cron):
        return []
    start = to_ms(after) // 1000
    touching = []
    for before, here in schedule.zone.changes_between(start, start + int(_AHEAD.total_seconds())):
        change = _gap(schedule, before, here) if here.offset > before.offset else _fold(schedule, before, here)
        if change is not None:
            touching.append(change)
    return touching


def _gap(schedule: Cron, before: Period, here: Period) -> Change | None:
    gone = schedule.matching.listed(before.high, here.low - 1)
    if not gone:
        return None
    date = date_text(gone[0] // DAY)
    does = f"runs at {clock_text(here.low)}" if schedule.dst_gap == "shift" else "is skipped"
    if len(gone) == 1:
        return Change(date, f"{clock_text(gone[0])} does not exist in {schedule.timezone}, {does}")
    if schedule.dst_gap == "shift":
        does = f"one run at {clock_text(here.low)} stands for all {len(gone)} times"
    else:
        does = f"{len(gone)} times are skipped and real time goes on"
    span = f"{clock_text(before.high)} to {clock_text(here.low)}"
    return Change(date, f"{span} does not exist in {schedule.timezone}, {does}")


def _fold(schedule: Cron, before: Period, here: Period) -> Change | None:
    twice = schedule.matching.listed(here.low, before.high - 1)
    if not twice:
        return None
    date = date_text(twice[0] // DAY)
    does = {"first": "runs the first time", "second": "runs the second time", "both": "runs both times"}
    what = clock_text(twice[0]) if len(twice) == 1 else f"{clock_text(here.low)} to {clock_text(before.high)}"
    return Change(date, f"{what} comes twice in {schedule.timezone}, {does[schedule.dst_fold]}")


def _gaps(schedule: Schedule, after: datetime) -> tuple[str | None, str | None]:
    """The shortest and the longest distance between ticks within two years; less far for very busy schedules."""
    start = to_ms(after)
    ticks = islice(schedule.ticks_ms(start, start + int(_AHEAD.total_seconds()) * 1000), _MOST_WALKED)
    gaps = {later - earlier for earlier, later in pairwise(ticks)}
    if not gaps:
        rare = list(islice(schedule.ticks_ms(start, start + 50 * 366 * DAY * 1000), 20))
        gaps = {later - earlier for earlier, later in pairwise(rare)}
    return (length_text(min(gaps)), length_text(max(gaps))) if gaps else (None, None)


def length_text(ms: int) -> str:
    """As people say it: 23h30m, 2d15h."""
    if ms % 1000:
        return duration_text(ms)
    said, seconds = "", ms // 1000
    for unit, size in (("d", DAY), ("h", 3600), ("m", 60), ("s", 1)):
        if unit == "d" and seconds < 2 * DAY:
            continue
        count, seconds = divmod(seconds, size)
        said += f"{count}{unit}" if count else ""
    return said or duration_text(ms)


def _verdict(rows: list[Row], after: datetime) -> str:
    if not rows:
        return f"never fires after {iso(after)}"
    wait = rows[0].scheduled_for - after
    if wait >= timedelta(days=730):
        return f"next in {wait.days // 365} years"
    return "fires"


def _described(schedule: Schedule) -> dict[str, Any]:
    if isinstance(schedule, Timetable):
        entries = [_described(entry) for entry in schedule.entries]
        jitter = {"jitter": duration_text(schedule.jitter_ms)} if schedule.jitter_ms else {}
        return {**entries[0], **jitter, "sentence": "; ".join(entry["sentence"] for entry in entries)}
    if isinstance(schedule, Every):
        text = f"every {duration_text(schedule.every_ms)} of real time, counted from {iso(schedule.anchor)}"
        return {"sentence": text, "every": duration_text(schedule.every_ms), "anchor": iso(schedule.anchor)}
    if isinstance(schedule, Once):
        return {"sentence": f"once, at {iso(schedule.at)}", "at": iso(schedule.at)}
    if not isinstance(schedule, Cron):
        return {"sentence": type(schedule).__name__}
    parsed = schedule.parsed
    kinds = ("second", "minute", "hour", "day_of_month", "month", "day_of_week")
    texts = [field.text for field in (parsed.second, *parsed.fields[-5:])]
    return {
        "sentence": words.sentence(parsed),
        "cron": schedule.expression,
        "fields": dict(zip(kinds, texts, strict=True)),
        "day_rule": _day_rule(schedule),
        "class": "clock job" if parsed.is_clock_job else "time-of-day job",
        "dst_gap": schedule.dst_gap,
        "dst_fold": schedule.dst_fold,
        "month_end": schedule.month_end,
    }


def _day_rule(schedule: Cron) -> str:
    parsed = schedule.parsed
    if parsed.plus:
        return "both day fields must match, because of the + on the weekday"
    for name, field in (("day-of-month", parsed.day), ("day-of-week", parsed.weekday)):
        if field.starred:
            return f"both day fields must match, because {name} begins with *"
    return "either day field is enough, because both are restricted"


def _text(data: dict[str, Any]) -> str:
    said = data["schedule"]
    sentence = said["sentence"]
    lines = [f"{sentence[0].upper()}{sentence[1:]}, {data['timezone']} time."]
    if "cron" in said:
        lines.append(f"  expression   {said['cron']}   ({' '.join(f'{k}={v}' for k, v in said['fields'].items())})")
        lines.append(f"  day rule     {said['day_rule']}")
        policies = f"dst_gap={said['dst_gap']}, dst_fold={said['dst_fold']}, month_end={said['month_end']}"
        lines.append(f"  class        {said['class']}: {policies}")
    if "jitter" in said:
        lines.append(f"  jitter       {said['jitter']}")
    if data["shortest_gap"]:
        lines.append(f"  between runs {data['shortest_gap']} to {data['longest_gap']}")
    if data["verdict"] != "fires":
        lines.append(f"  verdict      {data['verdict']}")
    lines.append("Next ticks" if data["next"] else "No tick is left.")
    for row in data["next"]:
        notes = [f"starts {row['starts']}"] if "starts" in row else []
        said_of_it = ", ".join([*notes, *row["notes"]])
        lines.append(f"  {row['scheduled_for']}   {row['local']}   {said_of_it}".rstrip())
    if data["clock_changes"]:
        lines.append("Clock changes within two years")
        lines += [f"  {change['date']}: {change['text']}" for change in data["clock_changes"]]
    findings = [f for f in data["findings"] if f["code"] != "dst-hour"]  # said above, with dates
    if findings:
        lines.append("Worth a look")
        lines += [f"  {f['level']}: {f['message']}; {f['hint']}" for f in findings]
    return "\n".join(lines)


__all__ = ["Change", "Explanation", "Finding", "clock_changes", "explain", "length_text"]
