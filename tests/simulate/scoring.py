"""Score the checker: play worlds with known-bad variants of the code, until a law is broken."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from tests.simulate.campaign import Result, Wanted, apart
from tests.simulate.variants import VARIANTS

FIRST = 1000  # seed
MINUTES = {"plain": 20.0, "dense": 6.0, "crowded": 6.0}


@dataclass(frozen=True, slots=True)
class Score:
    name: str
    worlds: int
    laws: tuple[str, ...] = ()  # that were broken; none: it survived
    seed: int | None = None
    cpu_s: float = 0.0

    def __str__(self) -> str:
        if self.laws:
            assert self.seed is not None
            again = wanted_of(self.name, self.seed).command()  # the seed alone is another world
            return f"{self.name}: caught by {', '.join(self.laws)} in world {self.worlds}: {again}"
        variant = VARIANTS[self.name]
        why = variant.hidden or (variant.elsewhere and f"only {variant.elsewhere} catches it") or "nobody knows why"
        return f"{self.name}: SURVIVED {self.worlds} worlds: {why}"


def scored(names: Sequence[str], most: int, at_once: int = 1) -> Iterator[Score]:
    for name in names:
        yield _score(name, most, at_once)


def _score(name: str, most: int, at_once: int) -> Score:
    worlds, cpu_s = 0, 0.0
    for result in _worlds(name, most, at_once):
        worlds, cpu_s = worlds + 1, cpu_s + result.cpu_s
        if result.laws:
            return Score(name, worlds, tuple(result.laws), result.seed, cpu_s)
    return Score(name, worlds, cpu_s=cpu_s)


def _worlds(name: str, most: int, at_once: int) -> Iterator[Result]:
    """One after the other first: most are caught by the first."""
    variant = VARIANTS[name]
    wanted = [wanted_of(name, seed) for seed in range(FIRST, FIRST + most)]
    for some in (wanted[:1], wanted[1:]):
        for start in range(0, len(some), at_once):
            yield from apart(some[start : start + at_once], variant.apply, at_once, batch=1)


def wanted_of(name: str, seed: int) -> Wanted:
    variant = VARIANTS[name]
    minutes = variant.minutes or MINUTES[variant.kind]
    return Wanted(seed, minutes, only=variant.faults, variant=name, kind=variant.kind)


def clean(score: Score) -> Result:
    """The same world with the code as it is: it must break no law there."""
    assert score.seed is not None
    [found] = list(apart([replace(wanted_of(score.name, score.seed), variant=None)]))
    return found
