"""What must hold of work, read from the tables and from what workers were told, and judged without the policies.

`Inspector` looks after every step of a story; `judge_the_past` looks at the end, when every run has its answer.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Final

from tests.worker.shop import Job, Shop

LEFT_OUT: Final = ("skipped", "expired", "merged")
Row = dict[str, Any]
_TABLES: Final = (
    "SELECT * FROM runs", "SELECT * FROM queue", "SELECT * FROM leases",
    "SELECT run_id, count(*) AS times FROM upcoming GROUP BY run_id", "SELECT node_id FROM workers",
)  # fmt: skip


@dataclass
class Rules:
    """The limits of a story: they do not change while it goes on."""

    caps: dict[str, int] = field(default_factory=dict)
    rates: dict[str, tuple[float, int]] = field(default_factory=dict)  # per second, burst
    slots: dict[str, int] = field(default_factory=dict)
    per_tenant: dict[str, int] = field(default_factory=dict)  # by pool
    per_type: dict[tuple[str, str], int] = field(default_factory=dict)


@dataclass
class Tables:
    runs: dict[int, Row]
    queue: dict[int, Row]
    leases: dict[int, Row]
    upcoming: dict[int, int]
    workers: set[str]

    @classmethod
    async def read(cls, shop: Shop) -> "Tables":
        runs, queue, leases, coming, workers = await shop.fetch(*_TABLES)
        return cls(
            {row["run_id"]: row for row in runs},
            {row["run_id"]: row for row in queue},
            {row["run_id"]: row for row in leases},
            {row["run_id"]: row["times"] for row in coming},
            {row["node_id"] for row in workers},
        )


@dataclass
class Inspector:
    shop: Shop
    jobs: dict[str, Job]
    rules: Rules
    paused: set[str] = field(default_factory=set)  # tenants
    claimed: dict[int, list[int]] = field(default_factory=lambda: defaultdict(list))  # when each run was claimed
    starts: dict[str, list[int]] = field(default_factory=lambda: defaultdict(list))  # of tenants with a rate

    async def look(self) -> Tables:
        tables = await Tables.read(self.shop)
        self.conserved(tables)
        self.exclusive(tables)
        self.within_limits(tables)
        return tables

    def conserved(self, tables: Tables) -> None:
        """Every run is at one place, and has an answer if it is at none."""
        for run_id, run in tables.runs.items():
            lease = tables.leases.get(run_id)
            node_id = None if lease is None else lease["node_id"]
            held = node_id is not None
            places = int(held) + (run_id in tables.queue) + tables.upcoming.get(run_id, 0)
            assert places == (run["finished_ms"] is None), (run, lease, tables.queue.get(run_id), places)
            assert lease is None or run["finished_ms"] is None, run
            assert not held or node_id in tables.workers, lease  # otherwise nobody would ever miss it
            if run_id in tables.queue:
                assert tables.queue[run_id]["leased"] == (lease is not None), (run, lease)

    def exclusive(self, tables: Tables) -> None:
        """S3-43, S2-45: never more holders of a key than it may have."""
        holders: dict[str, list[Row]] = defaultdict(list)
        for lease in tables.leases.values():
            if lease["claim_key"] is not None:
                holders[lease["claim_key"]].append(lease)
        for key, some in holders.items():
            most = max(self.jobs[lease["job_id"]].max_running for lease in some)
            assert len(some) <= max(1, most), (key, some)

    def within_limits(self, tables: Tables) -> None:
        """S3-54 … S3-57: caps and quotas are hard."""
        held = [lease for lease in tables.leases.values() if lease["node_id"] is not None]
        for limits, counted in (
            (self.rules.caps, Counter(lease["tenant"] for lease in held)),
            (self.rules.slots, Counter(lease["pool"] for lease in held)),
            (self.rules.per_type, Counter((lease["pool"], lease["type"]) for lease in held)),
        ):
            for name, most in limits.items():
                assert counted[name] <= most, (name, most, held)
        for (pool, tenant), count in Counter((lease["pool"], lease["tenant"]) for lease in held).items():
            assert count <= self.rules.per_tenant.get(pool, count), (pool, tenant)

    def started(self, before: Tables, after: Tables, run_id: int, lane_room: int) -> None:
        """What holds of one run that a claim returned."""
        lease, now = after.leases[run_id], self.shop.now
        job = self.jobs[lease["job_id"]]
        self.claimed[run_id].append(now)
        assert job.tenant not in self.paused
        assert lease["due_ms"] >= lease["scheduled_for_ms"]
        if job.tenant in self.rules.rates:
            assert lease["due_ms"] <= now
            self._in_time(job.tenant, now)
        fresh = lease["attempt"] == 1
        if fresh and lease["deadline_ms"] is not None:
            assert now <= lease["deadline_ms"]
        if job.overlap == "queue" and fresh:
            for other in after.queue.values():
                if other["job_id"] == job.job_id and other["run_id"] in before.queue:
                    assert other["scheduled_for_ms"] >= lease["scheduled_for_ms"], (other, lease)
        assert lease["lane"] == "live" or lane_room > 0

    def _in_time(self, tenant: str, now: int) -> None:
        """In any window of t seconds at most burst + rate x t starts."""
        starts = self.starts[tenant]
        starts.append(now)
        rate, burst = self.rules.rates[tenant]
        for back, then in enumerate(reversed(starts), 1):
            assert (now - then) / 1000 * rate >= back - burst - 1e-6, (tenant, starts)

    def nothing_idle(self, tables: Tables, pool: str, room: int, catchup_room: int) -> None:
        """Work conservation: with a free slot left, nothing that could start stays in the queue of the pool."""
        if room <= 0:
            return
        for row in tables.queue.values():
            if row["pool"] == pool and (row["lane"] == "live" or catchup_room > 0):
                assert self._why_not(tables, row) is not None, (row, self.shop.now)

    def _why_not(self, tables: Tables, row: Row) -> str | None:
        job, now = self.jobs[row["job_id"]], self.shop.now
        held = [lease for lease in tables.leases.values() if lease["node_id"] is not None]
        if row["due_ms"] > now:
            return "early"  # it may be claimed early, but nobody has to
        if job.tenant in self.paused:
            return "paused"
        if sum(lease["tenant"] == job.tenant for lease in held) >= self.rules.caps.get(job.tenant, 10**9):
            return "cap"
        here = [lease for lease in held if lease["pool"] == row["pool"]]
        if len(here) >= self.rules.slots.get(row["pool"], 10**9):
            return "slots"
        old = sum(lease["lane"] == "catchup" for lease in here)
        if row["lane"] == "catchup" and row["pool"] in self.rules.slots and old >= self.rules.slots[row["pool"]] - 1:
            return "the slot that is left to live work"  # of two or three; a worker has counted its own already
        if sum(lease["tenant"] == job.tenant for lease in here) >= self.rules.per_tenant.get(row["pool"], 10**9):
            return "quota of the tenant"
        if sum(lease["type"] == job.type for lease in here) >= self.rules.per_type.get((row["pool"], job.type), 10**9):
            return "quota of the type"
        if not row["leased"] and row["claim_key"] is not None:
            holders = sum(lease["claim_key"] == row["claim_key"] for lease in tables.leases.values())
            if holders >= row["max_running"]:
                return "key"
            if job.key is not None and _gives_way(tables, row, holders, now):
                return "turn"
            if job.overlap == "queue" and any(
                other["job_id"] == job.job_id
                and (other["scheduled_for_ms"], other["run_id"]) < (row["scheduled_for_ms"], row["run_id"])
                for other in tables.queue.values()
            ):
                return "order"
        return self._rate(job.tenant, now)

    def _rate(self, tenant: str, now: int) -> str | None:
        if tenant not in self.rules.rates:
            return None
        rate, burst = self.rules.rates[tenant]
        for back, then in enumerate(reversed(self.starts[tenant]), 2):
            if (now - then) / 1000 * rate < back - burst - 1e-6:
                return "rate"
        return None

    def judge_the_past(self, tables: Tables) -> None:
        by_job: dict[str, list[Row]] = defaultdict(list)
        for run in sorted(tables.runs.values(), key=lambda row: (row["scheduled_for_ms"], row["run_id"])):
            assert run["finished_ms"] is not None, run
            by_job[run["job_id"]].append(run)
        for job_id, runs in by_job.items():
            self._stories(self.jobs[job_id], runs)
        self._merged(tables)

    def _stories(self, job: Job, runs: list[Row]) -> None:
        ticks = [run for run in runs if run["kind"] == "tick" and run["lane"] == "live"]
        for at, run in enumerate(ticks):
            if job.overlap == "skip":
                expected = _overlapped(ticks[:at], run["run_after_ms"])
                assert (run["state"] == "skipped") == expected, (run, ticks)
            else:
                assert run["state"] != "skipped", run
        if job.overlap in ("collapse", "cancel_previous"):
            self._newest_first(job, ticks)
        for run in runs:
            if run["kind"] != "tick" or run["lane"] != "live":
                assert run["state"] not in ("skipped", "expired") or job.deadline_ms is not None, run
            assert run["state"] != "merged" or job.overlap == "collapse", run

    def _newest_first(self, job: Job, ticks: list[Row]) -> None:
        """A tick that waits gives way to the next one exactly when that is due, unless it was too late by then."""
        for run, following in pairwise(ticks):
            claimed = self.claimed.get(run["run_id"])
            there = max(following["run_after_ms"], following["created_ms"])  # it may have been planned late
            if claimed:
                assert claimed[0] <= there if there == following["created_ms"] else claimed[0] < there, (run, following)
            elif run["state"] == "expired":
                assert job.deadline_ms is not None
                assert run["scheduled_for_ms"] + job.deadline_ms < there, (run, following)
            else:
                assert run["state"] == ("merged" if job.overlap == "collapse" else "cancelled"), run
                assert run["finished_ms"] == following["run_after_ms"], (run, following)

    def _merged(self, tables: Tables) -> None:
        """A run that stands for others says how many, and from when to when."""
        into: dict[int, list[Row]] = defaultdict(list)
        for run in tables.runs.values():
            assert (run["covered_by"] is not None) == (run["state"] == "merged"), run
            if run["covered_by"] is not None:
                into[run["covered_by"]].append(run)
        for run_id, run in tables.runs.items():
            ticks = list(_ticks(run_id, into))
            assert run["covers"] == len(ticks) + 1, run
            if ticks:
                first = min((tables.runs[tick] for tick in ticks), key=lambda tick: tick["scheduled_for_ms"])
                others = [
                    (each["scheduled_for_ms"], (each["created_ms"], each["run_id"]))
                    for each in tables.runs.values()
                    if each["job_id"] == run["job_id"] and each["kind"] != "manual"
                ]
                begins = periods(first["scheduled_for_ms"], (first["created_ms"], first["run_id"]), others)
                assert run["window_from_ms"] in begins, run
                assert run["window_to_ms"] == run["scheduled_for_ms"], run


def periods(at_ms: int, made: tuple[int, int], others: Iterable[tuple[int, tuple[int, int]]]) -> set[int]:
    """Where the period of a tick may begin: at the tick before it. Ticks that were planned later than this one may have
    been there or not. `others` are the ticks of the job and when they were planned: an instant and a number, since much
    can happen in a millisecond."""
    before = sorted((planned, tick) for tick, planned in others if tick < at_ms)
    known = max((tick for planned, tick in before if planned <= made), default=at_ms)
    later = [tick for planned, tick in before if planned > made]
    return {known, *(tick for tick in later if tick > known or known == at_ms)}


def _ticks(run_id: int, into: dict[int, list[Row]]) -> list[int]:
    found = []
    for run in into.get(run_id, ()):
        found += [run["run_id"], *_ticks(run["run_id"], into)]
    return found


def _overlapped(before: list[Row], due_ms: int) -> bool:
    """Whether the last run before that was not left out by then was not final at an instant."""
    for run in reversed(before):
        if run["state"] in LEFT_OUT and run["finished_ms"] <= due_ms:
            continue
        return bool(run["finished_ms"] > due_ms)
    return False


def _gives_way(tables: Tables, row: Row, holders: int, now: int) -> bool:
    """A shared key is left to others: for 2 s at most to one in another pool (who stands behind one that does so in its
    own pool was not called), or until those end who keep one out that is older, and wants the key with fewer."""
    others = [
        each
        for each in tables.queue.values()
        if each["run_id"] != row["run_id"] and each["claim_key"] == row["claim_key"] and not each["leased"]
    ]
    if row["gate"] == "key":
        ahead = [each for each in others if each["pool"] == row["pool"] and _stands(each) < _stands(row)]
        if any(_is_told_to_wait(each, now) for each in (row, *ahead)):
            return any(each["pool"] != row["pool"] for each in others)
    return any(
        each["gate"] == "key"
        and 0 < each["max_running"] <= holders
        and each["max_running"] < row["max_running"]
        and _stands(each) < _stands(row)
        for each in others
    )


def _stands(row: Row) -> tuple[int, int]:
    return row["scheduled_for_ms"], row["run_id"]


def _is_told_to_wait(row: Row, now: int) -> bool:
    return row["gate"] == "key" and row["look_ms"] is not None and now < row["look_ms"] <= now + 2_000
