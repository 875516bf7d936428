"""The next tick of jobs, exactly.

A run that is planned ahead is the next tick. Without one, the instant at which the scheduler looks again is the next
tick, except for a job that may end, where it can be the moment to find that the job is finished, and for one in shadow,
which is looked at when its tick has come: their timetables are asked.
"""

from collections.abc import Iterable, Sequence

from fleetcron.model.rules import OnceEntry
from fleetcron.model.standing import Standing
from fleetcron.policy.bounds import last_allowed, next_tick
from fleetcron.scheduler.tables import Tables, build
from fleetcron.store.jobs import Found, JobLine
from fleetcron.store.store import Store
from fleetcron.times.timetable import Timetable


async def next_ticks(store: Store, lines: Sequence[JobLine]) -> dict[str, int]:
    """By job id; a job without a tick to come is left out. An instant in the past is a tick that nobody has planned."""
    found = {line.job.job_id: line.next_planned_ms for line in lines if line.next_planned_ms is not None}
    open_lines = [line for line in lines if line.job.job_id not in found and line.job.state == "active"]
    found |= {
        line.job.job_id: line.next_due_ms
        for line in open_lines
        if line.next_due_ms is not None and not _asks_timetable(line)
    }
    ending = [line for line in open_lines if _asks_timetable(line)]
    if ending:
        facts = await store.jobs.find([(line.job.definition.tenant, line.job.definition.name) for line in ending])
        for standing, timetable in await _timetables(store, facts):
            tick = next_tick(standing.timing, timetable, standing.at)
            if tick is not None and standing.next_due_ms is not None:
                found[standing.job.job_id] = tick
    return found


async def ticks_of(store: Store, line: JobLine, count: int) -> list[int]:
    """The next ticks of one job that is active, planned or not."""
    facts = await store.jobs.find([(line.job.definition.tenant, line.job.definition.name)])
    for standing, timetable in await _timetables(store, facts):
        if standing.job.state != "active":
            continue
        last = max(last_allowed(standing.timing, timetable, standing.at), standing.at.cursor_ms)
        ticks: list[int] = []
        tick = timetable.next_ms(facts.now_ms)
        while tick is not None and tick <= last and len(ticks) < count:
            ticks.append(tick)
            tick = timetable.next_ms(tick)
        return ticks
    return []


async def _timetables(store: Store, facts: Found) -> Iterable[tuple[Standing, Timetable]]:
    standings = list(facts.standings.values())
    parts = {part for standing in standings for part in standing.timing.parts()}
    known = await Tables(store.almanac).known(parts, facts.epoch)
    return [(standing, build(standing.timing, known.almanac)) for standing in standings]


def _asks_timetable(line: JobLine) -> bool:
    definition = line.job.definition
    only_once = all(isinstance(entry, OnceEntry) for entry in definition.schedule)
    may_end = only_once or definition.max_ticks is not None or definition.ends_ms is not None
    return may_end or definition.shadow_ms is not None
