"""The states of runs and jobs, and the one table of legal moves for each. Pure.

    planned ──▶ running ──▶ succeeded
       │  ▲        │ ├────▶ retrying ──▶ running      a failed, timed out or lost attempt with attempts left
       ▼  │        │ ├────▶ dead                       dead letter: no attempts left, or give_up_on
      waiting      │ └────▶ cancelled
       │           └─ dispatched ──▶ running | succeeded | retrying | dead      handed to a broker
       └──▶ skipped | expired | merged | cancelled

Whatever is not final can be cancelled. A replay opens a dead or cancelled run again: the same run, a new round.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import Final, Literal, TypeAlias, get_args

from fleetcron.errors import RefusedError


class RunState(StrEnum):
    PLANNED = "planned"
    WAITING = "waiting"
    RUNNING = "running"
    RETRYING = "retrying"
    DISPATCHED = "dispatched"
    SUCCEEDED = "succeeded"
    DEAD = "dead"
    CANCELLED = "cancelled"
    SKIPPED = "skipped"
    EXPIRED = "expired"
    MERGED = "merged"

    @property
    def is_final(self) -> bool:
        """Whether it is the answer of its tick."""
        return self in _FINAL


_FINAL = frozenset(
    {
        RunState.SUCCEEDED,
        RunState.DEAD,
        RunState.CANCELLED,
        RunState.SKIPPED,
        RunState.EXPIRED,
        RunState.MERGED,
    }
)
_NEVER_STARTED = frozenset({RunState.SKIPPED, RunState.EXPIRED, RunState.MERGED, RunState.CANCELLED})

MOVES: Final[Mapping[RunState, frozenset[RunState]]] = {
    RunState.PLANNED: frozenset({RunState.RUNNING, RunState.WAITING}) | _NEVER_STARTED,
    RunState.WAITING: frozenset({RunState.PLANNED}) | _NEVER_STARTED,
    RunState.RUNNING: frozenset(
        {RunState.SUCCEEDED, RunState.RETRYING, RunState.DISPATCHED, RunState.DEAD, RunState.CANCELLED}
    ),
    RunState.RETRYING: frozenset({RunState.RUNNING, RunState.CANCELLED}),
    # a broker may lose what it was given: then the attempt is lost, and there may be another one
    RunState.DISPATCHED: frozenset(
        {RunState.RUNNING, RunState.SUCCEEDED, RunState.RETRYING, RunState.DEAD, RunState.CANCELLED}
    ),
    RunState.DEAD: frozenset({RunState.PLANNED}),
    RunState.CANCELLED: frozenset({RunState.PLANNED}),
    RunState.SUCCEEDED: frozenset(),
    RunState.SKIPPED: frozenset(),
    RunState.EXPIRED: frozenset(),
    RunState.MERGED: frozenset(),
}

JobState: TypeAlias = Literal["active", "paused", "cancelled", "finished"]
JOB_STATES: Final[tuple[JobState, ...]] = get_args(JobState)

JOB_MOVES: Final[Mapping[JobState, frozenset[JobState]]] = {
    "active": frozenset({"paused", "cancelled", "finished"}),
    "paused": frozenset({"active", "cancelled"}),
    "finished": frozenset({"active", "cancelled"}),  # an edit may give it ticks again
    "cancelled": frozenset(),
}


def is_final(state: RunState) -> bool:
    return state.is_final


def check_move(old: RunState, new: RunState) -> None:
    """A RefusedError unless a run may go from `old` to `new`."""
    if new not in MOVES[old]:
        raise RefusedError(f"a run that is {old} cannot become {new}; {_ways(MOVES[old])}")


def check_job_move(old: JobState, new: JobState) -> None:
    """A RefusedError unless a job may go from `old` to `new`."""
    if new not in JOB_MOVES[old]:
        raise RefusedError(f"a job that is {old} cannot become {new}; {_ways(JOB_MOVES[old])}")


def _ways(states: frozenset[RunState] | frozenset[JobState]) -> str:
    return f"from there it can become {', '.join(sorted(states))}" if states else "that is its end"
