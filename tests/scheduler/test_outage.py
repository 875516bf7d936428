"""A week without a scheduler, with the end of summer time in it: what every job gets afterwards, by its own policy."""

import asyncio
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from itertools import groupby
from time import perf_counter
from typing import Any

import pytest

from fleetcron.model.definition import Definition
from fleetcron.model.rules import CronEntry, Entry, EveryEntry, MisfireRule
from fleetcron.model.target import CommandTarget
from fleetcron.scheduler.gaps import GapRound, fill_gaps
from fleetcron.scheduler.tick import tick
from fleetcron.store.history import LedgerLine, Span
from fleetcron.times import zones
from fleetcron.times.instants import parse_instant, to_ms
from fleetcron.times.timetable import Timetable
from tests.scheduler.enumerator import Book, when
from tests.scheduler.expected import Line, Run, late_fates, late_ones
from tests.scheduler.world import EVERYTHING, TENANT, World, opened_world

SECOND, MINUTE, HOUR, DAY = 1000, 60_000, 3_600_000, 86_400_000
LOOKAHEAD = MINUTE
# Berlin, London and Athens go back within the hour, Cairo on Friday, New York and Havana on the last morning
BEFORE = to_ms(parse_instant("2026-10-25T00:30:00Z"))
AFTER = BEFORE + 7 * DAY + 6 * HOUR + 20 * SECOND
ZONES = (
    "UTC", "Europe/Berlin", "Europe/London", "Europe/Athens", "Africa/Cairo", "America/New_York", "America/Havana",
    "Asia/Kolkata",
)  # fmt: skip
BOOK = Book({name: zones.zone(name).dump() for name in ZONES if name != "UTC"})
ENTRIES: tuple[Entry, ...] = (
    *(CronEntry("* * * * *", zone, "skip", "both") for zone in ZONES),
    *(CronEntry("*/15 * * * *", zone, "skip", "both") for zone in ZONES),
    *(CronEntry("0 * * * *", zone, "skip", "both") for zone in ZONES),
    *(CronEntry("30 1 * * *", zone, "shift", fold) for zone in ZONES for fold in ("first", "second", "both")),
    *(CronEntry("30 2 * * MON-FRI", zone) for zone in ZONES),
    *(CronEntry("0 0 1 * *", zone) for zone in ZONES),
    EveryEntry(7 * MINUTE, 0),
    EveryEntry(25 * HOUR, 0),
)
RULES = {
    "skip": [MisfireRule("skip"), MisfireRule("skip", grace_ms=10 * MINUTE)],
    "latest": [MisfireRule("latest"), MisfireRule("latest", window_ms=3 * DAY), MisfireRule("latest", grace_ms=0)],
    "all": [MisfireRule("all"), MisfireRule("all", window_ms=30 * DAY, limit=20), MisfireRule("all", window_ms=HOUR)],
}


def jobs(policy: str, number: int) -> list[Definition]:
    """Every tenth is delayed by jitter, and has a timing of its own."""
    rules = RULES[policy]
    return [
        Definition(
            f"{policy}-{n}",
            (ENTRIES[n % len(ENTRIES)],),
            CommandTarget(("true",)),
            tenant=TENANT,
            misfire=rules[n % len(rules)],
            jitter_ms=10 * MINUTE if n % 10 == 9 else 0,
            start_deadline_ms=5 * HOUR if n % 7 == 3 else None,
        )
        for n in range(number)
    ]


@dataclass(frozen=True)
class Expected:
    """What the rules say: runs by tick, ranges of ticks with one fate, and how many ticks have which."""

    runs: dict[int, Run]
    ranges: list[tuple[int, int, int, Line]]
    totals: Counter[str]

    @classmethod
    def known(cls, definition: Definition) -> "Expected":
        """Jobs that differ only by name share it, unless their starts are spread."""
        key = definition.timing(BEFORE).timing_id
        if key not in KNOWN:
            KNOWN[key] = cls.of(definition)
        return KNOWN[key]

    @classmethod
    def of(cls, definition: Definition) -> "Expected":
        """From a list of all its ticks: the late ones, and a run for each that is in time or ahead."""
        ticks = when(definition, BEFORE, BOOK)
        found = ticks.between(BEFORE, AFTER + LOOKAHEAD)
        rule = definition.misfire
        late = late_ones(ticks, found, rule.grace_ms, AFTER, definition.start_deadline_ms)
        fates = late_fates(ticks, late, rule, AFTER, start_deadline_ms=definition.start_deadline_ms)
        fates |= {t: Run(ticks.start(t)) for t in found if t not in fates}
        ranges = []
        for fate, group in groupby(found, fates.__getitem__):
            if isinstance(fate, Line):
                alike = list(group)
                ranges.append((alike[0], alike[-1], len(alike), fate))
        runs = {t: fate for t, fate in fates.items() if isinstance(fate, Run)}
        return cls(runs, ranges, Counter(f.lane if isinstance(f, Run) else f.answer for f in fates.values()))


KNOWN: dict[int, Expected] = {}


class Steps(Counter[str]):
    """Counts what is asked of all timetables."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        super().__init__()

        def counted(name: str, inner):  # type: ignore[no-untyped-def]
            def method(timetable: Timetable, *arguments: int) -> object:
                self["looks"] += 1
                return inner(timetable, *arguments)

            patch.setattr(Timetable, name, method)

        for name in ("next_ms", "prev_ms", "count_ms"):
            counted(name, getattr(Timetable, name))
        walk = Timetable.ticks_ms

        def walked(timetable: Timetable, after: int, until: int):  # type: ignore[no-untyped-def]
            for each in walk(timetable, after, until):
                self["ticks"] += 1
                yield each

        patch.setattr(Timetable, "ticks_ms", walked)


NUMBERS = pytest.mark.parametrize(
    "numbers",
    [
        pytest.param({"skip": 4500, "latest": 4500, "all": 1000}, id="bounded"),
        pytest.param(
            {"skip": 10_000, "latest": 10_000, "all": 10_000},
            id="long",
            marks=[pytest.mark.soak, pytest.mark.timeout(1800)],
        ),
    ],
)


@NUMBERS
@pytest.mark.parametrize("engine", ["sqlite_memory", "postgres18"])
def test_a_week_without_a_scheduler(
    engine: str, numbers: dict[str, int], request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    """S0-4, S0-9, S0-17, S0-50, S1-2, S2-16 … S2-19, S4-4, S4-18 … S4-20: 10,000 jobs, each by its policy, exactly."""
    url = request.getfixturevalue(f"{engine}_url")
    definitions = [definition for policy, number in numbers.items() for definition in jobs(policy, number)]

    async def outage() -> None:
        async with opened_world(url, BEFORE) as fleet:
            world = World(*fleet)
            applied = await world.desk.apply(definitions)
            assert Counter(each.done for each in applied) == {"created": len(definitions)}
            await world.clock.set(AFTER)
            await recover(world)
            await compare(world)
            again = await tick(world.store.cursors, world.tables, world.held, lookahead_ms=LOOKAHEAD)
            assert (again.jobs, again.runs) == (0, 0)

    async def recover(world: World) -> None:
        steps = Steps(monkeypatch)
        timings = len({definition.timing(BEFORE).timing_id for definition in definitions})
        begun, planned = perf_counter(), 0
        while (done := await tick(world.store.cursors, world.tables, world.held, lookahead_ms=LOOKAHEAD)).jobs:
            planned += done.jobs
        assert (done.refused, done.unknown) == (None, None)
        lasted = perf_counter() - begun
        print(f"\n{engine}: {planned} jobs of {timings} timings planned, {lasted / planned * 1000:.3f} ms each")
        # skip and latest are decided here: a few looks at each timing, however many ticks it has missed
        assert steps["ticks"] <= 4 * timings, steps
        assert steps["looks"] <= 30 * timings, steps
        while (filled := await fill_gaps(world.store.gaps, world.tables, world.held, room=EVERYTHING)).gaps:
            pass
        assert filled == GapRound()

    async def compare(world: World) -> None:
        runs: dict[str, dict[int, Run]] = defaultdict(dict)
        async for each in paged(world.store.history.runs, lambda each: each.run.run_id):
            run = each.run
            assert run.scheduled_for_ms not in runs[each.name]
            runs[each.name][run.scheduled_for_ms] = Run(run.run_after_ms, run.lane, run.covers, run.window_ms)
        lines: dict[str, list[LedgerLine]] = defaultdict(list)
        async for line in paged(world.store.history.ledger, lambda line: line.entry_id):
            lines[line.name].append(line)
        totals: Counter[str] = Counter()
        for definition in definitions:
            expected = Expected.known(definition)
            assert runs[definition.name] == expected.runs
            compare_lines(lines[definition.name], expected)
            totals.update(expected.totals)
        assert sum(map(len, runs.values())) == totals["live"] + totals["catchup"]
        told = sum(line.answer.ticks for each in lines.values() for line in each)
        assert told == totals["skipped"] + totals["missed"]
        print(f"{engine}: {dict(totals)}")

    asyncio.run(outage())


async def paged(read: Any, number: Callable[[Any], int]) -> AsyncIterator[Any]:
    """A few thousand rows at a time: a call has a deadline."""
    before = None
    while page := await read(Span(before_id=before), limit=20_000):
        for each in page:
            yield each
        before = number(page[-1])


def compare_lines(lines: list[LedgerLine], expected: Expected) -> None:
    """The ledger has one row for every stretch of ticks with the same fate."""
    answers = sorted((line.answer for line in lines), key=lambda answer: answer.from_ms)
    assert len(answers) == len(expected.ranges)
    for found, (first, last, ticks, fate) in zip(answers, expected.ranges, strict=True):
        assert (found.from_ms, found.to_ms, found.ticks) == (first, last, ticks)
        assert (found.answer, found.covered_by_ms) == (fate.answer, fate.covered_by)
        assert found.reason in fate.reasons
