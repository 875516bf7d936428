"""A world from a seed: its nodes, jobs, tenants and handlers. Each concern has a stream of chance of its own, so that
what is switched off leaves the rest as it was."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any, Final

from fleetcron.config import Config, load
from fleetcron.model.definition import Definition
from fleetcron.model.entry import cron_entry, once_entry
from fleetcron.model.rules import Entry, EveryEntry, MisfireRule, OnceEntry, OverlapRule, RetryRule
from fleetcron.model.target import PythonTarget
from fleetcron.times.instants import from_ms

KINDS: Final = (
    "kill", "step", "freeze", "cut", "lossy", "straggle", "slow", "down", "node_clock", "database_clock", "outage",
    "rolling", "limits",
)  # fmt: skip
ASKING: Final = "asking"  # people change jobs and steer runs: no fault, but it can be switched off like one
# A quiet day, and the hours in which New York and Berlin change their clocks.
_BEGINS: Final = (1_800_000_000_000, 1_805_007_300_000, 1_825_565_100_000, 1_824_943_200_000)
_ZONES: Final = ("UTC", "America/New_York", "Europe/Berlin", "Asia/Kolkata", "Australia/Lord_Howe")
LATE_HANDLER: Final = "late"  # nobody has it before everything is healed


@dataclass(frozen=True, slots=True)
class Slot:
    """A place in the fleet that somebody keeps occupied: when its node dies, another one is started there."""

    name: str
    roles: str
    pools: str
    drift: float


@dataclass(frozen=True, slots=True)
class Manner:
    """How the handler of a job behaves."""

    kind: str  # ok, flaky, poison, hang, deaf, snooze
    seconds: tuple[float, float]


@dataclass(frozen=True, slots=True)
class Scenario:
    seed: int
    minutes: float
    begin_ms: int
    faults: tuple[str, ...]
    slots: tuple[Slot, ...]
    settings: dict[str, str]
    definitions: tuple[Definition, ...]
    manners: dict[str, Manner]  # by the job's name
    tenants: dict[str, dict[str, object]] = field(default_factory=dict)
    pools: dict[str, dict[str, object]] = field(default_factory=dict)
    is_dense: bool = False  # faults come more often
    is_crowded: bool = False  # more work than slots, of tenants that differ in nothing but their weights

    def chance(self, concern: str) -> Random:
        return Random(f"{self.seed}/{concern}")

    def config(self, slot: Slot) -> Config:
        return load(None, {}, self.settings | {"node.roles": slot.roles, "worker.pools": slot.pools})

    def definition(self, name: str) -> Definition:
        return next(each for each in self.definitions if each.name == name)

    @property
    def is_healthy(self) -> bool:
        return not set(self.faults) - {ASKING}

    @property
    def ttl_s(self) -> float:
        return float(self.settings["worker.lease_ttl"].rstrip("s"))


def drawn(
    seed: int,
    minutes: float = 20.0,
    without: Sequence[str] = (),
    only: Sequence[str] | None = None,
    *,
    is_dense: bool = False,
) -> Scenario:
    """The same seed draws the same world; `without` takes faults away and changes nothing else. A dense one has more
    to do all the time, on every node: faults hit something."""
    chance = Random(f"{seed}/boot")
    found = _faults(chance) if only is None else tuple(only)
    faults = tuple(kind for kind in found if kind not in without)
    slots = _slots(chance)
    settings = _settings(chance)
    names = [f"job{number}" for number in range(chance.randint(6, 10))]
    begin_ms = chance.choice(_BEGINS) + chance.randrange(60_000)
    definitions: list[Definition] = []
    for name in names:
        definitions.append(_definition(name, chance, definitions, begin_ms))
    manners = {each.name: _manner(each, chance) for each in definitions}
    tenants, pools = _limits(chance)
    if is_dense:
        slots = tuple(replace(each, roles="scheduler,worker", pools="default=4,side=3") for each in slots)
        definitions = [_denser(each, chance) for each in definitions]
        manners = {name: _longer(each, chance) for name, each in manners.items()}
        tenants, pools = {}, {}
        settings |= {"worker.lease_ttl": "8s", "worker.renew": "2s", "worker.drain": "30s"}
    return Scenario(
        seed, minutes, begin_ms, faults, slots, settings, tuple(definitions), manners, tenants, pools, is_dense
    )  # fmt: skip


def crowded(seed: int, minutes: float = 6.0) -> Scenario:
    """Three tenants that want more than there is, in one pool: who gets how much of it?"""
    chance = Random(f"{seed}/boot")
    weights = {name: chance.choice((1, 1, 2, 3)) for name in ("acme", "default", "zeta")}
    definitions = tuple(
        Definition(
            f"{tenant}{number}",
            (EveryEntry(chance.choice((3, 4)) * 1000, 0),),
            PythonTarget("sim:f"),
            tenant=tenant,
            overlap=OverlapRule("allow"),
            misfire=MisfireRule("all", grace_ms=60_000),
        )
        for tenant in weights
        for number in range(2)
    )
    return Scenario(
        seed,
        minutes,
        _BEGINS[0],
        (),
        (Slot("n0", "scheduler,worker", "default=2", 0.0), Slot("n1", "worker", "default=1", 0.0)),
        _settings(chance),
        definitions,
        {each.name: Manner("ok", (2.5, 3.5)) for each in definitions},
        {name: {"weight": weight} for name, weight in weights.items()},
        is_crowded=True,
    )


def small(*definitions: Definition, minutes: float, slots: int = 3) -> Scenario:
    """One node and these jobs, without faults; people do what a test says."""
    return Scenario(
        0,
        minutes,
        _BEGINS[0],
        (ASKING,),
        (Slot("n0", "scheduler,worker", f"default={slots}", 0.0),),
        _settings(Random(0)),
        definitions,
        {each.name: Manner("ok", (0.1, 0.5)) for each in definitions},
    )


def _faults(chance: Random) -> tuple[str, ...]:
    asking = (ASKING,) if chance.random() < 0.6 else ()
    if chance.random() < 0.1:
        return asking
    return (*sorted(chance.sample(KINDS, chance.choice((1, 2, 2, 3, 3, 4, 6)))), *asking)


def _slots(chance: Random) -> tuple[Slot, ...]:
    """Somebody plans and somebody works, in every pool, whatever else there is."""
    number = chance.choice((2, 2, 2, 3, 3, 4))
    roles = ["scheduler,worker"] + [
        chance.choice(("scheduler,worker", "scheduler,worker", "worker", "scheduler")) for _ in range(number - 1)
    ]
    slots = []
    for at, role in enumerate(roles):
        pools = f"default={chance.randint(2, 5)},side={chance.randint(1, 3)}"
        if at and chance.random() < 0.3:
            pools = chance.choice(("default=3", "side=2"))
        slots.append(Slot(f"n{at}", role, pools, chance.uniform(-1e-4, 1e-4)))
    return tuple(slots)


def _settings(chance: Random) -> dict[str, str]:
    ttl = chance.choice((8, 16, 16, 24))
    lease = chance.choice((6, 12, 15, 15))
    return {
        "store.deadline": "1s",
        "worker.lease_ttl": f"{ttl}s",
        "worker.renew": f"{ttl // 4}s",
        "worker.drain": f"{chance.choice((2, 10, 30))}s",
        "worker.poll": "20s",
        "coordination.lease_ttl": f"{lease}s",
        "coordination.heartbeat": f"{lease // 3}s",
        "coordination.margin": "1s",
        "coordination.node_ttl": f"{lease + 3}s",
        "scheduler.lookahead": f"{chance.choice((10, 30, 60))}s",
        "scheduler.idle_poll": "20s",
        "scheduler.shards": str(chance.choice((1, 2, 3))),
        "scheduler.catch_up_room": str(chance.choice((2, 5, 1000))),
    }


def _definition(name: str, chance: Random, others: Sequence[Definition], begin_ms: int) -> Definition:
    tenant = chance.choice(("default", "acme", "acme", "zeta"))
    entries = _entries(chance, begin_ms)
    policy = chance.choice(("skip", "skip", "queue", "collapse", "allow", "allow", "cancel_previous"))
    misfire = _misfire(chance, policy)
    deadline_ms = chance.choice((None, None, None, 15_000, 40_000, 90_000))
    upstream: tuple[str, ...] = ()
    on_failure = "skip"
    mates = [each.name for each in others if each.tenant == tenant]
    if mates and chance.random() < 0.2:
        upstream = (chance.choice(mates),)
        on_failure = chance.choice(("skip", "run") if deadline_ms is None else ("skip", "run", "wait"))
    return Definition(
        name,
        entries,
        PythonTarget(f"{LATE_HANDLER}:f" if chance.random() < 0.04 else "sim:f"),
        tenant=tenant,
        max_ticks=chance.choice((None, None, None, None, 5)),
        jitter_ms=chance.choice((0, 0, 0, 4_000, 12_000)),
        pool=chance.choice(("default", "default", "side")),
        priority=chance.choice((0, 0, 5, -5)),
        timeout_ms=chance.choice((8_000, 15_000, 30_000)),
        retry=_retry(chance),
        overlap=OverlapRule(
            policy,  # type: ignore[arg-type]
            max_running=chance.choice((None, 2)) if policy == "allow" else None,
            concurrency_key=f"key{tenant}" if policy in ("queue", "skip") and chance.random() < 0.2 else None,
        ),
        misfire=misfire,
        start_deadline_ms=deadline_ms,
        depends_on=upstream,
        on_upstream_failure=on_failure,  # type: ignore[arg-type]
        pause_after_failures=chance.choice((None, None, None, None, None, 3)),
    )


def _entries(chance: Random, begin_ms: int) -> tuple[Entry, ...]:
    kind = chance.choice(("every", "every", "every", "cron", "cron", "both", "once"))
    period_s = chance.choice((20, 30, 45, 60, 60, 90, 150, 300))
    every = EveryEntry(period_s * 1000, chance.choice((None, begin_ms - begin_ms % 1000 + 500)))
    minutes = chance.choice((1, 1, 2, 3, 5))
    cron = cron_entry(
        chance.choice((f"*/{minutes} * * * *", f"{chance.randrange(60)} */{minutes} * * * *", "30 * * * * *")),
        chance.choice(_ZONES),
    )  # fmt: skip
    if kind == "every":
        return (every,)
    if kind == "cron":
        return (cron,)
    if kind == "both":
        return (every, cron)
    moments = sorted(chance.sample(range(60, 1100), 3))
    return tuple(once_entry(from_ms(begin_ms + each * 1000)) for each in moments)


def _misfire(chance: Random, overlap: str) -> MisfireRule:
    policy = chance.choice(("skip", "latest", "latest") if overlap == "cancel_previous" else ("skip", "latest", "all"))
    lane = chance.choice(("catchup", "catchup", "live"))
    if overlap == "skip" and policy == "all":
        lane = "catchup"
    grace_ms = chance.choice((2_000, 10_000, 60_000))
    return MisfireRule(
        policy,  # type: ignore[arg-type]
        window_ms=max(grace_ms, chance.choice((90_000, 24 * 3_600_000, 24 * 3_600_000))),
        limit=chance.choice((3, 100, 100)),
        grace_ms=grace_ms,
        lane=lane,  # type: ignore[arg-type]
    )


def _retry(chance: Random) -> RetryRule:
    backoff: Any = chance.choice(("list", "fixed", "exponential"))
    return RetryRule(
        max_attempts=chance.choice((1, 2, 3)),
        backoff=backoff,
        delays_ms=tuple(chance.choice((500, 2_000, 6_000)) for _ in range(2)),
        max_delay_ms=10_000,
        jitter=chance.choice((0.0, 0.2)),
        max_losses=chance.choice((3, 5, 9)),
    )


def _manner(definition: Definition, chance: Random) -> Manner:
    kind = chance.choice(("ok", "ok", "ok", "ok", "flaky", "flaky", "poison", "hang", "deaf", "snooze"))
    seconds = chance.choice(((0.01, 0.3), (0.1, 3.0), (0.1, 3.0), (2.0, 7.0), (1.0, 25.0)))
    return Manner(kind, seconds)


def _denser(definition: Definition, chance: Random) -> Definition:
    if any(isinstance(entry, OnceEntry) for entry in definition.schedule) or definition.max_ticks is not None:
        return definition
    return replace(
        definition, schedule=(EveryEntry(chance.choice((12, 17, 25)) * 1000, 0),), depends_on=(), timeout_ms=40_000
    )


def _longer(manner: Manner, chance: Random) -> Manner:
    return replace(manner, seconds=chance.choice(((0.1, 3.0), (3.0, 9.0), (10.0, 29.0))))


def _limits(chance: Random) -> tuple[dict[str, dict[str, object]], dict[str, dict[str, object]]]:
    tenants: dict[str, dict[str, object]] = {}
    if chance.random() < 0.5:
        tenants["acme"] = {"weight": chance.randint(1, 5)}
    if chance.random() < 0.3:
        tenants["acme"] = {**tenants.get("acme", {}), "max_in_flight": chance.randint(1, 3)}
    if chance.random() < 0.2:
        tenants["zeta"] = {"rate": chance.choice(("1/s", "30/m")), "burst": chance.randint(1, 3)}
    pools: dict[str, dict[str, object]] = {}
    if chance.random() < 0.25:
        pools["default"] = {"slots": chance.randint(2, 4)}
    if chance.random() < 0.15:
        pools["side"] = {"per_tenant": 1}
    return tenants, pools
