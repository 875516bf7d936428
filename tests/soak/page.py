"""The page about the long suites: one file, without anything from elsewhere, readable in light and in dark."""

import os
import platform
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from html import escape
from pathlib import Path
from typing import Final, TypeAlias

from tests.soak.code import fingerprint
from tests.soak.rounds import KINDS, Round, begun, read
from tests.soak.sums import Debt, Known, Told, bound, faults, known, short_bound, violations

NAME: Final = "report.html"
_BOUND: Final = "breaks a law, at 95 %"
Cell: TypeAlias = str | int | tuple[str, str]
STYLE: Final = """
:root { color-scheme: light dark; --line: #8886; --soft: #8882; --good: #1a7f37; --bad: #cf222e; --open: #8a5a00; }
@media (prefers-color-scheme: dark) { :root { --good: #3fb950; --bad: #ff7b72; --open: #d9a53a; } }
body { font: 15px/1.5 -apple-system, "Segoe UI", Roboto, "Liberation Sans", Arial, sans-serif; }
body { max-width: 76rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.6rem; margin-bottom: .2rem; } h2 { font-size: 1.15rem; margin-top: 2.2rem; }
.wide { overflow-x: auto; } table { border-collapse: collapse; width: 100%; }
th, td { text-align: left; padding: .35rem .6rem; border-bottom: 1px solid var(--line); vertical-align: top; }
th { background: var(--soft); font-weight: 600; } td { overflow-wrap: break-word; }
.n { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
.good { color: var(--good); } .bad { color: var(--bad); font-weight: 600; } .soft { opacity: .75; }
.open { color: var(--open); }
pre { white-space: pre-wrap; overflow-wrap: anywhere; margin: .3rem 0; font-size: .85rem; }
details { margin: .8rem 0; } summary { cursor: pointer; }
"""


@dataclass(frozen=True)
class Test:
    name: str
    outcome: str
    seconds: float


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


def summary(folder: Path, now: Callable[[str], str] = fingerprint) -> Iterator[str]:
    """For the terminal."""
    found = known(read(folder), begun(folder), now)
    if not found.here:
        return
    wrong, done = violations(found.here), faults(found.here)
    yield ", ".join(f"{wrong[kind]} {kind}" for kind in KINDS) + f" in {done.total()} faults"
    yield ", ".join(f"{kind} {number}" for kind, number in sorted(done.items()))
    for debt in found.owed():
        if debt.kind == "world" and debt.played:
            yield f"{worlds(debt)}; {bound(debt.violations, debt.played, 'world')}"


def worlds(debt: Debt) -> str:
    return f"{debt.played:,} {debt.name} on this code, {debt.earlier:,} on earlier code"


def write(folder: Path, tests: Sequence[Test], seconds: float, now: Callable[[str], str] = fingerprint) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / NAME
    path.write_text("".join(_page(known(read(folder), begun(folder), now), tests, seconds)))
    return path


def _page(found: Known, tests: Sequence[Test], seconds: float) -> Iterator[str]:
    yield "<!doctype html><html lang=en><meta charset=utf-8><meta name=viewport content='width=device-width'>"
    yield f"<title>fleetcron: the long suites</title><style>{STYLE}</style><h1>The long suites</h1>"
    yield f"<p class=soft>{escape(f'{datetime.now(UTC):%Y-%m-%d %H:%M} UTC · {machine()}')}</p>"
    yield from _headline(found)
    yield "<h2>What is to be shown</h2>"
    heads = ("what", "at least", "done on this code", "played on earlier code", _BOUND)
    yield from _table(heads, map(_debt, found.owed()))
    if found.here:
        yield "<h2>Suites on this code</h2>"
        heads = ("suite", "faults", "rounds", "bad", "unjudged", "ticks", "runs", "attempts", "violations", "took")
        yield from _table((*heads, "seed", _BOUND), (_row(each) for each in found.suites() if each.here))
        yield "<p class=soft>A bad round is played again; it stays in all sums, and among what broke."
        yield " Unjudged rounds were stopped, or their test had a fault of its own.</p>"
    others = [f"{each.title}: {_plays(each.earlier)}" for each in found.suites() if each.earlier]
    if others:
        yield f"<p class=soft>Rounds on earlier code, which count for nothing here: {escape('; '.join(others))}.</p>"
    notes = {note: each.title for each in found.here for note in each.notes}
    if notes:
        yield f"<details><summary>{len(notes)} remarks of the suites</summary><ul>"
        yield from (f"<li>{escape(title)}: {escape(note)}</li>" for note, title in notes.items())
        yield "</ul></details>"
    yield from _broken("What broke on this code", found.here)
    yield from _broken("What broke on earlier code", found.earlier)
    if tests:
        yield from _tests(tests, seconds)
    yield "</html>\n"


def _headline(found: Known) -> Iterator[str]:
    wrong, done = violations(found.here), faults(found.here)
    if not found.here:
        yield "<p class=open>Nothing has been played on this code yet.</p>"
        return
    counts = ", ".join(f"<b class={'bad' if wrong[kind] else 'good'}>{wrong[kind]} {kind}</b>" for kind in KINDS)
    yield f"<p>{counts} in {done.total():,} faults: {escape(bound(wrong.total(), done.total()))}.</p>"
    for debt in found.owed():
        if debt.kind == "world":
            yield f"<p>{worlds(debt)}: {escape(bound(debt.violations, debt.played, 'world'))}.</p>"


def _debt(debt: Debt) -> Iterator[Cell]:
    yield debt.name
    yield debt.least
    yield f"{debt.done:,}", "good" if debt.done >= debt.least else "open"
    yield debt.earlier
    yield short_bound(debt.violations, debt.played), "bad" if debt.violations else ""


def _row(suite: Told) -> Iterator[Cell]:
    done, counted, wrong = suite.sum("faults"), suite.sum("counted"), suite.sum("violations")
    yield suite.title
    yield ", ".join(f"{number:,} {kind}" for kind, number in sorted(done.items())) or "–"
    yield f"{suite.good}/{suite.first.of}", "good" if suite.good == suite.first.of else "open"
    yield f"{suite.bad}", "bad" if suite.bad else "good"
    yield f"{suite.unjudged}", "open" if suite.unjudged else "good"
    yield from (counted[what] for what in ("ticks", "runs", "attempts"))
    yield ", ".join(f"{wrong[kind]} {kind}" for kind in KINDS if wrong[kind]) or "0", "bad" if wrong else "good"
    yield duration(suite.seconds), ""
    yield suite.first.seed
    yield short_bound(wrong.total(), done[next(iter(suite.first.goal))]), "bad" if wrong else ""


def _plays(rounds: Sequence[Round]) -> str:
    bad = sum(not each.is_good for each in rounds)
    return f"{len(rounds)} ({bad} bad)" if bad else f"{len(rounds)}"


def _broken(title: str, rounds: Sequence[Round]) -> Iterator[str]:
    bad = [each for each in rounds if not each.is_good]
    if not bad:
        return
    latest = {(each.title, each.number, each.code): each for each in rounds}
    yield f"<h2>{escape(title)}</h2><ul>"
    for each in bad:
        again = latest[each.title, each.number, each.code]
        after = " (good when it was played again)" if again.is_good else ""
        kinds = ", ".join(f"{number} {kind}" for kind, number in each.violations.items())
        yield f"<li><b class=bad>{escape(f'{each.title}, round {each.number}: {kinds}')}</b>{after}"
        yield "".join(f"<pre>{escape(what)}</pre>" for what in each.wrong) + "</li>"
    yield "</ul>"


def _tests(tests: Sequence[Test], seconds: float) -> Iterator[str]:
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


def _table(heads: Sequence[str], rows: Iterable[Iterable[Cell]]) -> Iterator[str]:
    cells = [list(row) for row in rows]
    numbers = {at for row in cells for at, cell in enumerate(row) if not isinstance(cell, str)}
    yield "<div class=wide><table><tr>"
    yield "".join(f"<th{' class=n' if at in numbers else ''}>{escape(head)}</th>" for at, head in enumerate(heads))
    yield "</tr>"
    yield from (f"<tr>{''.join(map(_cell, row))}</tr>" for row in cells)
    yield "</table></div>"


def _cell(cell: Cell) -> str:
    match cell:
        case int():
            return f"<td class=n>{cell:,}</td>"
        case (text, how):
            return f"<td class='n {how}'>{escape(text)}</td>"
        case text:
            return f"<td>{escape(str(text))}</td>"
