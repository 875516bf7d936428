"""Jobs as the API shows them."""

from typing import Annotated, Any, Literal

from pydantic import Field
from pydantic.json_schema import WithJsonSchema

from fleetcron.api.parameters import Shown
from fleetcron.model.states import JobState

# every field of a job, with its value; the same shape as the body of POST /jobs
Definition = Annotated[dict[str, Any], WithJsonSchema({"type": "object", "description": "every field with its value"})]
Health = Literal["ok", "failing", "late", "stuck", "new", "resting"]
Policy = Literal["skip", "latest", "all"]
Done = Literal[
    "created", "changed", "unchanged", "refused", "paused", "resumed", "cancelled", "deleted", "handed_over", "shadowed"
]


class LastRun(Shown):
    scheduled_for: str
    state: str
    run_id: int
    started_at: str | None
    finished_at: str | None
    duration_ms: int | None
    reason: str | None = Field(description="why it ended so, such as the last error")


class JobLine(Shown):
    tenant: str
    name: str
    job_id: str
    type: str
    pool: str
    state: JobState
    shadow: bool | str = Field(description="true: another scheduler runs it; or the instant until which it does")
    problem: str | None
    revision: int
    schedule: str = Field(description="in one line, for people")
    next: str | None = Field(description="the next tick; one in the past has not been planned yet")
    next_local: str | None = Field(description="the same in the zone of the job")
    last: LastRun | None = Field(description="what became of its last tick")
    health: Health


class JobPage(Shown):
    jobs: list[JobLine]
    next: str | None = Field(description="the cursor of the next page")


class Stated(Shown):
    state: JobState
    definition: Definition


class Definitions(Shown):
    definitions: list[Stated]
    next: str | None


class Tick(Shown):
    scheduled_for: str
    local: str


class Job(Shown):
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
    schedule: str = Field(description="in one line, for people")
    next: list[Tick]
    last: LastRun | None
    health: Health
    definition: Definition
    warnings: list[str] = Field(description="what was accepted and will not work")


class SteeredJob(Shown):
    tenant: str
    name: str
    done: Done
    state: JobState | None
    revision: int | None
    on_resume: Policy | None
    next: str | None


class EndedJob(SteeredJob):
    not_started: int = Field(description="runs that have not started, and will not; counted up to 1,000")


class Triggered(Shown):
    run_id: int
    tenant: str
    name: str
    job_id: str
    scheduled_for: str
    created: bool = Field(description="false: this key has asked for it before")
    idempotency_key: str


class Backfilled(Shown):
    tenant: str
    name: str
    from_: str = Field(alias="from")
    to: str
    dry_run: bool
    ticks: int
    created: int
    superseded: int = Field(description="of the created runs, those whose tick had been answered in the ledger")
    existing: int
    undecided: int
    shadowed: int = Field(description="ticks that another scheduler had while the job was in shadow")


class Row(Shown):
    scheduled_for: str
    local: str
    starts: str | None = Field(default=None, description="with jitter, where that differs")
    notes: list[str]


class Ticks(Shown):
    tenant: str
    name: str
    timezone: str
    ticks: list[Row]


class Stats(Shown):
    tenant: str
    name: str
    from_: str = Field(alias="from")
    to: str
    total_runs: int
    states: dict[str, int]
    failures: int = Field(description="dead and expired")
    success_rate: float | None = Field(description="of those that have succeeded or failed, 0 to 100; null: none has")
    average_duration_ms: int | None
    longest_duration_ms: int


class Change(Shown):
    field: str
    old: Any
    new: Any


class Revision(Shown):
    job_id: str
    revision: int
    at: str
    by: str
    action: str
    changes: list[Change]


class Revisions(Shown):
    revisions: list[Revision]


class Diff(Shown):
    tenant: str
    name: str
    from_: int = Field(alias="from")
    to: int
    changes: list[Change]


class Finding(Shown):
    level: str
    code: str
    message: str
    hint: str


class ClockChange(Shown):
    date: str
    text: str


class Preview(Shown):
    schedule: Any = Field(description="in words, each entry")
    clock_changes: list[ClockChange] = Field(description="what the clock changes of two years do to it")
    verdict: Any
    definition: Definition
    timezone: str
    ticks: list[Row]
    findings: list[Finding]
    warnings: list[str]


class Mistake(Shown):
    pointer: str
    detail: str
    hint: str | None


class BatchItem(Shown):
    line: int = Field(description="from 1")
    tenant: str | None
    name: str | None
    done: Done
    revision: int | None = None
    next: str | None = None
    reason: str | None = None
    errors: list[Mistake] | None = None


class Batch(Shown):
    counts: dict[str, int]
    items: list[BatchItem]
