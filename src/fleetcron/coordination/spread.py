"""How shards are spread over schedulers. Pure: every node computes the same from the same view, and acts for itself.

Every region is spread on its own: a node competes for the shards of its region and for those of `*`. Each rival has a
quota, equal but for one; who has more now keeps more, so that nothing moves without a reason. Free shards are dealt out
in one order that all nodes know, so that those who look at the same time do not reach for the same shard. A node only
ever gives back its own surplus: nobody takes from somebody who lives.
"""

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from hashlib import sha256

from fleetcron.model.shard import ANYWHERE, ShardKey


@dataclass(frozen=True, slots=True)
class Moves:
    keep: tuple[ShardKey, ...] = ()
    take: tuple[ShardKey, ...] = ()
    give_back: tuple[ShardKey, ...] = ()


def spread(
    me: str,
    nodes: Mapping[str, str],
    regions: Iterable[str],
    shards: int,
    owners: Mapping[ShardKey, str],
    overdue: Set[ShardKey] = frozenset(),
) -> Moves:
    """What `me` is to do.

    `nodes` are the schedulers that take part, with their regions; `owners` has the leases that have not run out.
    `overdue` are shards that stayed free although somebody was to take them: whoever sees that takes them. The balance
    comes later; a shard without an owner is worse.
    """
    keep: list[ShardKey] = []
    take: list[ShardKey] = []
    give_back = [key for key, owner in sorted(owners.items()) if owner == me and key.shard >= shards]
    for region in sorted(set(regions)):
        keys = [ShardKey(region, shard) for shard in range(shards)]
        mine = [key for key in keys if owners.get(key) == me]
        quotas = _quotas(region, _rivals(region, nodes), keys, owners)
        quota = quotas.get(me, 0)
        keep += mine[:quota]
        give_back += mine[quota:]
        if me in quotas:
            free = [key for key in keys if key not in owners]
            dealt = _deal(free, quotas, _counts(keys, owners))[me]
            take += dealt
            take += [key for key in free if key in overdue and key not in dealt]
    return Moves(tuple(keep), tuple(take), tuple(give_back))


def deserted(nodes: Mapping[str, str], job_regions: Iterable[str]) -> list[str]:
    """The regions that have jobs and no scheduler: nothing is planned there until one comes, or the region is moved."""
    return [region for region in sorted(set(job_regions)) if not _rivals(region, nodes)]


def _rivals(region: str, nodes: Mapping[str, str]) -> list[str]:
    return [node for node, home in sorted(nodes.items()) if region in (ANYWHERE, home)]


def _counts(keys: Sequence[ShardKey], owners: Mapping[ShardKey, str]) -> dict[str, int]:
    counts: dict[str, int] = {}
    for key in keys:
        if key in owners:
            counts[owners[key]] = counts.get(owners[key], 0) + 1
    return counts


def _quotas(
    region: str, rivals: Sequence[str], keys: Sequence[ShardKey], owners: Mapping[ShardKey, str]
) -> dict[str, int]:
    """How many shards each rival should have, in the order in which free ones are dealt out."""
    if not rivals:
        return {}
    counts = _counts(keys, owners)
    # among equals another order for every region, or one node would be the leader of all of them
    order = sorted(rivals, key=lambda node: (-counts.get(node, 0), sha256(f"{region}/{node}".encode()).digest()))
    share, extra = divmod(len(keys), len(rivals))
    return {node: share + (place < extra) for place, node in enumerate(order)}


def _deal(free: Sequence[ShardKey], quotas: Mapping[str, int], counts: Mapping[str, int]) -> dict[str, list[ShardKey]]:
    dealt, at = {}, 0
    for node, quota in quotas.items():
        wants = max(0, quota - counts.get(node, 0))
        dealt[node] = list(free[at : at + wants])
        at += len(dealt[node])
    return dealt
