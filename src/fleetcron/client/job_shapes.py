"""Jobs as answers have them: plain dicts with a type. A test holds them against the server's OpenAPI document."""

from typing import Any, Literal, NotRequired, TypeAlias, TypedDict

Policy: TypeAlias = Literal["skip", "latest", "all"]
JobState: TypeAlias = Literal["active", "paused", "cancelled", "finished"]
Health: TypeAlias = Literal["ok", "failing", "late", "stuck", "new", "resting"]
Done: TypeAlias = Literal[
    "created", "changed", "unchanged", "refused", "paused", "resumed", "cancelled", "deleted", "handed_over", "shadowed"
]  # fmt: skip
Document: TypeAlias = dict[str, Any]  # of a job, as in YAML: docs/learn/jobs.md has every field

Span = TypedDict("Span", {"from": str, "to": str})


class LastRun(TypedDict):
    scheduled_for: str
    state: str
    run_id: int
    started_at: str | None
    finished_at: str | None
    duration_ms: int | None
    reason: str | None


class JobLine(TypedDict):
    tenant: str
    name: str
    job_id: str
    type: str
    pool: str
    state: JobState
    shadow: bool | str
    problem: str | None
    revision: int
    schedule: str
    next: str | None
    next_local: str | None
    last: LastRun | None
    health: Health


class JobPage(TypedDict):
    jobs: list[JobLine]
    next: str | None


class Stated(TypedDict):
    state: JobState
    definition: Document


class Definitions(TypedDict):
    definitions: list[Stated]
    next: str | None


class Tick(TypedDict):
    scheduled_for: str
    local: str


class Job(TypedDict):
    tenant: str
    name: str
    job_id: str
    state: JobState
    on_resume: Policy | None
    problem: str | None
    revision: int
    created_at: str
    created_by: str
    updated_at: str
    schedule: str
    next: list[Tick]
    last: LastRun | None
    health: Health
    definition: Document
    warnings: list[str]


class SteeredJob(TypedDict):
    tenant: str
    name: str
    done: Done
    state: JobState | None
    revision: int | None
    on_resume: Policy | None
    next: str | None


class EndedJob(SteeredJob):
    """`not_started`: its runs that have not started, and will not; counted up to 1,000."""

    not_started: int


class Triggered(TypedDict):
    """`created` is False if this key has asked for it before."""

    run_id: int
    tenant: str
    name: str
    job_id: str
    scheduled_for: str
    created: bool
    idempotency_key: str


class Backfilled(Span):
    tenant: str
    name: str
    dry_run: bool
    ticks: int
    created: int
    superseded: int
    existing: int
    undecided: int
    shadowed: int


class TickRow(TypedDict):
    scheduled_for: str
    local: str
    starts: NotRequired[str | None]
    notes: list[str]


class Ticks(TypedDict):
    tenant: str
    name: str
    timezone: str
    ticks: list[TickRow]


class Stats(Span):
    tenant: str
    name: str
    total_runs: int
    states: dict[str, int]
    failures: int
    success_rate: float | None
    average_duration_ms: int | None
    longest_duration_ms: int


class Change(TypedDict):
    field: str
    old: Any
    new: Any


class Revision(TypedDict):
    job_id: str
    revision: int
    at: str
    by: str
    action: str
    changes: list[Change]


class Revisions(TypedDict):
    revisions: list[Revision]


_Between = TypedDict("_Between", {"from": int, "to": int})


class Diff(_Between):
    tenant: str
    name: str
    changes: list[Change]


class Finding(TypedDict):
    level: str
    code: str
    message: str
    hint: str


Findings: TypeAlias = list[Finding]


class ClockChange(TypedDict):
    date: str
    text: str


class Preview(TypedDict):
    schedule: Any
    clock_changes: list[ClockChange]
    verdict: Any
    definition: Document
    timezone: str
    ticks: list[TickRow]
    findings: list[Finding]
    warnings: list[str]


class Place(TypedDict):
    """A mistake of one line of a batch."""

    pointer: str
    detail: str
    hint: str | None


class BatchItem(TypedDict):
    line: int
    tenant: str | None
    name: str | None
    done: Done
    revision: NotRequired[int | None]
    next: NotRequired[str | None]
    reason: NotRequired[str | None]
    errors: NotRequired[list[Place] | None]


class Batch(TypedDict):
    counts: dict[str, int]
    items: list[BatchItem]


class AppliedCalendar(TypedDict):
    tenant: str
    name: str
    done: Literal["created", "changed", "unchanged"]
    jobs_moved: int
    jobs_stuck: int


class AppliedJob(TypedDict):
    tenant: str
    name: str
    done: str
    state: str | None
    revision: int | None
    next: str | None
    changes: list[Change]
    reason: str | None
    warning: str | None
    schedule: str | None
    managed_by: str | None


class Report(TypedDict):
    """What became of many jobs and calendars."""

    dry_run: bool
    counts: dict[str, int]
    calendars: list[AppliedCalendar]
    jobs: list[AppliedJob]


class PlannedCalendar(AppliedCalendar):
    ticks: list[dict[str, Any]]


class PlannedJob(TypedDict):
    tenant: str
    name: str
    change: Literal["+", "~", "-", "!"]
    done: str
    state: str | None
    changes: list[Change]
    ticks: dict[str, Any] | None
    warnings: list[str]
    reason: str | None
    schedule: str | None


class Plan(TypedDict):
    """What would become of them, and which ticks would appear, vanish or move."""

    at: str
    days: int
    counts: dict[str, int]
    calendars: list[PlannedCalendar]
    jobs: list[PlannedJob]
