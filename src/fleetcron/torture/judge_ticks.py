"""Every tick has exactly one answer: a run, or its place in one line of the ledger. And no answer without a tick."""

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from itertools import pairwise
from typing import Final, NamedTuple

from fleetcron.torture import enumerator
from fleetcron.torture.case import Case
from fleetcron.torture.evidence import Row

_LIVING: Final = ("active", "paused")  # the ticks of a paused job are answered when it is resumed


class Span(NamedTuple):
    """A stretch of a job's life, (from, to], under one definition."""

    from_ms: int
    to_ms: int
    document: Row


def judge_ticks(case: Case) -> None:
    runs, ledger = case.of_job("runs"), case.of_job("ledger")
    gaps, cursors, revisions = case.of_job("gaps"), case.of_job("cursors"), case.of_job("job_revisions")
    for job in case.evidence.tables["jobs"]:
        key = str(job["job_id"])
        cursor = next(iter(cursors[key]), None)
        expected = _expected(revisions[key], cursor, case.evidence.now_ms)
        ticked = [run for run in runs[key] if run["kind"] != "manual"]
        _judge(case, case.names[key], expected, ticked, ledger[key], gaps[key])


def _expected(revisions: Sequence[Row], cursor: Row | None, now_ms: int) -> list[int]:
    """What the job's own history says it should have ticked, by our own count."""
    spans = list(_spans(sorted(revisions, key=lambda row: int(row["revision"])), cursor, now_ms))
    found = sorted({tick for span in spans for tick in enumerator.ticks(span.document, span.from_ms, span.to_ms)})
    most = spans[0].document["max_ticks"] if spans else None
    return found if most is None else found[:most]


def _spans(revisions: Sequence[Row], cursor: Row | None, now_ms: int) -> Iterator[Span]:
    if not revisions:
        return
    last_ms = int(revisions[-1]["at_ms"])
    if cursor is not None:
        last_ms = max(last_ms, int(cursor["cursor_ms"]), now_ms if cursor["state"] in ("active", "finished") else 0)
    edges = [*(int(row["at_ms"]) for row in revisions), last_ms]
    for row, (from_ms, to_ms) in zip(revisions, pairwise(edges), strict=True):
        if row["after"]["state"] in _LIVING:
            yield Span(from_ms, to_ms, row["after"])


def _judge(
    case: Case, name: str, expected: Sequence[int], runs: Sequence[Row], ledger: Sequence[Row], gaps: Sequence[Row]
) -> None:
    known = set(expected)
    answers = Counter(int(run["scheduled_for_ms"]) for run in runs)
    run_of = {int(run["scheduled_for_ms"]): int(run["run_id"]) for run in runs}
    for line in ledger:
        inside = expected[bisect_left(expected, line["from_ms"]) : bisect_right(expected, line["to_ms"])]
        answers.update(inside)
        if len(inside) != line["ticks"] or not {line["from_ms"], line["to_ms"]} <= known:
            what = f"the ledger says {line['ticks']} ticks from {shown(line['from_ms'])} to {shown(line['to_ms'])}"
            case.wrong("once", f"{what}, there are {len(inside)}", job=name)
    case.checked["answered"] += len(expected)
    case.checked["once"] += answers.total()
    undecided = {tick for tick in expected if any(gap["from_ms"] < tick <= gap["to_ms"] for gap in gaps)}
    for tick in expected:
        if not answers[tick]:
            why = "is not decided yet" if tick in undecided else "has no answer"
            case.wrong("answered", f"the tick {shown(tick)} {why}", job=name)
        elif answers[tick] > 1 or tick in undecided:
            case.wrong("once", f"the tick {shown(tick)} has two answers", job=name, run_id=run_of.get(tick))
    for tick in sorted(answers.keys() - known):
        case.wrong("once", f"{shown(tick)} is answered and was no tick", job=name, run_id=run_of.get(tick))


def shown(instant_ms: int) -> str:
    text = datetime.fromtimestamp(instant_ms / 1000, UTC).isoformat(timespec="milliseconds")
    return text.replace("+00:00", "Z").replace(".000Z", "Z")
