"""Incident controls: what somebody switched for a tenant, a pool or a type, why, and until when. Pure.

One record for each name. It can hold runs back (`percent` of the jobs go on: 0 is a pause, 25 a gradual resume) and it
can slow down what fails (a cap of attempts, longer delays). A wish changes what it names and leaves the rest; while
something that it does not name stays in force, the record ends at the later of the two ends, because what ends early in
an incident does harm, and what ends late only waits.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from math import isfinite
from typing import Any, Final, Literal, TypeAlias

from fleetcron.errors import DefinitionError, Mistake
from fleetcron.model.figures import shown
from fleetcron.model.name import LABEL_HINT, NAME_HINT, is_label, is_name
from fleetcron.model.queued import Control

Scope: TypeAlias = Literal["tenant", "pool", "type"]
SCOPES: Final[tuple[Scope, ...]] = ("tenant", "pool", "type")
ALL: Final = 100
_MOST_ATTEMPTS: Final = 1000
_MOST_BACKOFF: Final = 1000.0
_LONGEST_REASON: Final = 500


@dataclass(frozen=True, slots=True)
class Switched:
    """A control that is in force."""

    control: Control
    reason: str
    actor: str
    updated_ms: int

    def as_document(self) -> dict[str, Any]:
        control = self.control
        return {
            "percent": control.percent,
            "attempts": control.retries,
            "backoff": control.backoff,
            "until_ms": control.until_ms,
            "reason": self.reason,
            "by": self.actor,
        }


@dataclass(frozen=True, slots=True)
class Wish:
    """What is to be switched; None leaves it as it is. Without `for_ms` it holds until it is released."""

    scope: Scope
    name: str
    percent: int | None = None
    attempts: int | None = None
    backoff: float | None = None
    for_ms: int | None = None
    reason: str | None = None
    keeps_end: bool = False  # a step of a gradual resume: it ends when it would have ended

    def check(self) -> None:
        """A DefinitionError has all mistakes."""
        if mistakes := list(self._mistakes()):
            raise DefinitionError(mistakes)

    def _mistakes(self) -> Iterator[Mistake]:
        yield from mistakes_of_name(self.scope, self.name)
        if self.percent is not None and not 0 <= self.percent <= ALL:
            yield Mistake("/percent", f"{self.percent} is not a percentage", "from 0 (nothing starts) to 100 (all)")
        if self.attempts is not None and not 1 <= self.attempts <= _MOST_ATTEMPTS:
            yield Mistake("/attempts", f"{self.attempts} is not from 1 to {_MOST_ATTEMPTS}", "1 is: no retries")
        if self.backoff is not None and not (isfinite(self.backoff) and 1 <= self.backoff <= _MOST_BACKOFF):
            yield Mistake(
                "/backoff", f"{self.backoff} is not from 1 to {_MOST_BACKOFF:.0f}", "4 makes delays four times as long"
            )
        if self.for_ms is not None and self.for_ms <= 0:
            yield Mistake("/for", "is not longer than 0", "write it as 30m, 2h or 1d")
        if self.reason is None and not self.keeps_end:
            yield Mistake("/reason", "is missing", "say why: the others read it too")
        elif self.reason is not None and not is_reason(self.reason):
            yield Mistake("/reason", f"must be one line of 1 to {_LONGEST_REASON} characters", None)


def mistakes_of_name(scope: str, name: str) -> Iterator[Mistake]:
    if scope not in SCOPES:
        yield Mistake("/scope", f"{shown(scope)} is not one of {', '.join(SCOPES)}", None)
    elif not (is_label(name) if scope == "type" else is_name(name)):
        yield Mistake(
            "/name", f"{shown(name)} is not a name of a {scope}", LABEL_HINT if scope == "type" else NAME_HINT
        )


def is_reason(text: str) -> bool:
    return 0 < len(text.strip()) <= len(text) <= _LONGEST_REASON and text.isprintable()


def in_force(control: Control, now_ms: int) -> bool:
    return control.until_ms is None or control.until_ms > now_ms


def apply(wish: Wish, before: Switched | None, actor: str, now_ms: int) -> Switched | None:
    """What is switched after a wish; None if nothing is left in force. `before` itself if nothing changes."""
    if before is not None and not in_force(before.control, now_ms):
        before = None
    was = Control(wish.scope, wish.name, ALL, None, 1.0, now_ms) if before is None else before.control
    control = Control(
        wish.scope,
        wish.name,
        was.percent if wish.percent is None else wish.percent,
        was.retries if wish.attempts is None else wish.attempts,
        was.backoff if wish.backoff is None else wish.backoff,
        _end(wish, was, now_ms),
    )
    if control.percent == ALL and control.retries is None and control.backoff == 1:
        return None
    reason = _reason(wish, before)
    # who says again what another has said stands for it from now on: it is then his to undo
    if before is not None and (before.control, before.reason, before.actor) == (control, reason, actor):
        return before
    return Switched(control, reason, actor, now_ms)


def _stays(wish: Wish, was: Control) -> bool:
    """Whether something is in force that the wish does not name."""
    return (
        (wish.percent is None and was.percent < ALL)
        or (wish.attempts is None and was.retries is not None)
        or (wish.backoff is None and was.backoff > 1)
    )


def _end(wish: Wish, was: Control, now_ms: int) -> int | None:
    if wish.keeps_end:
        return was.until_ms
    until = None if wish.for_ms is None else now_ms + wish.for_ms
    if until is None or not _stays(wish, was):
        return until
    return None if was.until_ms is None else max(until, was.until_ms)


def _reason(wish: Wish, before: Switched | None) -> str:
    """The reason of what stays in force stays too."""
    if before is None or wish.reason is None:
        return wish.reason or (before.reason if before else "")
    if wish.reason in before.reason and _stays(wish, before.control):
        return before.reason
    both = f"{before.reason}; {wish.reason}" if _stays(wish, before.control) else wish.reason
    return both[:_LONGEST_REASON]
