"""Who may hold runs. All leases of a worker live and die with its row, so that one renewal keeps them all.

A worker is declared lost only by somebody who has watched it: its row says expired by the database's clock, and has not
changed for a whole lease on the watcher's own steady clock. (A database clock that jumps forward expires everything at
once; that alone must not give two workers the same run.)
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from fleetcron.events import Event
from fleetcron.model.outcome import Fault, Lost
from fleetcron.model.rules import Lane
from fleetcron.steps import step
from fleetcron.store.ends import Ended, Ends, Settle, end_leases
from fleetcron.store.engine import Engine, Row, Script
from fleetcron.store.events import note
from fleetcron.store.written import Refused, Written

_LINE: Final = 200  # characters of a reason
NO_REFUSALS: Final[Mapping[str, str]] = {}


@dataclass(frozen=True, slots=True)
class Worker:
    node_id: str
    process: str  # host, boot, pid and start of the process
    pools: Mapping[str, int]  # slots by pool
    lacks: Mapping[str, str]  # what it refuses, and handlers that it was asked for and has not; and why
    beat: int
    started_ms: int
    expires_ms: int


@dataclass(frozen=True, slots=True)
class Renewed:
    """`cancels` are attempts that somebody asked to stop: (run, attempt) and why."""

    now_ms: int
    expires_ms: int
    cancels: Mapping[tuple[int, int], str]
    started_ms: int | None = None  # when this life of the worker began


class HeldRun(NamedTuple):
    """An attempt that a worker has. It begins at `earliest_ms` or later."""

    run_id: int
    attempt: int
    pool: str
    lane: Lane
    earliest_ms: int


@dataclass(frozen=True, slots=True)
class Begun:
    now_ms: int
    held: Sequence[HeldRun]


@dataclass(frozen=True, slots=True)
class Seen:
    now_ms: int
    workers: Sequence[Worker]


class Workers:
    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    async def join(
        self,
        node_id: str,
        process: str,
        pools: Mapping[str, int],
        ttl_ms: int,
        refuses: Mapping[str, str] = NO_REFUSALS,
    ) -> Written[None]:
        """A worker begins, and says what it will never run. What waits for a handler that it may have it takes when it
        claims."""
        text = json.dumps(dict(pools), sort_keys=True)

        def script() -> Script[Refused | None]:
            step("worker.join")
            call = {"node_id": node_id, "process": process, "pools": text, "lacks": _lacks(refuses), "ttl_ms": ttl_ms}
            yield "workers_insert", call
            yield "notify", {"topic": "work"}
            return None

        return await self._engine.write(script)

    async def renew(self, node_id: str, ttl_ms: int) -> Written[Renewed]:
        """Refused if it was declared lost: whatever it holds belongs to others now."""

        def script() -> Script[Renewed | Refused]:
            step("worker.renew")
            found = yield "workers_renew", {"node_id": node_id, "ttl_ms": ttl_ms}
            [facts] = yield "fleet_now", {}
            if not found:
                return Refused("this worker was declared lost")
            asked = yield "leases_cancels", {"node_id": node_id}
            cancels = {(row["run_id"], row["attempt"]): row["cancel"] for row in asked}
            return Renewed(facts["now_ms"], found[0]["expires_ms"], cancels, found[0]["started_ms"])

        return await self._engine.write(script)

    async def held(self, node_id: str) -> list[tuple[int, int, str]]:
        """Run, attempt and batch of the claim of everything that it holds: for a worker that looks whether it has
        forgotten something."""

        def script() -> Script[list[tuple[int, int, str]]]:
            found = yield "leases_keys_of_node", {"node_id": node_id}
            return [(row["run_id"], row["attempt"], row["batch"]) for row in found]

        return await self._engine.read(script)

    async def begun(self, node_id: str) -> Begun:
        """What it holds, and when that could begin at the earliest: for workers whose own clock nobody has seen."""

        def script() -> Script[Begun]:
            [facts] = yield "fleet_now", {}
            found = yield "leases_keys_of_node", {"node_id": node_id}
            return Begun(facts["now_ms"], [_held(row) for row in found])

        return await self._engine.read(script)

    async def forsake(self, node_id: str, settle: Settle, *, started_ms: int | None = None) -> Written[int]:
        """A worker that has stopped everything gives up whatever it still holds, before it begins anew. `started_ms` is
        the life that it gives up: refused if it has begun anew since, for this may arrive late."""

        def script() -> Script[int | Refused]:
            step("worker.forsake")
            found = yield "workers_lock", {"node_id": node_id}  # a claim whose reply was lost may still be under way
            if found and started_ms is not None and found[0]["started_ms"] != started_ms:
                return Refused("it has begun anew")
            held = yield "leases_of_node", {"node_id": node_id}
            [facts] = yield "fleet_now", {}
            ends = yield from end_leases(held, _lost("the worker lost its lease", facts["now_ms"]), settle)
            yield "workers_delete", {"node_id": node_id}
            step("worker.forsaken")
            return len(ends.transitions)

        return await self._engine.write(script)

    async def lack(self, node_id: str, handlers: Mapping[str, str]) -> Written[None]:
        """Say what this worker refuses, and which handlers it was asked for and has not. Why is a line for people."""

        def script() -> Script[Refused | None]:
            yield "workers_set_lacks", {"node_id": node_id, "lacks": _lacks(handlers)}
            return None

        return await self._engine.write(script)

    async def look_again(self, node_id: str, refuses: Mapping[str, str] = NO_REFUSALS) -> Written[None]:
        """What it had not may be there by now: nobody parks runs any more because of it, and its next claim takes those
        that wait."""

        def script() -> Script[Refused | None]:
            yield "workers_set_lacks", {"node_id": node_id, "lacks": _lacks(refuses)}
            yield "notify", {"topic": "work"}
            return None

        return await self._engine.write(script)

    async def close_pools(self, node_id: str) -> Written[None]:
        """A worker is about to end: it claims nothing more, so nobody is to count on it. What it holds is still its."""

        def script() -> Script[Refused | None]:
            yield "workers_close_pools", {"node_id": node_id}
            return None

        return await self._engine.write(script)

    async def leave(self, node_id: str) -> Written[None]:
        """A worker ends that holds nothing. Refused while it holds something."""

        def script() -> Script[Refused | None]:
            step("worker.leave")
            yield "workers_lock", {"node_id": node_id}  # a claim whose reply was lost may still be under way
            if (yield "leases_of_node", {"node_id": node_id}):
                return Refused("it still holds runs")
            yield "workers_delete", {"node_id": node_id}
            return None

        return await self._engine.write(script)

    async def list(self) -> Seen:
        def script() -> Script[Seen]:
            [facts] = yield "fleet_now", {}
            return Seen(facts["now_ms"], [_worker(row) for row in (yield "workers_list", {})])

        return await self._engine.read(script)

    async def bury(self, worker: Worker, settle: Settle, *, gone: bool, by: str) -> Written[Ends]:
        """Declare a worker lost, as it was seen, and settle what it held. `gone`: its process does not exist any more,
        so nobody has to wait for its lease to expire. Refused if it has moved since."""

        def script() -> Script[Ends | Refused]:
            step("worker.bury")
            call = {"node_id": worker.node_id, "beat": worker.beat, "gone": int(gone)}
            if not (yield "workers_delete_if_expired", call):
                return Refused("it has renewed its lease")
            held = yield "leases_of_node", {"node_id": worker.node_id}
            [facts] = yield "fleet_now", {}
            lost = _lost(f"the worker {worker.node_id} vanished", facts["now_ms"])
            ends = yield from end_leases(held, lost, settle)
            detail = {"worker": worker.node_id, "runs": len(held)}
            yield from note(Event("worker_lost", node_id=by, count=max(1, len(held)), detail=detail))
            yield "notify", {"topic": "work"}
            step("worker.buried")
            return ends

        return await self._engine.write(script)


def _lost(why: str, now_ms: int) -> Callable[[Row], Ended]:
    def end_of(row: Row) -> Ended:
        started = max(row["claimed_ms"], row["due_ms"])
        return Ended(row["run_id"], row["attempt"], Lost(Fault("lost", why)), started, max(started, now_ms))

    return end_of


def _held(row: Row) -> HeldRun:
    return HeldRun(row["run_id"], row["attempt"], row["pool"], row["lane"], max(row["claimed_ms"], row["due_ms"]))


def _lacks(handlers: Mapping[str, str]) -> str:
    return json.dumps({name: _line(handlers[name]) for name in sorted(handlers)})


def _line(text: str) -> str:
    words = " ".join(text.split())
    return words if len(words) <= _LINE else f"{words[: _LINE - 1]}…"


def _worker(row: Row) -> Worker:
    return Worker(
        row["node_id"], row["process"], json.loads(row["pools"]), json.loads(row["lacks"]), row["beat"],
        row["started_ms"], row["expires_ms"],
    )  # fmt: skip
