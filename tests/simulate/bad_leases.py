"""Known-bad variants: who holds what, for how long, and when it may start."""

from typing import Any

from fleetcron.clock import Clock
from fleetcron.policy import choose
from fleetcron.simulate.work import SimulatedHands
from fleetcron.store.workers import Seen, Worker, Workers
from fleetcron.upkeep import loop as upkeep
from fleetcron.upkeep import lost as upkeep_lost
from fleetcron.upkeep.lost import Watch
from fleetcron.worker.dbtime import DatabaseTime
from fleetcron.worker.hands import Hands
from fleetcron.worker.lease import WorkerLease
from fleetcron.worker.loop import Worker as WorkerLoop
from tests.simulate.changing import put, text


def no_watching() -> None:
    def lost(self: Watch, seen: Seen, monotonic_ms: int, gone: Any) -> list[tuple[Worker, bool]]:
        return [(each, False) for each in seen.workers if each.expires_ms <= seen.now_ms]

    put(Watch, "lost", lost)


def leases_by_node_clocks() -> None:
    bury = upkeep_lost.bury_lost

    async def by_own_clock(store: Any, watch: Watch, settling: Any, *, clock: Clock, by: str) -> Any:
        def lost(self: Watch, seen: Seen, monotonic_ms: int, gone: Any) -> list[tuple[Worker, bool]]:
            return [(each, False) for each in seen.workers if each.expires_ms <= clock.now_ms()]

        own = type("Own", (Watch,), {"lost": lost})(watch.ttl_ms)
        return await bury(store, own, settling, clock=clock, by=by)

    put(upkeep, "bury_lost", by_own_clock)
    text("workers_delete_if_expired", ("expires_ms <= db_now_ms() OR", "true OR"))


def reaper_without_guard() -> None:
    text(
        "workers_delete_if_expired",
        ("AND beat = :beat AND (expires_ms <= db_now_ms() OR", "AND :beat >= 0 AND (true OR"),
    )


def forsake_without_life() -> None:
    forsake = Workers.forsake

    async def anything(self: Workers, node_id: str, settle: Any, *, started_ms: int | None = None) -> Any:
        return await forsake(self, node_id, settle)

    put(Workers, "forsake", anything)


def unknown_renewal_counts() -> None:
    beat = WorkerLease.beat

    async def hopeful(self: WorkerLease, *, joining: bool = False) -> bool:
        sent_ms, was_held = self._clock.monotonic_ms(), self._until_ms is not None
        done = await beat(self, joining=joining)
        if not done and was_held and self._until_ms is not None and self.trouble is not None:
            self._until_ms = sent_ms + self._ttl_ms - self.margin_ms
            self._allow(self._until_ms + self.margin_ms * 3 // 4)
        return done

    put(WorkerLease, "beat", hopeful)


def renewal_counts_from_the_reply() -> None:
    beat = WorkerLease.beat

    async def late(self: WorkerLease, *, joining: bool = False) -> bool:
        done = await beat(self, joining=joining)
        if done and self._until_ms is not None:
            self._until_ms = self._clock.monotonic_ms() + self._ttl_ms - self.margin_ms
            self._allow(self._until_ms + self.margin_ms * 3 // 4)
        return done

    put(WorkerLease, "beat", late)


def no_margin() -> None:
    made = WorkerLease.__init__

    def init(self: WorkerLease, *arguments: Any, **options: Any) -> None:
        made(self, *arguments, **options)
        self.margin_ms = 0

    put(WorkerLease, "__init__", init)


def reply_counts_and_no_margin() -> None:
    no_margin()
    renewal_counts_from_the_reply()


def drain_stops_the_heartbeat_first() -> None:
    drain = WorkerLoop._drain

    async def stopped(self: WorkerLoop) -> None:
        self.lease._renew_ms = 10**9
        await drain(self)

    put(WorkerLoop, "_drain", stopped)


def lost_lease_stops_nothing() -> None:
    put(Hands, "drop", lambda self, why, grace_s: None)


def who_loses_its_lease_goes_on() -> None:
    lost_lease_stops_nothing()
    no_dead_mans_switch()


def no_dead_mans_switch() -> None:
    put(SimulatedHands, "allow", lambda self, until_ms: None)


def hand_back_without_owner() -> None:
    text(
        "leases_hand_back",
        (
            "WHERE l.attempt = n.attempt AND l.batch = n.batch AND l.node_id = :node_id",
            "WHERE :node_id IS NOT NULL AND l.node_id IS NOT NULL",
        ),
    )


def hand_back_without_batch() -> None:
    text("leases_hand_back", ("AND l.batch = n.batch AND", "AND"))


class _NodeTime(DatabaseTime):
    def __init__(self, clock: Clock, loop: Any) -> None:
        super().__init__()
        self._clock, self._loop = clock, loop

    def surely_ms(self, at_s: float) -> float:
        return self._clock.now_ms()

    def when_s(self, instant_ms: int) -> float:
        return float(self._loop.time() + (instant_ms - self._clock.now_ms()) / 1000)


def start_by_the_nodes_clock() -> None:
    made = Hands.__init__

    def init(self: Hands, *arguments: Any, **options: Any) -> None:
        made(self, *arguments, **options)
        real = self.time
        self.time = _NodeTime(self._clock, self._loop)
        for name in ("heard", "read", "at_most_ms", "guess_ms", "slack_ms"):
            setattr(self.time, name, getattr(real, name))

    put(Hands, "__init__", init)


def start_when_claimed() -> None:
    put(DatabaseTime, "surely_ms", lambda self, at_s: 1e18)


def starts_two_seconds_late() -> None:
    surely_ms, when_s = DatabaseTime.surely_ms, DatabaseTime.when_s
    put(DatabaseTime, "surely_ms", lambda self, at_s: surely_ms(self, at_s) - 2_000)
    put(DatabaseTime, "when_s", lambda self, instant_ms: when_s(self, instant_ms) + 2)


def deadline_not_asked() -> None:
    put(choose._Chooser, "_too_late", lambda self, run: None)
    text("queue_expired", ("WHERE deadline_ms < :now_ms", "WHERE false AND deadline_ms < :now_ms"))
    real = Hands._start_in

    def start(self: Hands, pool: Any, now_s: float) -> Any:
        put(self.time, "at_most_ms", lambda at_s: 0.0)
        try:
            return real(self, pool, now_s)
        finally:
            del self.time.at_most_ms

    put(Hands, "_start_in", start)
