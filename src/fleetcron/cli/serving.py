"""Pools with jobs that no worker serves: nothing fails there, and nothing ever starts."""

from collections import Counter
from collections.abc import Collection, Mapping

from fleetcron.cli.tables import numbered
from fleetcron.store.store import Store


async def served(store: Store) -> set[str]:
    """The pools of all workers that live."""
    seen = await store.workers.list()
    return {pool for worker in seen.workers if worker.expires_ms > seen.now_ms for pool in worker.pools}


async def unserved(store: Store, jobs: Mapping[str, int]) -> list[str]:
    """A line for each of these pools (with its number of jobs) that no worker serves. Nothing while there is no worker
    at all: then it is not the pool that is missing."""
    there = await served(store)
    return lines(jobs, there) if there else []


def lines(jobs: Mapping[str, int], there: Collection[str]) -> list[str]:
    """`1 job is in the pool reports, which no worker serves: --pool reports=2`."""
    return [
        f"{numbered(number, 'job')} {'is' if number == 1 else 'are'} in the pool {pool}, which no worker serves:"
        f" --pool {pool}=2"
        for pool, number in sorted(Counter(jobs).items())
        if number and pool not in there
    ]
