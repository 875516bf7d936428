"""Answers for ticks: a run to come, or a line in the ledger. Every tick of an active job has exactly one of them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal

from fleetcron.model.rules import Lane, MisfirePolicy

# why a tick has no run, by name; docs/learn/missed-ticks.md explains each
Reason = Literal[
    "misfire",  # skipped: the misfire policy is skip
    "paused",  # skipped: the job was paused, and resumed with skip
    "covered",  # skipped: the run of a later tick stands for it
    "too_old",  # missed: older than the misfire window
    "over_limit",  # missed: more ticks than the misfire limit
    "start_deadline",  # missed: its latest start had passed
    "in_the_past",  # missed: the job was created after its only instant
    "job_cancelled",  # cancelled with its job
    "job_deleted",  # cancelled with its job
    "shadow",  # skipped: the old scheduler has it
]
# the same for people
WORDS: Final[Mapping[Reason, str]] = {
    "misfire": "late, and the job skips late ticks (misfire: skip)",
    "paused": "the job was paused, and skipped them when it was resumed",
    "covered": "the run of a later tick stands for them",
    "too_old": "older than the misfire window when somebody could plan again",
    "over_limit": "more late ticks than the misfire limit",
    "start_deadline": "its latest start (start_deadline) had passed",
    "in_the_past": "the job was created after its only instant",
    "job_cancelled": "the job was cancelled",
    "job_deleted": "the job was deleted",
    "shadow": "the job was in shadow: the old scheduler had this tick",
}


@dataclass(frozen=True, slots=True)
class Forecast:
    """A run to be created. Until its tick is due and nobody has claimed it, it is only that: a forecast."""

    scheduled_for_ms: int
    run_after_ms: int
    lane: Lane = "live"
    covers: int = 1
    window_ms: tuple[int, int] | None = None  # the stretch that a run for several ticks stands for: [from, to)


@dataclass(frozen=True, slots=True)
class Answer:
    """A line in the ledger: `ticks` ticks from the first to the last of them, both included."""

    from_ms: int
    to_ms: int
    ticks: int
    answer: Literal["skipped", "missed", "cancelled"]
    reason: Reason
    covered_by_ms: int | None = None


Cause = Literal["outage", "pause", "edit", "cancel", "delete"]


@dataclass(frozen=True, slots=True)
class Gap:
    """A stretch of a job's past that is not decided yet: its ticks in (from, to], under the rules that held then."""

    from_ms: int
    to_ms: int
    cause: Cause
    policy: MisfirePolicy | Literal["cancel"] | None = None  # None: the misfire policy of the timing
    noticed_ms: int | None = None  # None: not to be decided yet
    trimmed: bool = False  # what the window and the limit drop is in the ledger already
