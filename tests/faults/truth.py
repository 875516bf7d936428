"""What must be true of the tables, whatever happened: read with SQL of our own, judged by a slow enumerator.

Nothing of src/ is used here. Every tick since a job's creation, up to its cursor, has exactly one answer: a run, or its
place in one line of the ledger. No run and no line for an instant that is no tick. A planned run is on its way once.
"""

import asyncio
import json
import sqlite3
from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from hashlib import sha256
from itertools import pairwise
from typing import Any

import asyncpg  # type: ignore[import-untyped]

from tests.times import reference

Row = Mapping[str, Any]
UNITS_MS = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001 (the reference takes naive instants)
# What each kind of violation is called when they are counted.
KINDS = {
    "lost": ("without an answer", "not caught up", "is not there", "(I1)"),
    "duplicated": ("with two answers", "(I7)"),
    "concurrent": ("(I3)",),
    "stale": ("(I9)",),
    "early": ("(I4)",),
}
TABLES = ("jobs", "job_revisions", "cursors", "runs", "upcoming", "ledger", "gaps", "events", "almanac")


@dataclass(frozen=True)
class Span:
    """A stretch of a job's life, (from, to], under one definition and one content of its calendars."""

    from_ms: int
    to_ms: int
    document: Row
    created_ms: int
    holidays: frozenset[str]


@dataclass
class Verdict:
    """What is wrong, and what was counted on the way."""

    wrong: list[str] = field(default_factory=list)
    ticks: int = 0
    runs: int = 0
    late_runs: int = 0
    ledger: int = 0  # ticks that the ledger answers
    undecided: int = 0
    events: Counter[str] = field(default_factory=Counter)

    @property
    def counted(self) -> dict[str, int]:
        return {"ticks": self.ticks, "runs": self.runs}

    def violations(self) -> Counter[str]:
        return by_kind(self.wrong) + Counter(lost=self.undecided)

    def __str__(self) -> str:
        kinds = ", ".join(f"{kind} {count}" for kind, count in sorted(self.events.items()))
        return (
            f"{self.ticks} ticks: {self.runs} runs ({self.late_runs} of them caught up), {self.ledger} in the ledger,"
            f" {self.undecided} undecided; events: {kinds}"
        )


def by_kind(wrong: Iterable[str]) -> Counter[str]:
    """Whatever is wrong otherwise is `other`."""
    return Counter(
        next((kind for kind, tags in KINDS.items() if any(tag in what for tag in tags)), "other") for what in wrong
    )


class Tables:
    """All rows of a database at one moment."""

    def __init__(self, rows: Mapping[str, Sequence[Row]], now_ms: int | None = None) -> None:
        self.rows = rows
        self.now_ms = now_ms

    def __getitem__(self, table: str) -> Sequence[Row]:
        return self.rows[table]

    def by_job(self, table: str) -> dict[str, list[Row]]:
        found: dict[str, list[Row]] = defaultdict(list)
        for row in self.rows[table]:
            found[str(row["job_id"])].append(row)
        return found


def read(url: str, tables: Sequence[str] = TABLES) -> Tables:
    if url.startswith("sqlite:///"):
        return _read_sqlite(url.removeprefix("sqlite:///"), tables)
    return asyncio.run(read_postgres(url, tables))


async def read_postgres(url: str, tables: Sequence[str] = TABLES) -> Tables:
    connection = await asyncpg.connect(url, server_settings={"search_path": "fleetcron"})
    try:
        return await read_through(connection, tables)
    finally:
        await connection.close()


async def read_through(connection: asyncpg.Connection, tables: Sequence[str] = TABLES) -> Tables:
    async with connection.transaction(isolation="repeatable_read"):
        rows = {table: await connection.fetch(f"SELECT * FROM {table}") for table in tables}
        bodies = await connection.fetch("SELECT * FROM almanac_bodies")
        return Tables({**rows, "almanac_bodies": bodies}, await connection.fetchval("SELECT db_now_ms()"))


def _read_sqlite(path: str, tables: Sequence[str]) -> Tables:
    with closing(sqlite3.connect(path)) as connection:
        connection.row_factory = sqlite3.Row
        every = (*tables, "almanac_bodies")
        return Tables({table: connection.execute(f"SELECT * FROM {table}").fetchall() for table in every})


def judge(tables: Tables, now_ms: int | None = None) -> Verdict:
    """`now_ms` is when all must have caught up; without it the database's time, if it has one of its own."""
    now_ms = now_ms or tables.now_ms or 0
    verdict = Verdict()
    for event in tables["events"]:
        verdict.events[event["kind"]] += event["count"]
    runs, ledger = tables.by_job("runs"), tables.by_job("ledger")
    gaps, cursors, revisions = tables.by_job("gaps"), tables.by_job("cursors"), tables.by_job("job_revisions")
    calendars = _calendars(tables)
    for job in tables["jobs"]:
        key = str(job["job_id"])
        cursor = next(iter(cursors[key]), None)
        spans = list(_spans(job, revisions[key], cursor, now_ms, calendars))
        _judge_job(verdict, job, cursor, spans, runs[key], ledger[key], gaps[key])
    _judge_queue(verdict, tables)
    return verdict


def _judge_job(
    verdict: Verdict,
    job: Row,
    cursor: Row | None,
    spans: Sequence[Span],
    runs: Sequence[Row],
    ledger: Sequence[Row],
    gaps: Sequence[Row],
) -> None:
    def wrong(what: str, *instants: int) -> None:
        verdict.wrong.append(f"{job['name']}: {what} {', '.join(map(shown, instants[:5]))} ({len(instants)})")

    expected = {tick: span for span in spans for tick in ticks(span)}
    ordered = sorted(expected)
    reach = cursor["cursor_ms"] if cursor else max((span.to_ms for span in spans), default=0)
    answered = Counter(run["scheduled_for_ms"] for run in runs)
    for line in ledger:
        inside = ordered[bisect_left(ordered, line["from_ms"]) : bisect_right(ordered, line["to_ms"])]
        answered.update(inside)
        verdict.ledger += len(inside)
        if len(inside) != line["ticks"] or not {line["from_ms"], line["to_ms"]} <= expected.keys():
            wrong(f"a line of the ledger says {line['ticks']} ticks", line["from_ms"], line["to_ms"])
    late = [tick for tick in expected if tick > reach and not answered[tick]]
    if late:
        wrong("not caught up", *late)
    undecided = {tick for tick in expected if any(gap["from_ms"] < tick <= gap["to_ms"] for gap in gaps)}
    lost = [tick for tick in expected if tick <= reach and not answered[tick] and tick not in undecided]
    if lost:
        wrong("without an answer", *lost)
    twice = [tick for tick, times in answered.items() if times > 1 or tick in undecided]
    if twice:
        wrong("with two answers", *twice)
    alien = [tick for tick in answered if tick not in expected or tick > reach]
    if alien:
        wrong("answers for instants that are no ticks", *alien)
    covered = Counter({line["covered_by_ms"]: line["ticks"] for line in ledger if line["covered_by_ms"]})
    tick_of = {run["run_id"]: run["scheduled_for_ms"] for run in runs}
    covered.update(
        tick_of[run["covered_by"]] for run in runs if run["covered_by"] is not None
    )  # by a run that was late
    for run in runs:
        _judge_run(verdict, job, run, expected, ordered, covered)
    verdict.ticks += len(expected) - len(late)
    verdict.runs += len(runs)
    verdict.late_runs += sum(run["lane"] == "catchup" for run in runs)
    verdict.undecided += len(undecided)


def _judge_run(
    verdict: Verdict, job: Row, run: Row, expected: Mapping[int, Span], ordered: list[int], covered: Counter[int]
) -> None:
    tick = run["scheduled_for_ms"]
    if tick not in expected:
        return  # said already
    document = expected[tick].document
    place = bisect_right(ordered, tick)
    following = ordered[place] if place < len(ordered) else None
    if following and expected[following].document is not document:
        following = None  # an edit came in between; what was due before it stands
    jitter_ms = duration_ms(document["jitter"])
    if not tick <= run["run_after_ms"] <= tick + jitter_ms or (following and run["run_after_ms"] >= following):
        verdict.wrong.append(f"{job['name']}: {shown(tick)} may start at {shown(run['run_after_ms'])}")
    if following and jitter_ms and following - tick >= jitter_ms:
        seed = f"{document['tenant']}/{document['name']}".encode()
        if run["run_after_ms"] - tick != int.from_bytes(sha256(seed).digest()[:8], "big") % jitter_ms:
            verdict.wrong.append(f"{job['name']}: {shown(tick)} has another jitter")
    if run["covers"] != 1 + covered[tick]:
        verdict.wrong.append(
            f"{job['name']}: {shown(tick)} covers {run['covers']}, the ledger says {1 + covered[tick]}"
        )
    # what was planned in time is caught up if nobody was there to start it: then it has started later
    if run["lane"] == "catchup" and run["created_ms"] < tick and run["started_ms"] is None:
        verdict.wrong.append(f"{job['name']}: {shown(tick)} was caught up before it was late")


def _judge_queue(verdict: Verdict, tables: Tables) -> None:
    """Nothing is claimed in these tests: every run is planned, and on its way exactly once."""
    queued = Counter((row["run_id"], row["run_after_ms"], str(row["job_id"])) for row in tables["upcoming"])
    planned = Counter((run["run_id"], run["run_after_ms"], str(run["job_id"])) for run in tables["runs"])
    if queued != planned:
        differ = [*(queued - planned), *(planned - queued)]
        verdict.wrong.append(f"runs and upcoming differ: {differ[:5]} ({len(differ)})")


def _spans(
    job: Row, revisions: Sequence[Row], cursor: Row | None, now_ms: int, calendars: Mapping[str, Sequence[Row]]
) -> Iterator[Span]:
    ordered = sorted(revisions, key=lambda row: int(row["revision"]))
    ends = [row["at_ms"] for row in ordered[1:]]
    last = max(cursor["cursor_ms"], now_ms if cursor["state"] == "active" else 0) if cursor else ordered[-1]["at_ms"]
    for row, end in zip(ordered, [*ends, last], strict=True):
        document = json.loads(row["after"])
        if document["state"] not in ("active", "paused"):
            continue
        uses = [use["name"] for use in document["calendars"]]
        changes = [each for name in uses for each in calendars.get(name, [])]
        edges = sorted({row["at_ms"], end, *(c["noted_ms"] for c in changes if row["at_ms"] < c["noted_ms"] < end)})
        for low, high in pairwise(edges):
            holidays = frozenset(day for name in uses for day in _holidays(calendars.get(name, []), low))
            yield Span(low, high, document, job["created_ms"], holidays)


def _calendars(tables: Tables) -> dict[str, list[Row]]:
    bodies = {row["hash"]: json.loads(row["body"]) for row in tables["almanac_bodies"] if row["body"][:1] == "{"}
    found: dict[str, list[Row]] = defaultdict(list)
    for row in sorted(tables["almanac"], key=lambda row: int(row["epoch"])):
        if row["kind"] == "calendar":
            found[row["name"]].append({"noted_ms": row["noted_ms"], **bodies[row["hash"]]})
    return found


def _holidays(versions: Sequence[Row], at_ms: int) -> Iterable[str]:
    return next((each["holidays"] for each in reversed(versions) if each["noted_ms"] <= at_ms), ())


def ticks(span: Span) -> list[int]:
    found: set[int] = set()
    for entry in span.document["schedule"]:
        if "cron" in entry:
            policies = entry["dst_gap"], entry["dst_fold"]
            found.update(_cron(entry["cron"], entry["timezone"], span.from_ms, span.to_ms, *policies))
        elif "every" in entry:
            found.update(_every(entry, span))
        else:
            at_ms = round(datetime.fromisoformat(entry["at"]).timestamp() * 1000)
            found.update({at_ms} if span.from_ms < at_ms <= span.to_ms else ())
    within = sorted(tick for tick in found if shown(tick)[:10] not in span.holidays)  # all calendars here are in UTC
    most = span.document["max_ticks"]
    return within if most is None else within[:most]  # jobs with a bound are never edited in these tests


def _every(entry: Row, span: Span) -> Iterator[int]:
    step = duration_ms(entry["every"])
    anchor = span.created_ms // 1000 * 1000
    if entry["anchor"]:
        anchor = round(datetime.fromisoformat(entry["anchor"]).timestamp() * 1000)
    tick = anchor + (span.from_ms - anchor) // step * step
    while (tick := tick + step) <= span.to_ms:
        yield tick


@lru_cache(maxsize=50_000)
def _cron(expression: str, zone: str, from_ms: int, to_ms: int, gap: str, fold: str) -> tuple[int, ...]:
    return tuple(tick for tick in _hours(expression, zone, from_ms, to_ms, gap, fold) if from_ms < tick <= to_ms)


def _hours(expression: str, zone: str, from_ms: int, to_ms: int, gap: str, fold: str) -> Iterator[int]:
    """Whole hours, so that jobs that were created at different moments share the work."""
    for hour in range(from_ms // 3_600_000, to_ms // 3_600_000 + 1):
        yield from _hour(expression, zone, hour, gap, fold)


@lru_cache(maxsize=50_000)
def _hour(expression: str, zone: str, hour: int, gap: str, fold: str) -> tuple[int, ...]:
    low = EPOCH + timedelta(hours=hour) - timedelta(microseconds=1)
    high = EPOCH + timedelta(hours=hour + 1) - timedelta(microseconds=1)
    found = reference.ticks(expression, zone, low, high, gap, fold)
    return tuple((tick - EPOCH) // timedelta(milliseconds=1) for tick in found)


def duration_ms(text: str | None) -> int:
    if not text:
        return 0
    number = text.rstrip("dhms")
    return int(number) * UNITS_MS[text[len(number) :]]


def shown(instant_ms: int) -> str:
    return datetime.fromtimestamp(instant_ms / 1000, UTC).isoformat()[:23]
