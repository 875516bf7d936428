"""A run: the durable row of a tick that is worked on. Its identity never changes, its state does.

Its row says planned until it is final. What it does in between is told by others: a lease says that it runs, or rests
between two attempts; the queue says what it waits for. `RunLine` is a run with all of that: what people see.
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, NamedTuple, TypeAlias

from fleetcron.model.rules import Lane
from fleetcron.model.states import RunState
from fleetcron.times.instants import from_ms, iso

RunKind: TypeAlias = Literal["tick", "backfill", "manual"]


@dataclass(frozen=True, slots=True)
class Run:
    """S2-6: immutable identity, mutable state.

    `window_ms` is [from, to) and `covers` the number of ticks that it stands for; `almanac` is the epoch of the tables
    that it was planned with. `started_ms` is the start of its first attempt; of a run that is being tried, `attempt` is
    the one that runs, or the last one. `reason` is why it ended as it did, or what the last attempt died of.
    """

    run_id: int
    job_id: str
    scheduled_for_ms: int
    run_after_ms: int
    created_ms: int
    finished_ms: int | None
    window_ms: tuple[int, int] | None
    almanac: int
    covers: int
    revision: int
    kind: RunKind
    lane: Lane
    state: RunState
    started_ms: int | None = None
    attempt: int = 0
    failures: int = 0
    losses: int = 0
    round: int = 0  # how often it was replayed
    reason: str | None = None
    covered_by: int | None = None  # the run that a merged one was merged into
    asked_by: str | None = None  # who triggered, backfilled or replayed it

    @property
    def idempotency_key(self) -> str:
        """The same for every attempt of this run, and for no other run: what a handler deduplicates by."""
        return idempotency_key(self.job_id, self.scheduled_for_ms, self.run_id, self.kind)


class Waiting(NamedTuple):
    """What a run waits for in the queue, and since when; it is looked at again at `look_ms` at the latest."""

    gate: str  # model/queued names them
    key: str
    since_ms: int
    look_ms: int | None


@dataclass(frozen=True, slots=True)
class RunLine:
    """A run as people see it: its state is the one that leases and the queue give it."""

    tenant: str
    name: str
    pool: str
    run: Run
    node_id: str | None = None  # who holds it
    begun_ms: int | None = None  # when the attempt that is held began, or will
    next_ms: int | None = None  # when it may be tried again
    progress: float | None = None
    note: str | None = None
    cancel: str | None = None  # why it was asked to stop
    queued: bool = False
    waiting: Waiting | None = None

    @property
    def job(self) -> str:
        return f"{self.tenant}/{self.name}"

    @property
    def delay_ms(self) -> int | None:
        """How long after the instant at which it might it started first."""
        return None if self.run.started_ms is None else self.run.started_ms - self.run.run_after_ms

    def lasted_ms(self, now_ms: int) -> int | None:
        """From its first start to its end, or to now. Pauses between attempts count: it was not done."""
        if self.run.started_ms is None:
            return None
        # the start is a worker's guess, which may be a moment ahead of the database's clock
        return max(0, (self.run.finished_ms or now_ms) - self.run.started_ms)


def idempotency_key(job_id: str, scheduled_for_ms: int, run_id: int, kind: RunKind) -> str:
    if kind == "manual":  # never the identity of a tick, whenever it was asked for
        return f"job:{job_id}:manual:{run_id}"
    return f"job:{job_id}:scheduled_for:{_instant(scheduled_for_ms)}"


@lru_cache(1024)  # runs of one instant come together
def _instant(ms: int) -> str:
    return iso(from_ms(ms))
