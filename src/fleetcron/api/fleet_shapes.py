"""The fleet as the API shows it."""

from typing import Any, Literal

from pydantic import Field

from fleetcron.api.parameters import Shown
from fleetcron.api.run_shapes import DeadLetter, Run
from fleetcron.model.access import Role


class Usage(Shown):
    jobs: int
    ended: int = Field(description="of these, cancelled or finished")
    in_flight: int
    queued: int
    waiting: dict[str, int] = Field(description="by what they wait for")
    updated_at: str | None = Field(description="null: nobody has set anything, the defaults hold")


class Tenant(Usage):
    name: str
    weight: int
    max_jobs: int | None
    max_in_flight: int | None
    rate: str | None
    burst: int
    max_payload: int


class Tenants(Shown):
    tenants: list[Tenant]


class Pool(Usage):
    name: str
    slots: int | None
    per_tenant: int | None
    per_type: dict[str, int]
    in_flight_by_type: dict[str, int]
    workers: int
    worker_slots: int


class Pools(Shown):
    pools: list[Pool]


class Limits(Shown):
    """What became of a change of limits or of a hold."""

    name: str
    done: Literal["changed", "unchanged"]
    before: dict[str, Any] | None
    after: dict[str, Any] | None
    looked_at: int = Field(description="runs that waited and may start now, if nothing else holds them back")
    complete: bool


class Hold(Shown):
    scope: Literal["tenant", "pool", "type"]
    name: str
    percent: int = Field(description="of the jobs may start")
    attempts: int | None
    backoff: float
    until: str | None
    waiting: int
    reason: str
    by: str
    since: str


class Holds(Shown):
    holds: list[Hold]


class Held(Limits):
    scope: str


class Node(Shown):
    node_id: str
    alive: bool
    host: str
    pid: int
    roles: list[str]
    region: str
    version: str
    zone_release: str
    started_at: str
    seen_at: str
    clock_ahead_ms: int


class Lease(Shown):
    region: str
    shard: int
    term: int
    node_id: str | None
    taken_at: str | None
    expires_at: str


class Fleet(Shown):
    now: str
    shards: int | None
    nodes: list[Node]
    job_regions: list[str] = Field(description="regions that jobs to be planned are at home in")
    leases: list[Lease]


class Shards(Shown):
    shards: int | None
    leases: list[Lease]


class BusyPool(Pool):
    lag_seconds: float | None = Field(description="how long the first run of its queue has waited for a free slot")


class RunningRun(Run):
    attempt_started_at: str | None = Field(description="of the attempt that runs; `started_at` is that of the first")


class Top(Fleet):
    """Of runs and failures only so many as were asked for; `in_flight` counts them all."""

    at: str
    in_flight: int
    queued: int
    pools: list[BusyPool]
    running: list[RunningRun] = Field(description="the one that runs longest comes first")
    retrying: list[Run]
    dead: list[DeadLetter] = Field(description="the newest first")


class Calendar(Shown):
    name: str
    tenant: str
    timezone: str | None
    weekdays: list[str]
    holidays: list[str]
    windows: list[dict[str, str]]
    repeated: list[dict[str, str]]


class Calendars(Shown):
    calendars: list[Calendar]


class Adopted(Shown):
    tenant: str
    name: str
    done: Literal["changed", "unchanged"]
    jobs_moved: int
    jobs_stuck: int
    calendar: Calendar


class Overview(Shown):
    """S1-39. Of the runs that ended since `since`."""

    now: str
    since: str
    succeeded: int
    failed: int = Field(description="dead, or too late to start")
    dead: int
    cancelled: int
    skipped: int = Field(description="skipped or merged into another run")
    running: int
    queued: int
    average_duration_ms: int | None
    jobs: dict[str, int] = Field(description="by state")
    dead_letters: int = Field(description="that nobody has replayed or discarded, however old")


class Key(Shown):
    key_id: str
    name: str
    role: Role
    tenant: str | None
    pools: list[str]
    rate_per_minute: int | None
    state: Literal["active", "expired", "revoked"]
    created_at: str
    created_by: str
    expires_at: str | None
    last_used_at: str | None
    revoked_at: str | None
    revoked_by: str | None
    reason: str | None


class Keys(Shown):
    keys: list[Key]
    next: str | None


class NewKey(Key):
    key: str = Field(description="shown this once: only a hash of it is kept")


class RevokedKey(Key):
    done: Literal["revoked", "unchanged"]
