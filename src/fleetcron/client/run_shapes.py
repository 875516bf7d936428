"""Runs and what became of ticks, as answers have them.

Written again, not imported from the API: a client does without pydantic and FastAPI. A test holds every field to the
OpenAPI document (tests/client/test_shapes.py).
"""

from typing import Any, Literal, NotRequired, TypeAlias, TypedDict

from fleetcron.client.job_shapes import Span

State: TypeAlias = Literal[
    "planned", "waiting", "running", "retrying", "dispatched",
    "succeeded", "dead", "cancelled", "skipped", "expired", "merged",
]  # fmt: skip


class Waiting(TypedDict):
    gate: str
    key: str
    since: str


class Run(TypedDict):
    run_id: int
    tenant: str
    name: str
    job_id: str
    pool: str
    scheduled_for: str
    run_after: str
    state: State
    kind: Literal["tick", "backfill", "manual"]
    lane: Literal["live", "catchup"]
    covers: int
    window: Span | None
    created_at: str
    started_at: str | None
    finished_at: str | None
    delay_ms: int | None
    duration_ms: int | None
    attempt: int
    failures: int
    losses: int
    round: int
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


class RunPage(TypedDict):
    runs: list[Run]
    next: str | None
    planned_later: int | None


class LastError(TypedDict):
    code: str | None
    text: str | None


class RunError(LastError):
    trace: str | None


class Attempt(TypedDict):
    attempt: int
    node_id: str
    outcome: str | None
    started_at: str
    finished_at: str | None
    duration_ms: int | None
    error: RunError | None
    result: Any
    log_bytes: int
    progress: float | None
    note: str | None


class Attempts(TypedDict):
    attempts: list[Attempt]


class Discarded(TypedDict):
    at: str
    by: str | None
    reason: str


class NextRun(TypedDict):
    run_id: int
    scheduled_for: str
    state: State


class FullRun(Run):
    why: str
    payload: dict[str, Any]
    discarded: Discarded | None
    merged_into: list[int]
    next_run: NextRun | None
    attempts: list[Attempt]


class Holder(TypedDict):
    run_id: int
    job: str
    node_id: str | None


class Why(TypedDict):
    why: str
    tenant: str
    name: str
    scheduled_for: str
    state: str | None
    run_id: NotRequired[int | None]
    waiting: NotRequired[Waiting | None]
    holders: NotRequired[list[Holder]]
    workers: NotRequired[list[str]]
    merged_into: NotRequired[list[int]]


class LogPiece(TypedDict):
    attempt: int
    seq: int
    at: str
    text: str
    truncated: bool


class Log(TypedDict):
    attempt: int
    pieces: list[LogPiece]
    ended: bool
    is_final: bool
    next: str | None


class SteeredRun(TypedDict):
    run_id: int
    job: str | None
    done: Literal["cancelled", "stopping", "replayed", "discarded", "unchanged", "refused"]
    reason: str | None


class SteeredRuns(TypedDict):
    runs: list[SteeredRun]


class DeadLetter(TypedDict):
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


class DeadPage(TypedDict):
    dead: list[DeadLetter]
    next: str | None


class ReplayedMany(TypedDict):
    dead: int
    can_be_replayed: int
    replayed: int
    dry_run: bool


class LedgerLine(Span):
    entry_id: int
    tenant: str
    name: str
    job_id: str
    ticks: int
    answer: Literal["skipped", "missed", "cancelled"]
    reason: str
    words: str
    covered_by: str | None
    noted_at: str
    revision: int


class LedgerPage(TypedDict):
    ledger: list[LedgerLine]
    next: str | None


class Event(TypedDict):
    event_id: int
    at: str
    kind: str
    count: int
    tenant: str | None
    name: str | None
    node_id: str | None
    by: str | None
    detail: dict[str, Any]


class EventPage(TypedDict):
    events: list[Event]
    next: str | None
