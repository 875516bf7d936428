"""What was written above functions becomes definitions, by the same model that reads YAML and the API's JSON.

A mistake names the function and the argument as they stand in the code: `shop.jobs:report: retry.backoff[1]`.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta
from typing import Any, Final

from fleetcron.app.application import Declared
from fleetcron.app.importable import NotImportable, import_name, shown_name
from fleetcron.app.payloads import kind_of, misfits, plain
from fleetcron.errors import DefinitionError, Mistake
from fleetcron.executors.handlers import Handlers, UnknownHandler
from fleetcron.executors.payload_types import PayloadType, Unresolvable
from fleetcron.model.definition import Definition
from fleetcron.model.reading import read_definitions

# of one entry; they may stand beside the fields of the job, which has mostly one
ENTRY: Final = ("cron", "every", "at", "timezone", "anchor", "dst_gap", "dst_fold", "month_end")
_GIVEN: Final = {
    "run": ("is the function itself", "leave it out"),
    "managed_by": ("is the app", "leave it out, and name the app: Fleetcron(name=…)"),
    "derived": ("is not for people", "leave it out"),
}
NEVER: Final = "2999-12-31T00:00:00Z"  # the schedule of a job that only runs when somebody asks for it
_UNIMPORTABLE: Final = "stand:in"
_POINTER: Final = re.compile(r"/jobs/(\d+)(/.*)?", re.DOTALL)
_ANOTHER: Final = re.compile(r"/jobs/(\d+)(?= too)")


def define(declared: Sequence[Declared], managed_by: str) -> list[Definition]:
    found: list[tuple[int, Mistake]] = []  # by function
    names: list[str] = []
    documents: list[dict[str, Any]] = []
    for at, each in enumerate(declared):
        name, wrong = _name_of(each)
        names.append(name)
        kind, unknown = (None, []) if wrong else _payload_type(each, name)
        documents.append(_document(each, _UNIMPORTABLE if wrong else name, managed_by, kind))
        found += [(at, mistake) for mistake in wrong]
        found += [(at, Mistake(name, *words)) for words in _misplaced(each.fields)]
        found += [(at, mistake) for mistake in (*unknown, *_misfits(each, documents[-1], name, kind))]
    found += _doubled(declared, names)
    made: list[Definition] = []
    try:
        made = read_definitions({"jobs": documents}).jobs
    except DefinitionError as error:
        found += [_in_code(mistake, documents, names) for mistake in error.mistakes]
    if found:
        raise DefinitionError([mistake for _, mistake in sorted(found, key=lambda each: each[0])])
    return made


def _name_of(declared: Declared) -> tuple[str, list[Mistake]]:
    """`shop.jobs:report`, and what is wrong with it as a handler."""
    try:
        name = import_name(declared.function)
    except NotImportable as error:
        name = shown_name(declared.function)
        return name, [Mistake(name, error.reason, error.hint)]
    try:
        Handlers(()).add("the function", declared.function)
    except UnknownHandler as error:
        return name, [Mistake(name, str(error))]
    return name, []


def _payload_type(declared: Declared, name: str) -> tuple[PayloadType | None, list[Mistake]]:
    try:
        return kind_of(declared.function), []
    except Unresolvable as error:
        hint = "import it outside of `if TYPE_CHECKING:`, or leave the annotation out"
        return None, [Mistake(f"{name}: payload", str(error), hint)]


def _misfits(declared: Declared, document: Mapping[str, Any], name: str, kind: PayloadType | None) -> Iterable[Mistake]:
    """The job's own payload; whoever asks for a run on demand brings one."""
    payload = document.get("payload", {})
    if kind is None or (declared.fields.get("on_demand") and "payload" not in document):
        return
    for wrong in misfits(payload, kind, str(document["name"]), str(document.get("tenant", ""))):
        yield Mistake(f"{name}: payload{_dotted(wrong.pointer)}", wrong.message, f"{kind.name} says what it takes")


def _misplaced(fields: Mapping[str, Any]) -> Iterable[tuple[str, str]]:
    for field, (text, hint) in _GIVEN.items():
        if field in fields:
            yield f"{field} {text}", hint
    beside = [field for field in ENTRY if fields.get(field) is not None]
    if fields.get("on_demand") and (beside or fields.get("schedule") is not None):
        yield "runs on demand, and has a schedule too", "leave one of the two out; a scheduled job can be asked for too"
    if fields.get("schedule") is not None and beside:
        yield f"has a schedule, and {', '.join(beside)} beside it", "write them into the entries of the schedule"


def _document(declared: Declared, target: str, managed_by: str, kind: PayloadType | None) -> dict[str, Any]:
    said = {field: value for field, value in declared.fields.items() if value is not None and field not in _GIVEN}
    on_demand = said.pop("on_demand", False)
    document = {
        field: plain(value, kind) if field == "payload" else _plain(value)
        for field, value in said.items()
        if field not in ENTRY
    }
    if "schedule" not in document and (entry := {field: _plain(said[field]) for field in ENTRY if field in said}):
        document["schedule"] = entry
    if on_demand:
        document.setdefault("schedule", {"at": NEVER})
    return {"name": declared.name, **document, "run": {"python": target}, "managed_by": managed_by}


def _plain(value: object) -> object:
    """What Python has beside the values of a document."""
    match value:
        case timedelta():
            seconds = value.total_seconds()
            return int(seconds) if seconds.is_integer() else seconds
        case Mapping():
            return {key: _plain(each) for key, each in value.items()}
        case list() | tuple():
            return [_plain(each) for each in value]
    return value


def _doubled(declared: Sequence[Declared], names: Sequence[str]) -> list[tuple[int, Mistake]]:
    """Two functions of one name in a module: a worker would find the second for both."""
    first: dict[str, Declared] = {}
    text = "there are two functions of this name, and a worker would call the second for both"
    return [
        (at, Mistake(name, text, "rename one of them"))
        for at, (each, name) in enumerate(zip(declared, names, strict=True))
        if first.setdefault(name, each).function is not each.function and "<" not in name
    ]


def _in_code(mistake: Mistake, documents: Sequence[Mapping[str, Any]], names: Sequence[str]) -> tuple[int, Mistake]:
    """The same mistake, placed as the code is written and not as the document."""
    found = _POINTER.fullmatch(mistake.pointer)
    assert found is not None, mistake.pointer
    at, pointer = int(found[1]), found[2] or ""
    parts = pointer.split("/")[1:]
    is_beside = isinstance(documents[at].get("schedule"), dict) and parts[:1] == ["schedule"] and parts[1:]
    shown = _dotted("".join(f"/{part}" for part in (parts[1:] if is_beside else parts)))
    message = _ANOTHER.sub(lambda other: names[int(other[1])], mistake.message)
    place = f"{names[at]}: {shown.removeprefix('.')}" if shown else names[at]
    return at, Mistake(place, message, mistake.hint)


def _dotted(pointer: str) -> str:
    """`/retry/backoff/1` is `.retry.backoff[1]`."""
    parts = [part.replace("~1", "/").replace("~0", "~") for part in pointer.split("/")[1:]]
    return "".join(f"[{part}]" if part.isdigit() else f".{part}" for part in parts)
