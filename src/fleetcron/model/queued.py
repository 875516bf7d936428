"""Runs that are due, and what decides whether they may start. Plain facts: the store reads them, the policy decides."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal, NamedTuple, TypeAlias
from zlib import crc32

from fleetcron.model.pool import lendable
from fleetcron.model.rules import Lane, OverlapPolicy
from fleetcron.model.run import RunKind
from fleetcron.model.states import RunState
from fleetcron.model.upstream import Upstream

# What a run can wait for, beside a free slot.
Gate: TypeAlias = Literal[
    "key", "former", "upstream", "tenant", "quota_tenant", "quota_type", "rate", "paused", "handler"
]


class Queued(NamedTuple):
    """A run in the queue of its pool. `leased`: it rests between two attempts and still holds its key."""

    run_id: int
    job_id: str
    tenant: str
    pool: str
    type: str
    lane: Lane
    kind: RunKind
    priority: int
    rank: int
    due_ms: int
    scheduled_for_ms: int
    deadline_ms: int | None
    overlap: OverlapPolicy
    claim_key: str | None
    max_running: int
    handler: str
    depends: bool
    attempt: int
    failures: int
    losses: int
    round: int
    leased: bool
    ended: str | None = None  # its job was cancelled or deleted
    since_ms: int | None = None  # when it first had to wait

    @property
    def is_fresh(self) -> bool:
        """Never started, never replayed: the only runs that can be skipped, merged or too late."""
        return self.attempt == 0 and self.round == 0 and not self.leased

    @property
    def is_live_tick(self) -> bool:
        """The only kind of run that overlap can skip, and that can cancel another."""
        return self.kind == "tick" and self.lane == "live" and self.is_fresh


class Holder(NamedTuple):
    """Who has a key. Without a node the run rests between two attempts. `claim_key`: which one. `due_ms`: when the
    attempt was due that it holds it for, or is."""

    slot: int
    run_id: int
    job_id: str
    is_live_tick: bool
    node_id: str | None
    claim_key: str | None = None
    scheduled_for_ms: int = 0
    due_ms: int = 0


class Rival(NamedTuple):
    """A run that waits for a shared key which others want, too. `look_ms`: since when it is to be looked at, because
    the key was given back (in the future: it was told when to look)."""

    run: Queued
    look_ms: int | None


class Previous(NamedTuple):
    """The live run of the same job before a tick. `left_out`: it was skipped, merged or too late, but only after the
    tick was due. `deadline_ms`: it is queued, and must start by then. `skips_at_ms`: it is queued, has never been
    started, and was due then under the same policy: the one before it says whether it will be skipped."""

    run_id: int
    finished_ms: int | None
    left_out: bool = False
    deadline_ms: int | None = None
    has_started: bool = True
    skips_at_ms: int | None = None

    def is_left_out_by(self, at_ms: int) -> bool:
        if self.finished_ms is not None:
            return self.left_out and self.finished_ms <= at_ms
        return self.deadline_ms is not None and self.deadline_ms < at_ms


class Waiting(NamedTuple):
    """A tick in the queue that was never started."""

    run_id: int
    lane: Lane
    scheduled_for_ms: int
    due_ms: int
    deadline_ms: int | None


class Unqueued(NamedTuple):
    """A tick that was planned and is not queued."""

    run_id: int
    due_ms: int
    planned_ms: int = 0


class Late(NamedTuple):
    """What becomes of late ticks: those that will not run, and those that are caught up. `decided`: this is said of so
    many of the first ones only; None: of all."""

    closes: Sequence["Close"] = ()
    caught_up: Sequence[int] = ()
    decided: int | None = None


class Control(NamedTuple):
    """What somebody switched in an incident: of a tenant, a pool or a type."""

    scope: Literal["tenant", "pool", "type"]
    name: str
    percent: int  # of the jobs that may start runs; of the runs, where they stand alone
    retries: int | None  # attempts at most
    backoff: float  # delays are so many times longer
    until_ms: int | None

    def lets_start(self, run_id: int, job_id: str, overlap: str) -> bool:
        """Once let go it stays so while more and more are: a number from 0 to 99, always the same. It is drawn for the
        job, since one run that is held back keeps all that come after it from starting: with a number for each run,
        sooner or later every job would stand still. Only where runs do not know of each other it is drawn for the
        run."""
        return crc32(str(run_id if stands_alone(overlap) else job_id).encode()) % 100 < self.percent


def stands_alone(overlap: str) -> bool:
    """No other run of the job waits for a run of it, is skipped because of it, or takes its place."""
    return overlap == "allow"


class Cap(NamedTuple):
    """What somebody has set for a tenant.

    The rate is GCRA: one number for each tenant, `next_us`, says when its next start would be exactly in time. `burst`
    starts may come before theirs.
    """

    max_in_flight: int | None
    rate_per_s: float | None
    burst: int

    @property
    def step_us(self) -> int:
        assert self.rate_per_s is not None
        return max(1, round(1_000_000 / self.rate_per_s))

    def earliest_us(self, next_us: int, now_us: int) -> int:
        """When the next start is allowed; not after now if it is allowed now."""
        known = min(next_us, now_us + self.burst * self.step_us)  # more is a clock that went back
        return known - (self.burst - 1) * self.step_us

    def after_start_us(self, next_us: int, now_us: int) -> int:
        return max(min(next_us, now_us + self.burst * self.step_us), now_us) + self.step_us

    def starts(self, next_us: int, now_us: int) -> int:
        """How many starts are allowed now."""
        return min(self.burst, (now_us - self.earliest_us(next_us, now_us)) // self.step_us + 1)


_NO_CAP: Final = Cap(None, None, 1)
_EVERYBODY: Final = 10_000


@dataclass(frozen=True, slots=True)
class Limits:
    """Caps and quotas, and what is in flight: (pool, tenant, type) -> runs; of these `lent` to catch-up, by pool. None
    is no limit."""

    slots: int | None = None
    per_tenant: int | None = None
    per_type: Mapping[str, int] = field(default_factory=dict)
    tenants: Mapping[str, Cap] = field(default_factory=dict)
    next_us: Mapping[str, int] = field(default_factory=dict)  # when the next start of a tenant with a rate is allowed
    held: Mapping[tuple[str, str, str], int] = field(default_factory=dict)
    lent: Mapping[str, int] = field(default_factory=dict)
    controls: Sequence[Control] = ()

    def places(self, gate: str, key: str, pool: str, now_ms: int) -> int:
        """How many of those who wait at a gate for a limit may go on in a pool. Those without a limit: as many as
        want to."""
        name = key.removeprefix(f"{pool}:")
        if gate in ("tenant", "rate"):
            cap = self.tenants.get(key, _NO_CAP)
            if gate == "tenant":
                return _left(cap.max_in_flight, self._count(lambda where: where[1] == key))
            if cap.rate_per_s is None:
                return _EVERYBODY
            return max(0, cap.starts(self.next_us.get(key, 0), now_ms * 1000))
        if name == key:
            return 0  # of another pool
        if gate == "quota_tenant":
            return _left(self.per_tenant, self._count(lambda where: where[:2] == (pool, name)))
        return _left(self.per_type.get(name), self._count(lambda where: (where[0], where[2]) == (pool, name)))

    def free_slots(self, pool: str) -> int:
        return _left(self.slots, self._count(lambda where: where[0] == pool))

    def free_for_catchup(self, pool: str) -> int:
        """Of the slots that the fleet has there, whoever lends them."""
        if self.slots is None:
            return _EVERYBODY
        return lendable(self.slots, self.free_slots(pool), self.lent.get(pool, 0))

    def _count(self, is_meant: Callable[[tuple[str, str, str]], bool]) -> int:
        return sum(held for where, held in self.held.items() if is_meant(where))


def _left(limit: int | None, used: int) -> int:
    return _EVERYBODY if limit is None else max(0, limit - used)


@dataclass(frozen=True, slots=True)
class Facts:
    """Everything that a claim is decided by. `room` and `catchup_room` are free slots: in all, and for catch-up.

    `early_room`: how many of the runs may be such that are not due yet. `catchup_first`: it is the turn of catch-up, in
    a pool with one slot; `catchup_turn`: it would be, if the whole fleet had only one.
    """

    now_ms: int
    pool: str
    room: int
    catchup_room: int
    candidates: Sequence[Queued]
    holders: Mapping[str, Sequence[Holder]] = field(default_factory=dict)  # by key
    of_jobs: Mapping[str, Sequence[Holder]] = field(default_factory=dict)  # by job: also under keys that it had before
    rivals: Mapping[str, Sequence[Rival]] = field(default_factory=dict)  # by shared key
    previous: Mapping[int, Previous | None] = field(default_factory=dict)
    earlier: Mapping[int, int] = field(default_factory=dict)  # the run of the same job that comes first
    waiting: Mapping[str, Sequence[Waiting]] = field(default_factory=dict)  # by job, in the order of their ticks
    upstream: Mapping[int, Sequence[Upstream]] = field(default_factory=dict)
    limits: Limits = field(default_factory=Limits)
    early_room: int | None = None
    catchup_first: bool = False
    catchup_turn: bool = False


class Park(NamedTuple):
    """It waits for something; `look_ms` is when to look again at the latest."""

    run_id: int
    gate: Gate
    key: str
    look_ms: int | None = None


class Close(NamedTuple):
    """The answer of a run that will not start. `at_ms` is the instant at which facts decided it, however late somebody
    looked; None: now. `heir` is the run that takes its place in the queue."""

    run_id: int
    state: RunState
    reason: str
    covered_by: int | None = None
    at_ms: int | None = None
    heir: int | None = None


def too_late(run_id: int, at_ms: int | None = None) -> Close:
    return Close(run_id, RunState.EXPIRED, "start_deadline: it could not start in time", at_ms=at_ms)


@dataclass(slots=True)
class Choice:
    claims: list[tuple[int, int]] = field(default_factory=list)  # run and slot of its key
    parks: list[Park] = field(default_factory=list)
    closes: list[Close] = field(default_factory=list)
    cancels: dict[int, str] = field(default_factory=dict)  # held runs that are asked to stop, and why
    next_us: dict[str, int] = field(default_factory=dict)
    reached: dict[tuple[Lane, int], int] = field(default_factory=dict)  # how far each queue was served
    gave_way: set[int] = field(default_factory=set)  # parked at a key that they might have taken: others come first
    undecided: bool = False  # somebody hangs on what is closed here: ask again when that is written


def queued(row: Any, ended: str | None = None) -> Queued:
    """A row of the queue."""
    return Queued(
        row["run_id"], str(row["job_id"]), row["tenant"], row["pool"], row["type"], row["lane"], row["kind"],
        row["priority"], row["rank"], row["due_ms"], row["scheduled_for_ms"], row["deadline_ms"], row["overlap"],
        row["claim_key"], row["max_running"], row["handler"], bool(row["depends"]), row["attempt"], row["failures"],
        row["losses"], row["round"], bool(row["leased"]), ended, row["since_ms"],
    )  # fmt: skip
