"""Pools with jobs that no worker serves: nothing fails there, and nothing ever starts."""

from collections import Counter
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

from fleetcron.cli.tables import numbered
from fleetcron.views.serving import served as served

if TYPE_CHECKING:
    from fleetcron.client.blocking import Client


def served_there(client: "Client") -> set[str]:
    """The same over an API. Pools belong to the fleet: the key of a tenant does not see them."""
    from fleetcron.client.errors import NotFound

    try:
        return {pool["name"] for pool in client.pools.list()["pools"] if pool["workers"]}
    except NotFound:
        return set()


def lines(jobs: Mapping[str, int], there: Collection[str]) -> list[str]:
    """`1 job is in the pool reports, which no worker serves: --pool reports=2`; for each of these pools (with its
    number of jobs). To be asked only if there is any worker: else it is not the pool that is missing."""
    return [
        f"{numbered(number, 'job')} {'is' if number == 1 else 'are'} in the pool {pool}, which no worker serves:"
        f" --pool {pool}=2"
        for pool, number in sorted(Counter(jobs).items())
        if number and pool not in there
    ]
