"""Many worlds, resumable: what is done is kept in a file, with the code that it was done with."""

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

import click

from tests.simulate.campaign import Result, bound
from tests.soak.code import WORLDS, fingerprint

_EVERY = 50  # worlds between two lines, where there is no terminal


@dataclass
class Tally:
    """What is known of these seeds so far."""

    seeds: range
    file: Path | None = None
    good: set[int] = field(default_factory=set)
    failed: set[int] = field(default_factory=set)
    cpu_s: float = 0.0

    def __post_init__(self) -> None:
        self._code = fingerprint(WORLDS)
        self._before = 0
        if self.file is None:
            return
        self.file.parent.mkdir(parents=True, exist_ok=True)
        for line in self.file.read_text().splitlines() if self.file.exists() else ():
            row = json.loads(line)
            if row["code"] == self._code and row["seed"] in self.seeds:
                (self.failed if row["laws"] else self.good).add(row["seed"])
        self._before = self.count

    @property
    def count(self) -> int:
        return len(self.good) + len(self.failed)

    def left(self) -> list[int]:
        """What is not done; what failed is told again."""
        return [seed for seed in self.seeds if seed not in self.good]

    def add(self, result: Result) -> None:
        (self.good if result.is_good else self.failed).add(result.seed)
        self.cpu_s += result.cpu_s
        if self.file is not None:
            with self.file.open("a") as file:
                print(json.dumps({"code": self._code, "seed": result.seed, "laws": result.laws}), file=file)

    def __str__(self) -> str:
        each_s = self.cpu_s / max(1, self.count - self._before)
        return f"{bound(len(self.failed), self.count)}; {each_s:.2f} s each"


class Show(Protocol):
    def __call__(self, tally: Tally) -> None: ...


@contextmanager
def progress(tally: Tally) -> Iterator[Show]:
    """A bar for people, lines for files. To the standard error: what failed goes elsewhere."""
    if not sys.stderr.isatty():
        yield _lines
        return
    with click.progressbar(
        length=len(tally.seeds), label="worlds", file=sys.stderr, show_pos=True, item_show_func=lambda _: str(tally)
    ) as bar:
        bar.update(len(tally.good))

        def show(tally: Tally) -> None:
            bar.update(tally.count - bar.pos, tally)

        yield show


def _lines(tally: Tally) -> None:
    if tally.count % _EVERY == 0 or tally.count == len(tally.seeds):
        print(f"{tally.count}/{len(tally.seeds)}: {tally}", file=sys.stderr, flush=True)
