"""What a torture says at its end: each promise, how often it was checked, and where it was broken."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias

Key: TypeAlias = Literal[
    "answered", "once", "alone", "punctual", "fenced", "bounded", "overlap", "kept", "settled",
]  # fmt: skip

# In the order of the table: what is promised, and what is counted.
PROMISES: Final[Mapping[Key, tuple[str, str]]] = {
    "answered": ("every tick has an answer", "tick"),
    "once": ("no tick has two answers", "answer"),
    "alone": ("one attempt of a run at a time", "attempt"),
    "punctual": ("nothing starts before its time", "start"),
    "fenced": ("what a stale worker writes is refused", "attempt"),
    "bounded": ("a fault costs a run one attempt", "attempt"),
    "overlap": ("no overlap unless allowed", "start"),
    "kept": ("what was confirmed is kept", "confirmation"),
    "settled": ("everything comes to its end", "run"),
}


@dataclass(frozen=True, slots=True)
class Violation:
    """One place where a promise was broken. A run, if it is about one."""

    promise: Key
    what: str
    job: str | None = None
    run_id: int | None = None


@dataclass(frozen=True, slots=True)
class Verdict:
    checked: Mapping[Key, int]
    violations: Sequence[Violation]
    runs: Mapping[str, int] = field(default_factory=Counter)  # by state
    attempts: Mapping[str, int] = field(default_factory=Counter)  # by outcome
    refused: int = 0  # writes of stale owners

    @property
    def holds(self) -> bool:
        return not self.violations

    def broken(self, promise: Key) -> list[Violation]:
        return [each for each in self.violations if each.promise == promise]

    def lines(self) -> Iterator[tuple[Key, str, str, int, int]]:
        """Promise, its words, what is counted, how many, how many of them violations."""
        for key, (words, noun) in PROMISES.items():
            yield key, words, noun, self.checked.get(key, 0), len(self.broken(key))
