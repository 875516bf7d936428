"""The rules of a job as a document shows them, and back. Durations are `30s`, instants RFC 3339 with a Z.

The way back is for documents that this module wrote and the store kept; what people write goes through `reading.py`. A
field that this release does not know was written by a newer one and is left out; a value is a ValueError (`kept.py`).
"""

from collections.abc import Callable, Mapping
from dataclasses import fields
from functools import cache, lru_cache
from typing import Any, TypeVar

from fleetcron.model.kept import made
from fleetcron.model.rules import AlertRule, CalendarUse, MisfireRule, OverlapRule, Retention, RetryRule
from fleetcron.times.durations import duration_ms
from fleetcron.times.durations import duration_text as shortest_text
from fleetcron.times.instants import LAST_MS, from_ms, iso, parse_instant, to_ms

Document = dict[str, Any]
T = TypeVar("T")


@lru_cache(1024)  # most jobs keep the durations that are nobody's choice
def duration_text(ms: int | None) -> str | None:
    if ms is None:
        return None
    return shortest_text(ms) if ms else "0s"


@lru_cache(1024)
def duration_from(text: str | None) -> int | None:
    if text is None:
        return None
    return 0 if text == "0s" else duration_ms(text)


def instant_text(ms: int | None) -> str | None:
    return None if ms is None else iso(from_ms(ms))


def instant_from(text: str | None) -> int | None:
    return None if text is None else to_ms(parse_instant(text))


def shadow_document(ms: int | None) -> bool | str | None:
    """false, true while nobody knows its end, or the instant of the hand-over."""
    return ms is not None if ms in (None, LAST_MS) else instant_text(ms)


def shadow_from(document: bool | str) -> int | None:
    if isinstance(document, bool):
        return LAST_MS if document else None
    return instant_from(document)


def retry_document(rule: RetryRule) -> Document:
    delays = [duration_text(delay) for delay in rule.delays_ms]
    backoff: object = delays
    if rule.backoff == "fixed":
        backoff = {"fixed": delays[0]}
    elif rule.backoff == "exponential":
        backoff = {"exponential": {"first": delays[0], "max": duration_text(rule.max_delay_ms)}}
    return {
        "max_attempts": rule.max_attempts,
        "backoff": backoff,
        "jitter": rule.jitter,
        "max_losses": rule.max_losses,
        "retry_on": list(rule.retry_on),
        "give_up_on": list(rule.give_up_on),
    }


def retry_from(document: Mapping[str, Any]) -> RetryRule:
    given = _converted(document, {"retry_on": tuple, "give_up_on": tuple})
    backoff = given.pop("backoff", None)
    if isinstance(backoff, list):
        given |= {"backoff": "list", "delays_ms": tuple(map(duration_from, backoff))}
    elif backoff is not None and "fixed" in backoff:
        given |= {"backoff": "fixed", "delays_ms": (duration_from(backoff["fixed"]),)}
    elif backoff is not None:
        first, longest = backoff["exponential"]["first"], backoff["exponential"]["max"]
        given |= {
            "backoff": "exponential",
            "delays_ms": (duration_from(first),),
            "max_delay_ms": duration_from(longest),
        }
    return _made(RetryRule, given)


def overlap_document(rule: OverlapRule) -> Document:
    return _plain(rule)


def overlap_from(document: Mapping[str, Any]) -> OverlapRule:
    return _made(OverlapRule, document)


def misfire_document(rule: MisfireRule) -> Document:
    return {
        "policy": rule.policy,
        "window": duration_text(rule.window_ms),
        "limit": rule.limit,
        "grace": duration_text(rule.grace_ms),
        "lane": rule.lane,
    }


def misfire_from(document: Mapping[str, Any]) -> MisfireRule:
    given = _converted(document, {"window": duration_from, "grace": duration_from})
    return _made(MisfireRule, _renamed(given, {"window": "window_ms", "grace": "grace_ms"}))


def alerts_document(rule: AlertRule) -> Document:
    return {**_plain(rule), "channels": list(rule.channels)}


def alerts_from(document: Mapping[str, Any]) -> AlertRule:
    return _made(AlertRule, _converted(document, {"channels": tuple}))


def retention_document(rule: Retention) -> Document:
    return {"age": duration_text(rule.age_ms), "runs": rule.runs}


def retention_from(document: Mapping[str, Any]) -> Retention:
    return _made(Retention, _renamed(_converted(document, {"age": duration_from}), {"age": "age_ms"}))


def calendar_use_document(use: CalendarUse) -> Document:
    return _plain(use)


def calendar_use_from(document: Mapping[str, Any]) -> CalendarUse:
    return _made(CalendarUse, document)


def _plain(rule: Any) -> Document:
    """The fields of one of our dataclasses. (`asdict` copies deeply, and took a third of the time of a document.)"""
    return {name: getattr(rule, name) for name in rule.__slots__}


def _converted(document: Mapping[str, Any], how: Mapping[str, Callable[[Any], Any]]) -> Document:
    return {name: how[name](value) if name in how else value for name, value in document.items()}


def _renamed(document: Mapping[str, Any], names: Mapping[str, str]) -> Document:
    return {names.get(name, name): value for name, value in document.items()}


def _made(kind: type[T], given: Mapping[str, Any]) -> T:
    known = _known(kind)  # type: ignore[arg-type]
    return made(kind, {name: value for name, value in given.items() if name in known})


@cache
def _known(kind: type[Any]) -> frozenset[str]:
    return frozenset(field.name for field in fields(kind))
