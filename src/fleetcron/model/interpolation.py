"""`${NAME}` in the texts of a file, for names that the file declares at its top: `env: [NAME, …]`.

Without the declaration nothing is replaced: a shell command may well have a `${HOME}` of its own. With it every `${…}`
must be declared and set, so that a typing mistake is never stored as it stands; `$${` is a `${` that stays. Only values
are looked at, never keys, and what comes in is not looked at again.

What is replaced is stored with the job and shown like everything else. So a name that says that it is a secret cannot
be declared: a secret is written as `secret://name`, and only the worker knows what it is.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from fleetcron.errors import Mistake
from fleetcron.model.values import kind_of

DECLARED: Final = "env"
NAME: Final = r"[A-Za-z_][A-Za-z0-9_]{0,99}"
SECRET_NAME: Final = re.compile(
    r"(?i).*(?:PASSWORD|PASSWD|PASSPHRASE|SECRET|TOKEN|API_?KEY|ACCESS_?KEY|PRIVATE_?KEY|CREDENTIALS?)"
)
_FOUND: Final = re.compile(r"\$\$\{|\$\{([^}]*)\}?")
_LONGEST: Final = 60


def interpolated(raw: object, environment: Mapping[str, str]) -> tuple[object, list[Mistake]]:
    """The document without its declaration, and with values in place; and what is wrong, by JSON pointer."""
    if not isinstance(raw, dict) or DECLARED not in raw:
        return raw, []
    rest = {key: value for key, value in raw.items() if key != DECLARED}
    declared = raw[DECLARED]
    if not isinstance(declared, list):
        return rest, [Mistake(f"/{DECLARED}", f"must be a list, not {kind_of(declared)}", "such as env: [REGION]")]
    mistakes = list(_wrong_names(declared, environment))
    # the rest is looked at all the same, for what is wrong there; with a wrong name here no value is read at all
    values = {name: "" if mistakes else environment[name] for name in declared if isinstance(name, str)}
    made = {key: _replaced(each, f"/{_escaped(key)}", values, mistakes) for key, each in rest.items()}
    return made, mistakes


def _wrong_names(declared: list[Any], environment: Mapping[str, str]) -> Iterator[Mistake]:
    for at, name in enumerate(declared):
        place = f"/{DECLARED}/{at}"
        if not isinstance(name, str) or not re.fullmatch(NAME, name):
            yield Mistake(place, f"{kind_of(name)} is not the name of a variable", "letters, digits and underscores")
        elif SECRET_NAME.fullmatch(name):
            hint = f"write secret://{name.lower().replace('_', '-')} where it is needed: the worker knows what it is"
            yield Mistake(place, f"{name} looks like a secret, and what is put in here is stored and shown", hint)
        elif not environment.get(name):
            yield Mistake(place, f"{name} is not set", f"set it: {name}=… fleetcron …")


def _replaced(value: Any, pointer: str, values: Mapping[str, str], mistakes: list[Mistake]) -> Any:
    match value:
        case str():
            return _text(value, pointer, values, mistakes) if "${" in value else value
        case dict():
            return {key: _replaced(each, f"{pointer}/{_escaped(key)}", values, mistakes) for key, each in value.items()}
        case list():
            return [_replaced(each, f"{pointer}/{at}", values, mistakes) for at, each in enumerate(value)]
    return value


def _text(text: str, pointer: str, values: Mapping[str, str], mistakes: list[Mistake]) -> str:
    def of(found: re.Match[str]) -> str:
        if found[0] == "$${":
            return "${"
        if found[0].endswith("}") and found[1] in values:
            return values[found[1]]
        shown = found[0] if len(found[0]) <= _LONGEST else f"{found[0][:_LONGEST]}…"
        hint = f"env: [{found[1]}] at the top declares it; " if re.fullmatch(NAME, found[1] or "") else ""
        mistakes.append(Mistake(pointer, f"{shown} is not declared", f"{hint}$${{ is a ${{ that stays as it is"))
        return ""

    return _FOUND.sub(of, text)


def _escaped(key: object) -> str:
    return str(key).replace("~", "~0").replace("/", "~1")
