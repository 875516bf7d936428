"""What a line of cron runs, as a command of ours: a program and its arguments if that is all, else a shell's text."""

import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from fleetcron.imports.crontab import parted
from fleetcron.imports.plan import Document, Finding
from fleetcron.imports.words import NeedsShell, Words, words

# What a job may not set (the same rule as for every job): these change what a program loads or runs.
_RESERVED: Final = re.compile(r"LD_.*|DYLD_.*|PYTHON.*|PATH|BASH_ENV|ENV|IFS|GIT_.*|FLEETCRON_.*")
_LINE_END: Final = re.compile(r"(?<!\\)%")  # in input every backslash in front of a % escapes it
_VARIABLE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
# `>/dev/null 2>&1` at the end keeps cron from sending mail. Nobody sends mail here, and output is worth keeping.
_SILENCED: Final = re.compile(r"(?<!\\)[ \t]+(?:(?:[12]?>>?|&>>?|>&|<)[ \t]*/dev/null|2>&1|1>&2|>&2)[ \t]*$")
_INSIDE: Final = re.compile(r"cd[ \t]+(?P<folder>[^&]*?)[ \t]*&&[ \t]*(?P<rest>.*)", re.DOTALL)
_OF_CRON: Final = frozenset(("SHELL", "PATH", "MAILTO", "MAILFROM", "CRON_TZ", "RANDOM_DELAY", "CONTENT_TYPE",
                             "CONTENT_TRANSFER_ENCODING", "CRON_WITHIN"))  # fmt: skip
_RELATIVE: Final = (
    re.compile(r"^(?:[A-Za-z_]\w*=\S*[ \t]+)*([\w.-]+/[^\s;&|)]*)"),  # the program: bin/report
    re.compile(r"[\s;&|(<>=](\.{1,2}/[^\s;&|)]+)"),  # ./report anywhere
    re.compile(r"[<>][ \t]*([\w.][^\s;&|)]*)"),  # >> report.log
)
_ELSEWHERE: Final = re.compile(r"cd[ \t]+['\"]?/")
_OF_USER: Final = re.compile(r"\$\{?(HOME|LOGNAME)\b|(?<![^\s=:])~(?=/|\s|$)")
_PLAIN_SHELLS: Final = frozenset(("/bin/sh", "sh", "/usr/bin/sh", "/bin/dash", "/usr/bin/dash"))


@dataclass(slots=True)
class Command:
    """`run:` of a job, and what is to be said about it."""

    run: Document
    findings: list[Finding] = field(default_factory=list)


def may_set(name: str) -> str | None:
    """Why a job may not set a variable of this name, or None."""
    if _VARIABLE.fullmatch(name) is None:
        return f"'{name}' is not the name of a variable: it is left out"
    return f"a job may not set {name}: it is the worker's" if _RESERVED.fullmatch(name) else None


def split_input(text: str) -> tuple[str, str | None]:
    r"""The command and its standard input: after the first `%`, further ones are line ends; `\%` is a percent sign. A
    line end is put behind the input if it has none, and nothing is still nothing."""
    first, rest = parted(text)
    if not rest:
        return first.replace("\\%", "%"), None
    given = _LINE_END.sub("\n", rest[1:]).replace("\\%", "%")
    return first.replace("\\%", "%"), given if not given or given.endswith("\n") else f"{given}\n"


def command(text: str, variables: Mapping[str, str]) -> Command:
    """The command of a line, with the variables that the crontab sets above it."""
    line, given = split_input(text)
    line = line.strip(" \t")
    made = Command({})
    env, cwd = _environment(variables, made)
    if given is not None:
        _with_input(made, line, given, variables)
    else:
        cwd = _without_input(made, line, cwd, env, variables)
    if env:
        made.run["env"] = env
    if cwd is not None:
        made.run["cwd"] = cwd
    _say_run_parts(made, line)
    _say_home(made, line, cwd, variables)
    return made


def _environment(variables: Mapping[str, str], made: Command) -> tuple[dict[str, str], str | None]:
    env: dict[str, str] = {}
    for name, value in variables.items():
        if name in _OF_CRON and name != "PATH":
            continue
        if (why := may_set(name)) is not None:
            made.findings.append(Finding("differs", why, f"start the worker with {name}={value}"))
        else:
            env[name] = value
            if "$" in value and name != "MAILTO":
                made.findings.append(
                    Finding("note", f"cron does not replace the $ in {name}={value}, and neither do we")
                )
    return env, variables.get("HOME") or None  # cron begins there


def _without_input(
    made: Command, line: str, cwd: str | None, env: dict[str, str], variables: Mapping[str, str]
) -> str | None:
    short, silenced = _unsilenced(line)
    folder, rest = _folder(short)
    try:
        found = words(rest)
        _check_assignments(found)
    except NeedsShell as why:
        _by_shell(made, line, str(why), variables)
        return cwd
    made.run["command"] = list(found.argv)
    env.update(found.env)
    if silenced:
        made.findings.append(
            Finding("note", f"'{silenced}' is left out: output is kept with the run, and nobody is sent mail")
        )
    return folder or cwd


def _check_assignments(found: Words) -> None:
    for name, _ in found.env:
        if may_set(name) is not None:
            raise NeedsShell(f"it sets {name}")


def _unsilenced(line: str) -> tuple[str, str]:
    short = line
    while found := _SILENCED.search(short):
        short = short[: found.start()]
    return short, line[len(short) :].strip()


def _folder(line: str) -> tuple[str | None, str]:
    """`cd /srv/shop && ./report` runs ./report in /srv/shop."""
    inside = _INSIDE.fullmatch(line)
    if inside is None:
        return None, line
    try:
        argv = words(f"x {inside['folder']}").argv[1:]
    except NeedsShell:
        return None, line
    return (argv[0], inside["rest"]) if len(argv) == 1 and argv[0].startswith("/") else (None, line)


def _with_input(made: Command, line: str, given: str, variables: Mapping[str, str]) -> None:
    lines = given.removesuffix("\n").split("\n")
    fed = f"printf '%s\\n' {' '.join(map(shlex.quote, lines))}" if given else ":"
    _by_shell(made, f"{fed} | {{\n{line}\n}}", "it has input after a %", variables)


def _by_shell(made: Command, text: str, why: str, variables: Mapping[str, str]) -> None:
    shell = variables.get("SHELL", "/bin/sh")
    made.run["command"] = text if shell in _PLAIN_SHELLS else f"exec {shlex.quote(shell)} -c {shlex.quote(text)}"
    made.run["shell"] = True
    made.findings.append(
        Finding("differs", f"it needs a shell: {why}", 'workers run it only with executor.shell = "allowed"')
    )


def _say_home(made: Command, line: str, cwd: str | None, variables: Mapping[str, str]) -> None:
    """Under cron a command begins in the home folder of its user; here in the folder of the worker."""
    hint = "set HOME=FOLDER above it, which is its cwd too; or write absolute paths"
    if cwd is None and (relative := _relative(line)) and _ELSEWHERE.match(line) is None:
        text = f"{relative} is looked for in the worker's folder; cron begins in the home folder of the user"
        made.findings.append(Finding("differs", text, hint))
    missing = {found[1] or "HOME" for found in _OF_USER.finditer(line)} - variables.keys()
    for name in sorted(missing):
        text = f"it uses {name}, which cron sets and a worker does not"
        made.findings.append(Finding("differs", text, f'{hint}; or executor.environment = ["{name}"]'))


def _relative(line: str) -> str | None:
    """A path without a / in front, unless it stands in quotes, where nobody knows what it is."""
    for pattern in _RELATIVE:
        for found in pattern.finditer(line):
            before = line[: found.start(1)]
            if before.count("'") % 2 == 0 and before.count('"') % 2 == 0:
                return found[1]
    return None


def _say_run_parts(made: Command, line: str) -> None:
    if re.search(r"\brun-parts\b", line) is None:
        return
    made.findings.append(
        Finding(
            "note",
            "run-parts runs all scripts of its folder, one after the other, as one run",
            "a job for each shows which failed",
        )
    )
    if "anacron" in line:
        made.findings.append(
            Finding("note", "where anacron is installed this line does nothing: anacron runs these scripts itself")
        )
