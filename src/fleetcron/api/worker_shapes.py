"""What workers in any language say and hear."""

from typing import Annotated, Any, Literal

from pydantic import Field

from fleetcron.api.parameters import Asked, Shown, Words
from fleetcron.model.name import NAME

MOST: int = 500  # of one call
Positive = Annotated[int, Field(ge=1, le=2**63 - 1)]
Number = Annotated[int, Field(ge=1, le=2**31 - 1)]
PoolName = Annotated[str, Field(pattern=NAME)]


class Join(Asked):
    name: Words = Field(min_length=1, max_length=60, pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$", description="for people")
    pools: dict[PoolName, Annotated[int, Field(ge=1, le=1000)]] = Field(
        min_length=1, max_length=100, description="the pools that it serves, each with its slots"
    )


class Joined(Shown):
    worker_id: str
    now: str
    lease_ms: int = Field(description="without a heartbeat for so long its runs are given to others")
    heartbeat_ms: int = Field(description="how often to send one")


class Claim(Asked):
    pool: PoolName
    room: int = Field(default=1, ge=1, le=MOST, description="how many runs at most")
    wait_s: float = Field(default=0, ge=0, le=20, description="wait so long for something to do")
    batch: Words | None = Field(
        default=None, min_length=1, max_length=64, description="asked again with the same one: the same answer"
    )
    lacks: list[Words] = Field(default=[], max_length=1000, description="handlers that it has not, such as python:a:b")
    resolves_secrets: bool = Field(
        default=False, description="it puts in what secret://name stands for itself; otherwise such runs fail"
    )


class Work(Shown):
    run_id: int
    attempt: int
    batch: str = Field(description="of the claim: say it when you return the run")
    fence: int = Field(description="rises with every attempt of the run")
    tenant: str
    job: str
    job_id: str
    pool: str
    lane: Literal["live", "catchup"]
    handler: str = Field(description="python:module:function, command, http, publish:broker")
    run: dict[str, Any] = Field(description="what the job says is to run")
    payload: dict[str, Any] = Field(description="its templates filled in")
    secrets: list[str] = Field(description="of its tenant, which stand as secret://name in run and payload")
    scheduled_for: str
    covers: int
    window_from: str | None
    window_to: str | None
    idempotency_key: str
    timeout_ms: int = Field(description="end it then, and say timed_out")


class Claimed(Shown):
    now: str
    batch: str
    runs: list[Work]


class Beat(Asked):
    pass


class Stop(Shown):
    run_id: int
    attempt: int
    reason: str


class Renewed(Shown):
    now: str
    expires_at: str
    cancels: list[Stop] = Field(description="attempts that somebody asked to stop")


class Piece(Asked):
    run_id: Positive
    attempt: Number
    seq: int = Field(ge=0, le=2**31 - 1, description="0, 1, 2 …: the first text under it stays")
    text: str = Field(max_length=65_536)
    truncated: bool = False


class Mark(Asked):
    run_id: Positive
    attempt: Number
    share: float = Field(ge=0, le=1)
    note: str = Field(default="", max_length=200)


class Output(Asked):
    pieces: list[Piece] = Field(default=[], max_length=MOST)
    progress: list[Mark] = Field(default=[], max_length=MOST)


class Logged(Shown):
    stored: int = Field(description="taken; one whose seq was there before changes nothing, and may be counted again")
    refused: int = Field(description="of attempts that this worker never had")


class Fault(Asked):
    code: Words = Field(min_length=1, max_length=200, description="what retry_on and give_up_on name")
    text: str = Field(default="", max_length=4_000)
    trace: str | None = Field(default=None, max_length=16_000)


class End(Asked):
    run_id: Positive
    attempt: Number
    outcome: Literal["succeeded", "failed", "timed_out", "cancelled", "snoozed", "stopped"] = Field(
        description="stopped: because the worker was asked to leave; it is tried again a second later and costs nothing"
    )
    duration_ms: int = Field(ge=0, le=2**53)
    result: Any = Field(default=None, description="JSON, 64 KiB at most")
    error: Fault | None = None
    retry_after_ms: int | None = Field(
        default=None,
        ge=0,
        le=30 * 86_400_000,
        description="of one that failed: exactly so long, from 1 s to 7 days, in place of the job's backoff",
    )
    snooze_ms: int | None = Field(
        default=None, ge=0, le=30 * 86_400_000, description="of one that snoozed: needed; from 1 s to 7 days"
    )
    log_bytes: int = Field(default=0, ge=0, le=2**53)


class Finish(Asked):
    ends: list[End] = Field(min_length=1, max_length=MOST)
    again: bool = Field(
        default=False, description="the reply to the first time was lost: what is not held any more is no event then"
    )


class EndDone(Shown):
    run_id: int
    attempt: int
    accepted: bool = Field(description="false: it was no longer held, and nothing was changed")
    state: str | None = Field(description="of the run: what it became, or is by now if this end was sent before")


class Finished(Shown):
    now: str
    ends: list[EndDone]


class HeldRun(Asked):
    run_id: Positive
    attempt: Number
    batch: Words = Field(min_length=1, max_length=64, description="as the claim said: who has it anew keeps it")


class GiveBack(Asked):
    runs: list[HeldRun] = Field(default=[], max_length=MOST, description="that were never started")
    lacks: dict[Words, str] = Field(default={}, max_length=1000, description="handlers that it has not, and why")


class GivenBack(Shown):
    runs: int


class Left(Shown):
    worker_id: str
    left: bool
