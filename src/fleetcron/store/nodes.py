"""The processes of the fleet: who lives, since when, and how far its clock is from the database's."""

from collections.abc import Sequence
from dataclasses import dataclass

from fleetcron.events import Event
from fleetcron.model.shard import ANYWHERE
from fleetcron.store.engine import Engine, Row, Script
from fleetcron.store.events import note
from fleetcron.store.written import Refused, Written


@dataclass(frozen=True, slots=True)
class Node:
    """`node_id` is new with every start of a process: whoever comes after a crash is somebody else."""

    node_id: str
    host: str
    pid: int
    roles: tuple[str, ...]
    region: str = ANYWHERE
    version: str = ""
    zone_release: str = ""

    @property
    def schedules(self) -> bool:
        return "scheduler" in self.roles


@dataclass(frozen=True, slots=True)
class SeenNode:
    node: Node
    started_ms: int
    seen_ms: int
    expires_ms: int
    clock_offset_ms: int  # what the database's clock is ahead of the node's
    alive: bool


class Nodes:
    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    async def announce(self, node: Node, ttl_ms: int, *, shards: int | None = None) -> Written[int]:
        """A node has started; answers with the database's time. A scheduler says how many shards it knows.

        Refused if the fleet has another number of shards, or if the id belongs to another process.
        """
        return await self._engine.write(lambda: _announce(node, ttl_ms, shards))

    async def heartbeat(self, node_id: str, ttl_ms: int, clock_offset_ms: int) -> Written[int]:
        """A node lives; answers with the database's time. Refused if it was given up meanwhile: announce it again."""

        def script() -> Script[int | Refused]:
            found = yield (
                "nodes_heartbeat_if_known",
                {"node_id": node_id, "ttl_ms": ttl_ms, "clock_offset_ms": clock_offset_ms},
            )
            return int(found[0]["seen_ms"]) if found else Refused(f"the node {node_id} was silent and was given up")

        return await self._engine.write(script)

    async def leave(self, node_id: str) -> Written[int]:
        """A node stops: all that it held is free at once, and whoever waits is told. Answers how many shards that were.

        Also for a node that cannot say so itself. If it lives after all, its term is stale and it harms nobody.
        """
        return await self._engine.write(lambda: _leave(node_id))

    async def resign(self, node_id: str, roles: Sequence[str]) -> Written[int]:
        """A node plans no more and lives on with these roles: its shards are free at once, and whoever waits is told.

        Without the change of its roles the others would leave its share of the shards to it. Answers how many it had.
        """

        def script() -> Script[int | Refused]:
            released = yield from _release_all(node_id)
            yield "nodes_set_roles", {"node_id": node_id, "roles": ",".join(roles)}
            yield "notify", {"topic": "shards"}
            return released

        return await self._engine.write(script)

    async def give_up_silent(self) -> Written[list[str]]:
        """Note, once, which nodes stopped without a word. They have to announce themselves again if they come back."""
        return await self._engine.write(give_up_silent)

    async def list(self) -> Sequence[SeenNode]:
        def script() -> Script[list[SeenNode]]:
            [now] = yield "fleet_now", {}
            return (yield from listed(now["now_ms"]))

        return await self._engine.read(script)


def listed(now_ms: int) -> Script[list[SeenNode]]:
    """Part of a script: all nodes. `now_ms` is the database's time."""
    found = yield "nodes_list", {}
    return [_seen(row, now_ms) for row in found]


def agree_on_shards(shards: int) -> Script[Refused | None]:
    """Part of a script: the first node fixes the number of shards of the fleet, every other has to have the same."""
    yield "fleet_shards_propose", {"shards": str(shards)}
    [fleet] = yield "fleet_shards_hold", {}
    if int(fleet["value"]) == shards:
        return None
    return Refused(
        f"this fleet has {fleet['value']} shards and this node is set to {shards}; set scheduler.shards to "
        f"{fleet['value']}, or stop every scheduler and change the number of the fleet"
    )


def give_up_silent() -> Script[list[str] | Refused]:
    found = yield "nodes_delete_if_expired", {}
    for row in found:
        detail = {"host": row["host"], "pid": row["pid"], "roles": row["roles"], "region": row["region"]}
        yield from note(
            Event("node_vanished", node_id=row["node_id"], detail={**detail, "last_seen_ms": row["seen_ms"]})
        )
    return [row["node_id"] for row in found]


def _announce(node: Node, ttl_ms: int, shards: int | None) -> Script[int | Refused]:
    if shards is not None:
        refusal = yield from agree_on_shards(shards)
        if refusal:
            return refusal
    yield from give_up_silent()  # a silent node may have had this id
    who = {"node_id": node.node_id, "host": node.host, "pid": node.pid}
    what = {"region": node.region, "version": node.version, "zone_release": node.zone_release}
    new = yield "nodes_insert_if_new", {**who, **what, "roles": ",".join(node.roles), "ttl_ms": ttl_ms}
    if new:
        detail = {"host": node.host, "pid": node.pid, "roles": ",".join(node.roles), **what}
        yield from note(Event("node_joined", node_id=node.node_id, detail=detail))
        yield "notify", {"topic": "shards"}  # those who have more than their share may give back at once
        return int(new[0]["seen_ms"])
    same = yield "nodes_refresh_if_same", {**who, "ttl_ms": ttl_ms}
    if same:
        return int(same[0]["seen_ms"])
    return Refused(f"another process lives under the id {node.node_id}; every process needs an id of its own")


def _leave(node_id: str) -> Script[int | Refused]:
    released = yield from _release_all(node_id)
    gone = yield "nodes_delete", {"node_id": node_id}
    if gone:
        yield from note(Event("node_left", node_id=node_id))
    if gone or released:
        yield "notify", {"topic": "shards"}
    return released


def _release_all(node_id: str) -> Script[int]:
    released = yield "shards_release_of_node", {"node_id": node_id}
    if released:
        shards = [[row["region"], row["shard"], row["term"]] for row in released]
        yield from note(Event("shard_released", node_id=node_id, count=len(shards), detail={"shards": shards}))
    return len(released)


def _seen(row: Row, now_ms: int) -> SeenNode:
    roles = tuple(row["roles"].split(","))
    node = Node(row["node_id"], row["host"], row["pid"], roles, row["region"], row["version"], row["zone_release"])
    return SeenNode(
        node, row["started_ms"], row["seen_ms"], row["expires_ms"], row["clock_offset_ms"], row["expires_ms"] > now_ms
    )
