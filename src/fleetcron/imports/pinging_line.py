"""A line of a crontab that pings already: the NAME that it pings, and the command without the ping. Pure.

An import is repeated, since a crontab changes while its jobs are in shadow. What `pinging.py` has written and what the
documentation shows is taken apart again; every other way to ping is said, and left to whoever wrote it.
"""

import re
import shlex
from dataclasses import dataclass
from typing import Final

from fleetcron.imports.crontab import parted
from fleetcron.imports.dialect import Unreadable
from fleetcron.imports.words import NeedsShell, words

_PROGRAM: Final = re.compile(
    r"""(?<![^\s;&|('"])
    (?: (?:[^\s'";&|()]*/)?fleetcron
      | '[^']*/fleetcron'
      | (?:[^\s'";&|()]*python[0-9.]*|'[^']*/python[0-9.]*')[ \t]+-m[ \t]+fleetcron
    )[ \t]+ping(?=[ \t])""",
    re.VERBOSE,
)
_SETTINGS: Final = re.compile(r"(?:(?<![^\s;&|(])(?:FLEETCRON_\w+|DATABASE_URL)=\S*[ \t]+)+$")  # those of the ping
_COMMAND: Final = re.compile(r"[ \t]--[ \t]+")
_SHELL: Final = re.compile(r"""(?:"\$SHELL"|\$SHELL)[ \t]+-c[ \t]+""")
_CONNECTED: Final = re.compile(r"(?P<head>.*[^;&|\s])[ \t]*(?:;|&&)", re.DOTALL)
_REDIRECTED: Final = re.compile(r"(?:[ \t]+(?:[12]?>>?[ \t]*[^\s&>]+|2>&1))+$")
_ENDED: Final = re.compile(r'"\$\?"|\$\?')
FLAGS: Final = frozenset(("--start", "--quiet", "-q"))  # every other option of ping has a value


@dataclass(frozen=True, slots=True)
class PingingLine:
    """`name` as it is written, such as `acme/report`; `command` as it would stand in the crontab without a ping."""

    name: str
    command: str
    ends: bool = False  # by itself, with --until


def read_pinging(text: str, shell: str) -> PingingLine | None:
    """None: it does not ping. Unreadable: it does, in a way that cannot be taken apart."""
    raw, fed = parted(text)
    line = raw.replace("\\%", "%").strip(" \t")
    pings = list(_PROGRAM.finditer(line))
    if not pings:
        return None
    try:
        if len(pings) > 1:
            raise NeedsShell("it pings more than once")
        before = _SETTINGS.sub("", line[: pings[0].start()])
        _check_quotes(before)
        found = _taken_apart(before, line[pings[0].end() :], shell)
    except NeedsShell as why:
        hint = "write it as fleetcron ping NAME -- COMMAND, or take the ping out"
        raise Unreadable(f"it pings already, in a way that the import does not know: {why}", hint) from None
    return PingingLine(found.name, found.command.replace("%", "\\%") + fed, found.ends)


def _taken_apart(before: str, after: str, shell: str) -> PingingLine:
    dashes = _COMMAND.search(after)
    if dashes is not None:  # in front: fleetcron ping NAME -- COMMAND
        name, options = _name(after[: dashes.start()])
        return PingingLine(name, _inner(before, after[dashes.end() :], shell), "--until" in options)
    connected = _CONNECTED.fullmatch(before.rstrip(" \t"))  # behind: COMMAND; fleetcron ping NAME --exit-code $?
    if connected is None:
        raise NeedsShell("there is no command with the ping")
    name, options = _name(_ENDED.sub("0", _REDIRECTED.sub("", after)))
    if "--start" in options:
        raise NeedsShell("the ping of a start is behind the command")
    return PingingLine(name, connected["head"])


def _inner(before: str, rest: str, shell: str) -> str:
    """The text that was handed to the shell, if that was all; else the same words without the ping."""
    handed = _SHELL.match(rest)
    if handed is None:
        return before + rest
    text = rest[handed.end() :]
    try:
        argv = words(f"x {text}").argv[1:]
    except NeedsShell:
        argv = ()
    return argv[0] if len(argv) == 1 and not before else f"{before}{shlex.quote(shell)} -c {text}"


def _name(text: str) -> tuple[str, set[str]]:
    """The only word that is no option, and the names of the options."""
    names, options = [], set()
    given = iter(words(f"x {text}").argv[1:])
    for word in given:
        if not word.startswith("-"):
            names.append(word)
            continue
        option, equals, _ = word.partition("=")
        options.add(option)
        if option not in FLAGS and not equals:
            next(given, None)
    if len(names) != 1:
        raise NeedsShell("the name of the job is not to be found")
    return names[0], options


def _check_quotes(text: str) -> None:
    try:
        shlex.split(text)
    except ValueError:
        raise NeedsShell("the ping is in quotes") from None
