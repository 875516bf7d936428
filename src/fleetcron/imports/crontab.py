"""A crontab as text: variables, entries, and the comments above them, with their line numbers.

`variables` of an entry are those that the file sets above it: cron reads from top to bottom.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

MACROS: Final = frozenset(("@reboot", "@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly"))
_SETTING: Final = re.compile(
    r"""[ \t]*(?:"(?P<double>[^"]*)"|'(?P<single>[^']*)'|(?P<plain>[^\s="'#][^\s=]*))[ \t]*=(?P<value>.*)"""
)
_FIELDS: Final = re.compile(r"(?P<when>@\S+|\S+[ \t]+\S+[ \t]+\S+[ \t]+\S+[ \t]+\S+)[ \t]+(?P<rest>.*)", re.DOTALL)
# up to the first % that no backslash escapes; a backslash that is itself escaped escapes nothing
_COMMAND: Final = re.compile(r"(?:[^%\\]|\\.|\\$)*", re.DOTALL)
_USER: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.@\\-]*\$?")
_DISABLED: Final = re.compile(
    r"[#\s]*(?:@(?:reboot|yearly|annually|monthly|weekly|daily|midnight|hourly)|[\d*/,~-]+([ \t]+[\w*/,~-]+){4})"
    r"[ \t]+\S"
)


@dataclass(frozen=True, slots=True)
class Entry:
    """A line that runs something. `user` only in the system form."""

    line: int
    when: str
    command: str
    user: str | None = None
    variables: Mapping[str, str] = field(default_factory=dict)
    comment: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Trouble:
    line: int
    text: str
    hint: str | None = None


@dataclass(slots=True)
class Crontab:
    entries: list[Entry] = field(default_factory=list)
    troubles: list[Trouble] = field(default_factory=list)  # lines that are neither
    dos: bool = False  # some lines end with CR LF
    unfinished: int | None = None  # the last line, if it has no line end: cron ignores it
    disabled: list[int] = field(default_factory=list)  # entries that are commented out


def read_crontab(text: str, system: bool) -> Crontab:
    """The lines of a crontab. `system`: the sixth field is a user, as in /etc/crontab and /etc/cron.d."""
    found = Crontab()
    variables: dict[str, str] = {}
    comment: tuple[str, ...] = ()
    lines = text.split("\n")
    for number, line in enumerate(lines, 1):
        stripped = line.strip(" \t\r")
        found.dos |= bool(stripped) and line.endswith("\r")
        if stripped.startswith("#"):
            comment = (*comment, stripped.lstrip("#").strip())
            if _DISABLED.match(stripped):
                found.disabled.append(number)
                comment = ()
            continue
        if stripped and (setting := _SETTING.fullmatch(line.rstrip("\r"))):
            name = setting["double"] or setting["single"] or setting["plain"] or ""
            variables[name] = _unquoted(setting["value"])
        elif stripped:
            # blanks at the end are nothing to a command, and belong to its input
            whole = line.lstrip(" \t").rstrip("\r") if parted(stripped)[1] else stripped
            read = _entry(number, whole, system, dict(variables), comment)
            if isinstance(read, Entry):
                found.entries.append(read)
            else:
                found.troubles.append(read)
        comment = ()
    if lines[-1].strip():
        found.unfinished = len(lines)
    return found


def parted(text: str) -> tuple[str, str]:
    """A command and its input, both as they are written; the input begins with its %, or is empty."""
    command = _COMMAND.match(text)
    end = 0 if command is None else command.end()
    return text[:end], text[end:]


def _entry(
    number: int, line: str, system: bool, variables: Mapping[str, str], comment: tuple[str, ...]
) -> Entry | Trouble:
    parts = _FIELDS.fullmatch(line)
    if parts is None:
        return Trouble(
            number, "this is neither a setting nor an entry", "five fields, or @daily and the like, and a command"
        )
    if not system:
        return Entry(number, parts["when"], parts["rest"], None, variables, comment)
    user, _, command = parts["rest"].replace("\t", " ", 1).partition(" ")
    if _USER.fullmatch(user) is None:
        hint = "is this the user form? then leave out --system, or say --user-form"
        return Trouble(number, f"'{user}' is no user name", hint)
    if not command.strip():
        return Trouble(number, "there is no command after the user", "is this a user's crontab? then add --user-form")
    return Entry(number, parts["when"], command.lstrip(" \t"), user, variables, comment)


def _unquoted(value: str) -> str:
    text = value.strip(" \t")
    if len(text) >= 2 and text[0] in "\"'" and text[-1] == text[0]:
        return text[1:-1]
    return text
