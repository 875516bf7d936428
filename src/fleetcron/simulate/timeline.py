"""A rehearsal as a picture: one SVG that needs nothing else, readable on light and on dark pages. Pure.

Above, how many runs are worked on and wait; below, a line for each job: a bar for each attempt, a mark for each tick
that did not run. What falls on the same pixel is drawn once, so that a month of minutes stays small.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta
from typing import Final
from xml.sax.saxutils import escape, quoteattr

from fleetcron.simulate.outlook import Facts, RunFact, levels, running, waiting
from fleetcron.times.instants import from_ms

MOST_ROWS: Final = 60
_LEFT: Final = 190
_WIDTH: Final = 960  # of the plot
_ROW: Final = 18
_CHART: Final = 60
_STEPS_MS: Final = tuple(
    minutes * 60_000 for minutes in (
        1, 5, 10, 30, 60, 120, 180, 360, 720, 1440, 2880, 10_080, 43_200, 129_600, 259_200, 525_600,
    )
)  # fmt: skip
_TICKS: Final = 12
_DAY_MS: Final = 86_400_000

# one hue for each answer, told apart in both schemes; the title of each mark says the same in words
_STYLE: Final = """
:root { color-scheme: light dark }
.fc { font: 12px system-ui, sans-serif }
.fc .paper { fill: #ffffff } .fc text { fill: #1f2328 } .fc .dim { fill: #59636e }
.fc .rule { stroke: #d1d9e0 } .fc .outage { fill: #f0883e; fill-opacity: .18 }
.fc .succeeded { fill: #1a7f37 } .fc .failed { fill: #cf222e } .fc .running { fill: #0969da }
.fc .stopped { fill: #6e7781 }
.fc .skipped { fill: #9a6700 } .fc .missed { fill: #cf222e } .fc .merged { fill: #8250df }
.fc .level { fill: #0969da; fill-opacity: .35 } .fc .queue { fill: #bc4c00; fill-opacity: .45 }
@media (prefers-color-scheme: dark) {
.fc .paper { fill: #0d1117 } .fc text { fill: #f0f6fc } .fc .dim { fill: #9198a1 }
.fc .rule { stroke: #3d444d } .fc .outage { fill-opacity: .25 }
.fc .succeeded { fill: #3fb950 } .fc .failed { fill: #f85149 } .fc .running { fill: #4493f8 }
.fc .stopped { fill: #8b949e }
.fc .skipped { fill: #d29922 } .fc .missed { fill: #f85149 } .fc .merged { fill: #ab7df8 }
.fc .level { fill: #4493f8 } .fc .queue { fill: #f0883e }
}
"""
_OUTCOMES: Final[Mapping[str, str]] = {
    "succeeded": "succeeded", "failed": "failed", "timed_out": "failed", "dead": "failed", "running": "running",
}  # fmt: skip
_LEGEND: Final = (
    ("succeeded", "succeeded"), ("failed", "failed"), ("running", "unfinished"), ("stopped", "stopped"),
    ("skipped", "skipped"), ("merged", "merged"), ("missed", "missed"), ("outage", "outage"),
)  # fmt: skip
_MARKS: Final[Mapping[str, str]] = {"skipped": "skipped", "missed": "missed", "expired": "missed", "merged": "merged"}


def svg(panels: Sequence[tuple[str, Facts]]) -> str:
    """One panel for each rehearsal, the title above it."""
    drawn: list[str] = []
    top = 10
    for title, facts in panels:
        body, height = _Panel(title, facts, top).drawn()
        drawn += body
        top += height + 24
    width = _LEFT + _WIDTH + 20
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" class="fc" viewBox="0 0 {width} {top}" role="img"'
            ' aria-label="timeline of a simulation">',
            f"<style>{_STYLE}</style>",
            f'<rect class="paper" width="{width}" height="{top}"/>',
            *drawn,
            "</svg>\n",
        ]
    )


class _Panel:
    def __init__(self, title: str, facts: Facts, top: int) -> None:
        self._title = title
        self._facts = facts
        self._top = top
        self._span = max(1, facts.to_ms - facts.from_ms)

    def drawn(self) -> tuple[list[str], int]:
        facts, top = self._facts, self._top
        rows = self._rows()
        chart = top + 24
        first = chart + _CHART + 26
        bottom = first + _ROW * max(1, len(rows))
        body = [f'<text x="10" y="{top + 12}" font-weight="600">{escape(self._title)}</text>', *_legend(top)]
        body += [
            f'<rect class="outage" x="{self._x(begin):.1f}" y="{chart}" width="{self._w(begin, end):.1f}"'
            f' height="{bottom - chart}"><title>outage {_at(begin)} to {_at(end)}</title></rect>'
            for begin, end in facts.outages
        ]
        body += self._axis(chart, bottom)
        body += self._chart(chart)
        for at, job in enumerate(rows):
            body += self._row(job, first + at * _ROW)
        hidden = len(facts.jobs) - len(rows)
        if hidden:
            body.append(f'<text class="dim" x="10" y="{bottom + 14}">and {hidden} more jobs</text>')
        return body, bottom - top + (18 if hidden else 0)

    def _rows(self) -> list[str]:
        """Those of which there is something to see come first."""
        busy = dict.fromkeys(run.job for run in self._facts.runs) | dict.fromkeys(s.job for s in self._facts.ledger)
        ordered = [job for job in self._facts.jobs if job in busy] + [j for j in self._facts.jobs if j not in busy]
        return ordered[:MOST_ROWS]

    def _axis(self, top: int, bottom: int) -> Iterable[str]:
        step = next((each for each in _STEPS_MS if self._span / each <= _TICKS), _STEPS_MS[-1])
        moment = -(-self._facts.from_ms // step) * step
        while moment <= self._facts.to_ms:
            x = self._x(moment)
            side = "start" if x < _LEFT + _WIDTH - 70 else "end"
            yield f'<line class="rule" x1="{x:.1f}" x2="{x:.1f}" y1="{top}" y2="{bottom}"/>'
            label = from_ms(moment).strftime(_form(self._span, step))
            place = f'x="{x + (3 if side == "start" else -3):.1f}" y="{top + _CHART + 14}" text-anchor="{side}"'
            yield f'<text class="dim" {place} font-size="10">{label}</text>'
            moment += step

    def _chart(self, top: int) -> Iterable[str]:
        end = self._facts.to_ms
        drawn = (("level", running(self._facts.runs, end)), ("queue", waiting(self._facts)))
        found = [(name, levels(stretches)) for name, stretches in drawn]
        most = max((number for _, steps in found for _, number in steps), default=0)
        for at, words in enumerate(("blue: running", "orange: waiting", f"at most {most}")):
            yield f'<text class="dim" x="10" y="{top + 12 + 16 * at}" font-size="11">{words}</text>'
        for name, steps in found:
            if steps and most:
                yield f'<path class="{name}" d="{self._area(steps, top + _CHART, _CHART / most)}"/>'

    def _area(self, steps: Sequence[tuple[int, int]], base: float, scale: float) -> str:
        """The highest level of each pixel."""
        columns = [0] * (_WIDTH + 1)
        for (start, number), (end, _) in zip(steps, [*steps[1:], (self._facts.to_ms, 0)], strict=True):
            for column in range(self._column(start), self._column(end) + 1):
                columns[column] = max(columns[column], number)
        parts, before = [f"M{_LEFT} {base:.1f}"], 0
        for column, number in enumerate(columns):
            if number != before:
                parts.append(f"H{_LEFT + column}V{base - number * scale:.1f}")
                before = number
        return "".join([*parts, f"H{_LEFT + _WIDTH}V{base:.1f}Z"])

    def _row(self, job: str, top: int) -> Iterable[str]:
        name = job.removeprefix("default/")
        shown = name if len(name) <= 28 else f"{name[:27]}…"
        yield f'<text x="10" y="{top + 13}" font-size="11">{escape(shown)}<title>{escape(job)}</title></text>'
        seen: set[tuple[int, int, str]] = set()
        for run in self._facts.runs:
            if run.job == job:
                yield from self._run(run, top, seen)
        for stretch in self._facts.ledger:
            if stretch.job == job:
                kind = "merged" if stretch.reason == "covered" else _MARKS.get(stretch.answer, "stopped")
                words = f"{stretch.ticks} × {kind} ({stretch.reason}) {_at(stretch.from_ms)} to {_at(stretch.to_ms)}"
                yield self._bar(kind, stretch.from_ms, stretch.to_ms, top + 12, 3, words)

    def _run(self, run: RunFact, top: int, seen: set[tuple[int, int, str]]) -> Iterable[str]:
        for work in run.works:
            end = work.to_ms or self._facts.to_ms
            kind = _OUTCOMES.get(work.outcome, "stopped")
            place = self._column(work.from_ms), self._column(end), kind
            if place not in seen:
                seen.add(place)
                words = f"{_at(run.scheduled_for_ms)} {work.outcome}, {(end - work.from_ms) / 1000:g} s"
                late = "" if (run.late_ms or 0) < 1000 else f", {timedelta(seconds=(run.late_ms or 0) // 1000)} late"
                yield self._bar(kind, work.from_ms, end, top + 3, 8, words + late)
        if run.state in _MARKS:
            place = self._column(run.scheduled_for_ms), -1, run.state
            if place not in seen:
                seen.add(place)
                words = f"{_at(run.scheduled_for_ms)} {run.state}"
                yield self._bar(_MARKS[run.state], run.scheduled_for_ms, run.scheduled_for_ms, top + 12, 3, words)

    def _bar(self, kind: str, start: int, end: int, top: int, height: int, words: str) -> str:
        width = max(1.5, self._w(start, end))
        x = min(self._x(start), _LEFT + _WIDTH - 1.5)
        place = f'x="{x:.1f}" y="{top}" width="{width:.1f}" height="{height}"'
        return f"<rect class={quoteattr(kind)} {place}><title>{escape(words)}</title></rect>"

    def _x(self, ms: int) -> float:
        return _LEFT + min(1.0, max(0.0, (ms - self._facts.from_ms) / self._span)) * _WIDTH

    def _w(self, start: int, end: int) -> float:
        return self._x(end) - self._x(start)

    def _column(self, ms: int) -> int:
        return round(self._x(ms)) - _LEFT


def _form(span_ms: int, step_ms: int) -> str:
    if step_ms > 30 * _DAY_MS:
        return "%Y-%m-%d"  # years are told apart
    return "%m-%d %H:%M" if span_ms > _DAY_MS else "%H:%M"


def _legend(top: int) -> Iterable[str]:
    x = _LEFT + _WIDTH - 80 * len(_LEGEND)
    for kind, words in _LEGEND:
        yield f'<rect class="{kind}" x="{x}" y="{top + 4}" width="8" height="8"/>'
        yield f'<text class="dim" x="{x + 12}" y="{top + 12}" font-size="11">{words}</text>'
        x += 80


def _at(ms: int) -> str:
    return from_ms(ms).strftime("%Y-%m-%d %H:%M:%SZ")
