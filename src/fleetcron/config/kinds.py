"""Kinds of values a setting can have: how each is read, what is refused and why, and how it is shown."""

import base64
import re
from dataclasses import dataclass
from typing import Protocol

_UNITS_S = {"ms": 0.001, "s": 1, "m": 60, "h": 3600, "d": 86_400}
_PART = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,3})?) *(ms|s|m|h|d) *")
_NUMBER = re.compile(r"[0-9]{1,9}(?:\.[0-9]{1,3})?")


class BadValue(ValueError):
    """A value that cannot be; `hint` says what to write instead."""

    def __init__(self, message: str, hint: str | None = None) -> None:
        self.message = message
        self.hint = hint
        super().__init__(message)


class Kind(Protocol):
    def read(self, given: object) -> object:
        """The value, or BadValue."""
        ...

    def show(self, value: object) -> str: ...


@dataclass(frozen=True, slots=True)
class Duration:
    """`15s`, `500ms`, `1m30s` or a number of seconds. The value counts in units of `unit_s` seconds."""

    least_s: float
    most_s: float
    why: str = ""
    unit_s: float = 1

    def read(self, given: object) -> float:
        seconds = _seconds(given)
        if seconds < self.least_s:
            raise BadValue(f"{given} is too short: the least is {span(self.least_s)}", self.why or None)
        if seconds > self.most_s:
            raise BadValue(f"{given} is too long: the most is {span(self.most_s)}", self.why or None)
        units = round(seconds / self.unit_s, 3)
        return int(units) if units == int(units) else units

    def show(self, value: object) -> str:
        assert isinstance(value, int | float)
        return span(value * self.unit_s)


def span(seconds: float) -> str:
    """The shortest way to write it: 90 is 90s, 0.25 is 250ms."""
    for unit in ("d", "h", "m", "s"):
        if seconds >= _UNITS_S[unit] and seconds % _UNITS_S[unit] == 0:
            return f"{seconds / _UNITS_S[unit]:.0f}{unit}"
    return f"{seconds:g}s" if seconds >= 1 else f"{seconds * 1000:g}ms"


def _seconds(given: object) -> float:
    # times/ reads durations of jobs with the same words; it stands above this room
    if isinstance(given, int | float) and not isinstance(given, bool) and 0 <= given < 1e9:
        return float(given)
    if isinstance(given, str):
        text = given.strip().lower()
        if _NUMBER.fullmatch(text):
            return float(text)
        parts = _PART.findall(text)
        if parts and "".join(found[0] for found in _PART.finditer(text)) == text:
            return sum(float(number) * _UNITS_S[unit] for number, unit in parts)
    raise BadValue(f"{given!r} is not a duration", "write it as 500ms, 15s, 2m or a number of seconds")


@dataclass(frozen=True, slots=True)
class Whole:
    """A whole number."""

    least: int
    most: int
    why: str = ""

    def read(self, given: object) -> int:
        if isinstance(given, str) and re.fullmatch(r" *-?[0-9]{1,12} *", given):
            given = int(given)
        if not isinstance(given, int) or isinstance(given, bool):
            raise BadValue(f"{given!r} is not a whole number", f"write a number from {self.least} to {self.most}")
        if not self.least <= given <= self.most:
            raise BadValue(f"{given} is not between {self.least} and {self.most}", self.why or None)
        return given

    def show(self, value: object) -> str:
        return str(value)


@dataclass(frozen=True, slots=True)
class Word:
    """A short name, or nothing."""

    pattern: str
    hint: str

    def read(self, given: object) -> str:
        if not isinstance(given, str) or not re.fullmatch(self.pattern, given):
            raise BadValue(f"{given!r} cannot be a name", self.hint)
        return given

    def show(self, value: object) -> str:
        return "" if value is None else str(value)


@dataclass(frozen=True, slots=True)
class OneOf:
    choices: tuple[str, ...]

    def read(self, given: object) -> str:
        if given not in self.choices or not isinstance(given, str):
            raise BadValue(f"{given!r} is not one of them", f"write {' or '.join(self.choices)}")
        return given

    def show(self, value: object) -> str:
        return str(value)


@dataclass(frozen=True, slots=True)
class SomeOf:
    """One or more of the choices: a TOML list, or text with commas."""

    choices: tuple[str, ...]

    def read(self, given: object) -> tuple[str, ...]:
        parts = [part.strip() for part in given.split(",")] if isinstance(given, str) else given
        hint = f"write one or more of {', '.join(self.choices)}"
        if not isinstance(parts, list | tuple) or not parts:
            raise BadValue(f"{given!r} is not a list", hint)
        for part in parts:
            if part not in self.choices:
                raise BadValue(f"{part!r} is not one of them", hint)
        return tuple(choice for choice in self.choices if choice in parts)  # one order, none twice

    def show(self, value: object) -> str:
        assert isinstance(value, tuple)
        return ",".join(value)


@dataclass(frozen=True, slots=True)
class Several:
    """Names, none or many: a TOML list, or text with commas."""

    pattern: str
    hint: str

    def read(self, given: object) -> tuple[str, ...]:
        parts = [part.strip() for part in given.split(",")] if isinstance(given, str) else given
        if not isinstance(parts, list | tuple):
            raise BadValue(f"{given!r} is not a list", self.hint)
        for part in parts:
            if not isinstance(part, str) or not re.fullmatch(self.pattern, part):
                raise BadValue(f"{part!r} cannot be in the list", self.hint)
        return tuple(dict.fromkeys(parts))  # none twice

    def show(self, value: object) -> str:
        assert isinstance(value, tuple)
        return ",".join(value)


@dataclass(frozen=True, slots=True)
class SecretBytes:
    """Bytes that nobody may guess, as base64; `whsec_` before them is allowed. Never shown, not even in complaints."""

    least: int = 24
    most: int = 64

    def read(self, given: object) -> str:
        hint = f"write {self.least} to {self.most} random bytes as base64: openssl rand -base64 32"
        try:
            size = len(secret_bytes(given)) if isinstance(given, str) else 0
        except ValueError:
            raise BadValue("this is not base64", hint) from None
        if not self.least <= size <= self.most:
            raise BadValue(f"a secret of {size} bytes is not from {self.least} to {self.most}", hint)
        assert isinstance(given, str)
        return given.strip()

    def show(self, value: object) -> str:
        return "" if value is None else "***"


def secret_bytes(text: str) -> bytes:
    """A ValueError if it is not base64."""
    return base64.b64decode(text.strip().removeprefix("whsec_"), validate=True)


@dataclass(frozen=True, slots=True)
class Listen:
    """Where a server listens: HOST:PORT, or [::1]:PORT. A port alone is on this machine only."""

    def read(self, given: object) -> str:
        hint = "write 127.0.0.1:8470, 0.0.0.0:8470 or [::1]:8470"
        text = str(given).strip() if isinstance(given, str | int) and not isinstance(given, bool) else ""
        found = re.fullmatch(r"(?:(\[[0-9a-fA-F:.%a-z]+\]|[A-Za-z0-9._-]+):)?([0-9]{1,5})", text)
        if not found or int(found[2]) > 65_535:
            raise BadValue(f"{given!r} is not an address with a port", hint)
        return f"{found[1] or '127.0.0.1'}:{int(found[2])}"

    def show(self, value: object) -> str:
        return str(value)


@dataclass(frozen=True, slots=True)
class DatabaseUrl:
    """Where the store is. Shown and complained about without its password."""

    def read(self, given: object) -> str:
        hint = "write sqlite:///fleetcron.db or postgresql://user:password@host/database"
        if not isinstance(given, str):
            raise BadValue("the store's URL is not a text", hint)
        url = given.strip()
        if url == ":memory:":
            return url
        if not re.match(r"(sqlite|postgres|postgresql)://", url):
            scheme = url.partition(":")[0] if "://" in url else ""
            what = f"there is no store for {scheme}://" if scheme else "this is not a URL of a store"
            raise BadValue(what, hint)
        if url.startswith("sqlite://") and not re.match(r"sqlite:///[^/]|sqlite:////", url):
            raise BadValue(
                f"{url} has no path", "write sqlite:///fleetcron.db, sqlite:////absolute/path.db or sqlite:///:memory:"
            )
        return url

    def show(self, value: object) -> str:
        return masked(str(value))


def masked(url: str) -> str:
    """Rather too much is hidden than too little: a password may hold any character."""
    hidden = re.sub(r"^([a-z0-9+]+://[^:@/]*):.*@", r"\1:***@", url, flags=re.DOTALL)
    return re.sub(r"(?i)([?&](?:ssl)?password=)[^&]*", r"\1***", hidden)
