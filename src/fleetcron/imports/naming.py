"""Names for jobs that had none: from a comment, from a command, from what a file is called."""

import re
from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import Final

_LONGEST: Final = 60
_NOT_OURS: Final = re.compile(r"[^a-z0-9._-]+")
_OPERATOR: Final = re.compile(r"(\|\||&&|[;|&(){}<>\n])")
_SCRIPT: Final = re.compile(r"\.(sh|bash|py|pl|rb|php|js|ts|jar|exe|cron)$")
# what stands in front of the program that is meant
_WRAPPERS: Final = frozenset((
    "env", "nice", "ionice", "chrt", "timeout", "flock", "setsid", "nohup", "sudo", "su", "time", "exec",
    "command", "chronic", "cronic", "sh", "bash", "dash", "zsh", "ksh", "python", "python2", "python3",
    "perl", "ruby", "php", "node", "java", "run-one", "systemd-run", "unbuffer", "stdbuf", "if", "then",
    "else", "elif", "while", "do", "!", "eval", "source", ".",
))  # fmt: skip
# what they are given themselves: so many words, such as a lock file, and options with a word behind them
_OWN_WORDS: Final = {"flock": 1, "timeout": 1, "chrt": 1}
_OWN_OPTIONS: Final = {
    "flock": ("-w", "-E", "--timeout"), "timeout": ("-k", "-s"), "nice": ("-n",), "ionice": ("-c", "-n"),
    "env": ("-u", "-C"), "sudo": ("-u", "-g"), "stdbuf": ("-i", "-o", "-e"), "systemd-run": ("-p", "-u"),
}  # fmt: skip
_QUESTIONS: Final = frozenset(("test", "[", "[[", "cd", "sleep", "export", "umask", "ulimit", "true", "false", "set"))
_ASSIGNMENT: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=")


class Names:
    """Names that are taken; the second `backup` is `backup-2`."""

    def __init__(self) -> None:
        self._taken: set[str] = set()
        self._last: dict[str, int] = {}

    def take(self, wanted: str) -> str:
        base = slug(wanted) or "job"
        name, number = base, self._last.get(base, 1)
        while name in self._taken:
            number += 1
            name = f"{base}-{number}"
        self._last[base] = number
        self._taken.add(name)
        return name

    def keep(self, name: str) -> bool:
        """A name that others know already, exactly; False if it is taken."""
        free = name not in self._taken
        self._taken.add(name)
        return free


def slug(text: str) -> str:
    """`Nightly report (EU)` as `nightly-report-eu`; empty if nothing of it can stand in a name."""
    whole = _NOT_OURS.sub("-", text.lower()).lstrip("._-").rstrip("._-")
    return whole[:_LONGEST].rstrip("._-")


def from_comment(lines: tuple[str, ...]) -> str | None:
    """A comment of one short line right above is what people call it."""
    if len(lines) != 1:
        return None
    text = lines[0].strip(" #-=*\t")
    name = slug(text)
    return name if name and len(text) <= _LONGEST and len(text.split()) <= 6 else None


def from_command(text: str) -> str:
    """What a command line is about: the first program that is not there to start another or to ask a question."""
    asked = ""
    for part in _parts(text):
        wrapper = ""
        given = iter(part)
        own = 0  # words that the wrapper takes itself
        for word in given:
            name = _SCRIPT.sub("", PurePosixPath(word.strip("'\"")).name.lower())
            if word.startswith(("-", "$", "+", "%")) or _ASSIGNMENT.match(word):
                if word in _OWN_OPTIONS.get(wrapper, ()):
                    next(given, None)
                continue
            if own:
                own -= 1
                continue
            if name in _QUESTIONS:
                asked = asked or name
                break
            if name in _WRAPPERS:
                wrapper, own = name, _OWN_WORDS.get(name, 0)
                continue
            if name == "run-parts":
                return _folder(part) or name
            if slug(name) and not name.isdigit():
                return name
        asked = asked or wrapper  # /srv/nice is somebody's program after all
    return asked or "job"


def _parts(text: str) -> Iterator[list[str]]:
    """The simple commands of a line, roughly: it is only for a name."""
    skip = False
    for part in _OPERATOR.split(text):
        if _OPERATOR.fullmatch(part):
            skip = part in "<>"
        elif not skip:
            yield part.split()


def _folder(words: list[str]) -> str | None:
    return next((PurePosixPath(word).name for word in reversed(words) if "/" in word), None)
