"""The named statements: one text in sql/shared when both engines take it word for word, else one text per engine.

A file is one statement. (On SQLite, which has no writing CTEs, it may be several that run one after the other; the rows
are those of the last one.) Its first line is `-- what it is for`. Parameters are written `:name`; SQLite takes them as
they are, for PostgreSQL they become $1, $2, … in the order in which they first appear.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from types import MappingProxyType
from typing import Any, Final, TypeAlias

from fleetcron.errors import StoreError

ENGINES: Final = ("sqlite", "postgres")
# What a script may yield beside the names of files: a hint to whoever listens, and the text of a migration.
NOTIFY: Final = "notify"
DDL: Final = "ddl"
_CUT: Final = "\0"

_TOKEN = re.compile(
    r"""
      '(?:[^']|'')*'                             # a string
    | "(?:[^"]|"")*"                             # a quoted identifier
    | --[^\n]*                                   # comments
    | /\*.*?\*/
    | \$(?P<tag>\w*)\$.*?\$(?P=tag)\$            # a dollar-quoted string
    | ::                                         # a cast
    | :(?P<parameter>[A-Za-z_]\w*)
    | (?P<end>;)
    """,
    re.VERBOSE | re.DOTALL,
)
_COMMENT = re.compile(r"--[^\n]*|/\*.*?\*/", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Statement:
    name: str
    purpose: str
    sql: str
    parameters: tuple[str, ...]
    before: tuple[str, ...] = ()  # what SQLite runs first, in the same transaction
    names: frozenset[str] = field(init=False, repr=False, compare=False)  # of the parameters: every call is checked

    def __post_init__(self) -> None:
        object.__setattr__(self, "names", frozenset(self.parameters))

    def check(self, given: Mapping[str, Any]) -> None:
        """Refuse a call with other parameters than the text has; a database would take a surplus one silently."""
        if given.keys() == self.names:
            return
        missing = ", ".join(name for name in self.parameters if name not in given)
        surplus = ", ".join(name for name in given if name not in self.parameters)
        found = [f"without {missing}" if missing else "", f"with {surplus}, which it does not have" if surplus else ""]
        raise StoreError(f"the statement {self.name} was called {' and '.join(filter(None, found))}")


Texts: TypeAlias = Mapping[str, str]


class Statements(Mapping[str, Statement]):
    """The statements of one engine, by name."""

    def __init__(self, engine: str, statements: Mapping[str, Statement]) -> None:
        self.engine = engine
        self._statements = dict(statements)

    @staticmethod
    @cache
    def for_engine(engine: str) -> "Statements":
        folder = files("fleetcron.store") / "sql"
        return Statements(engine, read(engine, texts_in(folder / "shared"), texts_in(folder / engine)))

    def __getitem__(self, name: str) -> Statement:
        try:
            return self._statements[name]
        except KeyError:
            raise StoreError(f"there is no statement {name}.sql in sql/shared or sql/{self.engine}") from None

    def __contains__(self, name: object) -> bool:
        return name in self._statements

    def __iter__(self) -> Iterator[str]:
        return iter(self._statements)

    def __len__(self) -> int:
        return len(self._statements)


def texts_in(folder: Traversable) -> Texts:
    if not folder.is_dir():
        return MappingProxyType({})
    found = sorted((entry for entry in folder.iterdir() if entry.name.endswith(".sql")), key=lambda entry: entry.name)
    return {entry.name.removesuffix(".sql"): entry.read_text("utf-8") for entry in found}


def read(engine: str, shared: Texts, own: Texts) -> dict[str, Statement]:
    if both := sorted(shared.keys() & own.keys()):
        raise StoreError(f"in sql/shared and in sql/{engine}: {', '.join(both)}; keep one of the two")
    return {name: parse(engine, name, text) for name, text in {**shared, **own}.items()}


def lopsided() -> list[str]:
    """The names that one engine has and the other lacks: there a verb would fail. A test says that there are none."""
    sqlite, postgres = (set(Statements.for_engine(engine)) for engine in ENGINES)
    return sorted(sqlite ^ postgres)


def parse(engine: str, name: str, text: str) -> Statement:
    first, _, body = text.partition("\n")
    purpose = first.removeprefix("--").strip()
    if name in (NOTIFY, DDL):
        raise StoreError(f"{name}.sql: this name is reserved")
    if not first.startswith("-- ") or not purpose:
        raise StoreError(f"{name}.sql: the first line must say what the statement is for: `-- …`")
    parameters: list[str] = []

    def numbered(token: re.Match[str]) -> str:
        parameter = token["parameter"]
        if token["end"]:
            if not _COMMENT.sub("", body[token.end() :]).strip():
                return ""
            if engine == "sqlite":
                return _CUT
            raise StoreError(f"{name}.sql: one statement in a file")
        if parameter is None:
            return token[0]
        if parameter not in parameters:
            parameters.append(parameter)
        return f"${parameters.index(parameter) + 1}" if engine == "postgres" else token[0]

    *before, sql = (part.strip() for part in _TOKEN.sub(numbered, body).split(_CUT))
    if not sql or not all(before):
        raise StoreError(f"{name}.sql: there is no statement")
    return Statement(name, purpose, sql, tuple(parameters), tuple(before))
