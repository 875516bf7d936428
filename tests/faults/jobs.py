"""A thousand jobs of every kind: often and rarely, in several zones, under every misfire policy, some with jitter."""

from collections.abc import Iterator
from itertools import count, cycle, islice

from fleetcron.model.definition import Definition
from fleetcron.model.entry import cron_entry
from fleetcron.model.rules import EveryEntry, MisfireRule, OnceEntry
from fleetcron.model.target import CommandTarget
from fleetcron.times.instants import from_ms, iso

RUN = CommandTarget(("true",))
ZONES = ("UTC", "America/New_York", "Asia/Kolkata", "Australia/Lord_Howe", "Europe/Berlin", "Pacific/Chatham")
RULES = (
    MisfireRule("skip", grace_ms=200),
    MisfireRule("latest", grace_ms=500),
    MisfireRule("all", grace_ms=200),
    MisfireRule("all", limit=2, grace_ms=0),
    MisfireRule("all", window_ms=3000, grace_ms=0),
    MisfireRule("latest", window_ms=2000, grace_ms=1000),
    MisfireRule("latest"),
)


def cron(name: str, expression: str, zone: str = "UTC", rule: MisfireRule | None = None, **more: object) -> Definition:
    entry = cron_entry(expression, zone)
    return Definition(name, (entry,), RUN, misfire=rule or MisfireRule(), **more)  # type: ignore[arg-type]


def thousand(now_ms: int) -> list[Definition]:
    """`now_ms` is about when they are created: the jobs that fire once do so in the minute after it."""
    zones, rules, numbers = cycle(ZONES), cycle(RULES), count()

    def crons(many: int, kind: str, expression: str, jitter_ms: int = 0) -> Iterator[Definition]:
        for number in islice(numbers, many):
            yield cron(f"{kind}-{number}", expression, next(zones), next(rules), jitter_ms=jitter_ms)

    return [
        *crons(150, "second", "* * * * * *"),
        *crons(150, "two", "*/2 * * * * *"),
        *crons(100, "five", "*/5 * * * * *"),
        *crons(100, "jittered", "*/10 * * * * *", jitter_ms=4000),
        *crons(200, "minutely", "* * * * *"),
        *crons(100, "quarter", "*/15 * * * *", jitter_ms=60_000),
        *crons(50, "daily", "30 2 * * *"),
        *(
            Definition(f"every-{number}", (EveryEntry(3000),), RUN, misfire=next(rules))
            for number in islice(numbers, 80)
        ),
        *(
            Definition(f"bounded-{number}", (EveryEntry(2000),), RUN, misfire=next(rules), max_ticks=5)
            for number in islice(numbers, 30)
        ),
        *(
            Definition(f"once-{number}", (OnceEntry(iso(from_ms(now_ms + 5000 + place * 800))),), RUN)
            for place, number in enumerate(islice(numbers, 40))
        ),
    ]
