"""Read the dates of an iCalendar file (RFC 5545): a list of holidays as calendars publish it.

Only dates matter here. Whole-day events, events with a time (their date counts), several days, extra dates, exceptions
and yearly repetition are read; a rule that we would get wrong is refused with its line.
"""

import re
from dataclasses import dataclass, field

from fleetcron.errors import ScheduleError
from fleetcron.times import days
from fleetcron.times.calendars import DayCalendar, checked_zone
from fleetcron.times.zone import Zone

_DATE = re.compile(r"(\d{4})(\d{2})(\d{2})(?:T\d{6}Z?)?")
_DURATION = re.compile(r"P(?:(\d{1,4})W)?(?:(\d{1,5})D)?(?:T.*)?")
_PROPERTY = re.compile(r'([^:;"]+)((?:;[^:;"=]+=(?:"[^"]*"|[^":;]*))*):(.*)', re.DOTALL)
_READ_RULES = {"FREQ", "INTERVAL", "WKST", "UNTIL", "COUNT", "BYMONTH", "BYMONTHDAY"}
_LONGEST_EVENT = 366
# How far a yearly repetition is written out when it has a beginning, an end or an interval.
_LAST_YEAR = 2200


@dataclass(slots=True)
class _Event:
    line: int
    start: int | None = None
    end: int | None = None  # exclusive
    length: int | None = None  # in days, instead of an end
    rule: dict[str, str] = field(default_factory=dict)
    extra: set[int] = field(default_factory=set)
    except_: set[int] = field(default_factory=set)
    cancelled: bool = False
    uid: str = ""
    instead_of: int | None = None  # this event stands for one day of a repetition


def holidays_from_ics(name: str, text: str, timezone: str | Zone | None = None) -> DayCalendar:
    """The dates on which the file has an event, as a calendar of holidays."""
    checked_zone(timezone)
    dates: set[int] = set()
    events = _events(name, text)
    moved = {(event.uid, event.instead_of) for event in events if event.instead_of is not None}
    for event in events:
        if event.instead_of is None:
            event.except_ |= {day for uid, day in moved if uid == event.uid and day is not None}
        if not event.cancelled:
            dates |= _dates(name, event)
    if not events:
        raise ScheduleError(f"calendar {name}: no event found", hint="an .ics file has lines BEGIN:VEVENT … END:VEVENT")
    return DayCalendar(name, timezone, dates=frozenset(dates))


def _events(name: str, text: str) -> list[_Event]:
    found: list[_Event] = []
    event: _Event | None = None
    depth = 0  # alarms and the like inside an event
    for number, line in _unfolded(text):
        parts = _PROPERTY.fullmatch(line)
        if parts is None:
            continue
        key, value = parts[1].strip().upper(), parts[3].strip()
        if key == "BEGIN" and value.upper() == "VEVENT":
            event, depth = _Event(number), 0
        elif event is None:
            continue
        elif key == "BEGIN":
            depth += 1
        elif key == "END" and depth:
            depth -= 1
        elif key == "END":
            found.append(event)
            event = None
        elif not depth:
            _read_property(name, event, key, value, number)
    if event is not None:
        raise ScheduleError(
            f"calendar {name}, line {event.line}: the event has no END:VEVENT", hint="is the file cut off?"
        )
    return found


def _unfolded(text: str) -> list[tuple[int, str]]:
    lines: list[tuple[int, str]] = []
    for number, line in enumerate(text.lstrip("\ufeff").replace("\r\n", "\n").replace("\r", "\n").split("\n"), 1):
        if line[:1] in (" ", "\t") and lines:
            lines[-1] = (lines[-1][0], lines[-1][1] + line[1:])
        elif line:
            lines.append((number, line))
    return lines


def _read_property(name: str, event: _Event, key: str, value: str, number: int) -> None:
    if key == "DTSTART":
        event.start = _date(name, value, number)
    elif key == "DTEND":
        event.end = _date(name, value, number) + (1 if _has_time(value) else 0)
    elif key == "DURATION":
        parts = _DURATION.fullmatch(value)
        if parts is None:
            raise ScheduleError(f"calendar {name}, line {number}: '{value}' is not a duration")
        event.length = max(1, 7 * int(parts[1] or 0) + int(parts[2] or 0))
    elif key == "RDATE":
        event.extra |= {_date(name, part, number) for part in value.split(",")}
    elif key == "EXDATE":
        event.except_ |= {_date(name, part, number) for part in value.split(",")}
    elif key == "STATUS":
        event.cancelled = value.upper() == "CANCELLED"
    elif key == "UID":
        event.uid = value
    elif key == "RECURRENCE-ID":
        event.instead_of = _date(name, value, number)
    elif key == "EXRULE":
        raise ScheduleError(f"calendar {name}, line {number}: the repetition '{value}' is not read")
    elif key == "RRULE":
        event.rule = dict(part.upper().split("=", 1) for part in value.split(";") if "=" in part)
        odd = set(event.rule) - _READ_RULES
        if event.rule.get("FREQ") != "YEARLY" or odd:
            raise ScheduleError(
                f"calendar {name}, line {number}: the repetition '{value}' is not read",
                hint="export the calendar with its dates written out",
            )


def _has_time(value: str) -> bool:
    return "T" in value and not value.rstrip("Z").endswith("T000000")


def _date(name: str, value: str, number: int) -> int:
    parts = _DATE.fullmatch(value.strip().split("/")[0])
    if parts is not None:
        year, month, day = map(int, parts.groups())
        if year >= 1 and 1 <= month <= 12 and 1 <= day <= days.MONTH_LENGTHS[days.is_leap(year)][month - 1]:
            return days.number(year, month, day)
    raise ScheduleError(f"calendar {name}, line {number}: '{value}' is not a date", hint="write 20261225")


def _dates(name: str, event: _Event) -> set[int]:
    if event.start is None:
        raise ScheduleError(f"calendar {name}, line {event.line}: the event has no DTSTART")
    length = event.length or max(1, (event.end or event.start + 1) - event.start)
    if length > _LONGEST_EVENT:
        raise ScheduleError(f"calendar {name}, line {event.line}: the event lasts for {length} days")
    firsts = {event.start} | event.extra
    if event.rule:
        firsts |= _yearly(name, event, event.start)
    return {first + more for first in firsts - event.except_ for more in range(length)}


def _yearly(name: str, event: _Event, start: int) -> set[int]:
    year, month, day = days.split(start)
    try:
        interval, count = int(event.rule.get("INTERVAL", "1")), int(event.rule.get("COUNT", "9999"))
        month, day = int(event.rule.get("BYMONTH", month)), int(event.rule.get("BYMONTHDAY", day))
    except ValueError:
        interval = count = 0  # refused below
    if interval < 1 or not 1 <= month <= 12 or not 1 <= day <= 31:
        raise ScheduleError(
            f"calendar {name}, line {event.line}: the repetition of the event is not read",
            hint="export the calendar with its dates written out",
        )
    until = _date(name, event.rule["UNTIL"], event.line) if "UNTIL" in event.rule else None
    found: set[int] = set()
    for each in range(year, _LAST_YEAR + 1, interval):
        if day > days.MONTH_LENGTHS[days.is_leap(each)][month - 1]:
            continue
        date = days.number(each, month, day)
        if date < start:
            continue
        if len(found) >= count or (until is not None and date > until):
            break
        found.add(date)
    return found
