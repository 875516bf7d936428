"""Runs and what became of ticks, as the API shows them."""

from typing import Any, Literal

from pydantic import Field

from fleetcron.api.parameters import Shown
from fleetcron.model.states import RunState


class Window(Shown):
    from_: str = Field(alias="from")
    to: str


class Waiting(Shown):
    gate: str = Field(description="what it waits for: key, upstream, tenant, rate, quota_tenant, paused, handler, …")
    key: str
    since: str


class Run(Shown):
    run_id: int
    tenant: str
    name: str
    job_id: str
    pool: str
    scheduled_for: str
    run_after: str
    state: RunState
    kind: Literal["tick", "backfill", "manual"]
    lane: Literal["live", "catchup"]
    covers: int
    window: Window | None
    created_at: str
    started_at: str | None
    finished_at: str | None
    delay_ms: int | None
    duration_ms: int | None
    attempt: int
    failures: int
    losses: int
    round: int = Field(description="how often it was replayed")
    reason: str | None
    covered_by: int | None
    worked_by: int | None
    asked_by: str | None
    node_id: str | None
    progress: float | None
    note: str | None
    asked_to_stop: str | None
    next_try: str | None
    waiting: Waiting | None
    revision: int
    idempotency_key: str


class RunPage(Shown):
    runs: list[Run]
    next: str | None
    planned_later: int | None = Field(
        description="runs that are planned for later and left out; null: too many to count"
    )


class LastError(Shown):
    code: str | None
    text: str | None


class Error(LastError):
    trace: str | None


class Attempt(Shown):
    attempt: int
    node_id: str
    outcome: str | None = Field(description="null: it runs")
    started_at: str
    finished_at: str | None
    duration_ms: int | None
    error: Error | None
    result: Any
    log_bytes: int
    progress: float | None
    note: str | None


class Attempts(Shown):
    attempts: list[Attempt]


class Discarded(Shown):
    at: str
    by: str | None
    reason: str


class NextRun(Shown):
    run_id: int
    scheduled_for: str
    state: RunState


class FullRun(Run):
    why: str
    payload: dict[str, Any]
    discarded: Discarded | None
    merged_into: list[int]
    next_run: NextRun | None
    attempts: list[Attempt]


class Holder(Shown):
    run_id: int
    job: str
    node_id: str | None


class Why(Shown):
    why: str = Field(description="one sentence")
    tenant: str
    name: str
    scheduled_for: str
    state: str | None
    run_id: int | None = None
    waiting: Waiting | None = None
    holders: list[Holder] = Field(default=[])
    workers: list[str] = Field(default=[])
    merged_into: list[int] = Field(default=[])


class LogPiece(Shown):
    attempt: int
    seq: int
    at: str
    text: str
    truncated: bool


class Log(Shown):
    attempt: int
    pieces: list[LogPiece]
    ended: bool = Field(description="this attempt is over")
    is_final: bool = Field(description="so is the run")
    next: str | None = Field(description="the cursor of the next page; null: nothing more for now")


class SteeredRun(Shown):
    run_id: int
    job: str | None
    done: Literal["cancelled", "stopping", "replayed", "discarded", "unchanged", "refused"]
    reason: str | None


class SteeredRuns(Shown):
    runs: list[SteeredRun]


class DeadLetter(Shown):
    run_id: int
    tenant: str
    name: str
    job_id: str
    type: str
    kind: str
    scheduled_for: str
    died_at: str
    attempt: int
    failures: int
    losses: int
    round: int
    outcome: str | None
    error: LastError
    node_id: str | None


class DeadPage(Shown):
    dead: list[DeadLetter]
    next: str | None


class ReplayedMany(Shown):
    dead: int = Field(description="how many were like that")
    can_be_replayed: int
    replayed: int
    dry_run: bool


class LedgerLine(Shown):
    entry_id: int
    tenant: str
    name: str
    job_id: str
    from_: str = Field(alias="from")
    to: str
    ticks: int
    answer: Literal["skipped", "missed", "cancelled"]
    reason: str
    words: str
    covered_by: str | None
    noted_at: str
    revision: int


class LedgerPage(Shown):
    ledger: list[LedgerLine]
    next: str | None


class Event(Shown):
    event_id: int
    at: str
    kind: str
    count: int
    tenant: str | None
    name: str | None
    node_id: str | None
    by: str | None
    detail: dict[str, Any]


class EventPage(Shown):
    events: list[Event]
    next: str | None
