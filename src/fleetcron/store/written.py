"""What became of a write: ok, refused or unknown. A caller handles all three.

Every verb is one transaction that is safe to repeat, so the answer to `Unknown` (the connection broke while the commit
was under way) is to look or to repeat, never to assume. An error that is raised means that nothing was written.
"""

from dataclasses import dataclass
from typing import Generic, TypeAlias, TypeVar

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Ok(Generic[T]):
    value: T


@dataclass(frozen=True, slots=True)
class Refused:
    """The guard in the statement found other facts than the caller had seen. Only the event log was written."""

    reason: str


@dataclass(frozen=True, slots=True)
class Unknown:
    """Committed or not: the reply was lost."""

    why: str


Written: TypeAlias = Ok[T] | Refused | Unknown
