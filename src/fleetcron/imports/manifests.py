"""Manifests of Kubernetes: the CronJobs in a text of several documents, each with its line."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from fleetcron.model.source import places_of, read_yaml

_BETWEEN: Final = re.compile(r"^---(?=\s|$)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Manifest:
    """One object. `line` is where it begins."""

    line: int
    kind: str
    version: str
    body: Mapping[str, Any]


def read_manifests(text: str, source: str) -> Iterator[Manifest]:
    """All objects, those of lists too. A DefinitionError with line and column if it is not YAML."""
    for document in _documents(text):
        raw = read_yaml(document, source)
        if isinstance(raw, dict):
            yield from _objects(document, raw)


def _documents(text: str) -> Iterator[str]:
    """One document after the other, each behind as many empty lines as stand above it, so that lines keep their number.

    `---` in the first column is never part of a value: texts of several lines are indented.
    """
    starts = [0, *(found.start() for found in _BETWEEN.finditer(text))]
    for start, end in zip(starts, [*starts[1:], len(text)], strict=True):
        if text[start:end].strip():
            yield "\n" * text.count("\n", 0, start) + text[start:end]


def _objects(document: str, raw: Mapping[str, Any]) -> Iterator[Manifest]:
    kind, version = str(raw.get("kind", "")), str(raw.get("apiVersion", ""))
    if not kind.endswith("List") or not isinstance(raw.get("items"), list):
        place = places_of(document, [""])[0]
        yield Manifest(1 if place is None else place.line, kind, version, raw)
        return
    items = raw["items"]
    places = places_of(document, [f"/items/{at}" for at in range(len(items))])
    for item, place in zip(items, places, strict=True):
        if isinstance(item, dict):
            inner = str(item.get("kind") or kind.removesuffix("List"))
            yield Manifest(1 if place is None else place.line, inner, str(item.get("apiVersion") or version), item)
