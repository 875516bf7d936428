"""Reads records that are mostly numbers, such as the limits of a tenant, and finds every mistake at once."""

from collections.abc import Mapping, Sequence
from difflib import get_close_matches

from fleetcron.errors import DefinitionError, Mistake
from fleetcron.model.name import NAME_HINT, is_name

_LONGEST = 60
_WORDED = 1_000  # mistakes for which somebody looks what was meant; nobody reads more


class Figures:
    """The fields of one record. What is not in `raw` keeps the value that it is asked with."""

    def __init__(self, noun: str, name: object, raw: Mapping[str, object], known: Sequence[str]) -> None:
        self.mistakes: list[Mistake] = []
        self.raw = raw
        if not is_name(name):
            self.wrong("name", f"{shown(name)} is not a name of a {noun}", NAME_HINT)
        for field in raw:
            if field not in known:
                is_looked_for = len(field) <= _LONGEST and len(self.mistakes) < _WORDED
                near = get_close_matches(field, known, n=1) if is_looked_for else []
                hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(known)}"
                self.wrong(field[:_LONGEST], f"a {noun} has no such field", hint)

    def whole(self, field: str, now: int, least: int, most: int) -> int:
        value = self.raw.get(field, now)
        if value is None:
            self.wrong(field, "must be a whole number", "it cannot be without one")
            return now
        return self.figure(field, value, now, least, most)

    def limit(self, field: str, now: int | None, least: int, most: int) -> int | None:
        """A whole number, or None for no limit."""
        value = self.raw.get(field, now)
        return None if value is None else self.figure(field, value, now or least, least, most)

    def figure(self, field: str, value: object, now: int, least: int, most: int) -> int:
        if isinstance(value, bool) or not isinstance(value, int):
            self.wrong(field, f"must be a whole number, not {shown(value)}", None)
            return now
        if value < least:
            self.wrong(field, f"{shown(value)} is less than {least}, the least that is allowed", None)
        elif value > most:
            self.wrong(field, f"{shown(value)} is more than {most}, the most that is allowed", None)
        return value

    def wrong(self, field: str, message: str, hint: str | None) -> None:
        self.mistakes.append(Mistake(f"/{field}", message, hint))

    def check(self) -> None:
        if self.mistakes:
            raise DefinitionError(self.mistakes)


def shown(value: object) -> str:
    """What somebody wrote, and never long."""
    text = repr(value) if not isinstance(value, int) or value.bit_length() < 128 else "a huge number"
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
