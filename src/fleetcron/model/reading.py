"""Documents into definitions, with every mistake of every job at once.

A document is checked twice. First the shape: each field alone. What was wrong then gets a stand-in, so that the rules
between the fields (`checks.py`) can be asked about everything else: no mistake hides another. Pydantic is imported
here and below, and nowhere else: a command that reads no document does not wait for it.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from fleetcron.errors import DefinitionError, Mistake, ScheduleError
from fleetcron.model.calendar import CalendarDocument
from fleetcron.model.checks import Draft, calendar_problems, job_problems
from fleetcron.model.conversion import calendar_of, definition_of
from fleetcron.model.definition import Definition
from fleetcron.model.document import CalendarShape, FileShape, JobShape
from fleetcron.model.mistakes import Path, from_error, mistake, report, written_path
from fleetcron.model.payload import is_storable
from fleetcron.model.source import Place, place_of, places_of, read_yaml
from fleetcron.model.values import kind_of
from fleetcron.times import days
from fleetcron.times.ics import holidays_from_ics

__all__ = [
    "Documents",
    "Place",
    "json_schema",
    "place_of",
    "places_of",
    "read_calendar",
    "read_definitions",
    "read_job",
    "read_yaml",
    "report",
]

ReadIcs = Callable[[str], str]  # the text of an iCalendar file, by the name that the document gives it
S = TypeVar("S", bound=BaseModel)

_ROUNDS = 6
_DEPTH = 8  # of anything but a payload
_FIELDS = 20_000  # of one job or calendar, all levels together: whoever answers for more does nothing else meanwhile
_WORDED = 1_000  # mistakes; to look for what was meant costs a hundred times what it costs to count one
# What takes the place of a wrong value where a document cannot do without. No rule looks at it.
_STAND_INS: Final[Mapping[tuple[str, ...], object]] = {
    ("name",): "stand-in",
    ("schedule",): {"every": "1h"},
    ("schedule", "*"): {"every": "1h"},
    ("schedule", "*", "cron"): "0 0 * * *",
    ("schedule", "*", "every"): "1h",
    ("schedule", "*", "at"): "2000-01-01T00:00:00Z",
    ("calendars", "*"): {"name": "stand-in"},
    ("calendars", "*", "name"): "stand-in",
    ("depends_on", "*"): "stand-in",
    ("run",): {"python": "stand:in"},
    ("run", "python"): "stand:in",
    ("run", "command"): ["stand-in"],
    ("run", "http"): {"url": "http://stand-in"},
    ("run", "http", "url"): "http://stand-in",
    ("run", "publish"): {"broker": "stand-in", "to": "stand-in"},
    ("run", "publish", "broker"): "stand-in",
    ("run", "publish", "to"): "stand-in",
    ("windows", "*"): {"from": "2000-01-01T00:00:00Z", "to": "2000-01-02T00:00:00Z"},
    ("windows", "*", "from"): "2000-01-01T00:00:00Z",
    ("windows", "*", "to"): "2000-01-02T00:00:00Z",
    ("repeated", "*"): {"cron": "0 0 * * *", "for": "1h"},
    ("repeated", "*", "cron"): "0 0 * * *",
    ("repeated", "*", "for"): "1h",
    ("holidays", "*"): "01-01",
    ("weekdays", "*"): "MON",
}


@dataclass(frozen=True, slots=True)
class Documents:
    jobs: list[Definition] = field(default_factory=list)
    calendars: list[CalendarDocument] = field(default_factory=list)


def read_definitions(
    raw: object, *, known_calendars: Iterable[CalendarDocument] = (), ics: ReadIcs | None = None
) -> Documents:
    """The jobs and calendars of a document, or a DefinitionError with all mistakes.

    `known_calendars` are those that exist already; one that is in neither place is not looked at, and left to whoever
    has the database. `ics` gives the text of an iCalendar file that a calendar names.
    """
    reader = _Reader(known_calendars, ics)
    reader.file(raw)
    return reader.result()


def read_job(raw: object, *, known_calendars: Iterable[CalendarDocument] = ()) -> Definition:
    """One job: what the API gets."""
    reader = _Reader(known_calendars, None)
    reader.job(raw, "")
    return reader.result().jobs[0]


def read_calendar(raw: object, *, ics: ReadIcs | None = None) -> CalendarDocument:
    """One calendar: what the API gets."""
    reader = _Reader((), ics)
    reader.calendar(raw, "")
    return reader.result().calendars[0]


def json_schema() -> dict[str, Any]:
    """The JSON Schema of a document, with descriptions and defaults."""
    return FileShape.model_json_schema()


class _Reader:
    """What was found so far."""

    def __init__(self, known_calendars: Iterable[CalendarDocument], ics: ReadIcs | None) -> None:
        self._ics = ics
        self._mistakes: list[Mistake] = []
        self._jobs: list[Definition] = []
        self._calendars: list[CalendarDocument] = []
        self._known: dict[tuple[str, str], CalendarDocument | None] = {
            (calendar.tenant, calendar.name): calendar for calendar in known_calendars
        }
        self._names: dict[tuple[str, str, str], str] = {}  # kind, tenant, name: where it was first

    def result(self) -> Documents:
        if self._mistakes:
            raise DefinitionError(self._mistakes)
        return Documents(self._jobs, self._calendars)

    def file(self, raw: object) -> None:
        hint = "write jobs: […], calendars: […]"
        if not isinstance(raw, dict):
            shown = "is empty" if raw is None else f"must be a mapping, not {kind_of(raw)}"
            self._mistakes.append(Mistake("", f"the document {shown}", hint))
            return
        own, odd = _own_copy(raw, ("jobs", "calendars"))
        self._mistakes += [mistake("", raw, *each) for each in odd]
        for name in own:
            if name not in ("jobs", "calendars") and not name.startswith("x-"):
                self._mistakes.append(mistake("", own, (name,), f"unknown field {kind_of(name)}", hint))
        # calendars first: the jobs use them
        for name, read in (("calendars", self.calendar), ("jobs", self.job)):
            listed = raw.get(name, [])
            if not isinstance(listed, list):
                self._mistakes.append(
                    Mistake(f"/{name}", f"must be a list, not {kind_of(listed)}", "begin each with -")
                )
                continue
            for at, each in enumerate(listed):
                read(each, f"/{name}/{at}")

    def job(self, raw: object, base: str) -> None:
        before = len(self._mistakes)
        job, bad = self._shape(JobShape, raw, base)
        if job is None:
            return
        self._once("job", job, bad, base)
        self._mistakes += [mistake(base, raw, *each) for each in job_problems(Draft(job, bad, self._known))]
        if len(self._mistakes) == before:
            self._jobs.append(definition_of(job))

    def calendar(self, raw: object, base: str) -> None:
        before = len(self._mistakes)
        calendar, bad = self._shape(CalendarShape, raw, base)
        if calendar is None:
            return
        self._once("calendar", calendar, bad, base)
        self._mistakes += [mistake(base, raw, *each) for each in calendar_problems(calendar, bad)]
        dates = self._dates(calendar, base)
        if len(self._mistakes) > before:
            self._known[calendar.tenant, calendar.name] = None
            return
        made = calendar_of(calendar, dates)
        self._known[calendar.tenant, calendar.name] = made
        self._calendars.append(made)

    def _shape(self, shape: type[S], raw: object, base: str) -> tuple[S | None, frozenset[Path]]:
        if not isinstance(raw, dict):
            self._mistakes.append(Mistake(base, f"must be a mapping, not {kind_of(raw)}", "such as {name: …}"))
            return None, frozenset()
        try:
            own, odd = _own_copy(raw, ("payload",))
        except _TooMany:
            self._mistakes.append(Mistake(base, f"has more than {_FIELDS:,} fields", "most of them are unknown anyway"))
            return None, frozenset()
        self._mistakes += [mistake(base, raw, *each) for each in odd]
        made, bad, errors = _repaired(shape, own)
        self._mistakes += [from_error(base, raw, error, shape) for error in errors[:_WORDED]]
        self._mistakes += [mistake(base, raw, error["loc"], error["msg"]) for error in errors[_WORDED:]]
        return made, bad

    def _once(self, kind: str, named: JobShape | CalendarShape, bad: frozenset[Path], base: str) -> None:
        if ("name",) in bad or ("tenant",) in bad:
            return
        first = self._names.setdefault((kind, named.tenant, named.name), base)
        if first != base:
            text = f"{named.name} is the name of {first} too"
            self._mistakes.append(Mistake(f"{base}/name", text, f"names are unique within a tenant ({named.tenant})"))

    def _dates(self, calendar: CalendarShape, base: str) -> tuple[str, ...]:
        """The dates of the iCalendar file, which stand in the calendar from now on."""
        if calendar.ics is None:
            return ()
        if self._ics is None:
            text = "files are not read here"
            self._mistakes.append(Mistake(f"{base}/ics", text, "use fleetcron apply, or write the dates as holidays"))
            return ()
        try:
            found = holidays_from_ics(calendar.name, self._ics(calendar.ics))
        except ScheduleError as error:
            self._mistakes.append(Mistake(f"{base}/ics", error.mistake, error.hint))
            return ()
        except (OSError, UnicodeDecodeError) as error:
            self._mistakes.append(Mistake(f"{base}/ics", f"cannot be read: {error}", "the path begins at the document"))
            return ()
        return tuple("{:04}-{:02}-{:02}".format(*days.split(day)) for day in found.dates)


class _TooMany(Exception):
    """Fields."""


def _own_copy(raw: dict[Any, Any], left_alone: tuple[str, ...]) -> tuple[dict[str, Any], list[tuple[Path, str, str]]]:
    """A copy to repair, without keys that are no texts. What is `left_alone` is not copied."""
    odd: list[tuple[Path, str, str]] = []
    fields = 0

    def copied(value: object, path: Path) -> object:
        nonlocal fields
        if len(path) > _DEPTH:
            return value
        if isinstance(value, list):
            return [copied(each, (*path, at)) for at, each in enumerate(value)]
        if not isinstance(value, dict):
            return value
        found = {}
        fields += len(value)
        if fields > _FIELDS:
            raise _TooMany
        for key, each in value.items():
            if not isinstance(key, str):
                odd.append((path, f"the key {kind_of(key)} is not text", "quote it"))
            elif not is_storable(key):
                odd.append((path, f"the key {kind_of(key)} has a character that cannot be stored", "remove it"))
            else:
                found[key] = each if not path and key in left_alone else copied(each, (*path, key))
        return found

    whole = copied(raw, ())
    assert isinstance(whole, dict)
    return whole, odd


def _repaired(shape: type[S], own: dict[str, Any]) -> tuple[S | None, frozenset[Path], list[ErrorDetails]]:
    """The shape with stand-ins for what was wrong, the paths of that, and what was said about it."""
    first: list[ErrorDetails] = []
    bad: set[Path] = set()
    for _ in range(_ROUNDS):
        try:
            return shape.model_validate(own), frozenset(bad), first
        except ValidationError as error:
            errors = error.errors(include_url=False)
        first = first or errors
        for path in _paths(errors):
            _give_way(own, path, bad)
    return None, frozenset(bad), first


def _paths(errors: Iterable[ErrorDetails]) -> Iterator[Path]:
    for error in errors:
        yield tuple(part for part in error["loc"] if isinstance(part, int) or " " not in part)


def _give_way(own: dict[str, Any], path: Path, bad: set[Path]) -> None:
    """Take a wrong value out, or put a stand-in there; if that was tried before, the same for what is around it."""
    while path:
        written = written_path(own, path)
        inside = _at(own, written[:-1])
        stand_in = _STAND_INS.get(tuple("*" if isinstance(part, int) else part for part in path))
        if path in bad or not written or (stand_in is None and not isinstance(inside, dict)):
            path = path[:-1]
            continue
        bad.add(path)
        if stand_in is not None:
            inside[written[-1]] = stand_in
        else:
            inside.pop(written[-1], None)
        return


def _at(value: Any, path: Path) -> Any:
    for part in path:
        value = value[part]
    return value
