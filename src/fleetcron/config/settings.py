"""Every setting with its default, its bounds and what it means. docs/operate/configuration.md shows the same."""

import dataclasses
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from fleetcron.config.kinds import (
    DatabaseUrl,
    Duration,
    Kind,
    Listen,
    OneOf,
    SecretBytes,
    Several,
    SomeOf,
    Whole,
    Word,
)

DAY_S = 86_400
A_NAME = r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}"


def _setting(default: object, kind: Kind, means: str) -> Any:
    return field(default=default, metadata={"kind": kind, "means": means})


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreConfig:
    url: str = _setting("sqlite:///fleetcron.db", DatabaseUrl(), "where the store is")
    deadline_s: float = _setting(
        5,
        Duration(0.1, 10, "no call may hang, however broken the network is"),
        "how long one call to the store may take",
    )
    connections: int = _setting(
        8, Whole(1, 200), "PostgreSQL connections of this node at most, beside one that listens"
    )

    @property
    def statement_timeout_s(self) -> float:
        """PostgreSQL itself ends a statement at seven tenths of the deadline, so that it gives up before we do."""
        return round(self.deadline_s * 0.7, 3)


@dataclass(frozen=True, slots=True, kw_only=True)
class SchedulerConfig:
    lookahead_s: float = _setting(
        60,
        Duration(1, DAY_S, "runs are created ahead of time, so that a burst or a short outage makes nobody late"),
        "how long before its tick a run is created",
    )
    shards: int = _setting(
        16,
        Whole(1, 1024, "1 is one leader with hot standby"),
        "slices that the jobs are divided into, for the whole fleet",
    )
    batch_rows: int = _setting(
        5000,
        Whole(1, 5000, "longer transactions keep others waiting"),
        "rows that one planning transaction writes at most",
    )
    idle_poll_s: float = _setting(
        10,
        Duration(0.05, 60),
        "how long a scheduler sleeps at most when nothing is due and no hint comes; never more than half the lookahead",
    )
    catch_up_room: int = _setting(
        1000, Whole(1, 1_000_000), "runs of the catch-up lane that may wait for a worker at one time"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class CoordinationConfig:
    lease_ttl_s: float = _setting(
        15,
        Duration(1, 3600),
        "how long a shard stays with a scheduler that has not renewed it: what a crash costs at most",
    )
    heartbeat_s: float = _setting(5, Duration(0.1, 1200), "how often a node renews its shards and says that it lives")
    margin_s: float = _setting(
        2,
        Duration(0.05, 600, "without a margin a holder could still plan at the instant its lease ends"),
        "how long before its lease ends a holder stops counting a shard as its own",
    )
    node_ttl_s: float = _setting(15, Duration(1, 3600), "how long a node that is silent counts as alive")
    skew_warn_ms: int = _setting(
        1000, Duration(0.01, DAY_S, unit_s=0.001), "difference to the database's clock from which a node warns"
    )
    skew_refuse_ms: int = _setting(
        300_000,
        Duration(0.1, 7 * DAY_S, unit_s=0.001),
        "difference to the database's clock from which a node leaves the shards to nodes with better clocks",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeConfig:
    name: str | None = _setting(
        None,
        Word(A_NAME, "letters, digits, dots, underscores and dashes, 100 at most"),
        "what people call this node; without it hostname-pid",
    )
    region: str | None = _setting(
        None,
        Word(r"[a-z0-9][a-z0-9._-]{0,62}", "small letters, digits, dots, underscores and dashes, as in eu-west"),
        "where this node runs; without it the node plans only jobs without a home region",
    )
    roles: tuple[str, ...] = _setting(
        ("scheduler", "worker"), SomeOf(("scheduler", "worker", "api")), "what this node does"
    )
    log_format: str = _setting("text", OneOf(("text", "json")), "how the log is written")
    log_level: str = _setting(
        "info", OneOf(("debug", "info", "warning", "error")), "entries below this are left out of the log"
    )

    def named(self, host: str, pid: int) -> str:
        """The node's name for people (S1-15: hostname-pid)."""
        return self.name or f"{host}-{pid}"


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerConfig:
    pools: tuple[str, ...] = _setting(
        ("default=10",),
        Several(
            r"[a-z0-9][a-z0-9._-]{0,199}(=[1-9][0-9]{0,3})?",
            "write default=10, reports=2: the pools that this worker serves, each with its slots",
        ),
        "pools that this worker serves, each with the number of runs that it executes at the same time",
    )
    lease_ttl_s: float = _setting(
        30,
        Duration(1, 3600),
        "how long runs stay with a worker that has not renewed its lease: what a crash costs at most, and 5 s more",
    )
    renew_s: float = _setting(7.5, Duration(0.1, 1200), "how often a worker renews its lease")
    drain_s: float = _setting(
        30, Duration(0, DAY_S), "how long attempts may go on when the worker is asked to stop, before they are ended"
    )
    ahead_s: float = _setting(
        0.9,  # not a whole second: most ticks are on one, and whoever claims then is in the way of those that start
        Duration(0, 30, "a run that was claimed is not taken back by an edit any more"),
        "how long before its instant a run is claimed, and held until then",
    )
    poll_s: float = _setting(
        5,
        Duration(
            0.05, 8, "a worker must look by itself for what is planned more than 10 s ahead: no hint comes for it"
        ),
        "how long a worker sleeps at most when no hint comes",
    )

    def slots(self) -> dict[str, int]:
        """By pool. A pool without a number has ten."""
        found = {}
        for entry in self.pools:
            name, _, number = entry.partition("=")
            found[name] = int(number or 10)
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutorConfig:
    handlers: tuple[str, ...] = _setting(
        (),
        Several(
            r"[A-Za-z_][A-Za-z0-9_.]*(:[A-Za-z_][A-Za-z0-9_.]*|\.\*)?",
            "write shop.jobs:report for a function, shop.jobs for a module or shop.* for a package",
        ),
        "Python functions that jobs may call: single ones, those of a module, those of a package",
    )
    isolation: str = _setting(
        "host", OneOf(("host", "inline")), "where Python functions run: in processes of their own, or in the worker"
    )
    hosts: int = _setting(1, Whole(1, 64), "processes that run Python functions, for each pool; they share its slots")
    grace_s: float = _setting(
        10, Duration(0, 600), "how long what was asked to stop may go on before it is killed with all its processes"
    )
    patience_s: float = _setting(
        60,
        Duration(0, DAY_S),
        "how long the other functions of a process may go on when one of them does not stop and the process must end",
    )
    silence_s: float = _setting(
        5, Duration(0.5, 600), "how long a process that runs functions may not answer before another gets the new work"
    )
    shell: str = _setting("refused", OneOf(("refused", "allowed")), "commands that are a text for the shell")
    environment: tuple[str, ...] = _setting(
        (),
        Several(r"[A-Za-z_][A-Za-z0-9_]*", "names of variables, such as HOME, LANG"),
        "variables of the worker that commands get too, beside PATH",
    )
    internal: tuple[str, ...] = _setting(
        (),
        Several(r"[A-Za-z0-9*._:/\[\]-]+", "host names, *.domains, addresses or networks such as 10.1.0.0/16"),
        "hosts and networks that HTTP jobs may reach although they are not public",
    )
    signing_secret: str | None = field(
        default=None,
        repr=False,
        metadata={
            "kind": SecretBytes(),
            "means": "what HTTP calls are signed with, for each tenant with a key of its own",
        },
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class SecretsConfig:
    folder: str | None = _setting(
        None,
        Word(r"[^\0\r\n]{1,1000}", "the path of a folder"),
        "folder of the secrets that jobs name as secret://NAME: a file TENANT/NAME for each",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiConfig:
    listen: str = _setting(
        "127.0.0.1:8470", Listen(), "where the API listens; beyond this machine only once there are keys"
    )
    rate: int = _setting(
        1200,
        Whole(1, 600_000, "whoever needs more for one key: fleetcron keys create --rate"),
        "requests a minute of one key, unless the key says another number",
    )
    streams: int = _setting(
        20,
        Whole(1, 200, "a node has 200 in all"),
        "logs of runs that one key may follow at once, on each node",
    )

    @property
    def address(self) -> tuple[str, int]:
        host, _, port = self.listen.rpartition(":")
        return host.strip("[]"), int(port)


class Shown(NamedTuple):
    name: str
    value: str
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    store: StoreConfig = StoreConfig()
    scheduler: SchedulerConfig = SchedulerConfig()
    coordination: CoordinationConfig = CoordinationConfig()
    node: NodeConfig = NodeConfig()
    worker: WorkerConfig = WorkerConfig()
    executor: ExecutorConfig = ExecutorConfig()
    secrets: SecretsConfig = SecretsConfig()
    api: ApiConfig = ApiConfig()
    sources: Mapping[str, str] = field(default_factory=dict, compare=False)  # of the settings that somebody set

    def shown(self) -> list[Shown]:
        """Every setting with its value and where that comes from; secrets are masked."""
        return [
            Shown(one.name, one.kind.show(getattr(getattr(self, one.room), one.attribute)), self.source_of(one.name))
            for one in settings()
        ]

    def source_of(self, name: str) -> str:
        return self.sources.get(name, "default")


class Setting(NamedTuple):
    """One setting: `coordination.lease_ttl` is the attribute `lease_ttl_s` of the room `coordination`."""

    room: str
    attribute: str
    kind: Kind
    means: str
    default: object

    @property
    def key(self) -> str:
        return self.attribute.removesuffix("_ms").removesuffix("_s")

    @property
    def name(self) -> str:
        return f"{self.room}.{self.key}"

    @property
    def variable(self) -> str:
        return f"FLEETCRON_{self.room}__{self.key}".upper()


ROOMS: Mapping[str, type[Any]] = {
    "store": StoreConfig,
    "scheduler": SchedulerConfig,
    "coordination": CoordinationConfig,
    "node": NodeConfig,
    "worker": WorkerConfig,
    "executor": ExecutorConfig,
    "secrets": SecretsConfig,
    "api": ApiConfig,
}


def settings() -> Iterator[Setting]:
    for room, shape in ROOMS.items():
        for entry in dataclasses.fields(shape):
            yield Setting(room, entry.name, entry.metadata["kind"], entry.metadata["means"], entry.default)
