"""Jobs that another scheduler still runs, as answers have them."""

from typing import Literal, TypeAlias, TypedDict

from fleetcron.client.job_shapes import Done, JobState

Until: TypeAlias = bool | str  # True: until it is handed over; or the instant of the hand-over


class Ping(TypedDict):
    id: str
    at: str
    started_at: str | None
    finished_at: str | None
    exit_code: int | None
    host: str | None


class Noted(TypedDict):
    tenant: str
    name: str
    ping: Ping
    shadow: Until
    warning: str | None


class Delay(TypedDict):
    median_ms: int
    longest_ms: int


class Difference(TypedDict):
    what: Literal["missed", "doubled", "unexpected", "failed", "after hand-over"]
    at: str
    pings: list[Ping]


class ShadowReport(TypedDict):
    tenant: str
    name: str
    job_id: str
    schedule: str
    state: JobState
    shadow: Until
    in_shadow: bool
    since: str
    until: str
    ticks: int
    matched: int
    waiting: int
    missed: int
    doubled: int
    unexpected: int
    failed: int
    after_hand_over: int
    delay: Delay | None
    hosts: list[str]
    verdict: Literal["same", "differs", "nothing yet"]
    words: str
    unable: str | None
    hand_over_at: str | None
    hand_over_local: str | None
    timezone: str
    differences: list[Difference]


class ShadowPage(TypedDict):
    jobs: list[ShadowReport]
    next: str | None


class Handed(TypedDict):
    tenant: str
    name: str
    done: Done
    revision: int | None
    shadow: Until
    at: str | None
    last_before: str | None
    first_after: str | None
    timezone: str
    open_runs: int
