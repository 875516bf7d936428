"""The fleet as answers have it."""

from typing import Any, Literal, TypeAlias, TypedDict

from fleetcron.client.run_shapes import DeadLetter, Run

Role: TypeAlias = Literal["viewer", "operator", "admin", "worker", "ping"]
Scope: TypeAlias = Literal["tenant", "pool", "type"]
KeyState: TypeAlias = Literal["active", "expired", "revoked"]


class Usage(TypedDict):
    jobs: int
    ended: int
    in_flight: int
    queued: int
    waiting: dict[str, int]
    updated_at: str | None


class Tenant(Usage):
    name: str
    weight: int
    max_jobs: int | None
    max_in_flight: int | None
    rate: str | None
    burst: int
    max_payload: int


class Tenants(TypedDict):
    tenants: list[Tenant]


class Pool(Usage):
    name: str
    slots: int | None
    per_tenant: int | None
    per_type: dict[str, int]
    in_flight_by_type: dict[str, int]
    workers: int
    worker_slots: int


class Pools(TypedDict):
    pools: list[Pool]


class Limits(TypedDict):
    """What became of a change of limits."""

    name: str
    done: Literal["changed", "unchanged"]
    before: dict[str, Any] | None
    after: dict[str, Any] | None
    looked_at: int
    complete: bool


class Hold(TypedDict):
    scope: Scope
    name: str
    percent: int
    attempts: int | None
    backoff: float
    until: str | None
    waiting: int
    reason: str
    by: str
    since: str


class Holds(TypedDict):
    holds: list[Hold]


class Held(Limits):
    scope: str


class Node(TypedDict):
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


class Lease(TypedDict):
    region: str
    shard: int
    term: int
    node_id: str | None
    taken_at: str | None
    expires_at: str


class Fleet(TypedDict):
    now: str
    shards: int | None
    nodes: list[Node]
    job_regions: list[str]
    leases: list[Lease]


class Shards(TypedDict):
    shards: int | None
    leases: list[Lease]


class BusyPool(Pool):
    lag_seconds: float | None


class RunningRun(Run):
    attempt_started_at: str | None


class Top(Fleet):
    at: str
    in_flight: int
    queued: int
    pools: list[BusyPool]
    running: list[RunningRun]
    retrying: list[Run]
    dead: list[DeadLetter]


class Calendar(TypedDict):
    name: str
    tenant: str
    timezone: str | None
    weekdays: list[str]
    holidays: list[str]
    windows: list[dict[str, str]]
    repeated: list[dict[str, str]]


class Calendars(TypedDict):
    calendars: list[Calendar]


class Adopted(TypedDict):
    tenant: str
    name: str
    done: Literal["changed", "unchanged"]
    jobs_moved: int
    jobs_stuck: int
    calendar: Calendar


class Overview(TypedDict):
    now: str
    since: str
    succeeded: int
    failed: int
    dead: int
    cancelled: int
    skipped: int
    running: int
    queued: int
    average_duration_ms: int | None
    jobs: dict[str, int]
    dead_letters: int


class Key(TypedDict):
    key_id: str
    name: str
    role: Role
    tenant: str | None
    pools: list[str]
    rate_per_minute: int | None
    state: KeyState
    created_at: str
    created_by: str
    expires_at: str | None
    last_used_at: str | None
    revoked_at: str | None
    revoked_by: str | None
    reason: str | None


class Keys(TypedDict):
    keys: list[Key]
    next: str | None


class NewKey(Key):
    key: str


class RevokedKey(Key):
    done: Literal["revoked", "unchanged"]


class Me(TypedDict):
    name: str
    key_id: str
    role: Role
    tenant: str | None
    pools: list[str]
    open_access: bool
