"""From the options of `fleetcron simulate` to scenarios."""

import asyncio
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NoReturn

from fleetcron.cli.apps import app_of
from fleetcron.cli.connection import Database, opened
from fleetcron.cli.files import load, read
from fleetcron.cli.moments import instant_ms
from fleetcron.cli.simulated_fleet import DELETED, Fleet, as_they_stand, jobs_of, learn
from fleetcron.cli.simulated_past import remember
from fleetcron.cli.tables import numbered
from fleetcron.clock import utc_now
from fleetcron.errors import ConfigError, Mistake, ScheduleError
from fleetcron.model.definition import Definition
from fleetcron.simulate.changes import changed, nobody
from fleetcron.simulate.durations import Durations, matches, narrowest_first
from fleetcron.simulate.scenario import Scenario
from fleetcron.store.store import Store
from fleetcron.times.durations import duration_ms, duration_text
from fleetcron.times.instants import to_ms

_DAY_MS = 86_400_000
_LONGEST_MS = 3660 * _DAY_MS
_SHOWN = 5  # of jobs in a note
_DIGITS = 9  # more are not even read
_NO_LENGTH = re.compile(r"0+[smhd]?|-.*")  # 0s, -5m
_AT_ONCE = re.compile(r"\+0+[smhd]?")  # +0s, which is no length


@dataclass(frozen=True, slots=True)
class Asked:
    """The options, as they were written."""

    files: tuple[str, ...]
    app_name: str | None
    since: str | None
    until: str | None
    length: str | None
    outages: tuple[str, ...]
    durations: tuple[str, ...]
    default_duration: str
    slots: tuple[str, ...]
    workers: int | None
    changes: tuple[str, ...]
    against: str | None
    compare: bool
    past: bool
    max_ticks: int


@dataclass(frozen=True, slots=True)
class Idle:
    """A job that does not run, and others depend on it."""

    job: str
    state: str
    needed_by: Sequence[str]


@dataclass(slots=True)
class Prepared:
    scenarios: list[tuple[str, Scenario]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    left_out: int = 0
    idle_upstreams: list[Idle] = field(default_factory=list)
    durations: dict[str, int] = field(default_factory=dict)  # how many jobs have theirs from where

    def capacity(self) -> dict[str, int]:
        """The slots of the pools in which any of the variants has jobs."""
        found = {pool: n for _, scenario in self.scenarios for pool, n in scenario.capacity().items()}
        return dict(sorted(found.items()))


def prepare(database: Database, asked: Asked) -> Prepared:
    if asked.compare and not asked.changes and asked.against is None:
        refuse("--compare", "there is nothing to compare with", "add --set 'JOB.FIELD=VALUE' or --against FILE")
    if asked.past and (asked.files or asked.app_name):
        refuse(
            "--past",
            "it is about the jobs of the database",
            "leave -f and --app out; --against FILE compares with a file",
        )
    from_ms, until_ms = _period(asked)
    outages = sorted(_outage(text, from_ms) for text in asked.outages)
    _within(outages, from_ms, until_ms)
    said = narrowest_first(_durations(asked))
    default_ms = _length(asked.default_duration, "--default-duration")
    fleet, others, looked = asyncio.run(_fleet(database, asked, from_ms, until_ms))
    slots = _slots(asked)
    base = Scenario(
        fleet.definitions, from_ms, until_ms, fleet.calendars, outages,
        Durations(said, fleet.past, fleet.seen, default_ms, fleet.cut),
        slots, _shared(asked, fleet, slots), asked.workers or 1,
        fleet.tenants, fleet.pools, asked.max_ticks, fleet.idle,
    )  # fmt: skip
    prepared = Prepared(left_out=sum(state != DELETED for state in fleet.idle.values()))
    idle = _left_out(fleet, others)
    prepared.scenarios = _variants(base, asked, others, idle)
    prepared.idle_upstreams = _idle(prepared.scenarios)
    definitions = [each for _, scenario in prepared.scenarios for each in scenario.definitions]
    _refuse_unknown(said, definitions, idle)
    _refuse_unknown_pools(asked, definitions)
    prepared.durations = dict(base.durations.origins(list(dict.fromkeys(each.seed for each in definitions))))
    prepared.notes = _notes(prepared, base, looked, fleet)
    return prepared


async def _fleet(database: Database, asked: Asked, from_ms: int, until_ms: int) -> tuple[Fleet, Fleet | None, int]:
    """The jobs, those that they are compared with, and what the database knows of the durations of both. Files and apps
    need none, unless one is named."""
    app = app_of(asked.app_name)
    if asked.files or app is not None:
        documents = read(load(asked.files))
        fleet = Fleet([*documents.jobs, *(app.definitions() if app is not None else ())], documents.calendars)
        others = _against(asked, fleet)
        if database.url is None:
            return fleet, others, 0
        async with opened(database.config()) as store:
            return fleet, others, await _learned(store, fleet, others)
    async with opened(database.config()) as store:
        fleet = await jobs_of(store, from_ms, past=asked.past)
        others = _against(asked, fleet)
        looked = await _learned(store, fleet, others)
        if asked.past:
            looked = await remember(store, fleet, from_ms, until_ms)
        return fleet, others, looked


def _against(asked: Asked, fleet: Fleet) -> Fleet | None:
    """As if the file were applied: a job that the database knows goes on from where it stands."""
    if asked.against is None:
        return None
    documents = read(load([asked.against]), fleet.calendars)
    definitions, idle = as_they_stand(fleet, documents.jobs)
    return Fleet(definitions, documents.calendars, idle=idle)


async def _learned(store: Store, fleet: Fleet, others: Fleet | None) -> int:
    wanted = {each.seed: each for each in (*fleet.definitions, *(others.definitions if others is not None else ()))}
    return await learn(store, fleet, list(wanted.values()))


def _left_out(fleet: Fleet, others: Fleet | None) -> dict[str, str]:
    """Jobs that exist and do not run, and their states. One that a file lets go on is no such job."""
    idle = {**fleet.idle, **(others.idle if others is not None else {})}
    return {"/".join(name): state for name, state in idle.items() if state != DELETED}


def _variants(
    base: Scenario, asked: Asked, others: Fleet | None, idle: Mapping[str, str]
) -> list[tuple[str, Scenario]]:
    if not base.definitions:
        ended = "those of the database are paused, or have ended by then" if base.idle else None
        refuse("", "there is no active job to simulate", ended or "name a file: fleetcron simulate -f jobs.yaml")
    found: list[tuple[str, Scenario]] = []
    if asked.compare or not asked.changes:
        found.append(("as it is", base))
    if asked.changes:
        other = changed(base.definitions, asked.changes, base.calendars, idle)
        found.append((", ".join(asked.changes), replace(base, definitions=other)))
    if asked.against is not None and others is not None:
        calendars = {(each.tenant, each.name): each for each in (*base.calendars, *others.calendars)}
        variant = replace(base, definitions=others.definitions, calendars=list(calendars.values()))
        found.append((asked.against, replace(variant, idle={**base.idle, **others.idle})))
    return found


def _idle(scenarios: Sequence[tuple[str, Scenario]]) -> list[Idle]:
    """Of all variants together."""
    needed: dict[tuple[str, str], dict[str, None]] = {}
    states: dict[tuple[str, str], str] = {}
    for _, scenario in scenarios:
        states |= scenario.idle
        for name, jobs in scenario.idle_upstreams().items():
            needed.setdefault(name, {}).update(dict.fromkeys(jobs))
    return [Idle("/".join(name), states[name], list(jobs)) for name, jobs in sorted(needed.items())]


def _notes(prepared: Prepared, base: Scenario, looked: int, fleet: Fleet) -> list[str]:
    origins = {
        "said": "as you said", "past": "as in the past", "seen": "learned",
        "default": f"taken as {duration_text(base.durations.default_ms)}",
    }  # fmt: skip
    told = [f"{numbered(number, 'job')} {origins[origin]}" for origin, number in sorted(prepared.durations.items())]
    from_attempts = f", from {numbered(looked, 'attempt')}" if looked else ""
    notes = [f"durations: {', '.join(told)}{from_attempts}", _capacity_note(prepared.capacity(), base, fleet)]
    if prepared.left_out:
        verb = "is" if prepared.left_out == 1 else "are"
        notes.append(f"left out: {numbered(prepared.left_out, 'job')} that {verb} not active")
    notes += map(_idle_note, prepared.idle_upstreams[:_SHOWN])
    if len(prepared.idle_upstreams) > _SHOWN:
        more = len(prepared.idle_upstreams) - _SHOWN
        notes.append(f"… and {numbered(more, 'more job')} that others depend on (--json lists them all)")
    return notes


def _capacity_note(capacity: Mapping[str, int], base: Scenario, fleet: Fleet) -> str:
    together = " together" if base.workers > 1 else ""
    said = f"{numbered(base.workers, 'worker')} with slots{together}: {_listed(capacity)}"
    living = {pool: fleet.slots[pool] for pool in capacity if pool in base.shared}
    if not living:
        return said
    who = "the living worker has" if fleet.workers == 1 else f"the {fleet.workers} living workers have"
    return f"{said} ({who} {_listed(living)})"


def _listed(slots: Mapping[str, int]) -> str:
    return ", ".join(f"{pool} {number}" for pool, number in slots.items())


def _idle_note(idle: Idle) -> str:
    jobs, more = ", ".join(idle.needed_by[:_SHOWN]), len(idle.needed_by) - _SHOWN
    who = f"{jobs} and {more} more depend" if more > 0 else f"{jobs} depend{'s' if len(idle.needed_by) == 1 else ''}"
    if idle.state == "paused":
        return f"{idle.job} is paused, and stays so: {who} on it, and on_upstream_failure decides"
    return f"{idle.job} is {idle.state}, and is not waited for: {who} on it"


# -- what was written


def _period(asked: Asked) -> tuple[int, int]:
    now_ms = to_ms(utc_now())
    from_ms = instant_ms(asked.since, "--from")
    if from_ms is None:
        from_ms = now_ms - _DAY_MS if asked.past else now_ms
    if asked.until is not None and asked.length is not None:
        refuse("--for", "--to says where the period ends already", "keep one of them")
    if asked.past and from_ms > now_ms:
        refuse("--from", "the past ends now", "leave --past out for what is to come")
    until_ms = instant_ms(asked.until, "--to")
    if asked.length is not None:
        until_ms = from_ms + _length(asked.length, "--for")
    if until_ms is None:
        until_ms = now_ms if asked.past else from_ms + _DAY_MS
    if until_ms == from_ms:
        refuse("--to", "the period ends when it begins", "a later --to, or --for 2h: two hours long")
    if until_ms < from_ms:
        refuse("--to", "the period ends before it begins", "a duration means so long ago; --for 2h is two hours long")
    if until_ms - from_ms > _LONGEST_MS:
        refuse("--to", "the period is longer than ten years", None)
    if asked.past and until_ms > now_ms:
        refuse("--to", "the past ends now", "leave --past out for what is to come")
    return from_ms, until_ms


def _outage(text: str, from_ms: int) -> tuple[int, int]:
    begin, slash, end = text.partition("/")
    if not slash or not begin.strip() or not end.strip():
        refuse("--outage", f"'{text}' is not FROM/TO", "such as 2027-03-14T02:00/2027-03-14T04:00, or +6h/2h")
    begins_ms = _moment(begin.strip(), from_ms)
    try:
        ends_ms = begins_ms + duration_ms(end.strip().removeprefix("+"), "--outage")
        if end.strip().startswith("+"):
            ends_ms += from_ms - begins_ms
    except ScheduleError:
        ends_ms = begins_ms if _NO_LENGTH.fullmatch(end.strip()) else _moment(end.strip(), from_ms)
    if ends_ms <= begins_ms:
        wrong = "has no length" if ends_ms == begins_ms else "ends before it begins"
        refuse("--outage", f"'{text}' {wrong}", "FROM/2h is two hours long")
    return begins_ms, ends_ms


def _moment(text: str, from_ms: int) -> int:
    if text.startswith("+"):
        return from_ms if _AT_ONCE.fullmatch(text) else from_ms + _length(text[1:], "--outage")
    found = instant_ms(text, "--outage")
    assert found is not None
    return found


def _within(outages: Sequence[tuple[int, int]], from_ms: int, until_ms: int) -> None:
    for at, (begin, end) in enumerate(outages):
        if from_ms <= begin < until_ms < end:
            refuse("--outage", "it goes on after the period's end", "see --to and --for")
        if begin < from_ms or end > until_ms:
            refuse("--outage", "it lies outside the period", "see --from, --to and --for")
        if at and begin < outages[at - 1][1]:
            refuse("--outage", "two outages overlap", "make them one")


def _durations(asked: Asked) -> dict[str, int]:
    found: dict[str, int] = {}
    for job, ms in map(_duration, asked.durations):
        if job in found:
            refuse("--duration", f"{job} is said twice", "keep one of them")
        found[job] = ms
    return found


def _duration(text: str) -> tuple[str, int]:
    job, equals, length = text.rpartition("=")
    if not equals or not job.strip():
        refuse("--duration", f"'{text}' is not JOB=DURATION", "such as report=30s, or '*=2m'")
    return job.strip(), _length(length, "--duration")


def _refuse_unknown(said: dict[str, int], definitions: Sequence[Definition], idle: Mapping[str, str]) -> None:
    for pattern in said:
        if not any(matches(pattern, each.seed) for each in definitions):
            why, hint = nobody(pattern, idle)
            refuse("--duration", why, hint or "NAME, TENANT/NAME, or * for many")


def _refuse_unknown_pools(asked: Asked, definitions: Sequence[Definition]) -> None:
    pools = {each.pool for each in definitions}
    for text in asked.slots:
        pool = text.partition("=")[0].strip()
        if pool not in pools:
            refuse("--slots", f"no job is in a pool {pool}", f"there are: {', '.join(sorted(pools))}")


def _slots(asked: Asked) -> dict[str, int]:
    found: dict[str, int] = {}
    for text in asked.slots:
        pool, _, number = text.partition("=")
        if not pool.strip() or not number.isascii() or not number.isdigit():
            refuse("--slots", f"'{text}' is not POOL=NUMBER", "such as default=10")
        if len(number) > _DIGITS or not 1 <= int(number) <= 9999:
            refuse("--slots", f"'{text}': a worker has from 1 to 9999 slots in a pool", None)
        found[pool.strip()] = int(number)
    return found


def _shared(asked: Asked, fleet: Fleet, said: Collection[str]) -> dict[str, int]:
    """What the living workers have together; or what so many workers would have, if they were like them."""
    like = asked.workers or fleet.workers
    return {pool: max(1, round(n * like / fleet.workers)) for pool, n in fleet.slots.items() if pool not in said and n}


def _length(text: str, option: str) -> int:
    try:
        return duration_ms(text, option)
    except ScheduleError as error:
        refuse("", error.mistake, error.hint)


def refuse(option: str, text: str, hint: str | None) -> NoReturn:
    raise ConfigError([Mistake(option, text, hint)])
