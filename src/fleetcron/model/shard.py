"""A shard: a fixed slice of all jobs. Which one a job belongs to depends on its id and on how many there are."""

from dataclasses import dataclass, field
from hashlib import sha256
from typing import Final, NamedTuple

ANYWHERE: Final = "*"  # the region of jobs without a home, and of nodes without a region


class ShardKey(NamedTuple):
    """Leases are held by region and number: shard 3 of `eu` and shard 3 of `*` are two shards."""

    region: str
    shard: int


@dataclass(frozen=True, slots=True, order=True)
class Held:
    """A shard, and the term by which its owner has it. Writes carry the term, which fences whoever had it before."""

    region: str
    shard: int
    term: int
    owner: str = field(default="", compare=False)  # the term says as much: it has one owner

    @property
    def key(self) -> ShardKey:
        return ShardKey(self.region, self.shard)

    def __str__(self) -> str:
        return f"{self.region}/{self.shard} (term {self.term})"


def shard_of(job_id: str, shards: int) -> int:
    """The shard of a job, the same on every node and in every release. Written down when the job is created."""
    return int.from_bytes(sha256(job_id.lower().encode()).digest()[:8]) % shards
