"""What all rounds together say: sums, what was to be shown, and bounds. Pure but for the code that is there now."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from tests.soak.code import fingerprint
from tests.soak.rounds import Round, last

# What must be shown at least: the faults of a kind, over all suites of a store.
OWED: Final = (
    ("kill", "sqlite", 1000),
    ("kill", "postgres", 1000),
    ("database restart", None, 100),
    ("zombie", None, 200),
    ("black hole", None, 50),
    ("partition", None, 50),
    ("clock jump", None, 50),
    ("world", None, 10_000),
    ("story", None, 500),
)
PLAYED: Final = {"world", "variant", "story", "move", "deploy"}  # what is played, not done to anybody


@dataclass(frozen=True)
class Known:
    """`here`: every play on the code that is there now, the bad ones too. `earlier`: on any other."""

    here: Sequence[Round]
    earlier: Sequence[Round]
    begun: Mapping[tuple[str, str], int] = field(default_factory=dict)  # by title and code

    def suites(self) -> "list[Told]":
        titles = sorted({each.title for each in (*self.here, *self.earlier)})
        return [
            Told(
                title,
                [each for each in self.here if each.title == title],
                [each for each in self.earlier if each.title == title],
                self.begun,
            )
            for title in titles
        ]

    @property
    def unjudged(self) -> int:
        return sum(each.unjudged for each in self.suites())

    def owed(self) -> Iterator["Debt"]:
        for kind, store, least in OWED:
            many = "stories" if kind == "story" else f"{kind}s"
            name = many if store is None else f"{many} on {store}"
            here, earlier = (
                [each for each in some if kind in each.faults and (store is None or each.store.startswith(store))]
                for some in (self.here, self.earlier)
            )
            done = sum(each.faults[kind] for each in last(here) if each.is_good)
            played, before = (sum(each.faults[kind] for each in some) for some in (here, earlier))
            yield Debt(name, kind, least, done, played, before, sum(sum(each.violations.values()) for each in here))


@dataclass(frozen=True)
class Debt:
    """What was to be shown: `done` counts the good rounds once, `played` everything on this code."""

    name: str
    kind: str
    least: int
    done: int
    played: int
    earlier: int
    violations: int


@dataclass(frozen=True)
class Told:
    """All plays of one suite on one store."""

    title: str
    here: Sequence[Round]
    earlier: Sequence[Round]
    begun: Mapping[tuple[str, str], int]

    @property
    def first(self) -> Round:
        return [*self.here, *self.earlier][0]

    def sum(self, what: str) -> Counter[str]:
        found: Counter[str] = Counter()
        for each in self.here:
            found.update(getattr(each, what))
        return found

    @property
    def seconds(self) -> float:
        return sum(each.seconds for each in self.here)

    @property
    def good(self) -> int:
        return sum(each.is_good for each in last(self.here))

    @property
    def bad(self) -> int:
        """Plays, also of rounds that were good when they were played again."""
        return sum(not each.is_good for each in self.here)

    @property
    def unjudged(self) -> int:
        """Stopped, or the test itself had a fault."""
        code = {each.code for each in self.here}
        begun = sum(number for (title, of), number in self.begun.items() if title == self.title and of in code)
        return max(0, begun - len(self.here))


def known(
    rounds: Iterable[Round],
    begun: Mapping[tuple[str, str], int] | None = None,
    now: Callable[[str], str] = fingerprint,
) -> Known:
    """`now` is the code that is there, of what a suite is made of."""
    here: list[Round] = []
    earlier: list[Round] = []
    for each in rounds:
        (here if each.code == now(each.made_of) else earlier).append(each)
    return Known(here, earlier, begun or {})


def violations(rounds: Iterable[Round]) -> Counter[str]:
    return sum((Counter(each.violations) for each in rounds), Counter())


def faults(rounds: Iterable[Round]) -> Counter[str]:
    """What was done to somebody."""
    found: Counter[str] = sum((Counter(each.faults) for each in rounds), Counter())
    return Counter({kind: number for kind, number in found.items() if kind not in PLAYED})


def bound(violations: int, times: int, what: str = "fault") -> str:
    """What so many say about one more, at 95 %: none in n is less than 3/n (the rule of three)."""
    if not times:
        return "nothing is known"
    if violations:
        return f"{violations} in {times:,} × {what}"
    return f"less than {_share(times)} break a law, at 95 % (0 in {times:,} × {what})"


def short_bound(violations: int, times: int) -> str:
    if not times:
        return "–"
    return f"{violations} in {times:,}" if violations else f"< {_share(times)}"


def _share(times: int) -> str:
    share = min(3 / times, 1.0)
    return f"{share:.3%}" if share < 0.001 else f"{share:.2%}"
