"""A rehearsal: these jobs, with this capacity, through these outages, from then until then. It gives facts."""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any, Final, TypeAlias

from fleetcron.errors import RefusedError
from fleetcron.executors.context import Context
from fleetcron.model.calendar import CalendarDocument
from fleetcron.model.definition import Definition
from fleetcron.model.outcome import Succeeded
from fleetcron.model.rules import OnceEntry
from fleetcron.model.run import RunLine
from fleetcron.model.target import PythonTarget
from fleetcron.scheduler.tables import Tables, build
from fleetcron.simulate.durations import BY_OVERLAP, Durations, Stopping
from fleetcron.simulate.outlook import Facts, RunFact, Stretch, Work
from fleetcron.simulate.rehearsed import Cast, EndsAs
from fleetcron.simulate.stage import POOL_SLOTS, Stage, refuse_beyond
from fleetcron.store.history import LedgerLine, Span
from fleetcron.times.instants import to_ms

MOST_TICKS: Final = 200_000
_PATIENCE_S: Final = 3600  # with who does not stop: whoever was killed then has ended by then
_STEPS: Final = 200  # of the progress
_PAGE: Final = 2_000
_NEVER: Final = OnceEntry("2999-12-31T00:00:00Z")
_NOBODY: Final = PythonTarget("nobody:runs_it")

Name: TypeAlias = tuple[str, str]  # tenant, name

Progress = Callable[[float], None]  # how much of it is done, from 0 to 1


@dataclass(frozen=True, slots=True)
class Scenario:
    """`slots` by pool for each worker, `shared` by pool for all of them together; a pool that is named in neither has
    ten for each. `tenants` and `pools` are limits that people
    set, by name. `idle` are jobs that do not run, and their states: others may depend on them all the same."""

    definitions: Sequence[Definition]
    from_ms: int
    to_ms: int
    calendars: Sequence[CalendarDocument] = ()
    outages: Sequence[tuple[int, int]] = ()
    durations: Durations = field(default_factory=Durations)
    slots: Mapping[str, int] = field(default_factory=dict)
    shared: Mapping[str, int] = field(default_factory=dict)
    workers: int = 1
    tenants: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    pools: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    most_ticks: int = MOST_TICKS
    idle: Mapping[Name, str] = field(default_factory=dict)

    def capacity(self) -> dict[str, int]:
        """The slots of all workers together, of the pools that have jobs."""
        pools = sorted({each.pool for each in self.definitions})
        return {pool: self.shared.get(pool) or self.workers * self.slots.get(pool, POOL_SLOTS) for pool in pools}

    def idle_upstreams(self) -> dict[Name, list[str]]:
        """Those of the idle jobs that others depend on, by name, and which these are."""
        own = {(each.tenant, each.name) for each in self.definitions}
        found: dict[Name, list[str]] = {}
        for each in self.definitions:
            for need in each.depends_on:
                if (each.tenant, need) in self.idle and (each.tenant, need) not in own:
                    found.setdefault((each.tenant, need), []).append(each.seed)
        return dict(sorted(found.items()))


def rehearse(scenario: Scenario, progress: Progress = lambda _: None) -> Facts:
    """A RefusedError if there would be too much to do, or a job cannot be."""
    refuse_beyond(scenario.from_ms, scenario.to_ms)
    stage = Stage(
        Cast(_player(scenario.durations), patience_s=_PATIENCE_S),
        scenario.from_ms,
        slots=dict(scenario.slots) or None,
        shared=scenario.shared,
        workers=scenario.workers,
    )
    try:
        ticks = _set_up(stage, scenario)
        stage.up()
        length = scenario.to_ms - scenario.from_ms
        for step in range(1, _STEPS + 1):
            stage.move_to(scenario.from_ms + length * step // _STEPS - (step == _STEPS))
            progress(step / _STEPS)
        return _facts(stage, scenario, ticks)
    finally:
        stage.close()


def _player(durations: Durations) -> Callable[[Context], Any]:
    async def play(ctx: Context) -> None:
        lasting = durations.of(f"{ctx.tenant}/{ctx.job}", to_ms(ctx.scheduled_for), ctx.attempt)
        begun_s = asyncio.get_running_loop().time()
        try:
            await asyncio.sleep(lasting.ms / 1000)
        except asyncio.CancelledError:
            await _stop(ctx, lasting.stopping, begun_s)
            raise
        if not isinstance(lasting.outcome, Succeeded | None):
            raise EndsAs(lasting.outcome)

    return play


async def _stop(ctx: Context, stopping: Stopping | None, begun_s: float) -> None:
    """The next tick waits for as long as it takes. Whatever else asks, it stops at once."""
    if stopping is None or not (ctx.cancelled.reason or "").startswith(BY_OVERLAP):
        return
    lasted_s = asyncio.get_running_loop().time() - begun_s
    await asyncio.sleep(min(stopping.ms / 1000, max(0, stopping.by_ms / 1000 - lasted_s)))


def _set_up(stage: Stage, scenario: Scenario) -> dict[str, int]:
    """The number of ticks that are to come, by job."""
    limits = stage.store.limits
    for name, fields in scenario.tenants.items():
        stage.do(limits.put_tenant(name, fields, actor="simulate"))
    for name, fields in scenario.pools.items():
        stage.do(limits.put_pool(name, fields, actor="simulate"))
    _set_idle(stage, scenario)
    for applied in stage.apply(scenario.definitions, scenario.calendars):
        if applied.done == "refused":
            raise RefusedError(f"{applied.tenant}/{applied.name}: {applied.reason}")
    for outage in scenario.outages:
        stage.plan_outage(*outage)
    ticks = stage.do(_count(stage, scenario.definitions, scenario.from_ms, scenario.to_ms))
    number = sum(ticks.values())
    if number > scenario.most_ticks:
        raise RefusedError(
            f"{number:,} ticks lie in this period, and {scenario.most_ticks:,} are simulated at most;"
            " take a shorter period or fewer jobs, or raise --max-ticks (about 2 ms each)"
        )
    return ticks


def _set_idle(stage: Stage, scenario: Scenario) -> None:
    """Without ticks. A paused one has no answer for those who depend on it; from one that has ended, or is deleted,
    they expect none (store/upstreams)."""
    names = list(scenario.idle_upstreams())
    stage.apply([Definition(name, (_NEVER,), _NOBODY, tenant=tenant) for tenant, name in names])
    for tenant, name in names:
        if scenario.idle[tenant, name] == "paused":
            stage.do(stage.desk.pause(tenant, name))


async def _count(stage: Stage, jobs: Sequence[Definition], from_ms: int, to_ms: int) -> dict[str, int]:
    """How many ticks each of the jobs has in [from, to)."""
    store = stage.store
    found = await store.jobs.find([(each.tenant, each.name) for each in jobs])
    tables = Tables(store.almanac)
    ticks: dict[str, int] = {}
    for standing in found.standings.values():
        timing = standing.timing
        known = await tables.known(set(timing.parts()), found.epoch)
        after_ms = max(from_ms - 1, standing.job.created_ms)
        number = build(timing, known.almanac).count_ms(after_ms, to_ms - 1)
        ticks[standing.job.definition.seed] = number if timing.max_ticks is None else min(number, timing.max_ticks)
    return ticks


def _facts(stage: Stage, scenario: Scenario, ticks: dict[str, int]) -> Facts:
    """What a job is told when it is made, of an instant that has passed then, is not of the period."""
    lines = [line for line in _lines(stage) if scenario.from_ms <= line.run.scheduled_for_ms < scenario.to_ms]
    runs = [_until(scenario.to_ms, _killed(scenario.outages, _run(stage, line))) for line in lines]
    stretches = [
        Stretch(f"{each.tenant}/{each.name}", each.answer.from_ms, each.answer.to_ms, each.answer.ticks,
                each.answer.answer, each.answer.reason)
        for each in _ledger(stage)
        if scenario.from_ms <= each.answer.from_ms < scenario.to_ms
    ]  # fmt: skip
    stretches = [_cut(stage, scenario, each) if each.to_ms >= scenario.to_ms else each for each in stretches]
    jobs = [each.seed for each in scenario.definitions]
    pools = {each.seed: each.pool for each in scenario.definitions}
    facts = Facts(jobs, scenario.from_ms, scenario.to_ms, runs, stretches, list(scenario.outages), pools, ticks)
    return replace(facts, undecided_ms=stage.do(_undecided(stage, scenario, facts)))


async def _undecided(stage: Stage, scenario: Scenario, facts: Facts) -> list[int]:
    """The ticks that have no run and no answer, of the jobs that somebody would look at: the fleet is down until the
    end, or has not had the room yet to catch up with what an outage left."""
    left = Counter(facts.ticks)
    taken: dict[str, set[int]] = {}
    for run in facts.runs:
        left[run.job] -= 1
        taken.setdefault(run.job, set()).add(run.scheduled_for_ms)
    answered: dict[str, list[Stretch]] = {}
    for each in facts.ledger:
        left[each.job] -= each.ticks
        answered.setdefault(each.job, []).append(each)
    names = [(each.tenant, each.name) for each in scenario.definitions if left[each.seed] > 0]
    found = await stage.store.jobs.find(names)
    tables = Tables(stage.store.almanac)
    undecided: list[int] = []
    for standing in found.standings.values():
        job, timing = standing.job.definition.seed, standing.timing
        if standing.job.state != "active":
            continue
        timetable = await tables.built(timing, found.epoch)
        after_ms = max(scenario.from_ms - 1, (timing.shadow_ms or 0) - 1, standing.job.created_ms)
        spans = [(each.from_ms, each.to_ms) for each in answered.get(job, ())]
        ticks = _without(timetable.ticks_ms(after_ms, scenario.to_ms - 1), taken.get(job, set()), sorted(spans))
        undecided += islice(ticks, left[job])
    return undecided


def _without(ticks: Iterable[int], taken: Set[int], spans: Sequence[tuple[int, int]]) -> Iterator[int]:
    at = 0
    for tick in ticks:
        while at < len(spans) and spans[at][1] < tick:
            at += 1
        if tick not in taken and (at == len(spans) or tick < spans[at][0]):
            yield tick


def _cut(stage: Stage, scenario: Scenario, stretch: Stretch) -> Stretch:
    """Its ticks of the period. What is answered ahead (a job in shadow) is answered for a minute after it, too."""
    [job] = [each for each in scenario.definitions if each.seed == stretch.job]
    ticks = stage.do(_count(stage, [job], stretch.from_ms, scenario.to_ms))[stretch.job]
    return stretch._replace(to_ms=scenario.to_ms - 1, ticks=ticks)


def _lines(stage: Stage) -> list[RunLine]:
    found: list[RunLine] = []
    before: int | None = None
    while True:
        page = stage.do(stage.store.history.runs(Span(before_id=before), limit=_PAGE))
        found += page
        if len(page) < _PAGE:
            return found[::-1]
        before = page[-1].run.run_id


def _ledger(stage: Stage) -> list[LedgerLine]:
    found: list[LedgerLine] = []
    before: int | None = None
    while True:
        page = stage.do(stage.store.history.ledger(Span(before_id=before), limit=_PAGE))
        found += page
        if len(page) < _PAGE:
            return found[::-1]
        before = page[-1].entry_id


def _run(stage: Stage, line: RunLine) -> RunFact:
    run = line.run
    works = [Work(run.started_ms, run.finished_ms, run.state.value)] if run.started_ms is not None else []
    if run.attempt > 1 or (works and not run.state.is_final):
        past = stage.do(stage.store.past_attempts.of_run(run.run_id))
        works = [Work(each.started_ms, each.finished_ms, each.outcome or "running") for each in past]
    return RunFact(
        job=line.job,
        scheduled_for_ms=run.scheduled_for_ms,
        run_after_ms=run.run_after_ms,
        state=run.state.value,
        lane=run.lane,
        covers=run.covers,
        finished_ms=run.finished_ms,
        works=works,
    )


def _killed(outages: Sequence[tuple[int, int]], run: RunFact) -> RunFact:
    """An outage ends every attempt as it begins, though it is noticed and written down later."""
    return replace(run, works=[_killed_work(outages, each) for each in run.works])


def _killed_work(outages: Sequence[tuple[int, int]], work: Work) -> Work:
    for begin_ms, _ in sorted(outages):
        if work.from_ms < begin_ms and (work.to_ms is None or begin_ms < work.to_ms):
            return Work(work.from_ms, begin_ms, "lost")
    return work


def _until(to_ms: int, run: RunFact) -> RunFact:
    """As it stands when the period ends. The stage goes on for a moment: what ends then, or is stopped by the tick of
    that instant, is not over."""
    works = [
        work if work.to_ms is None or work.to_ms < to_ms else Work(work.from_ms, None, "running")
        for work in run.works
        if work.from_ms < to_ms
    ]
    if run.finished_ms is None or run.finished_ms < to_ms:
        return replace(run, works=works)
    return replace(run, works=works, finished_ms=None, state="running" if works else "waiting")
