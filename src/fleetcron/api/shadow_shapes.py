"""Jobs in shadow as the API shows them."""

from typing import Literal

from pydantic import Field

from fleetcron.api.job_shapes import Done
from fleetcron.api.parameters import Shown
from fleetcron.model.states import JobState

Until = bool | str


class NotedPing(Shown):
    id: str
    at: str = Field(description="its start, or its end if nobody said when it started")
    started_at: str | None
    finished_at: str | None
    exit_code: int | None
    host: str | None


class Noted(Shown):
    tenant: str
    name: str
    ping: NotedPing
    shadow: Until
    warning: str | None = Field(description="such as: it was handed over, and runs twice now, or: our runs wait")


class Delay(Shown):
    median_ms: int
    longest_ms: int


class Difference(Shown):
    what: Literal["missed", "doubled", "unexpected", "failed", "after hand-over"]
    at: str = Field(description="the tick, or the ping if it belongs to none")
    pings: list[NotedPing]


class Comparison(Shown):
    tenant: str
    name: str
    job_id: str
    schedule: str
    state: JobState
    shadow: Until = Field(description="true: until it is handed over; or the instant of the hand-over")
    in_shadow: bool
    since: str
    until: str
    ticks: int = Field(description="in shadow, since then")
    matched: int
    waiting: int = Field(description="ticks whose ping may still come")
    missed: int
    doubled: int
    unexpected: int
    failed: int
    after_hand_over: int = Field(description="pings of the old scheduler for ticks that are ours")
    delay: Delay | None
    hosts: list[str]
    verdict: Literal["same", "differs", "nothing yet"]
    words: str
    unable: str | None = Field(description="why no worker that lives could run it; null: nothing is known")
    hand_over_at: str | None = Field(description="when to hand it over, if it is the same so far; or when it is or was")
    hand_over_local: str | None
    timezone: str = Field(description="in which people read its instants")
    differences: list[Difference] = Field(description="the newest first, 100 at most")


class ComparisonPage(Shown):
    jobs: list[Comparison]
    next: str | None = Field(description="the cursor of the next page")


class Handed(Shown):
    tenant: str
    name: str
    done: Done
    revision: int | None
    shadow: Until
    at: str | None
    last_before: str | None = Field(description="the last tick before the change: of whoever had it until then")
    first_after: str | None
    timezone: str = Field(description="in which people read its instants")
    open_runs: int = Field(description="runs of ours that have not ended, of a job that was put into shadow")
