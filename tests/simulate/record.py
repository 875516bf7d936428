"""What is seen of a world from outside the code under test: a log of the handlers, one of the faults, observers in the
database that note what is changed, and the rows that are left at the end."""

import sqlite3
from bisect import bisect_right
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from fleetcron.simulate.clocks import SimulatedClock
from fleetcron.simulate.work import Stay

Row = dict[str, Any]

# They note a final run that changes, runs that vanish, a past that is rewritten, and terms that go back; who waits in
# the queue, and what people allow. `seen_ms()` is the time of the loop, which no fault touches; `now_ms` is what the
# database's clock said, by which is decided what is due.
OBSERVERS: Final = """
CREATE TABLE seen_finals (run_id INTEGER, round INTEGER, state TEXT, finished_ms INTEGER, lane TEXT, reason TEXT,
    at_ms INTEGER, now_ms INTEGER);
CREATE TABLE seen_wrongs (law TEXT, run_id INTEGER, what TEXT, at_ms INTEGER);
CREATE TABLE seen_created (run_id INTEGER PRIMARY KEY, job_id TEXT, scheduled_for_ms INTEGER, kind TEXT,
    at_ms INTEGER);
CREATE TABLE seen_withdrawn (run_id INTEGER PRIMARY KEY, at_ms INTEGER);
CREATE TABLE seen_claims (run_id INTEGER, attempt INTEGER, node_id TEXT, at_ms INTEGER, now_ms INTEGER);
CREATE TABLE seen_replays (run_id INTEGER, at_ms INTEGER);
CREATE TABLE seen_cancels (run_id INTEGER, attempt INTEGER, reason TEXT, at_ms INTEGER, now_ms INTEGER);
CREATE TABLE seen_attempts (run_id INTEGER, attempt INTEGER, node_id TEXT, outcome TEXT, at_ms INTEGER,
    error_code TEXT);
CREATE TABLE seen_beats (node_id TEXT PRIMARY KEY, at_ms INTEGER);
CREATE TABLE seen_burials (node_id TEXT, silent_ms INTEGER, at_ms INTEGER);
CREATE TABLE seen_queued (run_id INTEGER, lane TEXT, from_ms INTEGER, to_ms INTEGER);
CREATE INDEX seen_queued_now ON seen_queued (run_id) WHERE to_ms IS NULL;
CREATE TABLE seen_parked (run_id INTEGER, gate TEXT, at_ms INTEGER, now_ms INTEGER);
CREATE TABLE seen_caps (scope TEXT, name TEXT, most INTEGER, at_ms INTEGER);
CREATE TRIGGER seen_enqueue AFTER INSERT ON queue
BEGIN INSERT INTO seen_queued VALUES (NEW.run_id, NEW.lane, seen_ms(), NULL); END;
CREATE TRIGGER seen_dequeue AFTER DELETE ON queue
BEGIN UPDATE seen_queued SET to_ms = seen_ms() WHERE run_id = OLD.run_id AND to_ms IS NULL; END;
CREATE TRIGGER seen_park AFTER UPDATE OF gate ON queue WHEN NEW.gate IS NOT NULL
BEGIN INSERT INTO seen_parked VALUES (NEW.run_id, NEW.gate, seen_ms(), db_now_ms()); END;
CREATE TRIGGER seen_tenant AFTER INSERT ON tenants
BEGIN INSERT INTO seen_caps VALUES ('tenant', NEW.tenant, NEW.max_in_flight, seen_ms()); END;
CREATE TRIGGER seen_tenant_change AFTER UPDATE ON tenants
BEGIN INSERT INTO seen_caps VALUES ('tenant', NEW.tenant, NEW.max_in_flight, seen_ms()); END;
CREATE TRIGGER seen_pool AFTER INSERT ON pools
BEGIN INSERT INTO seen_caps VALUES ('pool', NEW.pool, NEW.slots, seen_ms()),
    ('per_tenant', NEW.pool, NEW.per_tenant, seen_ms()); END;
CREATE TRIGGER seen_pool_change AFTER UPDATE ON pools
BEGIN INSERT INTO seen_caps VALUES ('pool', NEW.pool, NEW.slots, seen_ms()),
    ('per_tenant', NEW.pool, NEW.per_tenant, seen_ms()); END;
CREATE TRIGGER seen_join AFTER INSERT ON workers
BEGIN INSERT OR REPLACE INTO seen_beats VALUES (NEW.node_id, seen_ms()); END;
CREATE TRIGGER seen_beat AFTER UPDATE OF beat ON workers
BEGIN UPDATE seen_beats SET at_ms = seen_ms() WHERE node_id = NEW.node_id; END;
CREATE TRIGGER seen_burial AFTER INSERT ON events WHEN NEW.kind = 'worker_lost'
BEGIN INSERT INTO seen_burials SELECT node_id, seen_ms() - at_ms, seen_ms() FROM seen_beats
    WHERE node_id = NEW.detail ->> 'worker'; END;
CREATE TRIGGER seen_attempt AFTER INSERT ON attempts
BEGIN INSERT INTO seen_attempts VALUES (NEW.run_id, NEW.attempt, NEW.node_id, NEW.outcome, seen_ms(),
    NEW.error_code); END;
CREATE TRIGGER seen_final AFTER UPDATE OF finished_ms ON runs
WHEN OLD.finished_ms IS NULL AND NEW.finished_ms IS NOT NULL
BEGIN INSERT INTO seen_finals VALUES (NEW.run_id, NEW.round, NEW.state, NEW.finished_ms, NEW.lane, NEW.reason,
    seen_ms(), db_now_ms()); END;
CREATE TRIGGER seen_replay AFTER UPDATE OF round ON runs WHEN NEW.round > OLD.round
BEGIN INSERT INTO seen_replays VALUES (NEW.run_id, seen_ms()); END;
CREATE TRIGGER seen_change AFTER UPDATE ON runs WHEN OLD.finished_ms IS NOT NULL
    AND NOT (NEW.finished_ms IS NULL AND NEW.round = OLD.round + 1 AND OLD.state IN ('dead', 'cancelled'))
    AND (NEW.state, NEW.finished_ms, NEW.attempt, NEW.failures, NEW.losses, NEW.round, NEW.reason, NEW.started_ms)
        IS NOT (OLD.state, OLD.finished_ms, OLD.attempt, OLD.failures, OLD.losses, OLD.round, OLD.reason,
            OLD.started_ms)
BEGIN INSERT INTO seen_wrongs VALUES ('I7', NEW.run_id, 'a final run changed: ' || OLD.state || ' to '
    || NEW.state, seen_ms()); END;
CREATE TRIGGER seen_identity AFTER UPDATE OF job_id, scheduled_for_ms, run_after_ms, kind ON runs
WHEN (NEW.job_id, NEW.scheduled_for_ms, NEW.kind) IS NOT (OLD.job_id, OLD.scheduled_for_ms, OLD.kind)
BEGIN INSERT INTO seen_wrongs VALUES ('I2', NEW.run_id, 'a run became another one', seen_ms()); END;
CREATE TRIGGER seen_insert AFTER INSERT ON runs
BEGIN INSERT INTO seen_created VALUES (NEW.run_id, NEW.job_id, NEW.scheduled_for_ms, NEW.kind,
    seen_ms()); END;
CREATE TRIGGER seen_delete AFTER DELETE ON runs
BEGIN
    INSERT INTO seen_withdrawn VALUES (OLD.run_id, seen_ms());
    INSERT INTO seen_wrongs SELECT 'I11', OLD.run_id, 'a run that had begun or ended vanished', seen_ms()
    WHERE OLD.finished_ms IS NOT NULL OR OLD.attempt > 0 OR OLD.kind <> 'tick'
        OR EXISTS (SELECT 1 FROM leases AS l WHERE l.run_id = OLD.run_id);
END;
CREATE TRIGGER seen_attempt_update AFTER UPDATE ON attempts
BEGIN INSERT INTO seen_wrongs VALUES ('I12', NEW.run_id, 'the past of an attempt was rewritten', seen_ms()); END;
CREATE TRIGGER seen_attempt_delete AFTER DELETE ON attempts
BEGIN INSERT INTO seen_wrongs VALUES ('I12', OLD.run_id, 'an attempt vanished', seen_ms()); END;
CREATE TRIGGER seen_term AFTER UPDATE OF term ON shard_terms WHEN NEW.term <= OLD.term
BEGIN INSERT INTO seen_wrongs VALUES ('I9', NULL, 'a term did not rise', seen_ms()); END;
CREATE TRIGGER seen_claim AFTER INSERT ON leases
BEGIN INSERT INTO seen_claims VALUES (NEW.run_id, NEW.attempt, NEW.node_id, seen_ms(), db_now_ms()); END;
CREATE TRIGGER seen_retake AFTER UPDATE OF node_id ON leases WHEN NEW.node_id IS NOT NULL
BEGIN
    INSERT INTO seen_claims VALUES (NEW.run_id, NEW.attempt, NEW.node_id, seen_ms(), db_now_ms());
    INSERT INTO seen_wrongs SELECT 'I9', NEW.run_id, 'a run was taken from ' || OLD.node_id, seen_ms()
    WHERE OLD.node_id IS NOT NULL AND OLD.node_id <> NEW.node_id;
END;
CREATE TRIGGER seen_cancel AFTER UPDATE OF cancel ON leases WHEN NEW.cancel IS NOT NULL AND OLD.cancel IS NULL
BEGIN INSERT INTO seen_cancels VALUES (NEW.run_id, NEW.attempt, NEW.cancel, seen_ms(), db_now_ms()); END;
"""

_TABLES: Final = (
    "jobs", "job_revisions", "runs", "ledger", "gaps", "attempts", "events", "queue", "upcoming", "leases", "cursors",
    "seen_finals", "seen_wrongs", "seen_created", "seen_withdrawn", "seen_claims", "seen_replays", "seen_cancels",
    "seen_attempts", "seen_burials", "seen_queued", "seen_parked", "seen_caps",
)  # fmt: skip


class Ending(NamedTuple):
    at_s: float
    how: str
    at_us: int  # of the database


@dataclass(frozen=True, slots=True)
class Trouble:
    """A fault, for as long as it lasted. `slot` None: everybody's. `often`: it may hit the same run again and again."""

    kind: str
    slot: str | None
    from_s: float
    to_s: float
    what: str
    often: bool = False


@dataclass(slots=True)
class Begun:
    """An attempt as its handler saw it."""

    stay: Stay
    at_us: int  # by the database's clock
    ending: Ending | None = None

    @property
    def key(self) -> tuple[int, int]:
        return self.stay.run_id, self.stay.attempt

    def ended_s(self, otherwise: float) -> float:
        return otherwise if self.ending is None else self.ending.at_s


@dataclass
class Record:
    clock: SimulatedClock  # the database's
    begun: list[Begun] = field(default_factory=list)
    troubles: list[Trouble] = field(default_factory=list)
    said: list[tuple[float, str]] = field(default_factory=list)  # for the story
    shifts: list[tuple[float, int]] = field(default_factory=lambda: [(0.0, 0)])  # of the database's clock
    samples: list[tuple[float, str]] = field(default_factory=list)  # what was wrong while it ran
    waiting: list[tuple[float, dict[tuple[str, str], int]]] = field(default_factory=list)  # (pool, tenant): open runs
    tables: dict[str, list[Row]] = field(default_factory=dict)
    asked_to_cancel: set[int] = field(default_factory=set)
    node_faults: list[tuple[str, BaseException]] = field(default_factory=list)
    healed_s: float = 0.0
    ended_s: float = 0.0
    ended_ms: int = 0  # by the database's clock
    unsettled: str | None = None
    busy: tuple[float, int] | None = None  # when somebody asked again and again, and how often in a moment
    _running: dict[tuple[str, int, int], Begun] = field(default_factory=dict)

    def say(self, at_s: float, what: str) -> None:
        self.said.append((at_s, what))

    def began(self, stay: Stay) -> None:
        each = Begun(stay, self.clock.now_us())
        self.begun.append(each)
        self._running[stay.node, stay.run_id, stay.attempt] = each

    def ended(self, stay: Stay, at_s: float, how: str) -> None:
        self._running.pop((stay.node, stay.run_id, stay.attempt)).ending = Ending(at_s, how, self.clock.now_us())

    def shift(self, at_s: float, shift_ms: int) -> None:
        self.clock.shift_ms = shift_ms
        self.shifts.append((at_s, shift_ms))

    def shifts_around(self, at_s: float, back_s: float) -> list[int]:
        """How the database's clock was set in the last so many seconds, the latest last."""
        first = bisect_right(self.shifts, (at_s - back_s, 1 << 60)) - 1
        last = bisect_right(self.shifts, (at_s, 1 << 60))
        return [shift for _, shift in self.shifts[max(first, 0) : last]]

    def read(self, connection: sqlite3.Connection) -> None:
        for table in _TABLES:
            order = "rowid" if table != "cursors" else "job_id"
            self.tables[table] = [dict(row) for row in connection.execute(f"SELECT * FROM {table} ORDER BY {order}")]
