"""Long suites as rounds: each has a database and a judgement of its own, and is written down as soon as it is over.

    def test_a_thousand_kills(soak: Soak) -> None:
        suite = soak.suite("workers are killed", "sqlite", goal={"kill": 1000}, seed=9)
        for number in suite.rounds(10):
            ...
            suite.over(faults={"kill": 100}, verdict)
        suite.check()

A round that was good is not done again by the next call with the same code: whoever stops a long suite goes on where
it was. Every play of a round is kept, and a bad one that is played again stays bad in the sums. What is known is in
`build/soak`; `plugin.py` shows it while it happens, `page.py` makes a page of it.
"""

import json
import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from time import monotonic, time
from typing import Any, Final, Protocol

import pytest

from tests.soak.code import ROOT, fingerprint

FOLDER: Final = ROOT / "build" / "soak"
BEGUN: Final = "begun.jsonl"
OVER: Final = "rounds.jsonl"
SHOWN: Final = 10  # of the violations of a round
KINDS: Final = ("lost", "duplicated", "concurrent", "early", "stale", "other")


class Verdict(Protocol):
    """What the judges of tests/faults say."""

    @property
    def counted(self) -> Mapping[str, int]:
        """ticks, runs, attempts."""
        ...

    wrong: list[str]

    def violations(self) -> Mapping[str, int]: ...


@dataclass(frozen=True)
class Round:
    suite: str
    store: str
    number: int
    of: int
    seed: int
    goal: Mapping[str, int]
    faults: Mapping[str, int]
    counted: Mapping[str, int]  # ticks, runs, attempts
    violations: Mapping[str, int]
    seconds: float
    at: float
    code: str
    notes: Sequence[str] = ()  # what the reader must know: how it was done here
    wrong: Sequence[str] = ()  # the first of the violations, in words
    made_of: str = ""  # what `code` is the fingerprint of

    @property
    def is_good(self) -> bool:
        return not any(self.violations.values())

    @property
    def title(self) -> str:
        return f"{self.suite} ({self.store})"


@dataclass(frozen=True)
class Now:
    """Where a suite is, while it runs."""

    title: str
    kind: str
    done: int
    goal: int
    pid: int
    began: float  # of this call; what was done before it is `before`
    before: int


@dataclass
class Tally:
    """A verdict of many small ones."""

    counted: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)
    kinds: Counter[str] = field(default_factory=Counter)

    def add(self, verdict: Verdict) -> None:
        self.counted.update(verdict.counted)
        self.wrong += verdict.wrong
        self.kinds.update(verdict.violations())

    def violations(self) -> Mapping[str, int]:
        return self.kinds


class Suite:
    def __init__(
        self, folder: Path, code: str, suite: str, store: str, goal: Mapping[str, int], seed: int, made_of: str = ""
    ) -> None:
        self.suite, self.store, self.goal, self.seed = suite, store, goal, seed
        self.notes: list[str] = []
        self._folder, self._code, self._made_of = folder, code, made_of
        self._of = self._number = 0
        self._began_s = monotonic()
        self._known = [each for each in read(folder) if (each.suite, each.store, each.code) == (suite, store, code)]
        self._now = folder / "now" / f"{re.sub(r'[^a-z0-9]+', '-', f'{suite} {store}'.lower())}.json"
        self._call = (time(), self._done())

    def rounds(self, of: int) -> Iterator[int]:
        """Those that are not done yet; a bad one is done again."""
        self._of = of
        good = {each.number for each in last(self._known) if each.is_good}
        try:
            for number in (number for number in range(of) if number not in good):
                self._number, self._began_s = number, monotonic()
                self._append(BEGUN, {"title": f"{self.suite} ({self.store})", "number": number, "code": self._code})
                self.tell(0)
                yield number
        finally:
            self._now.unlink(missing_ok=True)

    def tell(self, faults: int) -> None:
        """How many there were in this round so far, for whoever watches."""
        kind, goal = next(iter(self.goal.items()))
        began, before = self._call
        done = self._done() + faults
        now = Now(f"{self.suite} ({self.store})", kind, done, goal, os.getpid(), began, before)
        self._now.parent.mkdir(parents=True, exist_ok=True)
        part = self._now.with_suffix(".part")
        part.write_text(json.dumps(asdict(now)))
        part.rename(self._now)

    def over(self, faults: Mapping[str, int], verdict: Verdict) -> None:
        """The round is over. Written down first: what was wrong must not be lost with the test that fails then."""
        kinds = {kind: number for kind, number in verdict.violations().items() if number}
        found = Round(
            self.suite, self.store, self._number, self._of, self.seed, dict(self.goal), dict(faults),
            dict(verdict.counted), kinds, round(monotonic() - self._began_s, 2), time(), self._code, list(self.notes),
            verdict.wrong[:SHOWN], self._made_of,
        )  # fmt: skip
        self._append(OVER, asdict(found))
        self._known.append(found)
        self.tell(0)
        assert found.is_good, "\n".join([f"{found.title}, round {found.number}: {kinds}", *found.wrong])

    def check(self) -> None:
        """All rounds together have done what was to be done."""
        done: Counter[str] = Counter()
        for each in last(self._known):
            done.update(each.faults)
        assert {kind: min(done[kind], goal) for kind, goal in self.goal.items()} == dict(self.goal)

    def counted(self) -> Counter[str]:
        """Over all rounds, also those of an earlier call."""
        found: Counter[str] = Counter()
        for each in last(self._known):
            found.update(each.counted)
        return found

    def _done(self) -> int:
        kind = next(iter(self.goal))
        return sum(each.faults.get(kind, 0) for each in last(self._known) if each.is_good)

    def _append(self, name: str, row: Mapping[str, object]) -> None:
        self._folder.mkdir(parents=True, exist_ok=True)
        with (self._folder / name).open("a") as file:
            file.write(json.dumps(row) + "\n")


def read(folder: Path) -> list[Round]:
    """Every play of every round, also of those that were played again."""
    return [Round(**row) for row in _rows(folder / OVER)]


def last(rounds: Iterable[Round]) -> list[Round]:
    """The last word about each round."""
    return list({(each.suite, each.store, each.number, each.code): each for each in rounds}.values())


def begun(folder: Path) -> Counter[tuple[str, str]]:
    """How many rounds were begun, by title and code. What was not judged was stopped, or its test had a fault."""
    return Counter((row["title"], row["code"]) for row in _rows(folder / BEGUN))


def _rows(file: Path) -> Iterator[dict[str, Any]]:
    yield from map(json.loads, file.read_text().splitlines() if file.exists() else ())


class Soak:
    def __init__(self, folder: Path = FOLDER) -> None:
        self.folder = folder

    def suite(self, suite: str, store: str, *, goal: Mapping[str, int], seed: int, made_of: str = "") -> Suite:
        """`goal` says how many faults there must be of each kind; the first one is what a watcher is told about.
        `made_of` are the modules that its rounds are played with, if they are not everything (`code.py`)."""
        return Suite(self.folder, fingerprint(made_of), suite, store, goal, seed, made_of)


@pytest.fixture(scope="session")
def soak() -> Soak:
    return Soak()
