"""What is written because an attempt ended."""

from dataclasses import dataclass

from fleetcron.model.outcome import Fault
from fleetcron.model.states import RunState


@dataclass(frozen=True, slots=True)
class Budget:
    """What a run has used up. The attempt number is not part of it: it only rises, and is the fence."""

    failures: int = 0
    losses: int = 0


@dataclass(frozen=True, slots=True)
class Transition:
    """What is written because of an outcome. `due_ms` is when the run may start again."""

    state: RunState
    budget: Budget
    due_ms: int | None = None
    error: Fault | None = None
