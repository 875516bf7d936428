"""Triggers of APScheduler 3 as schedules of ours.

Its fields must all match, also both day fields (`+` in ours), and its weekday 0 is Monday. A field is a list of
expressions; positions such as `3rd fri` stand in its field of days and in our field of weekdays, so that a list of both
kinds becomes several entries. What has no counterpart (years, weeks of the year, triggers that must agree) is said.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final

from fleetcron.imports.dialect import Read, Unreadable, cron_document, expression
from fleetcron.imports.pickles import Inert, moment, stand_in
from fleetcron.imports.plan import Document, Finding
from fleetcron.model.writing import instant_text
from fleetcron.times.durations import duration_text
from fleetcron.times.expression import FIVE, SIX
from fleetcron.times.instants import to_ms
from fleetcron.times.once import Once
from fleetcron.times.zones import zone

_RANGES: Final = {
    "month": (1, 12), "day": (1, 31), "day_of_week": (0, 6), "hour": (0, 23), "minute": (0, 59), "second": (0, 59),
}  # fmt: skip
_TIMELY: Final = ("second", "minute", "hour")
_ALL_WEEKDAYS: Final = 0b1111111


@dataclass(slots=True)
class When:
    """What a trigger says: entries, and the bounds and jitter that belong to the job."""

    entries: list[Document] = field(default_factory=list)
    starts_ms: int | None = None
    ends_ms: int | None = None
    jitter_s: int = 0
    findings: list[Finding] = field(default_factory=list)


def when_of(trigger: Any) -> When:
    if not isinstance(trigger, Inert):
        raise Unreadable(f"its trigger is a {type(trigger).__name__}")
    match trigger.kind:
        case "CronTrigger":
            return _cron(trigger.state)
        case "IntervalTrigger":
            return _interval(trigger.state)
        case "DateTrigger":
            at = _instant(trigger.state.get("run_date"), "run_date")
            return When([{"at": instant_text(at)}])
        case "OrTrigger":
            return _either(trigger.state)
    hint = "write it as a cron expression" if trigger.kind == "CalendarIntervalTrigger" else None
    raise Unreadable(f"a {trigger.kind or 'trigger'} has no counterpart", hint)


def _either(state: Mapping[str, Any]) -> When:
    """Each of the triggers: several entries of one job, if they share their bounds."""
    parts = []
    for given in _listed(state, "triggers"):
        if not isinstance(given, list | tuple) or len(given) != 2 or not isinstance(given[1], dict):
            raise Unreadable("an OrTrigger that cannot be read")
        reference, inner = given
        made = stand_in(str(reference).replace(":", "."))()
        made.state.update(inner)
        parts.append(when_of(made))
    if not parts:
        raise Unreadable("an OrTrigger without triggers")
    first = parts[0]
    if any((each.starts_ms, each.ends_ms) != (first.starts_ms, first.ends_ms) for each in parts):
        raise Unreadable("an OrTrigger whose triggers begin or end at different times", "make a job of each")
    whole = When(starts_ms=first.starts_ms, ends_ms=first.ends_ms, jitter_s=max(each.jitter_s for each in parts))
    for each in parts:
        whole.entries += each.entries
        whole.findings += each.findings
    whole.jitter_s = max(whole.jitter_s, _jitter(state, whole.findings))
    return whole


def _interval(state: Mapping[str, Any]) -> When:
    every, found = state.get("interval"), When()
    seconds = every.total_seconds() if isinstance(every, timedelta) else every
    if not isinstance(seconds, int | float) or seconds < 1:
        raise Unreadable(f"it runs every {seconds!r} s", "the shortest interval is 1s")
    start = state.get("start_date")
    entry: Document = {"every": duration_text(round(seconds * 1000))}
    if start is not None:
        found.starts_ms = _instant(start, "start_date")
        entry["anchor"] = instant_text(found.starts_ms)
    found.entries.append(entry)
    _bounds(state, found, starts=False)
    return found


def _cron(state: Mapping[str, Any]) -> When:
    found = When()
    fields = {}
    for each in _listed(state, "fields"):
        if isinstance(each, Inert):
            expressions = _listed(each.state, "expressions")
            if not all(isinstance(part, Inert) for part in expressions):
                raise Unreadable("a field that cannot be read")
            fields[str(each.state.get("name"))] = expressions
    for name in ("year", "week"):
        if not all(_is_any(each) for each in fields.get(name, ())):
            raise Unreadable(f"it is bound to some {name}s", "use starts_at and ends_at" if name == "year" else None)
    missing = [name for name in _RANGES if name not in fields]
    if missing:
        raise Unreadable(f"its trigger has no {', '.join(missing)}")
    timezone = _zone(state.get("timezone"))
    for text in _expressions(fields, found):
        found.entries.append(cron_document(text, timezone))
    if not found.entries:
        raise Unreadable("its day and its weekday never come together")
    _bounds(state, found, starts=True)
    return found


def _listed(state: Mapping[str, Any], name: str) -> Sequence[Any]:
    value = state.get(name) or ()
    if not isinstance(value, list | tuple):
        raise Unreadable(f"{name} of its trigger are not a list")
    return value


def _is_any(given: Any) -> bool:
    return isinstance(given, Inert) and given.kind == "AllExpression" and (given.state.get("step") or 1) == 1


def _expressions(fields: Mapping[str, Sequence[Any]], found: When) -> Iterable[str]:
    """One expression for the plain days, one for the positions (`3rd fri`), one for the last day."""
    times = {name: Read(_bits(name, fields[name]), star=False) for name in _TIMELY}
    month = Read(_bits("month", fields["month"]), star=False)
    weekday = _weekdays(_bits("day_of_week", fields["day_of_week"]))
    if weekday != _ALL_WEEKDAYS and any(not _is_any(each) for each in fields["day_of_week"]):
        found.findings.append(Finding("note", "its weekday 0 is Monday: the weekdays are written in cron's way here"))
    plain = [each for each in fields["day"] if each.kind in ("AllExpression", "RangeExpression")]
    places = [each for each in fields["day"] if each.kind == "WeekdayPositionExpression"]
    last = [each for each in fields["day"] if each.kind == "LastDayOfMonthExpression"]
    if len(plain) + len(places) + len(last) != len(fields["day"]):
        raise Unreadable("its days have an expression that is not known")

    def whole(day: int, week: int) -> str:
        six = [times["second"], times["minute"], times["hour"], Read(day, False), month, Read(week, False)]
        if six[0].bits == 1:
            six = six[1:]
        assert len(six) in (len(FIVE), len(SIX))
        return expression(six, both_days=True)

    if plain:
        text = whole(_bits("day", plain), weekday)
        if "+" in text:
            found.findings.append(Finding("note", f"'{text}': both day fields must match, as there; + says so"))
        yield text
    if last:
        yield _with_day(whole(2, weekday), "L", weekday)
    forms = [_position(each) for each in places if weekday >> ((_weekday_of(each) + 1) % 7) & 1]
    if forms:
        yield " ".join([*whole((1 << 32) - 2, _ALL_WEEKDAYS).split()[:-1], ",".join(forms)])


def _with_day(text: str, day: str, weekday: int) -> str:
    words = text.split()
    words[-3] = day
    if weekday != _ALL_WEEKDAYS and not words[-1].startswith("+"):
        words[-1] = f"+{words[-1]}"
    return " ".join(words)


def _weekday_of(given: Inert) -> int:
    value = given.state.get("weekday")
    if not isinstance(value, int) or not 0 <= value <= 6:
        raise Unreadable(f"weekday {value!r}")
    return value


def _position(given: Inert) -> str:
    number, weekday = given.state.get("option_num"), (_weekday_of(given) + 1) % 7
    if not isinstance(number, int) or not 0 <= number <= 5:
        raise Unreadable(f"position {number!r}")
    return f"{weekday}L" if number == 5 else f"{weekday}#{number + 1}"


def _bits(name: str, expressions: Iterable[Any]) -> int:
    """The values of a field, in its own numbers."""
    low, high = _RANGES[name]
    bits = 0
    for each in expressions:
        if not isinstance(each, Inert):
            raise Unreadable(f"{name}: not an expression")
        state = each.state
        step = state.get("step") or 1
        first, last = state.get("first", low), state.get("last")
        last = high if last is None else last
        if not all(isinstance(number, int) for number in (step, first, last)) or step < 1:
            raise Unreadable(f"{name}: an expression that is not known")
        if not low <= first <= last <= high:
            raise Unreadable(f"{name}: {first}-{last} is outside {low}-{high}")
        bits |= sum(1 << value for value in range(first, last + 1, step))
    if not bits:
        raise Unreadable(f"{name}: nothing matches")
    return bits


def _weekdays(bits: int) -> int:
    """Monday is 0 there, and 1 here."""
    return sum(1 << (day + 1) % 7 for day in range(7) if bits >> day & 1)


def _bounds(state: Mapping[str, Any], found: When, starts: bool) -> None:
    if starts and state.get("start_date") is not None:
        found.starts_ms = _instant(state["start_date"], "start_date")
    if state.get("end_date") is not None:
        found.ends_ms = _instant(state["end_date"], "end_date") + 1  # the end itself counts there
    found.jitter_s = _jitter(state, found.findings)


def _jitter(state: Mapping[str, Any], findings: list[Finding]) -> int:
    jitter = state.get("jitter") or 0
    if not isinstance(jitter, int | float) or jitter <= 0:
        return 0
    text = f"a jitter of {jitter} s goes both ways there; here a start is never early, and always the same for a job"
    findings.append(Finding("differs", text))
    return max(1, round(jitter))


def _instant(value: Any, name: str) -> int:
    """In ms. A zone of a pickle is a stand-in, and says only its name."""
    if isinstance(value, str):  # an export writes texts
        try:
            value = datetime.fromisoformat(value)
        except ValueError:
            raise Unreadable(f"{name} is {value!r}") from None
    if isinstance(value, Inert) and value.kind == "datetime":
        naive, where = value.given[0], value.given[1] if len(value.given) > 1 else None
        return _local_ms(naive, _zone(where), name)
    if not isinstance(value, datetime) or value.tzinfo is None:
        raise Unreadable(f"{name} has no offset")
    return to_ms(value)


def _local_ms(packed: Any, timezone: str, name: str) -> int:
    try:
        local = moment(packed)
    except (TypeError, ValueError):
        raise Unreadable(f"{name} cannot be read") from None
    return to_ms(Once(local.isoformat(), timezone, "shift", "second" if local.fold else "first").at)


def _zone(value: Any) -> str:
    """Its name: zoneinfo and pytz both give it as the first value."""
    if isinstance(value, str):
        return zone(value).name
    if isinstance(value, Inert):
        for given in (*value.given, *value.state.values()):
            if isinstance(given, str) and given:
                return zone(given).name
        if value.kind in ("_UTC", "UTC"):
            return "UTC"
    if value is None or str(value) == "UTC":
        return "UTC"
    raise Unreadable(f"the zone {value} has no name", "give the trigger a zone such as Europe/Berlin")
