"""The container of a pod as a command of ours. A worker is no container: what the image brings has to be there."""

import re
from collections.abc import Mapping
from typing import Any, Final

from fleetcron.imports.commands import may_set
from fleetcron.imports.dialect import Unreadable
from fleetcron.imports.plan import Document, Finding

_REFERENCE: Final = re.compile(r"\$(?:\$|\((?P<name>[A-Za-z_.-][A-Za-z0-9_.-]*)\))")
_FROM: Final[Mapping[str, str]] = {
    "secretKeyRef": "a secret",
    "configMapKeyRef": "a config map",
    "fieldRef": "a field of the pod",
    "resourceFieldRef": "a limit of the pod",
}
# what is only about pods and nodes
_OF_THE_POD: Final = ("resources", "volumeMounts", "securityContext", "livenessProbe", "readinessProbe", "startupProbe",
                      "lifecycle", "ports", "envFrom")  # fmt: skip
_QUIET: Final = frozenset(("name", "image", "imagePullPolicy", "command", "args", "env", "workingDir", "tty", "stdin",
                           "terminationMessagePath", "terminationMessagePolicy"))  # fmt: skip


def run_of(pod: Mapping[str, Any], findings: list[Finding]) -> Document:
    """`run:` of a job, or Unreadable with the reason why there is none."""
    given = pod.get("containers")
    containers = [each for each in given if isinstance(each, dict)] if isinstance(given, list) else []
    if len(containers) != 1:
        raise Unreadable(f"its pod has {len(containers)} containers, and a job runs one command")
    container = containers[0]
    argv = [*_listed(container, "command"), *_listed(container, "args")]
    if not container.get("command"):
        raise Unreadable(
            f"its command is inside the image {container.get('image', '')}", "write command: into the manifest first"
        )
    findings.append(
        Finding("differs", f"the image {container.get('image', '')} is not used", "workers need the program themselves")
    )
    env = _environment(container, findings)
    run: Document = {"command": [_replaced(word, env, findings) for word in argv]}
    if env:
        run["env"] = env
    if container.get("workingDir"):
        run["cwd"] = str(container["workingDir"])
    ignored = [name for name in container if name not in _QUIET and container[name]]
    if ignored:
        known = [name for name in ignored if name in _OF_THE_POD]
        others = [name for name in ignored if name not in _OF_THE_POD]
        findings.append(Finding("differs", f"not translated, of the container: {', '.join(known + others)}"))
    return run


def _listed(container: Mapping[str, Any], name: str) -> list[str]:
    value = container.get(name) or []
    if not isinstance(value, list):
        raise Unreadable(f"{name} of the container is not a list")
    return [_word(each) for each in value]


def _word(value: object) -> str:
    """As the manifest has it: true is not Python's True."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _environment(container: Mapping[str, Any], findings: list[Finding]) -> dict[str, str]:
    env: dict[str, str] = {}
    given = container.get("env") or []
    if not isinstance(given, list) or not all(isinstance(each, dict) for each in given):
        raise Unreadable("env of the container is not a list of names and values")
    for each in given:
        name, place = str(each.get("name", "")), each.get("valueFrom")
        if place is not None:
            source = next((words for key, words in _FROM.items() if key in str(place)), "somewhere else")
            hint = "let the worker have it (executor.environment)"
            findings.append(Finding("differs", f"the variable {name} comes from {source}: it is left out", hint))
        elif (why := may_set(name)) is not None:
            findings.append(Finding("differs", why, f"start the worker with {name}={each.get('value') or ''}"))
        else:
            value = each.get("value")
            env[name] = _replaced("" if value is None else _word(value), env, [])
    return env


def _replaced(text: str, env: Mapping[str, str], findings: list[Finding]) -> str:
    """`$(NAME)` of the manifest, as Kubernetes replaces it: `$$` is a dollar, an unknown name stays."""

    def value(found: re.Match[str]) -> str:
        name = found["name"]
        if name is None:
            return "$"
        if name not in env:
            findings.append(Finding("differs", f"$({name}) is not known here, and stays in the command as it is"))
            return found[0]
        return env[name]

    return _REFERENCE.sub(value, text)
