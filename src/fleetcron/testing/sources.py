"""Where the jobs of a world come from: an app, definitions, or YAML as a text or in a file."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from fleetcron.app.application import Fleetcron
from fleetcron.errors import DefinitionError, Mistake
from fleetcron.model.calendar import CalendarDocument
from fleetcron.model.definition import Definition
from fleetcron.model.reading import read_definitions, read_yaml

Jobs: TypeAlias = "Fleetcron | Definition | Sequence[Definition] | str | Path"


class Source(NamedTuple):
    definitions: Sequence[Definition]
    calendars: Sequence[CalendarDocument]
    functions: dict[str, Callable[..., Any]]  # by tenant/name: of an app they are here already


def read(jobs: Jobs) -> Source:
    """A DefinitionError has every mistake."""
    if isinstance(jobs, Fleetcron):
        definitions = jobs.definitions()
        found = zip(jobs.declared, definitions, strict=True)
        return Source(definitions, (), {each.seed: declared.function for declared, each in found})
    if isinstance(jobs, Definition):
        return Source([jobs], (), {})
    if isinstance(jobs, str | Path):
        return _document(jobs)
    if isinstance(jobs, Sequence) and all(isinstance(each, Definition) for each in jobs):
        return Source([each for each in jobs if isinstance(each, Definition)], (), {})
    hint = "give a Fleetcron app, definitions, YAML or the path of a file"
    raise DefinitionError([Mistake("", f"jobs cannot be a {type(jobs).__name__}", hint)])


def _document(given: str | Path) -> Source:
    if isinstance(given, str) and not given.strip():
        raise DefinitionError([Mistake("", "the text is empty", "give YAML, or the path of a file")])
    path = _path(given)
    if path is None:
        name, text, folder = "the text", str(given), Path()
    else:
        try:
            name, text, folder = str(given), path.read_text("utf-8"), path.parent
        except IsADirectoryError:
            raise DefinitionError([Mistake(str(given), "is a folder", "name a file")]) from None
        except (OSError, UnicodeDecodeError) as error:
            raise DefinitionError([Mistake(str(given), f"cannot be read: {error}")]) from None
    found = read_definitions(read_yaml(text, name), ics=lambda file: (folder / file).read_text("utf-8"))
    return Source(found.jobs, found.calendars, {})


def _path(given: str | Path) -> Path | None:
    """A text with a line end, or with a colon and a space, is YAML; anything else names a file."""
    if isinstance(given, Path):
        return given
    return None if "\n" in given or ": " in given else Path(given)
