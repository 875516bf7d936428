"""The watched-lease rule: the database says that it has expired, and we have seen it unchanged for a whole lease."""

from dataclasses import replace

from fleetcron.store.workers import Seen, Worker
from fleetcron.upkeep.lost import Watch

TTL_MS = 30_000
WORKER = Worker("n1", "host/boot/1/1", {"default": 4}, {}, beat=7, started_ms=0, expires_ms=50_000)


def nobody_is_gone(process: str) -> bool:
    assert process == WORKER.process
    return False


def lost(watch: Watch, now_ms: int, monotonic_ms: int, worker: Worker = WORKER) -> bool:
    return bool(watch.lost(Seen(now_ms, [worker]), monotonic_ms, nobody_is_gone))


def test_an_expired_lease_has_to_be_watched_for_a_whole_lease() -> None:
    """S3-34: a clock of the database that stepped forward, or a watcher that has just come, buries nobody."""
    watch = Watch(TTL_MS)
    assert not lost(watch, 90_000, 1_000)  # expired long ago, and seen for the first time
    assert not lost(watch, 90_000, 1_000 + TTL_MS - 1)
    assert lost(watch, 90_000, 1_000 + TTL_MS)


def test_a_lease_that_is_not_over_at_the_database_is_not_lost() -> None:
    watch = Watch(TTL_MS)
    assert not lost(watch, 20_000, 0)
    assert not lost(watch, 49_999, 10 * TTL_MS)
    assert lost(watch, 50_000, 10 * TTL_MS)


def test_whoever_renews_or_begins_anew_is_watched_from_then_on() -> None:
    watch = Watch(TTL_MS)
    assert not lost(watch, 90_000, 0)
    renewed, anew = replace(WORKER, beat=8), replace(WORKER, beat=8, started_ms=1)
    assert not lost(watch, 90_000, TTL_MS, renewed)
    assert not lost(watch, 90_000, 2 * TTL_MS - 1, renewed)
    assert lost(watch, 90_000, 2 * TTL_MS, renewed)
    assert not lost(watch, 90_000, 3 * TTL_MS, anew)


def test_whoever_was_away_in_between_is_watched_from_then_on() -> None:
    """A worker that left and came back with the same numbers has not been seen all the time."""
    watch = Watch(TTL_MS)
    assert not lost(watch, 90_000, 0)
    assert watch.lost(Seen(90_000, []), 1, nobody_is_gone) == []
    assert not lost(watch, 90_000, TTL_MS)


def test_a_process_that_is_known_to_be_gone_is_not_waited_for() -> None:
    watch = Watch(TTL_MS)
    assert watch.lost(Seen(0, [WORKER]), 0, lambda process: process == WORKER.process) == [(WORKER, True)]
