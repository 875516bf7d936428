"""Documents from files: all of them are read and checked before anything is done, and every mistake has its place."""

import os
import re
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import click

from fleetcron.errors import DefinitionError, Mistake
from fleetcron.model.calendar import CalendarDocument
from fleetcron.model.interpolation import interpolated
from fleetcron.model.reading import Documents, places_of, read_definitions, read_yaml

STDIN = "-"
_ENDINGS = (".yaml", ".yml", ".json")

files_option = click.option(
    "-f",
    "--file",
    "files",
    metavar="FILE",
    multiple=True,
    help="YAML or JSON, or a folder of such files; - is standard input. May be repeated.",
)


@dataclass(frozen=True, slots=True)
class Source:
    """A document: its name for people, its text, the values in it, and the folder that its paths begin at."""

    name: str
    text: str
    raw: object
    folder: Path


@dataclass(frozen=True, slots=True)
class Loaded:
    """What could be read of some files, and what is wrong with the others."""

    sources: Sequence[Source]
    mistakes: Sequence[Mistake]


def load(names: Sequence[str]) -> Loaded:
    sources: list[Source] = []
    mistakes: list[Mistake] = []
    for name in dict.fromkeys(file for each in names for file in _files(each, mistakes)):
        shown = "standard input" if name == STDIN else name
        try:
            text = _text(name)
            raw, wrong = interpolated(read_yaml(text, shown), os.environ)
            source = Source(shown, text, raw, Path() if name == STDIN else Path(name).parent)
            if wrong:  # what is not there cannot be checked
                mistakes += _placed(source, wrong)
            else:
                sources.append(source)
        except OSError as error:
            mistakes.append(Mistake(shown, f"cannot be read: {error.strerror}", "look at the name and the rights"))
        except UnicodeDecodeError:
            mistakes.append(Mistake(shown, "is not UTF-8", "save the file as UTF-8"))
        except DefinitionError as error:
            mistakes += [_unreadable(shown, each) for each in error.mistakes]
    return Loaded(sources, mistakes)


def read(loaded: Loaded, known_calendars: Iterable[CalendarDocument] = (), managed_by: str | None = None) -> Documents:
    """The jobs and calendars of all files together, or a DefinitionError with every mistake of every file.

    `managed_by` is the manager of jobs that name none.
    """
    known = [*known_calendars, *_calendars(loaded.sources)]
    whole = Documents()
    mistakes = list(loaded.mistakes)
    first: dict[tuple[str, str, str], str] = {}
    for source in loaded.sources:
        try:
            found = read_definitions(source.raw, known_calendars=known, ics=_ics(source.folder))
        except DefinitionError as error:
            mistakes += _placed(source, error.mistakes)
            continue
        mistakes += _placed(source, _repeated(source.name, found, first))
        mistakes += _placed(source, _managed_by_others(found, managed_by))
        whole.jobs.extend(replace(job, managed_by=job.managed_by or managed_by) for job in found.jobs)
        whole.calendars.extend(found.calendars)
    if mistakes:
        raise DefinitionError(mistakes)
    return whole


def _files(name: str, mistakes: list[Mistake]) -> list[str]:
    """The file, or those of a folder and of the folders in it, by name. What begins with a dot is left alone."""
    folder = Path(name)
    if name == STDIN or not folder.is_dir():
        return [name]
    inside = [path for path in sorted(folder.rglob("*")) if path.suffix in _ENDINGS and path.is_file()]
    found = [str(path) for path in inside if not any(part[0] == "." for part in path.relative_to(folder).parts)]
    if not found:
        mistakes.append(Mistake(name, "there is no file of jobs in this folder", "they end in .yaml, .yml or .json"))
    return found


def _managed_by_others(found: Documents, managed_by: str | None) -> list[Mistake]:
    return [
        Mistake(
            f"/jobs/{at}/managed_by",
            f"is {job.managed_by}, and --managed-by says {managed_by}",
            "leave it out, or apply the jobs of each manager by themselves",
        )
        for at, job in enumerate(found.jobs)
        if managed_by is not None and job.managed_by not in (None, managed_by)
    ]


def _text(name: str) -> str:
    if name == STDIN:
        return sys.stdin.buffer.read().decode("utf-8")
    return Path(name).read_text("utf-8")


def _unreadable(name: str, mistake: Mistake) -> Mistake:
    """`jobs.yaml, line 3, column 5: not YAML` as `jobs.yaml:3:5`: editors and terminals can follow that."""
    found = re.fullmatch(rf"{re.escape(name)}(?:, line (\d+), column (\d+))?: (.*)", mistake.message, re.DOTALL)
    if found is None:
        return Mistake(name, mistake.message, mistake.hint)
    place = f"{name}:{found[1]}:{found[2]}" if found[1] else name
    return Mistake(place, found[3], mistake.hint)


def _placed(source: Source, mistakes: Iterable[Mistake]) -> list[Mistake]:
    placed = []
    found = list(mistakes)
    if not found:
        return []  # to find places the text is read once more
    for mistake, place in zip(found, places_of(source.text, [each.pointer for each in found]), strict=True):
        where = source.name if place is None else f"{source.name}:{place.line}:{place.column}"
        pointer = f": {mistake.pointer}" if mistake.pointer else ""
        placed.append(Mistake(where + pointer, mistake.message, mistake.hint))
    return placed


def _repeated(name: str, found: Documents, first: dict[tuple[str, str, str], str]) -> list[Mistake]:
    """Names that another file has already; within one file the reader notices."""
    listed: list[tuple[str, str, str]] = [("calendars", each.tenant, each.name) for each in found.calendars]
    listed += [("jobs", each.tenant, each.name) for each in found.jobs]
    at = {"calendars": -1, "jobs": -1}
    mistakes = []
    for kind, tenant, own in listed:
        at[kind] += 1
        other = first.setdefault((kind, tenant, own), name)
        if other != name:
            text = f"{own} of tenant {tenant} is in {other} too"
            mistakes.append(Mistake(f"/{kind}/{at[kind]}/name", text, "keep one of them"))
    return mistakes


def _calendars(sources: Sequence[Source]) -> list[CalendarDocument]:
    """Those of all files: their order does not matter. Their mistakes are told when it is their turn."""
    found: list[CalendarDocument] = []
    for source in sources:
        raw: Any = source.raw
        if len(sources) > 1 and isinstance(raw, dict) and isinstance(raw.get("calendars"), list):
            try:
                found += read_definitions({"calendars": raw["calendars"]}, ics=_ics(source.folder)).calendars
            except DefinitionError:
                continue
    return found


def _ics(folder: Path) -> Any:
    return lambda name: (folder / name).read_text("utf-8")
