"""What the laws look at: the record of a world in order, and the ticks that every job must have had, enumerated by the
slow reference of tests/scheduler."""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from hashlib import sha256
from json import loads
from typing import Any, Final, NamedTuple

from fleetcron.model.calendar import CalendarDocument
from fleetcron.model.definition import Definition
from fleetcron.model.rules import CronEntry, Entry, EveryEntry
from fleetcron.times import zones
from tests.scheduler.enumerator import Book, Ticks, ticks_of
from tests.simulate.record import Begun, Record, Row
from tests.simulate.scenario import Scenario

_ROUND_MS = 3_600_000  # so far around a stretch its neighbours are looked for
_FOR_EVER: Final = 1 << 60


@dataclass(frozen=True, slots=True)
class Violation:
    law: str
    text: str
    run_id: int | None = None
    job_id: str | None = None
    at_s: float | None = None

    def __str__(self) -> str:
        return f"{self.law}: {self.text}"


class Queued(NamedTuple):
    """A run waits in the queue of its pool, from one instant of the loop to another."""

    run: Row
    lane: str
    from_ms: int
    to_ms: int

    def surely_at(self, at_ms: int) -> bool:
        """Within one millisecond nobody knows what came first."""
        return self.from_ms < at_ms < self.to_ms

    def maybe_at(self, at_ms: int) -> bool:
        return self.from_ms <= at_ms <= self.to_ms


@dataclass
class Stretch:
    """One revision of a job: its ticks are those in (begin, end]."""

    begin: int
    end: int
    definition: Definition
    state: str  # active, paused, cancelled, finished; deleted
    created_ms: int
    book: Book
    on_resume: str | None = None
    resumed: str | None = None  # how a paused stretch ended: resume, cancel, delete; None: it has not

    @cached_property
    def rule(self) -> Ticks:
        return ticks_of(self.definition, self.created_ms, self.book)

    @cached_property
    def around(self) -> list[int]:
        """Its ticks and their neighbours."""
        low, high, windows = self.begin - _ROUND_MS, self.end + _ROUND_MS, self.rule.windows
        plain = self.rule.outside_days(low, high)
        found = {tick for tick in plain if not any(start <= tick < end for start, end in windows)}
        if self.rule.defer:
            found |= {end for start, end in windows if any(start <= tick < end for tick in plain)}
        return sorted(found)

    @cached_property
    def ticks(self) -> list[int]:
        return self.around[bisect_right(self.around, self.begin) : bisect_right(self.around, self.end)]

    def following(self, tick: int) -> int | None:
        at = bisect_right(self.around, tick)
        return self.around[at] if at < len(self.around) else None

    def start(self, tick: int) -> int:
        """When the run of a tick may start: delayed by less than the jitter, before the next tick and blackout."""
        if not self.definition.jitter_ms:
            return tick
        following = self.following(tick)
        room = [self.definition.jitter_ms, *(start - tick for start, _ in self.rule.windows if start > tick)]
        room += [] if following is None else [following - tick]
        return tick + _hashed(f"{self.definition.tenant}/{self.definition.name}") % min(room)

    def late_after(self, tick: int) -> int:
        """Who plans it after this instant is late."""
        definition, following = self.definition, self.following(tick)
        bounds = [self.start(tick) + definition.misfire.grace_ms]
        bounds += [] if following is None else [following]
        bounds += [] if definition.start_deadline_ms is None else [tick + definition.start_deadline_ms]
        return min(bounds)


def _book(calendars: Sequence[CalendarDocument], definition: Definition) -> Book:
    known = {each.name: each for each in calendars if each.tenant == definition.tenant}
    names = [getattr(entry, "timezone", None) for entry in definition.schedule]
    names += [known[use.name].timezone for use in definition.calendars]
    return Book({name: _table(name) for name in names if name is not None and name != "UTC"}, known)


@cache
def _table(name: str) -> str:
    return zones.zone(name).dump()


class Evidence:
    def __init__(self, scenario: Scenario, record: Record) -> None:
        self.scenario, self.record = scenario, record
        tables = record.tables
        self.jobs: dict[str, Row] = {row["job_id"]: row for row in tables["jobs"]}
        self.runs: dict[int, Row] = {row["run_id"]: row for row in tables["runs"]}
        self.attempts: dict[int, list[Row]] = _grouped(tables["attempts"], "run_id")
        self.ledger: dict[str, list[Row]] = _grouped(tables["ledger"], "job_id")
        self.finals: dict[tuple[int, int], Row] = {(row["run_id"], row["round"]): row for row in tables["seen_finals"]}
        self._runs_of: dict[str, list[Row]] = _grouped(tables["runs"], "job_id")
        self._ticks: dict[str, dict[int, Stretch]] = {}
        self.begun: dict[int, list[Begun]] = defaultdict(list)
        for each in record.begun:
            self.begun[each.stay.run_id].append(each)
        self.definitions = {job_id: Definition.from_body(row["definition"]) for job_id, row in self.jobs.items()}
        self.stretches = {job_id: self._stretches(job_id) for job_id in self.jobs}

    @cached_property
    def first_claims(self) -> dict[int, Row]:
        """By run."""
        return {row["run_id"]: row for row in reversed(self.record.tables["seen_claims"])}

    @cached_property
    def queued(self) -> dict[str, list[Queued]]:
        """By job: who waited when."""
        found: dict[str, list[Queued]] = defaultdict(list)
        for row in self.record.tables["seen_queued"]:
            run = self.runs.get(row["run_id"])
            if run is not None:
                to_ms = _FOR_EVER if row["to_ms"] is None else row["to_ms"]
                found[run["job_id"]].append(Queued(run, row["lane"], row["from_ms"], to_ms))
        return found

    @property
    def clock_was_set(self) -> bool:
        return len(self.record.shifts) > 1

    def runs_of(self, job_id: str) -> list[Row]:
        return self._runs_of.get(job_id, [])

    def first_final(self, run: Row) -> Row | None:
        """How it ended before anybody replayed it."""
        return self.finals.get((run["run_id"], 0))

    def _stretches(self, job_id: str) -> list[Stretch]:
        created_ms = self.jobs[job_id]["created_ms"]
        rows = [row for row in self.record.tables["job_revisions"] if row["job_id"] == job_id]
        rows.sort(key=lambda row: row["revision"])
        found: list[Stretch] = []
        for at, row in enumerate(rows):
            after = loads(row["after"])
            end = rows[at + 1]["at_ms"] if at + 1 < len(rows) else self.record.ended_ms
            state = "deleted" if row["action"] == "delete" else after["state"]
            definition = _plain(Definition.from_document(after), created_ms)
            book = _book(self.scenario.calendars, definition)
            found.append(Stretch(row["at_ms"], end, definition, state, created_ms, book, after["on_resume"]))
        for at, each in enumerate(found):
            if each.state == "paused":
                endings = [row["action"] for row in rows[at + 1 :] if row["action"] in ("resume", "cancel", "delete")]
                each.resumed = endings[0] if endings else None
                if each.resumed == "resume":
                    last = max(n for n in range(at, len(found)) if all(s.state == "paused" for s in found[at : n + 1]))
                    each.on_resume = found[last].on_resume
        return found

    def ticks(self, job_id: str) -> dict[int, Stretch]:
        """Every tick that must have an answer, and the stretch to which it belongs."""
        if job_id not in self._ticks:
            found: dict[int, Stretch] = {}
            for each in self.stretches[job_id]:
                if each.state == "active" or (each.state == "paused" and each.resumed is not None):
                    found |= dict.fromkeys(each.ticks, each)
            most = self.definitions[job_id].max_ticks
            self._ticks[job_id] = found if most is None else dict(sorted(found.items())[:most])
        return self._ticks[job_id]

    def kept_of(self, run: Row) -> Stretch | None:
        """The stretch to which it belonged, if people cancelled it there ahead of its time and the job was changed
        before that time came. It stands, whether the job still ticks then or not."""
        final = self.first_final(run)
        if run["kind"] != "tick" or final is None or run["run_id"] not in self.record.asked_to_cancel:
            return None
        stretch = self.stretches[run["job_id"]][run["revision"] - 1]
        was_ahead = final["state"] == "cancelled" and (final["finished_ms"] <= stretch.end or self.clock_was_set)
        is_forecast = stretch.end < run["scheduled_for_ms"] and run["scheduled_for_ms"] in stretch.around
        return stretch if was_ahead and is_forecast else None

    def standing(self, job_id: str) -> dict[int, Stretch]:
        """Its ticks, and those that have become none and have a run that stands all the same."""
        kept = {run["scheduled_for_ms"]: self.kept_of(run) for run in self.runs_of(job_id)}
        return {tick: stretch for tick, stretch in kept.items() if stretch is not None} | self.ticks(job_id)

    def lines_of(self, job_id: str, tick: int) -> list[Row]:
        return [row for row in self.ledger.get(job_id, ()) if row["from_ms"] <= tick <= row["to_ms"]]


def _plain(definition: Definition, created_ms: int) -> Definition:
    """Without what depends on the job: intervals without an anchor count from the whole second in which it was created,
    and H is a number."""
    seed = f"{definition.tenant}/{definition.name}"
    return replace(definition, schedule=tuple(_plain_entry(each, seed, created_ms) for each in definition.schedule))


def _plain_entry(entry: Entry, seed: str, created_ms: int) -> Entry:
    if isinstance(entry, EveryEntry) and entry.anchor_ms is None:
        return EveryEntry(entry.every_ms, created_ms - created_ms % 1000)
    if isinstance(entry, CronEntry) and "H" in entry.cron:
        parts = entry.cron.split()
        names = ("second", "minute", "hour", "day", "month", "weekday")[6 - len(parts) :]
        return replace(entry, cron=" ".join(_chosen(*each, seed) for each in zip(parts, names, strict=True)))
    return entry


def _chosen(text: str, field: str, seed: str) -> str:
    """H is one of sixty for this job; H/n begins with one of n."""
    if not text.startswith("H"):
        return text
    every = int(text[2:]) if "/" in text else None
    first = _hashed(f"{seed}\n{field}") % (every or 60)
    return str(first) if every is None else f"{first}-59/{every}"


def _hashed(text: str) -> int:
    return int.from_bytes(sha256(text.encode()).digest()[:8], "big")


def _grouped(rows: list[Row], column: str) -> dict[Any, list[Row]]:
    found: dict[Any, list[Row]] = defaultdict(list)
    for row in rows:
        found[row[column]].append(row)
    return found
