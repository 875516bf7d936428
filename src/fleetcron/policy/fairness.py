"""Who comes first: start-time fair queueing between tenants, and priority that waiting raises. Pure.

Every queue (a lane and a priority of a pool) has a virtual time: the rank that was served last. A run that becomes due
gets the rank max(virtual time, where its tenant's last run ends), and its tenant moves on by STEP / weight. So the
plain order of ranks is fair: a tenant with 100,000 runs and a tenant with one stand side by side, and a tenant that was
away has neither credit nor debt. Ranks are given a moment before a run is due, not when it is planned: a rank given far
ahead would be credit.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from heapq import heapify, heappop, heapreplace
from itertools import groupby
from typing import Final, NamedTuple, TypeAlias

from fleetcron.model.queued import Queued

STEP: Final = 1_000_000
AGING_MS: Final = 60_000  # so long a run waits to be worth one point of priority more

Place: TypeAlias = tuple[str, str, int, str]  # pool, lane, priority, tenant; the tenant '' is the queue itself


class Wanted(NamedTuple):
    """A run that is to be queued."""

    pool: str
    lane: str
    priority: int
    tenant: str
    weight: int


def places(wanted: Iterable[Wanted]) -> set[Place]:
    """Whose shares have to be known."""
    found = {(each.pool, each.lane, each.priority, each.tenant) for each in wanted}
    return found | {(pool, lane, priority, "") for pool, lane, priority, _ in found}


def ranks(wanted: Sequence[Wanted], shares: Mapping[Place, int]) -> tuple[list[int], dict[Place, int]]:
    """The rank of each, and the shares after it."""
    moved: dict[Place, int] = {}
    found = []
    for pool, lane, priority, tenant, weight in wanted:
        mine, queue = (pool, lane, priority, tenant), (pool, lane, priority, "")
        now = shares.get(queue, 0)
        start = max(now, moved.get(mine, shares.get(mine, 0)))
        found.append(start)
        moved[mine] = start + STEP // weight
        moved.setdefault(queue, now)
    return found, moved


def order(candidates: Sequence[Queued], now_ms: int, *, catchup_first: bool = False) -> Iterator[Queued]:
    """Live work before catch-up; what is due before what is not; then priority with aging; then the fair order.

    Within a queue the fair order stands: only the heads of the queues compete, each with the time that it has waited.
    """
    for lane in ("catchup", "live") if catchup_first else ("live", "catchup"):
        of_lane = [each for each in candidates if each.lane == lane]
        for is_due in (True, False):
            some = [each for each in of_lane if (each.due_ms <= now_ms) == is_due]
            yield from _merged(some, now_ms)


def precedence(run: Queued, now_ms: int) -> tuple[bool, bool, int, int, int, int]:
    """Who comes first of runs that want the same, in whatever pools they are: the smallest. Nobody who is not due comes
    before one that is."""
    return run.due_ms > now_ms, run.lane != "live", *_turn(run, now_ms), run.scheduled_for_ms, run.run_id


def _merged(candidates: Sequence[Queued], now_ms: int) -> Iterator[Queued]:
    by_priority = sorted(candidates, key=lambda each: (each.priority, each.rank, each.run_id))
    queues = [iter(list(group)) for _, group in groupby(by_priority, key=lambda each: each.priority)]
    heads = [(*_turn(run, now_ms), run, queue) for queue in queues if (run := next(queue, None))]
    heapify(heads)
    while heads:
        *_, run, queue = heads[0]
        yield run
        if (following := next(queue, None)) is None:
            heappop(heads)
        else:
            heapreplace(heads, (*_turn(following, now_ms), following, queue))


def _turn(run: Queued, now_ms: int) -> tuple[int, int]:
    """Whose is the smallest comes first: by priority, raised by waiting; between equals whoever has waited longer."""
    return -run.priority - max(0, now_ms - run.due_ms) // AGING_MS, run.due_ms
