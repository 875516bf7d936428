"""What may happen in a story: moves as plain data, drawn by dice, and the way each is made in a world."""

from collections.abc import Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from random import Random
from typing import Any, TypeVar

from fleetcron.model.calendar import CalendarDocument
from fleetcron.model.definition import Definition
from fleetcron.model.rules import CalendarUse, CronEntry, Entry, EveryEntry, MisfireRule, OnceEntry
from fleetcron.model.target import CommandTarget
from fleetcron.times.instants import from_ms, iso, parse_instant, to_ms
from tests.scheduler.world import EVERYTHING, TENANT, World, zone_versions

SECOND, MINUTE, HOUR, DAY = 1000, 60_000, 3_600_000, 86_400_000
ZONES = ("America/New_York", "Europe/Berlin")
NAMES = ("a", "b", "c")
# less than a day before the clocks change in New York (twice) and in Berlin
BEGINNINGS = tuple(
    to_ms(parse_instant(text)) for text in ("2026-10-31T12:00:30Z", "2026-10-24T13:59:00Z", "2027-03-13T18:00:00Z")
)

CRONS = (
    "*/5 * * * *", "*/15 * * * *", "30 1 * * *", "30 2 * * *", "5,35 0-3 * * *", "0 */6 * * *", "0 9 * * MON-FRI",
    "10 10 31 * *",
)  # fmt: skip
T = TypeVar("T")
Move = tuple[Any, ...]


@dataclass(frozen=True)
class Story:
    """When it begins, and what happens then. Written so that a failure can be read."""

    base: int
    moves: tuple[Move, ...]

    def __repr__(self) -> str:
        lines = "".join(f"\n  {', '.join(map(told, move))}" for move in self.moves)
        return f"from {iso(from_ms(self.base))}:{lines}\n"


def told(value: object) -> str:
    """A value without what is as usual in it."""
    if isinstance(value, tuple):
        return f"({', '.join(map(told, value))})"
    if not is_dataclass(value):
        return repr(value)
    usual = {f.name: f.default_factory() if callable(f.default_factory) else f.default for f in fields(value)}
    kept = {name: getattr(value, name) for name in usual if name not in ("run", "type", "tenant", "chosen")}
    return f"{type(value).__name__}({', '.join(f'{n}={told(v)}' for n, v in kept.items() if v != usual[n])})"


class Dice:
    """Draws everything that can happen, the same for the same number."""

    def __init__(self, number: int) -> None:
        self.random = Random(number)
        self.base = self.one(BEGINNINGS)

    def one(self, values: Sequence[T]) -> T:
        return self.random.choice(values)

    def story(self, steps: int) -> Story:
        """Three jobs are there from the start, so that every move finds one."""
        first = [("apply", self.definition(name), False) for name in NAMES]
        return Story(self.base, (*first, *(self.move() for _ in range(steps - len(first)))))

    def entry(self) -> Entry:
        match self.random.randrange(9):
            case 0 | 1 | 2:
                every = self.one([MINUTE, 7 * MINUTE, 20 * MINUTE, HOUR, 25 * HOUR])
                return EveryEntry(every, self.one([None, self.base + 5 * SECOND]))
            case 3:
                return OnceEntry(f"now {self.one([-2 * HOUR, -30 * SECOND, 90 * SECOND, 2 * HOUR, DAY])}")
            case 4:
                return OnceEntry(self.one(["2026-10-25T02:30", "2026-11-01T01:30", "2027-03-14T02:30"]), *self.local())
            case _:
                return CronEntry(self.one(CRONS), *self.local())

    def schedule(self) -> tuple[Entry, ...]:
        if self.random.random() < 0.8:
            return (self.entry(),)
        # an entry that never fires is refused, whatever stands beside it
        both = [self.entry(), self.entry()]
        fine = [e for e in both if not isinstance(e, OnceEntry) or e.timezone is None or e.dst_gap == "shift"]
        return tuple(fine) or (self.entry(),)

    def local(self) -> tuple[Any, Any, Any]:
        zone = self.one(["UTC", *ZONES, *ZONES])
        return zone, self.one(["skip", "shift"]), self.one(["first", "second", "both"])

    def definition(self, *names: str) -> Definition:
        one = self.one
        rule = MisfireRule(
            policy=one(["skip", "latest", "all"]),
            window_ms=one([10 * MINUTE, 3 * HOUR, DAY]),
            limit=one([1, 3, 100]),
            grace_ms=one([0, MINUTE, MINUTE, 30 * MINUTE]),
            lane=one(["catchup", "catchup", "live"]),
        )
        days, freeze, deferred = CalendarUse("days"), CalendarUse("freeze"), CalendarUse("freeze", on="defer")
        return Definition(
            one(names or NAMES),
            self.schedule(),
            CommandTarget(("true",)),
            tenant=TENANT,
            description=one([None, "other"]),
            starts_ms=one([None, None, None, HOUR]),
            ends_ms=one([None, None, None, 5 * HOUR, 2 * DAY]),
            max_ticks=one([None, None, None, 1, 4, 30]),
            calendars=one([(), (), (days,), (freeze,), (deferred,), (days, freeze)]),
            jitter_ms=one([0, 0, 30 * SECOND, 20 * MINUTE]),
            misfire=rule,
            start_deadline_ms=one([None, None, 40 * MINUTE, 2 * DAY]),
        )

    def calendar(self) -> Move:
        if self.random.random() < 0.4:
            return "days", self.one(["UTC", ZONES[0]]), tuple(self.random.sample(range(3), self.one([0, 1, 2])))
        ahead, length = self.one([-20, 0, 2, 15, 45, 100]), self.one([5, 20, 180])
        return "freeze", ahead * MINUTE, length * MINUTE

    def change(self) -> Move:
        """What people and newer nodes do."""
        name, policy = self.one(NAMES), self.one([None, "skip", "latest", "all"])
        match self.random.randrange(13):
            case 0 | 1:
                return "apply", self.definition(), self.one([False, False, True])
            case 2:
                return "describe", name, self.one(["one", "two"])
            case 3:
                return "back", name
            case 4 | 5:
                return "pause", name, policy
            case 6 | 7:
                return "resume", name, policy
            case 8:
                return self.one(["cancel", "delete", "delete"]), name
            case 9 | 10 | 11:
                return self.calendar()
            case _:
                return "zone", self.one(ZONES), self.one([0, 1, 2, 3])

    def move(self) -> Move:
        lookahead = self.one([0, 5 * SECOND, MINUTE, 10 * MINUTE, 2 * HOUR])
        match self.random.randrange(20):
            case 0 | 1 | 2 | 3 | 4:
                return self.change()
            case 5 | 6 | 7 | 8 | 9:
                most, unit = self.one([(90, SECOND), (90, SECOND), (40, MINUTE), (40, MINUTE), (9, HOUR), (2, DAY)])
                return "ahead", self.random.randint(1, most) * unit
            case 10 | 11 | 12:
                return "round", lookahead
            case 13:
                return "some", lookahead, self.one([0, 1])
            case 14:
                return "slow", lookahead, self.change()
            case 15:
                return "clock back", self.random.randint(1, 60) * SECOND
            case 16:
                return "stale", lookahead
            case 17:
                return "claim", self.one(NAMES)
            case 18:
                return "fill", self.one([0, 2, EVERYTHING])
            case _:
                return "check", lookahead


def dated(definition: Definition, now: int) -> Definition:
    """Instants are drawn before it is known when they are used: they count from then."""

    def entry(drawn: Entry) -> Entry:
        if not isinstance(drawn, OnceEntry) or not drawn.at.startswith("now"):
            return drawn
        return OnceEntry(iso(from_ms(now + int(drawn.at.split()[1]))))

    return replace(
        definition,
        schedule=tuple(map(entry, definition.schedule)),
        starts_ms=None if definition.starts_ms is None else now + definition.starts_ms,
        ends_ms=None if definition.ends_ms is None else now + definition.ends_ms,
    )


async def play(world: World, story: Story) -> None:
    """Make every move; at the end let all be decided, and end every job."""
    versions = {name: zone_versions(name, story.base) for name in ZONES}
    before: dict[str, Definition] = {}
    world.book = replace(world.book, zones={name: tables[0] for name, tables in versions.items()})
    await world.put_calendar(CalendarDocument("days", TENANT, "UTC", holidays=("2001-01-01",)))
    await world.put_calendar(CalendarDocument("freeze", TENANT, windows=((0, HOUR),)))

    async def make(move: Move) -> None:
        match move:
            case "apply", definition, strict:
                known = world.jobs.get(definition.name)
                if known is not None:
                    before[definition.name] = known.piece.definition
                await world.apply(dated(definition, world.now), strict=strict)
            case "describe", name, text if name in world.jobs:
                await world.apply(replace(world.jobs[name].piece.definition, description=text))
            case "back", name if name in before:  # A, B, A
                before[name], definition = world.jobs[name].piece.definition, before[name]
                await world.apply(definition)
            case "pause", name, policy:
                await world.pause(name, policy)
            case "resume", name, policy if name in world.jobs:
                await world.resume(name, policy)
            case "cancel", name:
                await world.cancel(name)
            case "delete", name:
                before.pop(name, None)
                await world.delete(name)
            case "days", zone, ahead:
                dates = [from_ms(world.now + day * DAY).strftime("%Y-%m-%d") for day in ahead]
                await world.put_calendar(CalendarDocument("days", TENANT, zone, holidays=("2001-01-01", *dates)))
            case "freeze", ahead, length:
                window = world.now + ahead, world.now + ahead + length
                await world.put_calendar(CalendarDocument("freeze", TENANT, windows=(window,)))
            case "zone", name, version:
                await world.adopt_zone(name, versions[name][version])
            case "ahead", ms:
                await world.clock.advance(ms)
            case "clock back", ms:
                await world.clock.set(world.now - ms)
            case "round", lookahead:
                await world.round(lookahead)
            case "some", lookahead, shard:
                await world.round(lookahead, [shard])
            case "slow", lookahead, inner:
                await world.round(lookahead, before_writing=lambda: make(inner))
            case "stale", lookahead:
                await world.stale_round(lookahead)
            case "claim", name:
                await world.claim(name)
            case "fill", room:
                await world.fill(room)
            case "check", lookahead:
                await world.check(lookahead)

    for move in story.moves:
        await make(move)
    await world.check(MINUTE)
    await world.clock.advance(2 * DAY)
    for name in list(world.jobs):
        await world.resume(name)
    await world.check()
    await world.clock.advance(40 * SECOND)
    for name in list(world.jobs):
        await world.delete(name)
    await world.check()
