"""A run: the durable row of a tick that is worked on. Its identity never changes, its state does."""

from dataclasses import dataclass
from typing import Literal, TypeAlias

from fleetcron.model.rules import Lane
from fleetcron.model.states import RunState
from fleetcron.times.instants import from_ms, iso

RunKind: TypeAlias = Literal["tick", "backfill", "manual"]


@dataclass(frozen=True, slots=True)
class Run:
    """S2-6: immutable identity, mutable state.

    `window_ms` is [from, to) and `covers` the number of ticks that it stands for; `almanac` is the epoch of the tables
    that it was planned with.
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

    @property
    def idempotency_key(self) -> str:
        """The same for every attempt of this run, and for no other run: what a handler deduplicates by."""
        return idempotency_key(self.job_id, self.scheduled_for_ms, self.run_id, self.kind)


def idempotency_key(job_id: str, scheduled_for_ms: int, run_id: int, kind: RunKind) -> str:
    if kind == "manual":  # never the identity of a tick, whenever it was asked for
        return f"job:{job_id}:manual:{run_id}"
    return f"job:{job_id}:scheduled_for:{iso(from_ms(scheduled_for_ms))}"
