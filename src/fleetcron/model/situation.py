"""What is known of one run when somebody asks why: plain facts. The store reads them, policy/why makes a sentence."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from fleetcron.model.control import Switched
from fleetcron.model.queued import Queued
from fleetcron.model.run import RunLine
from fleetcron.model.upstream import Upstream


class KeyHolder(NamedTuple):
    """A run that has the key. Without a node it rests between two attempts, and may go on at `at_ms`; with one it has
    run, or will, since then."""

    run_id: int
    job: str
    node_id: str | None
    at_ms: int


class PoolWorker(NamedTuple):
    """A worker that is alive and serves the pool. `lacks` are handlers that it was asked for and has not,
    with the reasons."""

    node_id: str
    slots: int
    lacks: Mapping[str, str]


class Used(NamedTuple):
    """How much of a limit is in use. None: there is no limit (any more)."""

    held: int
    most: int | None


_UNUSED = Used(0, None)


@dataclass(frozen=True, slots=True)
class Situation:
    """`queued` is its place in the queue, if it has one; the facts about gates are there for its own gate only."""

    now_ms: int
    line: RunLine
    queued: Queued | None = None
    workers: Sequence[PoolWorker] = ()
    in_pool: Used = _UNUSED  # the slots of the pool
    ready: int = 0  # runs of the pool that only wait for a slot
    holders: Sequence[KeyHolder] = ()
    earlier: RunLine | None = None  # of the same job, and first by scheduled_for
    cap: Used = _UNUSED  # of the tenant or the type: what the gate says
    next_start_ms: int | None = None  # under the rate of its tenant
    control: Switched | None = None
    upstream: Sequence[Upstream] = ()
    upstream_runs: Mapping[str, RunLine] = field(default_factory=dict)  # the latest one of each job
    ended: str | None = None  # its job was cancelled or deleted, so it does not start (again)
