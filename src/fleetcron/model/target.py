"""What a job runs: a Python function, a command, an HTTP call, or something published to a broker."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import Any, Final, TypeAlias


@dataclass(frozen=True, slots=True)
class PythonTarget:
    """`module:function`, importable by the worker."""

    function: str


@dataclass(frozen=True, slots=True)
class CommandTarget:
    """A program and its arguments. With `shell`, `argv` is one text for the shell."""

    argv: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict, hash=False)  # added to an empty environment
    cwd: str | None = None
    shell: bool = False


@dataclass(frozen=True, slots=True)
class HttpTarget:
    """A request. Without a `body` the payload is sent as JSON."""

    url: str
    method: str = "POST"
    headers: Mapping[str, str] = field(default_factory=dict, hash=False)
    body: str | None = None


@dataclass(frozen=True, slots=True)
class PublishTarget:
    """The payload, sent `to` a subject, queue or topic of a broker that the worker's settings name."""

    broker: str
    to: str
    headers: Mapping[str, str] = field(default_factory=dict, hash=False)


Target: TypeAlias = PythonTarget | CommandTarget | HttpTarget | PublishTarget

NO_PUBLISHER: Final = "no worker can publish to a broker yet: its runs wait until one can"


def handler_name(target: Target) -> str:
    """The label that a job has if nobody gives it one: S0-20 `job_type`."""
    match target:
        case PythonTarget(function):
            return _label(function)
        case CommandTarget(argv, shell=shell):
            words = argv[0].split() if shell else argv[:1]
            return _label(PurePath(words[0]).name) if words else "command"
        case HttpTarget():
            return "http"
        case PublishTarget():
            return "publish"


def handler_key(target: Target) -> str:
    """What a worker must know to run it."""
    match target:
        case PythonTarget(function):
            return f"python:{function}"
        case CommandTarget(shell=shell):  # a worker may refuse texts for the shell
            return "shell" if shell else "command"
        case HttpTarget():
            return "http"
        case PublishTarget(broker):
            return f"publish:{broker}"


def unserved(target: Target) -> str | None:
    """Why no worker can run it, whatever its settings: for whoever writes such a job, and for whoever waits for it."""
    return NO_PUBLISHER if isinstance(target, PublishTarget) else None


def _label(text: str) -> str:
    """One short line, whatever a program is called."""
    return "".join("?" if ord(char) < 32 or ord(char) == 127 else char for char in text[:200]) or "command"


def target_document(target: Target) -> dict[str, Any]:
    """As it stands under `run:`."""
    match target:
        case PythonTarget(function):
            return {"python": function}
        case CommandTarget(argv, env, cwd, shell):
            command: str | list[str] = argv[0] if shell else list(argv)
            return {"command": command, "env": dict(env), "cwd": cwd, "shell": shell}
        case HttpTarget(url, method, headers, body):
            return {"http": {"url": url, "method": method, "headers": dict(headers), "body": body}}
        case PublishTarget(broker, to, headers):
            return {"publish": {"broker": broker, "to": to, "headers": dict(headers)}}


def target_from(document: Mapping[str, Any]) -> Target:
    """What `target_document` wrote."""
    if "python" in document:
        return PythonTarget(document["python"])
    if "command" in document:
        command = document["command"]
        argv = (command,) if isinstance(command, str) else tuple(command)
        return CommandTarget(argv, document.get("env") or {}, document.get("cwd"), bool(document.get("shell")))
    if "http" in document:
        return HttpTarget(**document["http"])
    return PublishTarget(**document["publish"])
