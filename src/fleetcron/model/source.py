"""YAML text into plain values: mappings, lists, texts, numbers, true, false and null, as JSON has them.

YAML 1.1 would read `on` as true, `10:30` as 630, `010` as 8 and a date as something that JSON does not have. Here only
`true` and `false` are booleans, only plain decimal numbers are numbers, keys are always texts, and everything else is
the text that was written. A key that is written twice is refused. JSON is YAML, so this reads both.

Nodes are put together here, one event at a time: the library's own composer calls itself for every level, in C, and a
text of a hundred thousand brackets ends the process.
"""

import re
from collections.abc import Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Final, NamedTuple, NoReturn

import yaml
from yaml import events

from fleetcron.errors import DefinitionError, Mistake

MAX_BYTES: Final = 16 * 1024 * 1024
MAX_DEPTH: Final = 64
MAX_VALUES: Final = 1_000_000  # what aliases may blow a document up to
_TAG: Final = "tag:yaml.org,2002:"
_LOADER: type[Any] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # ten times faster where libyaml is there
_PLAIN: Final = re.compile(
    r"(?P<null>|~|null|Null|NULL)"
    r"|(?P<bool>true|True|TRUE|false|False|FALSE)"
    r"|(?P<int>[-+]?(?:0|[1-9][0-9]*))"
    r"|(?P<float>[-+]?(?:(?:0|[1-9][0-9]*)(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]+)?"
    r"|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))"
    r"|(?P<merge><<)"
)


class Place(NamedTuple):
    """Line and column, from 1."""

    line: int
    column: int


@dataclass(slots=True)
class _Node:
    """A scalar has a text; a list its items; a mapping keys and values in turn."""

    place: Place
    tag: str
    text: str = ""
    inner: list["_Node"] = field(default_factory=list)
    size: int = 1  # values, with those that aliases bring
    height: int = 1  # levels, likewise

    def items(self) -> Iterator[tuple["_Node", "_Node"]]:
        return ((key, value) for at, (key, value) in enumerate(pairwise(self.inner)) if at % 2 == 0)


def read_yaml(text: str, source: str) -> object:
    """The values in a text, or a DefinitionError with line and column. `source` is what a mistake calls the text."""
    root = _Composer(source).composed(text)
    return None if root is None else _Values(source).of(root)


def place_of(text: str, pointer: str) -> Place | None:
    """Where a JSON pointer leads in a text that `read_yaml` has read: to the field, or to the nearest around it."""
    return places_of(text, [pointer])[0]


def places_of(text: str, pointers: Iterable[str]) -> list[Place | None]:
    """As `place_of`, for many pointers into one text."""
    root = _Composer("").composed(text)
    return [None if root is None else _place_of(root, pointer) for pointer in pointers]


def _place_of(node: _Node, pointer: str) -> Place:
    place = node.place
    for part in (each.replace("~1", "/").replace("~0", "~") for each in pointer.split("/")[1:]):
        found = _inner(node, part)
        if found is None:
            break
        place, node = found
    return place


def _inner(node: _Node, part: str) -> tuple[Place, _Node] | None:
    if node.tag == "map":
        return next(((key.place, value) for key, value in node.items() if key.text == part), None)
    if node.tag == "seq" and part.isdecimal() and int(part) < len(node.inner):
        return node.inner[int(part)].place, node.inner[int(part)]
    return None


class _Composer:
    """Events into nodes. What aliases make endless, too deep or too large is refused before anybody walks there."""

    def __init__(self, source: str) -> None:
        self._source = source
        self._root: _Node | None = None
        self._open: list[_Node] = []
        self._anchors: dict[str, _Node] = {}

    def composed(self, text: str) -> _Node | None:
        size = len(text.encode("utf-8", "surrogatepass"))
        if size > MAX_BYTES:
            refuse(self._source, None, f"{size:,} bytes, {MAX_BYTES:,} at most", "split it into several files")
        try:
            with closing(yaml.parse(text, Loader=_LOADER)) as parsed:
                for event in parsed:
                    self._take(event)
        except yaml.MarkedYAMLError as error:
            self._refuse_syntax(error)
        except (yaml.YAMLError, UnicodeEncodeError) as error:  # characters that YAML does not have
            refuse(self._source, None, f"not YAML: {' '.join(str(error).split())}", "save the file as UTF-8")
        return self._root

    def _refuse_syntax(self, error: yaml.MarkedYAMLError) -> NoReturn:
        began = _place(error.context_mark) if error.context_mark else None
        found = _place(error.problem_mark) if error.problem_mark else began
        since = f" that began in line {began.line}, column {began.column}" if began and began != found else ""
        context = f"{error.context}{since}, " if error.context else ""
        hint = "text that begins with * needs quotes" if "alias" in context else error.note
        refuse(self._source, found, f"not YAML: {context}{error.problem}", hint)

    def _take(self, event: Any) -> None:
        match event:
            case events.ScalarEvent():
                self._add(_Node(_place(event.start_mark), _tag_of(event), str(event.value)), event.anchor)
            case events.SequenceStartEvent() | events.MappingStartEvent():
                usual = "seq" if isinstance(event, events.SequenceStartEvent) else "map"
                tag = usual if event.tag in (None, "!") else _short(event.tag)
                self._enter(_Node(_place(event.start_mark), tag), event.anchor)
            case events.SequenceEndEvent() | events.MappingEndEvent():
                closed = self._open.pop()
                self._grow(closed)
            case events.AliasEvent():
                self._alias(event)
            case events.DocumentStartEvent() if self._root is not None:
                refuse(self._source, _place(event.start_mark), "a second document begins", "use one file for each")

    def _enter(self, node: _Node, anchor: str | None) -> None:
        self._add(node, anchor, grow=False)
        self._check_depth(node)
        self._open.append(node)

    def _alias(self, event: Any) -> None:
        node, place = self._anchors.get(event.anchor), _place(event.start_mark)
        if node is None:
            refuse(
                self._source, place, f"there is no anchor {event.anchor[:60]!r}", "text that begins with * needs quotes"
            )
        if any(node is each for each in self._open):
            refuse(self._source, place, "an alias contains itself", "write the value out")
        self._add(node, None)

    def _add(self, node: _Node, anchor: str | None, grow: bool = True) -> None:
        if anchor is not None:
            self._anchors[anchor] = node
        if self._open:
            self._open[-1].inner.append(node)
        else:
            self._root = node
        if grow:
            self._grow(node)

    def _grow(self, node: _Node) -> None:
        if not self._open:
            return
        self._check_depth(node)
        around = self._open[-1]
        around.height = max(around.height, node.height + 1)
        around.size += node.size
        if around.size > MAX_VALUES:
            refuse(
                self._source, around.place, f"more than {MAX_VALUES:,} values", "use fewer aliases, or several files"
            )

    def _check_depth(self, node: _Node) -> None:
        if len(self._open) + node.height > MAX_DEPTH:
            refuse(self._source, node.place, f"nested deeper than {MAX_DEPTH} levels", "make it flatter")


def _place(mark: Any) -> Place:
    return Place(mark.line + 1, mark.column + 1)


def _short(tag: str) -> str:
    return tag.removeprefix(_TAG) if tag.startswith(_TAG) else tag


def _tag_of(event: Any) -> str:
    if event.tag not in (None, "!"):
        return _short(event.tag)
    if not event.implicit[0]:
        return "str"  # in quotes
    plain = _PLAIN.fullmatch(event.value)
    return "str" if plain is None else str(plain.lastgroup)


class _Values:
    """The values of nodes, which are known to be neither endless nor too deep."""

    def __init__(self, source: str) -> None:
        self._source = source

    def of(self, node: _Node) -> Any:
        match node.tag:
            case "map":
                return self._mapping(node)
            case "seq":
                return [self.of(each) for each in node.inner]
            case "str" | "merge":
                return node.text
            case "null":
                return None
            case "bool" if node.text.lower() in ("true", "false"):
                return node.text.lower() == "true"
            case "int" | "float" as kind:
                return self._number(node, kind)
        tag = node.tag if node.tag.startswith("!") else f"!!{node.tag}"
        return refuse(
            self._source, node.place, f"{tag[:60]} is not read", "write plain texts, numbers, lists and mappings"
        )

    def _mapping(self, node: _Node) -> dict[str, Any]:
        found: dict[str, Any] = {}
        merged: dict[str, Any] = {}
        for key, value in node.items():
            if key.tag == "merge":
                merged = {**self._merged(value), **merged}
                continue
            if key.inner or key.tag in ("map", "seq"):
                refuse(self._source, key.place, "a key must be text", "a list or a mapping cannot be one")
            if key.text in found:
                refuse(self._source, key.place, f"the key {key.text[:60]!r} is written twice", "keep one of them")
            found[key.text] = self.of(value)
        return {**merged, **found} if merged else found

    def _merged(self, node: _Node) -> dict[str, Any]:
        """What `<<` brings: the mapping, or the mappings of a list, of which the first wins."""
        whole: dict[str, Any] = {}
        for each in reversed(node.inner) if node.tag == "seq" else [node]:
            if each.tag != "map":
                refuse(self._source, node.place, "<< needs a mapping", "write <<: *anchor")
            whole |= self._mapping(each)
        return whole

    def _number(self, node: _Node, kind: str) -> int | float:
        plain = node.text.lower().replace(".inf", "inf").replace(".nan", "nan")
        try:
            return int(plain) if kind == "int" else float(plain)
        except ValueError:
            refuse(self._source, node.place, f"{node.text[:60]!r} is not a number", "quote it, if it is meant as text")


def refuse(source: str, place: Place | None, text: str, hint: str | None) -> NoReturn:
    where = f"{source}: " if place is None else f"{source}, line {place.line}, column {place.column}: "
    raise DefinitionError([Mistake("", where + text, hint)])
