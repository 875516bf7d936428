"""What was said where: a TOML file, the environment, flags. Each becomes a list of (setting, value, place)."""

import difflib
import re
import tomllib
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from fleetcron.config.settings import ROOMS, Setting, settings
from fleetcron.errors import Mistake

BY_NAME = {one.name: one for one in settings()}
BY_VARIABLE = {one.variable: one for one in settings()}
PREFIX = "FLEETCRON_"
URL = BY_NAME["store.url"]
# Names for the store's URL, the strongest first. The last one is what many platforms set for "the database".
URL_VARIABLES = (URL.variable, "FLEETCRON_DATABASE_URL", "DATABASE_URL")
KNOWN_VARIABLES = (*BY_VARIABLE, *URL_VARIABLES[1:])
FILE_VARIABLE = "FLEETCRON_CONFIG"  # names the TOML file

# Not settings, though they begin like ours: what a run's own process is told about itself (it may well call fleetcron),
# the address and the key of somebody who uses the API from the same shell, the secrets of jobs, the servers of the test
# suite, and what Kubernetes sets in every container beside a service named fleetcron.
_NOT_OURS = re.compile(
    r"FLEETCRON_(?:JOB|TENANT|SCHEDULED_FOR|RUN_ID|ATTEMPT|FENCE|DEADLINE|IDEMPOTENCY_KEY|COVERS|WINDOW_(?:FROM|TO)"
    r"|API_(?:URL|KEY(?:_FILE)?)|SECRET_(?!_)\w+|TEST_\w+|(?:[A-Z0-9_]+_)?SERVICE_(?:HOST|PORT(?:_[A-Z0-9_]+)?)"
    r"|(?:[A-Z0-9_]+_)?PORT(?:_[0-9]+_(?:TCP|UDP|SCTP)(?:_(?:PROTO|PORT|ADDR))?)?)"
)


class Given(NamedTuple):
    setting: Setting
    value: object
    place: str


class Heard(NamedTuple):
    """What a source says, and what is wrong with it."""

    given: list[Given]
    mistakes: list[Mistake]


def from_toml(text: str, file: str) -> Heard:
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        return Heard([], [Mistake(file, f"is not TOML: {error}")])
    heard = Heard([], [])
    for room, entries in document.items():
        if room not in ROOMS:
            heard.mistakes.append(_unknown(file, f"[{room}]", room, ROOMS))
        elif not isinstance(entries, dict):
            heard.mistakes.append(
                Mistake(
                    f"{file}: {room}",
                    "is a group of settings, not a value",
                    f"write [{room}] and below it its settings",
                )
            )
        else:
            _sort_in(heard, file, {f"{room}.{key}": value for key, value in entries.items()})
    return heard


def from_flags(flags: Mapping[str, object]) -> Heard:
    """Flags by the name of their setting (`store.url`); None is a flag that was not given."""
    heard = Heard([], [])
    _sort_in(heard, "flag", {name: value for name, value in flags.items() if value is not None})
    return heard


def from_environment(environment: Mapping[str, str], read_secret: Callable[[str], str]) -> Heard:
    """An empty variable is one that was not set: that is how compose files and shells write "nothing"."""
    heard = Heard([], [])
    said: dict[str, str] = {}
    for variable in sorted(environment):
        value = environment[variable]
        plain = variable.removesuffix("_FILE")
        if value == "" or variable == FILE_VARIABLE or not (variable.startswith(PREFIX) or plain == "DATABASE_URL"):
            continue
        if plain not in KNOWN_VARIABLES:
            if not _NOT_OURS.fullmatch(variable):
                heard.mistakes.append(_unknown_variable(variable))
        elif plain == variable:
            said[plain] = value
        elif environment.get(plain):
            heard.mistakes.append(Mistake(f"environment: {variable}", f"{plain} is set too", "set one of them"))
        else:
            try:
                said[plain] = read_secret(value).strip()
            except (OSError, UnicodeDecodeError) as error:
                reason = error.strerror if isinstance(error, OSError) else "is not UTF-8"
                heard.mistakes.append(Mistake(f"environment: {variable}", f"{value} cannot be read: {reason}"))
    for variable in BY_VARIABLE:
        if variable in said and variable != URL.variable:
            heard.given.append(Given(BY_VARIABLE[variable], said[variable], f"environment: {variable}"))
    _add_url(heard, said)
    return heard


def _add_url(heard: Heard, said: Mapping[str, str]) -> None:
    named = [variable for variable in URL_VARIABLES if variable in said]
    ours = {said[variable] for variable in named if variable.startswith(PREFIX)}
    if len(ours) > 1:
        heard.mistakes.append(Mistake(f"environment: {named[1]}", f"{named[0]} says something else", "set one of them"))
    elif named:
        heard.given.append(Given(URL, said[named[0]], f"environment: {named[0]}"))


def _sort_in(heard: Heard, source: str, entries: Mapping[str, object]) -> None:
    for name, value in entries.items():
        if name in BY_NAME:
            heard.given.append(Given(BY_NAME[name], value, f"{source}: {name}"))
        else:
            heard.mistakes.append(_unknown(source, name, name, BY_NAME))


def _unknown(source: str, shown: str, name: str, known: Iterable[str]) -> Mistake:
    near = difflib.get_close_matches(name, known, n=1, cutoff=0.6)
    same_key = [one for one in known if one.partition(".")[2] == name.partition(".")[2] != ""]
    hint = f"did you mean {(same_key or near)[0]}?" if near or same_key else f"there are {', '.join(known)}"
    return Mistake(f"{source}: {shown}", "is not a setting", hint)


def _unknown_variable(variable: str) -> Mistake:
    # most often the room or one of its two underscores is missing
    squeezed = variable.replace("__", "_")
    same_end = [one for one in BY_VARIABLE if one.endswith(f"__{variable.removeprefix(PREFIX)}")]
    same = [one for one in BY_VARIABLE if one.replace("__", "_") == squeezed]
    near = difflib.get_close_matches(variable, KNOWN_VARIABLES, n=1, cutoff=0.6)
    found = same or same_end or near
    hint = f"did you mean {found[0]}?" if found else "docs/operate/configuration.md lists them all"
    return Mistake(f"environment: {variable}", "is not a setting", hint)
