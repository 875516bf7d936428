"""A world from a seed: its nodes, jobs, tenants and handlers. Each concern has a stream of chance of its own, so that
what is switched off leaves the rest as it was."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from random import Random
from typing import Final

from fleetcron.config import Config, load
from fleetcron.model.calendar import CalendarDocument
from fleetcron.model.definition import Definition
from fleetcron.model.rules import EveryEntry, MisfireRule, OverlapRule
from fleetcron.model.target import PythonTarget
from tests.simulate import jobs
from tests.simulate.jobs import SEASONS, Manner

KINDS: Final = (
    "kill", "step", "freeze", "cut", "lossy", "straggle", "aimed", "slow", "down", "node_clock", "database_clock",
    "outage", "rolling", "limits",
)  # fmt: skip
ASKING: Final = "asking"  # people change jobs and steer runs: no fault, but it can be switched off like one


@dataclass(frozen=True, slots=True)
class Slot:
    """A place in the fleet that somebody keeps occupied: when its node dies, another one is started there."""

    name: str
    roles: str
    pools: str
    drift: float
    region: str | None = None


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
    calendars: tuple[CalendarDocument, ...] = ()
    tenants: dict[str, dict[str, object]] = field(default_factory=dict)
    pools: dict[str, dict[str, object]] = field(default_factory=dict)
    is_dense: bool = False  # faults come more often
    is_crowded: bool = False  # more work than slots, of tenants that differ in nothing but their weights

    def chance(self, concern: str) -> Random:
        return Random(f"{self.seed}/{concern}")

    def config(self, slot: Slot) -> Config:
        home = {} if slot.region is None else {"node.region": slot.region}
        return load(None, {}, self.settings | home | {"node.roles": slot.roles, "worker.pools": slot.pools})

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
    season = chance.choice(SEASONS)
    season = replace(season, begin_ms=season.begin_ms + chance.randrange(60) * 1000)
    regions = sorted({each.region for each in slots if each.region is not None and "scheduler" in each.roles})
    definitions: list[Definition] = []
    for name in names:
        definitions.append(jobs.definition(name, chance, definitions, season, regions))
    manners = {each.name: jobs.manner(chance) for each in definitions}
    calendars = jobs.calendars(season, chance)
    tenants, pools = _limits(chance)
    if is_dense:
        slots = tuple(replace(each, roles="scheduler,worker", pools="default=4,side=3") for each in slots)
        definitions = [jobs.denser(each, chance) for each in definitions]
        manners = {name: jobs.longer(each, chance) for name, each in manners.items()}
        tenants, pools = {}, {}
        settings |= {"worker.lease_ttl": "8s", "worker.renew": "2s", "worker.drain": "30s"}
    return Scenario(
        seed, minutes, season.begin_ms + chance.randrange(1000), faults, slots, settings, tuple(definitions), manners,
        calendars, tenants, pools, is_dense,
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
        SEASONS[0].begin_ms,
        (),
        (Slot("n0", "scheduler,worker", "default=2", 0.0), Slot("n1", "worker", "default=1", 0.0)),
        _settings(chance),
        definitions,
        {each.name: Manner("ok", (2.5, 3.5)) for each in definitions},
        tenants={name: {"weight": weight} for name, weight in weights.items()},
        is_crowded=True,
    )


def small(*definitions: Definition, minutes: float, slots: int = 3) -> Scenario:
    """One node and these jobs, without faults; people do what a test says."""
    return Scenario(
        0,
        minutes,
        SEASONS[0].begin_ms,
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
        region = chance.choice((None, None, None, "eu", "us"))
        slots.append(Slot(f"n{at}", role, pools, chance.uniform(-1e-4, 1e-4), region))
    return tuple(slots)


def _settings(chance: Random) -> dict[str, str]:
    ttl = chance.choice((8, 16, 16, 24))
    lease = chance.choice((6, 12, 15, 15))
    return {
        "store.deadline": "1s",
        "worker.lease_ttl": f"{ttl}s",
        "worker.renew": f"{ttl // 4}s",
        "worker.drain": f"{chance.choice((2, 10, 30))}s",
        "worker.poll": "8s",
        "coordination.lease_ttl": f"{lease}s",
        "coordination.heartbeat": f"{lease // 3}s",
        "coordination.margin": "1s",
        "coordination.node_ttl": f"{lease + 3}s",
        "scheduler.lookahead": f"{chance.choice((10, 30, 60))}s",
        "scheduler.idle_poll": "20s",
        "scheduler.shards": str(chance.choice((1, 2, 3))),
        "scheduler.catch_up_room": str(chance.choice((2, 5, 1000))),
    }


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
