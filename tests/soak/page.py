"""The page about the long suites: one file, without anything from elsewhere, readable in light and in dark."""

import os
import platform
import sqlite3
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from html import escape
from pathlib import Path
from typing import Final

from tests.soak.rounds import KINDS, Round, read

NAME: Final = "report.html"
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
STYLE: Final = """
:root { color-scheme: light dark; --line: #8886; --soft: #8882; --good: #1a7f37; --bad: #cf222e; }
@media (prefers-color-scheme: dark) { :root { --good: #3fb950; --bad: #ff7b72; } }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 76rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.6rem; margin-bottom: .2rem; } h2 { font-size: 1.15rem; margin-top: 2.2rem; }
.wide { overflow-x: auto; } table { border-collapse: collapse; width: 100%; }
th, td { text-align: left; padding: .35rem .6rem; border-bottom: 1px solid var(--line); vertical-align: top; }
th { background: var(--soft); font-weight: 600; } .n { text-align: right; font-variant-numeric: tabular-nums; }
.good { color: var(--good); } .bad { color: var(--bad); font-weight: 600; } .soft { opacity: .75; }
"""


@dataclass(frozen=True)
class Test:
    name: str
    outcome: str
    seconds: float


@dataclass(frozen=True)
class Told:
    """All rounds of one suite on one store."""

    rounds: Sequence[Round]

    @property
    def first(self) -> Round:
        return self.rounds[0]

    def sum(self, what: str) -> Counter[str]:
        found: Counter[str] = Counter()
        for each in self.rounds:
            found.update(getattr(each, what))
        return found

    @property
    def seconds(self) -> float:
        return sum(each.seconds for each in self.rounds)


def told(rounds: Iterable[Round]) -> list[Told]:
    found: dict[str, list[Round]] = {}
    for each in rounds:
        found.setdefault(each.title, []).append(each)
    return [Told(sorted(each, key=lambda one: one.number)) for _, each in sorted(found.items())]


def newest(rounds: Sequence[Round]) -> list[Round]:
    """Of the code that was last at work: what was found with another one says nothing about it."""
    last = max(rounds, key=lambda each: each.at, default=None)
    return [each for each in rounds if last and each.code == last.code]


def bound(violations: int, times: int, what: str = "fault") -> str:
    """What so many say about one more, at 95 %."""
    if not times:
        return "nothing is known"
    if violations:
        return f"{violations} in {times:,} × {what}"
    return f"less than {3 / times:.2%} break a law, at 95 % (0 in {times:,} × {what})"


def duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02} m" if hours else f"{minutes} m {rest:02} s" if minutes else f"{rest} s"


def machine() -> str:
    lines = Path("/proc/cpuinfo").read_text().splitlines() if Path("/proc/cpuinfo").exists() else []
    cpu = next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), platform.machine())
    gigabytes = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2**30
    return (
        f"{os.cpu_count()} × {cpu}, {gigabytes:.0f} GiB, {platform.system()} {platform.release()},"
        f" Python {platform.python_version()}, SQLite {sqlite3.sqlite_version}"
    )


def owed(rounds: Sequence[Round]) -> Iterator[tuple[str, int, int]]:
    """What was to be shown, how often, and how often it was."""
    for kind, store, least in OWED:
        some = [each for each in rounds if store is None or each.store.startswith(store)]
        many = "stories" if kind == "story" else f"{kind}s"
        name = many if store is None else f"{many} on {store}"
        yield name, least, sum(each.faults.get(kind, 0) for each in some)


def summary(folder: Path) -> Iterator[str]:
    """For the terminal."""
    rounds = newest(read(folder))
    if not rounds:
        return
    wrong, faults = _violations(rounds), _faults(rounds)
    yield ", ".join(f"{wrong[kind]} {kind}" for kind in KINDS) + f" in {faults.total()} faults"
    yield ", ".join(f"{kind} {number}" for kind, number in sorted(faults.items()))


def write(folder: Path, tests: Sequence[Test], seconds: float) -> Path:
    known = read(folder)
    rounds = newest(known)
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / NAME
    path.write_text("".join(_page(rounds, len(known) - len(rounds), tests, seconds)))
    return path


def _violations(rounds: Iterable[Round]) -> Counter[str]:
    return sum((Counter(each.violations) for each in rounds), Counter())


def _faults(rounds: Iterable[Round]) -> Counter[str]:
    """What was done to somebody."""
    found: Counter[str] = sum((Counter(each.faults) for each in rounds), Counter())
    return Counter({kind: number for kind, number in found.items() if kind not in PLAYED})


def _page(rounds: Sequence[Round], others: int, tests: Sequence[Test], seconds: float) -> Iterator[str]:
    wrong, faults = _violations(rounds), _faults(rounds)
    yield "<!doctype html><html lang=en><meta charset=utf-8><meta name=viewport content='width=device-width'>"
    yield f"<title>fleetcron: the long suites</title><style>{STYLE}</style><h1>The long suites</h1>"
    yield f"<p class=soft>{escape(f'{datetime.now(UTC):%Y-%m-%d %H:%M} UTC · {machine()}')}</p>"
    counts = ", ".join(f"<b class={'bad' if wrong[kind] else 'good'}>{wrong[kind]} {kind}</b>" for kind in KINDS)
    yield f"<p>{counts} in {faults.total():,} faults: {escape(bound(wrong.total(), faults.total()))}.</p>"
    if others:
        yield f"<p class=soft>{others} rounds were done with other code and are not counted.</p>"
    yield "<h2>What was to be shown</h2>"
    yield from _table(
        ("faults", "at least", "done"),
        ((name, least, (f"{done:,}", "good" if done >= least else "bad")) for name, least, done in owed(rounds)),
    )
    yield "<h2>Suites</h2>"
    heads = ("suite", "faults", "rounds", "ticks", "runs", "attempts", *KINDS, "took", "seed", "bound")
    yield from _table(heads, map(_row, told(rounds)))
    notes = {note: each.title for each in rounds for note in each.notes}
    if notes:
        yield "<ul>" + "".join(f"<li>{escape(title)}: {escape(note)}</li>" for note, title in notes.items()) + "</ul>"
    if wrong:
        yield "<h2>What broke</h2><ul>"
        yield from (
            f"<li>{escape(f'{each.title}, round {each.number}: {what}')}</li>" for each in rounds for what in each.wrong
        )
        yield "</ul>"
    if tests:
        passed = Counter(each.outcome for each in tests)
        text = ", ".join(f"{number} {outcome}" for outcome, number in sorted(passed.items()))
        yield f"<h2>All long tests of this call</h2><p>{text} in {duration(seconds)}.</p>"
        slowest = sorted(tests, key=lambda each: (each.outcome == "passed", -each.seconds))
        yield from _table(
            ("test", "outcome", "took"),
            (
                (each.name, (each.outcome, "good" if each.outcome == "passed" else "bad"), duration(each.seconds))
                for each in slowest
            ),
        )
    yield "</html>\n"


Cell = str | int | tuple[str, str]


def _row(suite: Told) -> Iterator[Cell]:
    faults, counted, wrong = suite.sum("faults"), suite.sum("counted"), suite.sum("violations")
    yield suite.first.title
    yield ", ".join(f"{number:,} {kind}" for kind, number in sorted(faults.items()))
    good = sum(each.is_good for each in suite.rounds)
    yield f"{good}/{suite.first.of}", "good" if good == suite.first.of else "bad"
    yield from (counted[what] for what in ("ticks", "runs", "attempts"))
    yield from ((f"{wrong[kind]}", "bad" if wrong[kind] else "good") for kind in KINDS)
    yield duration(suite.seconds)
    yield str(suite.first.seed)
    kind = next(iter(suite.first.goal))
    yield bound(wrong.total(), faults[kind], kind)


def _table(heads: Sequence[str], rows: Iterable[Iterable[Cell]]) -> Iterator[str]:
    yield "<div class=wide><table><tr>" + "".join(f"<th>{escape(head)}</th>" for head in heads) + "</tr>"
    for row in rows:
        yield "<tr>" + "".join(map(_cell, row)) + "</tr>"
    yield "</table></div>"


def _cell(cell: Cell) -> str:
    match cell:
        case int():
            return f"<td class=n>{cell:,}</td>"
        case (text, how):
            return f"<td class='n {how}'>{escape(text)}</td>"
        case text:
            return f"<td>{escape(str(text))}</td>"
