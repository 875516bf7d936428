"""Other policies for jobs: `report.misfire=all`, `*.overlap=queue`, `acme/*.retry.max_attempts=1`."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from fleetcron.errors import DefinitionError, Mistake
from fleetcron.model.calendar import CalendarDocument
from fleetcron.model.definition import Definition
from fleetcron.model.reading import read_job, read_yaml
from fleetcron.simulate.durations import matches

_OWN: Final = ("name", "tenant", "derived")
_WITH_POLICY: Final = ("misfire", "overlap")  # fields whose one value is their policy
_KINDS: Final = ("cron", "every", "at")  # of schedules
_AT_WORK: Final = "only active jobs are simulated; with -f FILE all of the file are"
_HINT: Final = "write JOB.FIELD=VALUE, such as 'report.misfire=all', '*.overlap=queue' or '*.retry.max_attempts=1'"


def changed(
    definitions: Sequence[Definition],
    wishes: Iterable[str],
    calendars: Iterable[CalendarDocument] = (),
    idle: Mapping[str, str] | None = None,
) -> list[Definition]:
    """The definitions with all wishes in them, checked as documents are. A DefinitionError has all mistakes. `idle` are
    jobs that are not among them, and their states."""
    documents = [each.as_document() for each in definitions]
    mistakes: list[Mistake] = []
    touched: dict[int, list[str]] = {}
    for wish in wishes:
        try:
            for at in _apply(wish, documents, idle or {}):
                touched.setdefault(at, []).append(wish)
        except DefinitionError as error:
            mistakes += error.mistakes
    made = list(definitions)
    known = list(calendars)
    for at, mine in touched.items():
        try:
            made[at] = read_job(documents[at], known_calendars=known)
        except DefinitionError as error:
            who = f"--set {', '.join(mine)}: {definitions[at].seed}"
            mistakes += [Mistake(f"{who}: {each.pointer}", each.message, each.hint) for each in error.mistakes]
    if mistakes:
        raise DefinitionError(mistakes)
    return made


def nobody(pattern: str, idle: Mapping[str, str]) -> tuple[str, str | None]:
    """Why it fits no job that is simulated, and what to do about that."""
    for job, state in idle.items():
        if matches(pattern, job):
            return f"{job} is {state}, and left out", _AT_WORK
    return f"no job is called {pattern}", None


def _apply(wish: str, documents: Sequence[dict[str, Any]], idle: Mapping[str, str]) -> list[int]:
    """Where it was written."""
    left, equals, text = wish.partition("=")
    if not equals or "." not in left:
        _refuse(wish, "is not a change")
    value = read_yaml(text, f"--set {wish}") if text.strip() else None
    pattern, path = _split(wish, left.strip(), documents, idle)
    found = [at for at, document in enumerate(documents) if matches(pattern, _name(document))]
    for at in found:
        _write(documents[at], path, value)
    return found


def _split(wish: str, left: str, documents: Sequence[dict[str, Any]], idle: Mapping[str, str]) -> tuple[str, list[str]]:
    """Names have dots too: the first dot counts that has a job before and a field behind it."""
    parts = left.split(".")
    fields = [name for name in documents[0] if name not in _OWN] if documents else []
    splits = [(".".join(parts[:at]), parts[at:]) for at in range(1, len(parts))]
    known = [each for each in splits if each[1][0] in fields]
    for pattern, path in known:
        if any(matches(pattern, _name(document)) for document in documents):
            return pattern, path
    if known:
        why = [nobody(pattern, idle) for pattern, _ in known]
        _refuse(wish, *next((each for each in why if each[1]), why[0]))
    _refuse(wish, f"{parts[-1]} is not a field that can be changed; there are {', '.join(fields)}")
    raise AssertionError  # pragma: no cover


def _write(document: dict[str, Any], path: list[str], value: Any) -> None:
    *outer, last = path
    inner = document
    for part in outer:
        if part == "schedule" and inner is document:
            inner = _entry(document, last)
            continue
        if not isinstance(inner.get(part), dict):
            inner[part] = {}
        inner = inner[part]
    if last in _WITH_POLICY and not outer and not isinstance(value, dict):
        document[last] = {**document[last], "policy": value}
        if last == "overlap" and value != "allow":
            document[last]["max_running"] = None  # it belongs to allow alone
    else:
        inner[last] = value


def _entry(document: dict[str, Any], field: str) -> dict[str, Any]:
    """The entry of its schedule that is meant: its zone stays when its times are changed. Another kind of schedule is
    another entry."""
    said = document["schedule"]
    entries = [each for each in (said if isinstance(said, list) else [said]) if isinstance(each, dict)]
    if len(entries) > 1:
        who, why = f"{_name(document)}: schedule.{field}", f"its schedule has {len(entries)} entries: say all of them"
        raise DefinitionError([Mistake(who, why, "write JOB.schedule=[{cron: …}, {cron: …}]")])
    entry = entries[0] if entries and (field not in _KINDS or field in entries[0]) else {}
    if field in entry.get("derived", ()):  # somebody has chosen it now
        entry["derived"] = [each for each in entry["derived"] if each != field]
    document["schedule"] = [entry]
    return entry


def _name(document: dict[str, Any]) -> str:
    return f"{document['tenant']}/{document['name']}"


def _refuse(wish: str, why: str, hint: str | None = None) -> None:
    raise DefinitionError([Mistake(f"--set {wish}", why, hint or _HINT)])
