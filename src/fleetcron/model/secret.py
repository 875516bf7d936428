"""Secrets by reference: `secret://name` in a header, a body, a variable of a command or a payload.

The reference is what is stored and shown. Only the worker that runs an attempt puts the secret in its place, for that
attempt. Names are looked up within the tenant of the job: nobody gets at the secrets of another.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

from fleetcron.model.target import CommandTarget, HttpTarget, PublishTarget, Target

SCHEME: Final = "secret://"
NAME: Final = r"[A-Za-z0-9_](?:[A-Za-z0-9._-]{0,98}[A-Za-z0-9_])?"  # never a way to another folder
_REFERENCE: Final = re.compile(rf"{SCHEME}({NAME})?")


def names_in(target: Target, payload: Mapping[str, Any]) -> set[str]:
    """The secrets that a job names where they are put in."""
    return {name for text in _texts(target, payload) if SCHEME in text for name in _REFERENCE.findall(text) if name}


def put_in(target: Target, payload: Mapping[str, Any], secrets: Mapping[str, str]) -> tuple[Target, dict[str, Any]]:
    """What runs: every reference replaced. What comes in is not looked at again."""

    def of(value: Any) -> Any:
        match value:
            case str():
                return (
                    _REFERENCE.sub(lambda found: secrets.get(found[1], found[0]), value) if SCHEME in value else value
                )
            case dict():
                return {key: of(each) for key, each in value.items()}
            case list():
                return [of(each) for each in value]
        return value

    match target:
        case CommandTarget(env=env):
            target = replace(target, env=of(dict(env)))
        case HttpTarget(headers=headers, body=body):
            target = replace(target, headers=of(dict(headers)), body=of(body))
        case PublishTarget(headers=headers):
            target = replace(target, headers=of(dict(headers)))
    return target, of(dict(payload))


def wrong_reference(text: str) -> str | None:
    """What is written instead of a name, if a reference has none."""
    found = next((each for each in _REFERENCE.finditer(text) if each[1] is None), None)
    return None if found is None else text[found.start() :][:60]


def _texts(target: Target, payload: Mapping[str, Any]) -> Iterator[str]:
    match target:
        case CommandTarget(env=env):
            yield from env.values()
        case HttpTarget(headers=headers, body=body):
            yield from headers.values()
            yield body or ""
        case PublishTarget(headers=headers):
            yield from headers.values()
    stack: list[Any] = list(payload.values())
    while stack:
        value = stack.pop()
        if isinstance(value, str):
            yield value
        elif isinstance(value, dict):
            stack += value.values()
        elif isinstance(value, list):
            stack += value
