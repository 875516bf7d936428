"""Where a job stands: its cursor, and what the cursor was set for."""

from dataclasses import dataclass, field

from fleetcron.model.job import Job
from fleetcron.model.timing import Timing


@dataclass(frozen=True, slots=True)
class Position:
    """Every tick up to the cursor is decided or belongs to a gap. `ticks_used` counts towards max_ticks, 0 without."""

    cursor_ms: int
    ticks_used: int = 0


@dataclass(frozen=True, slots=True)
class Standing:
    """A job with its place in the scheduler's memory."""

    job: Job
    timing: Timing
    at: Position
    shard: int
    next_due_ms: int | None  # when the scheduler looks at it again; None: never, it is not active
    settled_ms: int | None = field(default=None, compare=False)  # the last tick whose answer no change can take back
