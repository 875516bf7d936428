"""Settings from a file, the environment and flags, in this order: the later wins. All mistakes are told at once."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from fleetcron.config.kinds import BadValue
from fleetcron.config.sense import nonsense
from fleetcron.config.settings import ROOMS, Config
from fleetcron.config.sources import FILE_VARIABLE, Given, Heard, from_environment, from_flags, from_toml
from fleetcron.errors import ConfigError, Mistake


def load(path: Path | None, environment: Mapping[str, str], flags: Mapping[str, object]) -> Config:
    """The settings of this node. Without a path, `FLEETCRON_CONFIG` may name the file; without both there is none."""
    if path is None and environment.get(FILE_VARIABLE):
        path = Path(environment[FILE_VARIABLE])
    if path is None:
        return read(None, environment, flags)
    try:
        text = path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "is not UTF-8"
        raise ConfigError([Mistake(str(path), f"cannot be read: {reason}")]) from error
    return read(text, environment, flags, file=path.name)


def read(
    toml: str | None,
    environment: Mapping[str, str],
    flags: Mapping[str, object],
    *,
    file: str = "fleetcron.toml",
    read_secret: Callable[[str], str] = lambda name: Path(name).read_text("utf-8"),
) -> Config:
    """The settings, given the text of the file. Only `read_secret` leaves the process: for names ending in _FILE."""
    heard = [
        from_toml(toml, file) if toml is not None else Heard([], []),
        from_environment(environment, read_secret),
        from_flags(flags),
    ]
    mistakes = [mistake for one in heard for mistake in one.mistakes]
    said = {given.setting.name: given for one in heard for given in one.given}  # the later wins
    rooms: dict[str, dict[str, Any]] = {room: {} for room in ROOMS}
    for given in said.values():
        try:
            rooms[given.setting.room][given.setting.attribute] = given.setting.kind.read(given.value)
        except BadValue as error:
            mistakes.append(Mistake(given.place, error.message, error.hint))
    config = Config(
        **{room: shape(**rooms[room]) for room, shape in ROOMS.items()},
        sources={name: _source(given) for name, given in said.items()},
    )
    if not mistakes:  # what could not be read would be judged by its default
        mistakes = nonsense(config)
    if mistakes:
        raise ConfigError(mistakes)
    return config


def _source(given: Given) -> str:
    """`fleetcron.toml`, `flag`, or the variable."""
    source, _, place = given.place.rpartition(": ")
    return place if source == "environment" else source
