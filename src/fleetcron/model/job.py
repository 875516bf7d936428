"""A job: a definition with an id, a state and a history of revisions.

S2-6: the definition changes, and every change is a revision; what a run is about never does.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from fleetcron.model.definition import Definition
from fleetcron.model.rules import MisfirePolicy
from fleetcron.model.states import JobState

__all__ = ["Change", "Job", "JobState", "Revision", "changes"]


@dataclass(frozen=True, slots=True)
class Job:
    """`on_resume` is what a paused job does about its paused window; `problem` why an active one has no ticks."""

    job_id: str
    definition: Definition
    state: JobState
    revision: int
    on_resume: MisfirePolicy | None
    problem: str | None
    created_ms: int
    created_by: str
    updated_ms: int
    deleted_ms: int | None = None


@dataclass(frozen=True, slots=True)
class Revision:
    """Who changed a job, when, and what it was before and after: canonical documents."""

    job_id: str
    revision: int
    at_ms: int
    actor: str
    action: str
    before: dict[str, Any] | None
    after: dict[str, Any] | None


class Change(NamedTuple):
    """`field` is a path such as `retry.backoff`; None stands for nothing."""

    field: str
    old: Any
    new: Any


def changes(before: Mapping[str, Any] | None, after: Mapping[str, Any] | None) -> list[Change]:
    """What differs between two canonical documents, for people: the smallest fields that are not equal."""
    return list(_changes("", before or {}, after or {}))


def _changes(path: str, before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[Change]:
    for name in [*after, *(name for name in before if name not in after)]:
        if not path and name == "derived":
            continue  # says how a field came about, and is none itself
        old, new = before.get(name), after.get(name)
        if _is_same(old, new):
            continue
        inner = f"{path}{name}"
        if isinstance(old, dict) and isinstance(new, dict):
            yield from _changes(f"{inner}.", old, new)
        elif pairs := _pairs(old, new):
            for at, (one, other) in enumerate(pairs):
                yield from _changes(f"{inner}." if len(pairs) == 1 else f"{inner}.{at}.", one, other)
        else:
            yield Change(inner, old, new)


def _is_same(old: object, new: object) -> bool:
    """1, 1.0 and true are equal in Python, and not in a document."""
    if type(old) is not type(new):
        return False
    if isinstance(old, dict) and isinstance(new, dict):
        return old.keys() == new.keys() and all(_is_same(value, new[name]) for name, value in old.items())
    if isinstance(old, list) and isinstance(new, list):
        return len(old) == len(new) and all(map(_is_same, old, new))
    return old == new


def _pairs(old: object, new: object) -> list[tuple[Mapping[str, Any], Mapping[str, Any]]]:
    """Lists of as many mappings, such as the entries of a schedule, side by side."""
    if not isinstance(old, list) or not isinstance(new, list) or len(old) != len(new):
        return []
    pairs = list(zip(old, new, strict=True))
    return pairs if all(isinstance(each, dict) for pair in pairs for each in pair) else []
