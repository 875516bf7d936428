"""The jobs of a world: every kind of schedule, policy and manner occurs, and something is due all the time."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Any, Final

from fleetcron.model.calendar import CalendarDocument
from fleetcron.model.definition import Definition
from fleetcron.model.entry import cron_entry, once_entry
from fleetcron.model.rules import (
    CalendarUse,
    CronEntry,
    Entry,
    EveryEntry,
    MisfireRule,
    OnceEntry,
    OverlapRule,
    RetryRule,
)
from fleetcron.model.target import PythonTarget
from fleetcron.times.instants import from_ms

TENANTS: Final = ("default", "acme", "zeta")
LATE_HANDLER: Final = "late"  # nobody has it before everything is healed
_ZONES: Final = ("UTC", "America/New_York", "Europe/Berlin", "Asia/Kolkata", "Australia/Lord_Howe")
_FIXED: Final = "3,8,11,17,26,33,41,48,52,54,57,59"  # minutes, around those in which clocks are changed


@dataclass(frozen=True, slots=True)
class Season:
    """When a world begins: some minutes before midnight in `zone`, between these two dates."""

    begin_ms: int
    zone: str
    dates: tuple[str, str]


# A quiet day, the hours in which New York and Berlin change their clocks, and the end of a short month.
SEASONS: Final = (
    Season(1_799_999_700_000, "America/Los_Angeles", ("2027-01-14", "2027-01-15")),
    Season(1_805_007_300_000, "America/Denver", ("2027-03-13", "2027-03-14")),
    Season(1_825_566_600_000, "America/Regina", ("2027-11-06", "2027-11-07")),
    Season(1_824_943_800_000, "Atlantic/Cape_Verde", ("2027-10-30", "2027-10-31")),
    Season(1_803_858_600_000, "UTC", ("2027-02-28", "2027-03-01")),
)
MONTH_END: Final = SEASONS[4]


@dataclass(frozen=True, slots=True)
class Manner:
    """How the handler of a job behaves."""

    kind: str  # ok, flaky, poison, hang, deaf, snooze
    seconds: tuple[float, float]


def calendars(season: Season, chance: Random) -> tuple[CalendarDocument, ...]:
    """Each tenant has a holiday and a blackout, at another time than the others."""
    found = []
    for tenant in TENANTS:
        found.append(CalendarDocument("days", tenant, season.zone, holidays=(chance.choice(season.dates),)))
        starts = [season.begin_ms + 1000 * at for at in (chance.randrange(60, 500), chance.randrange(700, 1000))]
        windows = tuple((start, start + 1000 * chance.choice((20, 75, 180))) for start in starts)
        found.append(CalendarDocument("freeze", tenant, windows=windows))
    return tuple(found)


def definition(
    name: str, chance: Random, others: Sequence[Definition], season: Season, regions: Sequence[str] = ()
) -> Definition:
    tenant = chance.choice(("default", "acme", "acme", "zeta"))
    policy = chance.choice(("skip", "skip", "queue", "collapse", "allow", "allow", "cancel_previous"))
    deadline_ms = chance.choice((None, None, None, 15_000, 40_000, 90_000))
    upstream: tuple[str, ...] = ()
    on_failure = "skip"
    mates = [each.name for each in others if each.tenant == tenant]
    if mates and chance.random() < 0.2:
        upstream = (chance.choice(mates),)
        on_failure = chance.choice(("skip", "run") if deadline_ms is None else ("skip", "run", "wait"))
    return Definition(
        name,
        _entries(chance, season),
        PythonTarget(f"{LATE_HANDLER}:f" if chance.random() < 0.04 else "sim:f"),
        tenant=tenant,
        max_ticks=chance.choice((None, None, None, None, 5)),
        calendars=_uses(chance),
        jitter_ms=chance.choice((0, 0, 0, 4_000, 12_000)),
        pool=chance.choice(("default", "default", "side")),
        priority=chance.choice((0, 0, 5, -5)),
        timeout_ms=chance.choice((8_000, 15_000, 30_000)),
        retry=_retry(chance),
        overlap=OverlapRule(
            policy,  # type: ignore[arg-type]
            max_running=chance.choice((None, 2)) if policy == "allow" else None,
            concurrency_key=f"key{tenant}" if policy in ("queue", "skip") and chance.random() < 0.2 else None,
        ),
        misfire=_misfire(chance, policy),
        start_deadline_ms=deadline_ms,
        depends_on=upstream,
        on_upstream_failure=on_failure,  # type: ignore[arg-type]
        region=chance.choice((None, None, None, *regions)),
        pause_after_failures=chance.choice((None, None, None, None, None, 3)),
    )


def manner(chance: Random) -> Manner:
    kind = chance.choice(("ok", "ok", "ok", "ok", "flaky", "flaky", "poison", "hang", "deaf", "snooze"))
    seconds = chance.choice(((0.01, 0.3), (0.1, 3.0), (0.1, 3.0), (2.0, 7.0), (1.0, 25.0)))
    return Manner(kind, seconds)


def denser(given: Definition, chance: Random) -> Definition:
    """Due all the time, and long enough to be hit by a fault."""
    if any(isinstance(entry, OnceEntry) for entry in given.schedule) or given.max_ticks is not None:
        return given
    often = (EveryEntry(chance.choice((12, 17, 25)) * 1000, 0),)
    return replace(given, schedule=often, calendars=(), depends_on=(), timeout_ms=40_000)


def longer(given: Manner, chance: Random) -> Manner:
    return replace(given, seconds=chance.choice(((0.1, 3.0), (3.0, 9.0), (10.0, 29.0))))


def _entries(chance: Random, season: Season) -> tuple[Entry, ...]:
    kind = chance.choice(("every", "every", "every", "cron", "cron", "both", "once", "hashed", "wall", "month"))
    period_s = chance.choice((20, 30, 45, 60, 60, 90, 150, 300))
    every = EveryEntry(period_s * 1000, chance.choice((None, season.begin_ms + 500)))
    match kind:
        case "every":
            return (every,)
        case "cron":
            return (_cron(chance),)
        case "both":
            return (every, _cron(chance))
        case "hashed":
            return (cron_entry(chance.choice(("H * * * * *", "H H/3 * * * *", "H/20 * * * * *")), _zone(chance)),)
        case "wall":
            return (_wall(chance), *((_cron(chance),) if chance.random() < 0.3 else ()))
        case "month" if season.dates == MONTH_END.dates:
            days, end = chance.choice((("31", "clamp"), ("30,31", "clamp"), ("31", "skip"), ("L", "skip")))
            return (cron_entry(f"*/2 * {days} * *", "UTC", month_end=end), every)
        case "month":
            return (_cron(chance), _wall(chance))
    moments = sorted(chance.sample(range(60, 1100), 3))
    return tuple(once_entry(from_ms(season.begin_ms + each * 1000)) for each in moments)


def _zone(chance: Random) -> str:
    return chance.choice(_ZONES)


def _cron(chance: Random) -> CronEntry:
    minutes = chance.choice((1, 1, 2, 3, 5))
    text = chance.choice((f"*/{minutes} * * * *", f"{chance.randrange(60)} */{minutes} * * * *", "30 * * * * *"))
    return cron_entry(text, _zone(chance))


def _wall(chance: Random) -> CronEntry:
    """Times of the wall, where clocks are changed: what does not exist or comes twice has a policy."""
    gap, fold = chance.choice(("skip", "shift")), chance.choice(("first", "second", "both"))
    zone = chance.choice(("America/New_York", "Europe/Berlin"))
    return cron_entry(f"{_FIXED} * * * *", zone, dst_gap=gap, dst_fold=fold)


def _uses(chance: Random) -> tuple[CalendarUse, ...]:
    kind = chance.choice(("", "", "", "", "days", "skip", "defer", "both"))
    days = (CalendarUse("days"),) if kind in ("days", "both") else ()
    on = "defer" if kind == "defer" else "skip"
    return (*days, *((CalendarUse("freeze", on=on),) if kind in ("skip", "defer", "both") else ()))  # type: ignore[arg-type]


def _misfire(chance: Random, overlap: str) -> MisfireRule:
    policy = chance.choice(("skip", "latest", "latest") if overlap == "cancel_previous" else ("skip", "latest", "all"))
    lane = chance.choice(("catchup", "catchup", "live"))
    if overlap == "skip" and policy == "all":
        lane = "catchup"
    grace_ms = chance.choice((2_000, 10_000, 60_000))
    return MisfireRule(
        policy,  # type: ignore[arg-type]
        window_ms=max(grace_ms, chance.choice((90_000, 24 * 3_600_000, 24 * 3_600_000))),
        limit=chance.choice((3, 100, 100)),
        grace_ms=grace_ms,
        lane=lane,  # type: ignore[arg-type]
    )


def _retry(chance: Random) -> RetryRule:
    backoff: Any = chance.choice(("list", "fixed", "exponential"))
    return RetryRule(
        max_attempts=chance.choice((1, 2, 3)),
        backoff=backoff,
        delays_ms=tuple(chance.choice((500, 2_000, 6_000)) for _ in range(2)),
        max_delay_ms=10_000,
        jitter=chance.choice((0.0, 0.2)),
        max_losses=chance.choice((3, 5, 9)),
    )
