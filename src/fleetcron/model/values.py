"""The values that a document is made of: names, texts, durations, instants, dates, zones, expressions.

Each is an annotated type: how it is checked, what is said about a mistake, and its JSON Schema.
"""

import re
from datetime import date, datetime
from typing import Annotated, Any

from pydantic import AfterValidator, Field, PlainValidator, WithJsonSchema

from fleetcron.errors import ScheduleError
from fleetcron.model.entry import ANY_SEED
from fleetcron.model.name import NAME
from fleetcron.model.payload import is_storable
from fleetcron.times.calendars import read_dates
from fleetcron.times.durations import duration_ms
from fleetcron.times.expression import parse
from fleetcron.times.instants import LAST_MS, parse_instant, to_ms
from fleetcron.times.zones import zone

_ZERO = re.compile(r"0+(\.0+)? *(ms|s|m|h|d|w)?")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_FUNCTION = re.compile(r"[A-Za-z_][A-Za-z0-9_.]*:[A-Za-z_][A-Za-z0-9_.]*")
_LONGEST_DATE = 10
_LONGEST_DURATION = 60
_SHORTEST_INTERVAL_MS = 1000
_HUGE = "a huge number"


def _clean(text: str) -> str:
    if not is_storable(text):
        raise ScheduleError("has a character that cannot be stored (NUL or half a surrogate pair)", hint="remove it")
    return text


def _line(text: str) -> str:
    if _CONTROL.search(text):
        raise ScheduleError("must be one line without control characters")
    return _clean(text)


def _no_text(value: object, wanted: str, hint: str) -> ScheduleError:
    return ScheduleError(f"must be {wanted}, not {kind_of(value)}", hint=hint)


def kind_of(value: object) -> str:
    """What somebody wrote, in the words of a document, and never long."""
    match value:
        case None:
            return "null"
        case bool():
            return str(value).lower()
        case int() | float():
            return repr(value) if isinstance(value, float) or value.bit_length() < 128 else _HUGE
        case str():
            return repr(value if len(value) <= 60 else f"{value[:59]}…")
        case dict():
            return "a mapping"
        case list() | tuple():
            return "a list"
    return f"a {type(value).__name__}"


def _duration(value: object) -> int:
    if not isinstance(value, str | int | float) or isinstance(value, bool):
        raise _no_text(value, "a duration", "write it as 30s, 15m, 1h, 7d or 1h30m")
    if kind_of(value) == _HUGE or (isinstance(value, str) and len(value) > _LONGEST_DURATION):
        raise ScheduleError(f"{kind_of(value)} is not a duration", hint="write it as 30s, 15m, 1h, 7d or 1h30m")
    try:
        return duration_ms(value, "")
    except ScheduleError as error:  # where it stands is said by the pointer
        raise ScheduleError(error.mistake.removeprefix(": "), hint=error.hint) from None


def _duration_or_zero(value: object) -> int:
    if isinstance(value, str) and _ZERO.fullmatch(value.strip()):
        return 0
    if isinstance(value, int | float) and not isinstance(value, bool) and value == 0:
        return 0
    return _duration(value)


def _interval(value: object) -> int:
    ms = _duration(value)
    if ms < _SHORTEST_INTERVAL_MS:
        raise ScheduleError(f"{kind_of(value)} is too short", hint="the shortest interval is 1s")
    return ms


def _instant(value: object) -> int:
    moment = _moment(value)
    if moment.tzinfo is None:
        raise ScheduleError(f"'{moment.isoformat()}' has no offset", hint=f"write {moment.isoformat()}Z for UTC")
    return to_ms(moment)


def _shadow(value: object) -> int | None:
    """Up to which instant the ticks belong to the old scheduler: true has no end yet."""
    if isinstance(value, bool):
        return LAST_MS if value else None
    try:
        return _instant(value)
    except ScheduleError as error:
        raise ScheduleError(error.mistake, hint="write true, false, or an instant: 2027-01-01T09:00:00Z") from None


def _moment(value: object) -> datetime:
    hint = "write it as 2027-01-01T09:00:00Z"
    if isinstance(value, str):
        text = value.strip()
        try:
            read = datetime.fromisoformat(text) if len(text) > _LONGEST_DATE else None
        except ValueError:
            read = None
        if read is None:
            raise ScheduleError(f"{kind_of(value)} is not an instant", hint=hint)
        value = read
    if not isinstance(value, datetime):  # a date is no instant: it begins at another one in each zone
        raise _no_text(value, "an instant", hint)
    return value if value.tzinfo is None else parse_instant(value.isoformat())


def _day(value: object) -> str:
    if isinstance(value, datetime) or not isinstance(value, str | date):
        raise _no_text(value, "a date", "write 2026-12-25, or 12-25 for every year, in quotes")
    text = value.isoformat() if isinstance(value, date) else value
    if len(text) > _LONGEST_DATE:
        raise ScheduleError(f"{kind_of(value)} is not a date", hint="write 2026-12-25, or 12-25 for every year")
    try:
        read_dates([text], "")
    except ScheduleError as error:
        raise ScheduleError(f"'{text}' is not a date", hint=error.hint) from None
    return text


def _cron(value: object) -> str:
    if not isinstance(value, str):
        raise _no_text(value, "a cron expression", "write it in quotes, such as '0 2 * * *'")
    return parse(value, ANY_SEED).text


def _zone(value: object) -> str:
    if not isinstance(value, str):
        raise _no_text(value, "an IANA zone", "such as America/New_York")
    return zone(value).name


def _weekday(value: object) -> str:
    known = ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT")
    if isinstance(value, str) and value.upper() in known:
        return value.upper()
    raise ScheduleError(f"{kind_of(value)} is not a weekday", hint=f"write {', '.join(known)}")


def _function(text: str) -> str:
    if not _FUNCTION.fullmatch(text):
        raise ScheduleError(
            f"{kind_of(text)} is not a function", hint="write module:function, such as shop.jobs:report"
        )
    return text


def _as_is(value: object) -> Any:
    return value


_DURATION = {"type": ["string", "number"], "description": "30s, 15m, 1h, 7d, 1h30m, or seconds", "examples": ["15m"]}
_INSTANT = {"type": "string", "format": "date-time"}

Name = Annotated[str, Field(pattern=NAME)]
Text = Annotated[str, Field(max_length=10_000), AfterValidator(_clean)]
Line = Annotated[str, Field(min_length=1, max_length=200), AfterValidator(_line)]
LongLine = Annotated[str, Field(min_length=1, max_length=2_000), AfterValidator(_line)]
Argument = Annotated[str, Field(max_length=100_000), AfterValidator(_clean)]
Function = Annotated[LongLine, AfterValidator(_function)]
Duration = Annotated[int, PlainValidator(_duration), WithJsonSchema(_DURATION)]
DurationOrZero = Annotated[int, PlainValidator(_duration_or_zero), WithJsonSchema(_DURATION)]
Interval = Annotated[int, PlainValidator(_interval), WithJsonSchema(_DURATION)]
Instant = Annotated[int, PlainValidator(_instant), WithJsonSchema(_INSTANT)]
Shadow = Annotated[int | None, PlainValidator(_shadow), WithJsonSchema({"anyOf": [{"type": "boolean"}, _INSTANT]})]
At = Annotated[datetime, PlainValidator(_moment), WithJsonSchema({"type": "string"})]
Day = Annotated[
    str,
    PlainValidator(_day),
    WithJsonSchema({"type": "string", "pattern": "^([0-9]{4}-)?[0-9]{2}-[0-9]{2}$"}),
]
CronText = Annotated[str, PlainValidator(_cron), WithJsonSchema({"type": "string", "maxLength": 256})]
ZoneName = Annotated[
    str, PlainValidator(_zone), WithJsonSchema({"type": "string", "description": "an IANA zone", "examples": ["UTC"]})
]
Weekday = Annotated[
    str,
    PlainValidator(_weekday),
    WithJsonSchema({"enum": ["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"]}),
]
Payload = Annotated[Any, PlainValidator(_as_is), WithJsonSchema({"type": "object"})]
Count = Annotated[int, Field(ge=1, le=1_000_000_000)]
Share = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
