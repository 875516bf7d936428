"""Who plans which shard: leases with a term, by the database's clock alone.

The term lives apart from the lease, in a row that only a take writes. It never goes back, also not after a release, so
a write that carries an old term can be told for ever. Every verb compares in the statement that writes; only rows that
come back count. Every verb may be repeated: whoever asks again for what it already has gets the same term again.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from fleetcron.events import Event
from fleetcron.model.shard import Held, shard_of
from fleetcron.steps import step
from fleetcron.store.engine import Engine, Row, Script
from fleetcron.store.events import note
from fleetcron.store.migrations import Altering
from fleetcron.store.nodes import SeenNode, listed
from fleetcron.store.rows import held_rows, rows
from fleetcron.store.written import Refused, Written

PAGE = 5000


@dataclass(frozen=True, slots=True)
class ShardLease:
    held: Held
    taken_ms: int
    expires_ms: int


@dataclass(frozen=True, slots=True)
class FleetView:
    """Who lives and who holds what, at one instant of the database's clock."""

    now_ms: int
    nodes: Sequence[SeenNode]
    leases: Sequence[ShardLease]
    job_regions: Sequence[str]  # that planned jobs have


class Shards:
    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    async def take(self, region: str, shards: Sequence[int], node_id: str, ttl_ms: int) -> Written[list[Held]]:
        """Take those of the shards that are free, whose lease has run out, or that the node has already.

        What somebody else holds, or is about to take, is just not among the answers.
        """
        return await self._engine.write(lambda: _take(region, shards, node_id, ttl_ms))

    async def renew(self, node_id: str, held: Sequence[Held], ttl_ms: int) -> Written[list[Held]]:
        """Compare and renew; what is not among the answers is lost. A lease that ran out but nobody took is kept."""
        return await self._engine.write(lambda: _renew(node_id, held, ttl_ms))

    async def release(self, node_id: str, held: Sequence[Held]) -> Written[list[Held]]:
        """Give back; whoever waits for a shard is told. The answer is what was still the node's own."""

        def script() -> Script[list[Held] | Refused]:
            found = yield "shards_release_if_mine", {"node_id": node_id, "held": held_rows(held)}
            if found:
                yield from _note("shard_released", node_id, _helds(found, node_id))
                yield "notify", {"topic": "shards"}
            return _helds(found, node_id)

        return await self._engine.write(script)

    async def owners(self) -> Sequence[ShardLease]:
        """Every lease, for people. One that has run out is still here until somebody takes the shard."""
        return (await self.view()).leases

    async def view(self) -> FleetView:
        return await self._engine.read(_view)

    async def fix(self, shards: int) -> Written[int]:
        """Fix the number of shards of the fleet if nobody has; the answer is the fleet's number."""

        def script() -> Script[int | Refused]:
            yield "fleet_shards_propose", {"shards": str(shards)}
            [fleet] = yield "fleet_shards_hold", {}
            return int(fleet["value"])

        return await self._engine.write(script)

    async def number(self) -> int | None:
        """How many shards the fleet has; None until somebody fixed it."""

        def script() -> Script[int | None]:
            found = yield "fleet_shards_read", {}
            return int(found[0]["value"]) if found else None

        return await self._engine.read(script)


async def set_shards(engine: Altering, shards: int) -> Written[int]:
    """Divide the jobs anew, in one transaction. Refused while a scheduler lives. Answers how many jobs there are."""
    return await engine.alter(lambda: _set_shards(shards))


def _take(region: str, shards: Sequence[int], node_id: str, ttl_ms: int) -> Script[list[Held] | Refused]:
    yield "shards_ensure_terms", {"region": region, "shards": _numbers(shards)}
    locked = yield "shards_lock_terms", {"region": region, "shards": _numbers(shards)}
    step("shards.locked")
    free = yield (
        "shards_list_free",
        {"region": region, "shards": _numbers(row["shard"] for row in locked), "node_id": node_id},
    )
    mine = [Held(region, row["shard"], row["held_term"], node_id) for row in free if row["node_id"] == node_id]
    kept = (yield from _renewed(node_id, mine, ttl_ms)) if mine else []
    wanted = [Held(region, row["shard"], row["term"] + 1, node_id) for row in free if row["node_id"] != node_id]
    if not wanted:
        return kept
    found = yield "shards_take_if_free", {"held": held_rows(wanted), "node_id": node_id, "ttl_ms": ttl_ms}
    taken = _helds(found, node_id)
    step("shards.written")
    yield "shards_raise_terms", {"held": held_rows(taken)}
    before = {row["shard"]: row["node_id"] for row in free}
    yield from _note("shard_taken", node_id, [one for one in taken if before[one.shard] is None])
    yield from _note("shard_taken_over", node_id, [one for one in taken if before[one.shard] is not None], before)
    return sorted(kept + taken)


def _renew(node_id: str, held: Sequence[Held], ttl_ms: int) -> Script[list[Held] | Refused]:
    kept = yield from _renewed(node_id, held, ttl_ms)
    lost = [one for one in held if one not in kept]
    yield from _note("shard_lost", node_id, lost)
    return kept


def _renewed(node_id: str, held: Sequence[Held], ttl_ms: int) -> Script[list[Held]]:
    found = yield "shards_renew_if_mine", {"node_id": node_id, "held": held_rows(held), "ttl_ms": ttl_ms}
    return _helds(found, node_id)


def _view() -> Script[FleetView]:
    [now] = yield "fleet_now", {}
    nodes = yield from listed(now["now_ms"])
    leases = yield "shards_list", {}
    regions = yield "shards_list_regions", {}
    return FleetView(
        now["now_ms"],
        nodes,
        [
            ShardLease(
                Held(row["region"], row["shard"], row["term"], row["node_id"]), row["taken_ms"], row["expires_ms"]
            )
            for row in leases
        ],
        [row["region"] for row in regions],
    )


def _set_shards(shards: int) -> Script[int | Refused]:
    if not 1 <= shards <= 1024:
        return Refused(f"{shards} shards cannot be; choose a number from 1 to 1024")
    yield "fleet_shards_propose", {"shards": str(shards)}
    yield "fleet_shards_lock", {}
    alive = yield "nodes_list_schedulers_alive", {}
    held = yield "shards_list_held", {}
    busy = sorted({row["node_id"] for row in (*alive, *held)})
    if busy:
        return Refused(f"schedulers are at work: {', '.join(busy)}; stop them, or wait until they count as gone")
    after, jobs = "00000000-0000-0000-0000-000000000000", 0
    while page := (yield "shards_page_of_jobs", {"after": after, "most": PAGE}):
        moved = rows({"job_id": row["id"], "shard": shard_of(row["id"], shards)} for row in page)
        yield "shards_assign_cursors", {"rows": moved}
        yield "shards_assign_gaps", {"rows": moved}
        after, jobs = page[-1]["id"], jobs + len(page)
    yield "shards_delete_leases", {}
    yield "shards_raise_all_terms", {}
    yield "fleet_shards_set", {"shards": str(shards)}
    yield from note(Event("shards_changed", detail={"shards": shards, "jobs": jobs}))
    return jobs


def _note(kind: str, node_id: str, held: Sequence[Held], before: Mapping[int, str] | None = None) -> Script[None]:
    if held:
        detail: dict[str, object] = {"shards": [[one.region, one.shard, one.term] for one in held]}
        if before:
            detail["from"] = sorted({before[one.shard] for one in held})
        yield from note(Event(kind, node_id=node_id, count=len(held), detail=detail))


def _numbers(shards: Iterable[int]) -> str:
    return "[" + ",".join(map(str, sorted(shards))) + "]"


def _helds(found: Iterable[Row], node_id: str) -> list[Held]:
    return sorted(Held(row["region"], row["shard"], row["term"], node_id) for row in found)
