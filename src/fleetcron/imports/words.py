"""A command line into words, as /bin/sh would, for lines that need no shell. Every other line says why it needs one.

It splits exactly where a shell splits and takes quotes off exactly as a shell does; whatever a shell would replace,
redirect, connect or look up makes it give up. The tests compare it with the real shell.
"""

import re
from dataclasses import dataclass
from typing import Final

_BLANKS: Final = " \t"
_OPERATORS: Final = frozenset("|&;<>()\n")
_REPLACED: Final = {"$": "a variable", "`": "a command in backquotes"}
_PATTERNS: Final = {"*": "a pattern", "?": "a pattern", "[": "a pattern", "~": "a home folder"}
_IN_DOUBLE: Final = frozenset('$`"\\')  # what a backslash takes the meaning from between double quotes
_ASSIGNMENT: Final = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)=(.*)", re.DOTALL)
# words that a shell does not look up as a program, or whose program does something else
_OF_THE_SHELL: Final = frozenset((
    ".", ":", "[[", "alias", "bg", "break", "builtin", "case", "cd", "command", "continue", "declare", "do",
    "done", "echo", "elif", "else", "esac", "eval", "exec", "exit", "export", "false", "fc", "fg", "fi",
    "for", "function", "getopts", "hash", "if", "in", "jobs", "let", "local", "printf", "pushd", "popd",
    "read", "readonly", "return", "select", "set", "shift", "source", "test", "then", "time", "times", "trap",
    "true", "type", "typeset", "ulimit", "umask", "unalias", "unset", "until", "wait", "while", "{", "}", "!",
    "[",
))  # fmt: skip
_PROGRAMS_TOO: Final = frozenset(("echo", "printf", "test", "[", "true", "false", "time"))


class NeedsShell(ValueError):
    """Why a line is not only a program and its arguments."""


@dataclass(frozen=True, slots=True)
class Words:
    """A program with its arguments, and the assignments in front of it."""

    argv: tuple[str, ...]
    env: tuple[tuple[str, str], ...] = ()


def words(line: str) -> Words:
    """The words, or NeedsShell with the reason."""
    found = _Splitter(line).split()
    env = []
    while found and not found[0].quoted_name and (assigned := _ASSIGNMENT.fullmatch(found[0].text)):
        env.append((assigned[1], assigned[2]))
        found = found[1:]
    if not found:
        raise NeedsShell("it has no program")
    argv = tuple(word.text for word in found)
    if not argv[0]:
        raise NeedsShell("its program has no name")
    if argv[0] in _OF_THE_SHELL:
        _as_program(argv)
    return Words(argv, tuple(env))


def _as_program(argv: tuple[str, ...]) -> None:
    """`echo` and the like are programs too, which do the same unless backslashes come in."""
    if argv[0] not in _PROGRAMS_TOO or argv[0] == "time" or any("\\" in word for word in argv):
        raise NeedsShell(f"'{argv[0]}' is a word of the shell")


@dataclass(slots=True)
class _Word:
    text: str = ""
    quoted: bool = False
    quoted_name: bool = False  # a quote or backslash before its first =: then it is no assignment
    begun: bool = False

    def add(self, text: str, quoted: bool) -> None:
        self.begun = True
        if quoted:
            self.quoted = True
            self.quoted_name |= "=" not in self.text
        self.text += text


class _Splitter:
    def __init__(self, line: str) -> None:
        self._line = line
        self._at = 0

    def split(self) -> list[_Word]:
        found, word = [], _Word()
        while (char := self._next()) is not None:
            if char in _BLANKS:
                if word.begun:
                    found.append(word)
                    word = _Word()
            elif char == "#" and not word.begun:
                break  # a comment
            else:
                self._take(char, word)
        if word.begun:
            found.append(word)
        return found

    def _take(self, char: str, word: _Word) -> None:
        if char in _OPERATORS:
            raise NeedsShell(f"'{char}' connects or redirects" if char != "\n" else "it has several lines")
        if char == "[" and not word.begun and self._line[self._at : self._at + 1] in ("", " ", "\t"):
            word.add(char, quoted=False)  # the program, as in [ -x FILE ]
            return
        if char in _REPLACED or char in _PATTERNS:
            raise NeedsShell(f"'{char}' stands for {(_REPLACED | _PATTERNS)[char]}")
        if char in "{}" and not self._is_pair(word):
            raise NeedsShell(f"'{char}' groups")
        if char == "'":
            word.add(self._until("'"), quoted=True)
        elif char == '"':
            word.add(self._double(), quoted=True)
        elif char == "\\":
            escaped = self._next()
            if escaped is None or escaped == "\n":
                raise NeedsShell("it ends with a backslash")
            word.add(escaped, quoted=True)
        elif char == "{":
            self._next()
            word.add("{}", quoted=False)
        else:
            word.add(char, quoted=False)

    def _is_pair(self, word: _Word) -> bool:
        """`{}` of find and xargs, a word of its own, means itself in every shell."""
        rest = self._line[self._at - 1 :]
        return not word.begun and rest.startswith("{}") and rest[2:3] in ("", " ", "\t")

    def _double(self) -> str:
        text = ""
        while (char := self._next()) != '"':
            if char is None:
                raise NeedsShell("a quote is not closed")
            if char in _REPLACED:
                raise NeedsShell(f"'{char}' stands for {_REPLACED[char]}")
            if char == "\\":
                escaped = self._next()
                if escaped is None:
                    raise NeedsShell("a quote is not closed")
                text += escaped if escaped in _IN_DOUBLE else f"\\{escaped}"
                if escaped == "\n":
                    raise NeedsShell("it has several lines")
            else:
                text += char
        return text

    def _until(self, end: str) -> str:
        close = self._line.find(end, self._at)
        if close < 0:
            raise NeedsShell("a quote is not closed")
        text, self._at = self._line[self._at : close], close + 1
        return text

    def _next(self) -> str | None:
        if self._at >= len(self._line):
            return None
        self._at += 1
        return self._line[self._at - 1]
