"""Claim runs: read the facts under the lock of the pool, ask the pure policy, write what it says.

One claim at a time decides for a pool (on PostgreSQL an advisory lock until the end of the transaction; SQLite has one
writer anyway), so that caps, lanes and order need no counters. Ends of runs do not wait for that lock. Exclusivity does
not rest on it either: the unique key on leases decides, across pools too. Whoever parks behind a lease has locked its
row before, so the end of that lease will see the parked run. Leases are locked in the order of their runs, once in a
transaction: whoever has locked some reads no second batch of candidates, but says that there is more. Whoever waits for
the lock of the pool has locked nothing yet: somebody who stands still with that lock keeps the others from claiming,
and not from renewing their leases.

A claim carries an id of its client: asked again after a lost reply, it returns the same rows. One that found nothing
is remembered only for who asks for that (`is_kept`): a worker of ours gives back what it holds and never heard of.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final, NamedTuple, TypeAlias

from fleetcron.model.queued import Choice, Facts, Limits, Queued, queued
from fleetcron.model.rules import Lane
from fleetcron.model.run import RunKind
from fleetcron.steps import step
from fleetcron.store.ahead import earlier_of, holders_of, previous_of, waiting_of
from fleetcron.store.closing import close_and_free, is_shared, release_keys
from fleetcron.store.counting import counted, limits_of, pull
from fleetcron.store.engine import Engine, Row, Script
from fleetcron.store.handlers import Unknown, park_unknown, pull_known
from fleetcron.store.rivals import rivals_of
from fleetcron.store.rows import ids, rows, texts
from fleetcron.store.upstreams import let_follow, upstream_facts
from fleetcron.store.written import Refused, Written

_PASSES: Final = 8  # how often one transaction reads the queue again because what it read had to wait
_TRIES: Final = 5  # how often a claim that somebody crowded begins anew at once
_FOR_EVER: Final = 1 << 62
PAGE: Final = 2_000  # parked runs that one claim touches: the whole pool waits for it
_SPARE: Final = 8  # candidates beyond the free slots, for those that have to wait


class Claimed(NamedTuple):
    """A run that is held now, for its next attempt."""

    run_id: int
    attempt: int
    job_id: str
    tenant: str
    name: str
    lane: Lane
    kind: RunKind
    due_ms: int
    scheduled_for_ms: int
    deadline_ms: int | None
    failures: int
    losses: int
    window_ms: tuple[int, int] | None
    covers: int
    revision: int  # of the job when it was claimed: what the attempt does, and under which rules
    payload: str | None  # JSON; None: the job's
    batch: str  # of the claim that got it


@dataclass(frozen=True, slots=True)
class Claim:
    """What a worker asks for. `room` are its free slots, `catchup_room` those that catch-up may take."""

    node_id: str
    batch: str
    pool: str
    room: int
    catchup_room: int
    lacks: tuple[str, ...] = ()  # handlers that it has not
    learning: tuple[str, ...] = ()  # handlers of which it will know in a moment: no more runs of these until then
    early_room: int | None = None  # how many may be such that are not due yet; None: all
    catchup_first: bool = False  # it is the turn of catch-up, in a pool with one slot
    catchup_turn: bool = False  # what it claimed last was live; for a pool with one slot in the whole fleet
    is_kept: bool = False  # its id is written down also if it finds nothing: its client knows only what it was answered

    @property
    def passes_by(self) -> tuple[str, ...]:
        return (*self.lacks, *self.learning)


@dataclass(frozen=True, slots=True)
class Taken:
    now_ms: int
    runs: tuple[Claimed, ...] = ()
    parked: int = 0
    closed: int = 0
    cancels: dict[int, str] = field(default_factory=dict)  # held runs that were asked to stop
    more: bool = False  # the transaction was long enough, and there is more to look at


Choose: TypeAlias = Callable[[Facts], Choice]


class Claims:
    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    async def claim(self, wish: Claim, choose: Choose) -> Written[Taken]:
        """Refused if the worker was declared lost: it holds nothing any more."""

        def script() -> Script[Taken | Refused]:
            step("claim.begin")
            yield "claims_lock", {"pool": wish.pool}
            # after the lock: it may have taken a while to get it
            known = yield "claims_begin", {"node_id": wish.node_id, "pool": wish.pool}
            if not known:
                return Refused("this worker was declared lost")
            [begin] = known
            # over HTTP a worker may claim for several pools at once, and repeat any of them
            if begin["batch"] == wish.batch or wish.is_kept:
                held = yield from _held(wish)
                if held or begin["batch"] == wish.batch:
                    return Taken(begin["now_ms"], held)
            taken = Taken(begin["now_ms"])
            if begin["waiting"] or begin["woken"] or begin["unknown"]:
                taken = yield from _take(wish, choose, begin)
            elif not wish.is_kept:
                return taken  # most claims of an idle fleet: nothing is read or written for them
            # last: from here to the end of the transaction the worker's renewals wait for this one
            yield "workers_set_batch", {"node_id": wish.node_id, "batch": wish.batch}
            step("claim.written")
            return taken

        for _ in range(_TRIES):
            with suppress(_Crowded):
                return await self._engine.write(script)
        return await self._engine.write(_nothing)


class _Crowded(Exception):
    """Roll back: somebody has come to hold a shared key since it was decided who may hold it beside whom. The unique
    slots do not tell: jobs of one key may differ in how many they bear, and a low slot may be free again."""


def _nothing() -> Script[Taken | Refused]:
    """Let the caller ask again."""
    [facts] = yield "fleet_now", {}
    return Taken(facts["now_ms"], more=True)


@dataclass(slots=True)
class _Room:
    """What is left of the free slots while the passes of a claim go on."""

    all: int
    catchup: int
    early: int | None

    def fill(self, runs: Sequence[Queued], now_ms: int) -> None:
        self.all -= len(runs)
        self.catchup -= sum(run.lane == "catchup" for run in runs)
        if self.early is not None:
            self.early -= sum(run.due_ms > now_ms for run in runs)


def _take(wish: Claim, choose: Choose, begin: Row) -> Script[Taken]:
    now_ms: int = begin["now_ms"]
    goes_on = False  # there was a whole page of something, and the next claim has the next one
    if begin["woken"]:  # whoever has to wait again is looked at later than now: the pages come to an end
        goes_on = len((yield "queue_wake", {"pool": wish.pool, "now_ms": now_ms, "most": PAGE})) == PAGE
    is_pulled = False
    if begin["unknown"] and wish.room > 0:
        is_pulled = yield from pull_known(wish.pool, wish.passes_by, wish.room + _SPARE, wish.catchup_room)
    unknown = (yield from park_unknown(wish.node_id, wish.pool, wish.lacks, now_ms)) if wish.lacks else Unknown()
    limits, is_counted = (yield from limits_of(wish.pool, now_ms)) if begin["limited"] else (Limits(), False)
    room = _Room(wish.room, wish.catchup_room, wish.early_room)
    claimed = parked = closed = 0
    cancels: dict[int, str] = {}
    opened: set[str] = set()
    reached: dict[tuple[Lane, int], int] = {}
    more, ended = False, unknown.ended
    for _ in range(_PASSES):
        candidates, is_all = yield from _candidates(wish, room, now_ms)
        candidates += ended  # who lacks their handler does not find them
        ended = ()
        choice, done, locked = Choice(), _Done(), False
        if candidates:
            if is_counted:
                limits = yield from counted(limits, {run.tenant for run in candidates})
            facts = yield from _facts(wish, candidates, room, limits, now_ms)
            choice = choose(facts)
            done = yield from _write(wish, facts, choice, now_ms)
            mine = [*done.held, *(run for run in candidates if run.leased)]
            locked = bool(facts.holders or facts.of_jobs) or any(run.claim_key is not None for run in mine)
        room.fill(done.held, now_ms)
        claimed += len(done.held)
        parked += len(choice.parks)
        closed += len(choice.closes)
        cancels |= choice.cancels
        opened |= done.opened
        for queue, rank in choice.reached.items():
            reached[queue] = max(rank, reached.get(queue, rank))
        passed = bool(choice.parks or choice.closes or (done.held and room.all > 0))
        more = wish.pool in done.opened or choice.undecided or len(done.held) < len(choice.claims)
        more |= passed and not is_all  # what stood behind those that had to wait comes next
        if not more and is_counted:
            more = yield from pull(wish.pool, limits, room.all, room.catchup, now_ms)
        if not more or locked:
            break
        if wish.pool in done.opened:  # those who wait for a shared key were called
            yield "queue_wake", {"pool": wish.pool, "now_ms": now_ms, "most": PAGE}
    if reached:  # once, and in the order of all: whoever queues runs meanwhile writes the same rows
        yield "shares_write", {"rows": _share_rows(wish.pool, reached)}
    if closed or opened - {wish.pool}:
        yield "notify", {"topic": "work"}
    if cancels:
        yield "notify", {"topic": "cancels"}
    runs = (yield from _held(wish)) if claimed else ()
    more |= goes_on or unknown.more or (is_pulled and room.all > 0)
    return Taken(now_ms, runs, parked, closed, cancels, more)


def _candidates(wish: Claim, room: _Room, now_ms: int) -> Script[tuple[list[Queued], bool]]:
    """The heads of all queues of the pool, and whether that is everything that waits for nothing."""
    most = max(room.all, 1) + _SPARE
    until_ms = _FOR_EVER if room.early is None or room.early > 0 else now_ms
    asked = {"pool": wish.pool, "lacks": texts(wish.passes_by), "most": most, "now_ms": now_ms, "until_ms": until_ms}
    found = [queued(row, row["ended"]) for row in (yield "queue_heads", asked)]
    heads = Counter((run.lane, run.priority, run.due_ms > now_ms) for run in found)
    return found, all(number < most for number in heads.values())


def _facts(wish: Claim, candidates: Sequence[Queued], room: _Room, limits: Limits, now_ms: int) -> Script[Facts]:
    holders, of_jobs = yield from holders_of([run for run in candidates if run.claim_key is not None])
    rivals = yield from rivals_of(wish.pool, candidates, holders, now_ms)
    previous = yield from previous_of([run for run in candidates if run.overlap == "skip" and run.is_live_tick])
    earlier = yield from earlier_of([run for run in candidates if run.overlap == "queue" and not run.leased])
    waiting = yield from waiting_of([run for run in candidates if run.overlap in ("collapse", "cancel_previous")])
    upstream = yield from upstream_facts(candidates)
    return Facts(
        now_ms=now_ms,
        pool=wish.pool,
        room=room.all,
        catchup_room=room.catchup,
        candidates=candidates,
        holders=holders,
        of_jobs=of_jobs,
        rivals=rivals,
        previous=previous,
        earlier=earlier,
        waiting=waiting,
        upstream=upstream,
        limits=limits,
        early_room=room.early,
        catchup_first=wish.catchup_first,
        catchup_turn=wish.catchup_turn,
    )


@dataclass(slots=True)
class _Done:
    held: list[Queued] = field(default_factory=list)
    opened: set[str] = field(default_factory=set)  # pools that have more to look at


def _write(wish: Claim, facts: Facts, choice: Choice, now_ms: int) -> Script[_Done]:
    done = _Done()
    if choice.parks:
        yield "queue_park", {"rows": rows(each._asdict() for each in choice.parks), "now_ms": now_ms}
    if choice.closes:
        free = yield from _end_resting(facts, choice)
        _, done.opened = yield from close_and_free(choice.closes, now_ms)
        done.opened |= yield from release_keys(free, most=1, now_ms=now_ms)
    if choice.next_us:
        yield "rates_write", {"rows": rows({"tenant": t, "next_us": us} for t, us in choice.next_us.items())}
    if choice.claims:
        done.held = yield from _hold(wish, facts, choice, now_ms)
    if choice.cancels:
        asked = rows({"run_id": run_id, "reason": reason} for run_id, reason in choice.cancels.items())
        yield "leases_ask", {"rows": asked}
    done.opened |= yield from _pass_on(facts, choice, now_ms)
    if facts.upstream:
        done.opened |= yield from let_follow(facts, choice)
    return done


def _end_resting(facts: Facts, choice: Choice) -> Script[list[str]]:
    """Runs that are closed between two attempts give their keys back. Those that nobody takes here: whoever ends a run
    of its job may want another key than that one has."""
    known = [*facts.holders.values(), *facts.of_jobs.values()]
    resting = {each.run_id: each.claim_key for some in known for each in some if each.node_id is None}
    resting |= {run.run_id: run.claim_key for run in facts.candidates if run.leased}
    ended = sorted(resting.keys() & {each.run_id for each in choice.closes})
    if ended:
        yield "upcoming_delete_resting", {"ids": ids(ended)}
        yield "leases_delete", {"ids": ids(ended)}
    claimed = {run_id for run_id, _ in choice.claims}
    taken = {run.claim_key for run in facts.candidates if run.run_id in claimed}
    return sorted({key for run_id in ended if (key := resting[run_id]) is not None and key not in taken})


def _pass_on(facts: Facts, choice: Choice, now_ms: int) -> Script[set[str]]:
    """Somebody was let go on because a key is free, and has to wait for something else now; or the key is shared, and
    the next one may hold it beside more others: beside whoever has it now, too. Then it is the turn of the next. The
    pools that have more. Whoever gave way to an older one is in nobody's way: those behind it are younger still."""
    known = {run.run_id: run for run in facts.candidates}
    free, shared = set[str](), dict[tuple[str, str, str, int], tuple[int, int]]()
    parked = [(known[park.run_id], park.gate) for park in choice.parks if park.run_id not in choice.gave_way]
    several = [(run, "key") for run_id, _ in choice.claims if (run := known[run_id]).max_running > 1]
    for run, gate in (*parked, *several):
        if run.claim_key is None or run.leased:
            continue
        if gate == "former" and run.claim_key.startswith("j:"):
            continue  # whoever wants that key is of the same job, and waits for the same
        if gate != "key":
            free.add(run.claim_key)
        elif is_shared(run.claim_key):
            place = run.claim_key, run.pool, run.lane, run.priority
            mine = run.scheduled_for_ms, run.run_id
            shared[place] = min(shared.get(place, mine), mine)  # whoever waits between two that were looked at, too
    opened = yield from release_keys(sorted(free), most=1, now_ms=now_ms)
    if shared:
        held = Counter(known[run_id].claim_key for run_id, _ in choice.claims if not known[run_id].leased)
        held.update({key: len(some) for key, some in facts.holders.items()})
        following = rows(
            {"key": key, "pool": pool, "lane": lane, "priority": priority, "held": held[key], "after_ms": at_ms,
             "after_id": run_id}
            for (key, pool, lane, priority), (at_ms, run_id) in sorted(shared.items())
        )  # fmt: skip
        looked_at = ids(park.run_id for park in choice.parks)
        freed = yield "queue_release_next", {"rows": following, "parked": looked_at}
        opened |= {row["pool"] for row in freed}
    return opened


def _hold(wish: Claim, facts: Facts, choice: Choice, now_ms: int) -> Script[list[Queued]]:
    known = {run.run_id: run for run in facts.candidates}
    call = {"node_id": wish.node_id, "batch": wish.batch, "now_ms": now_ms}
    fresh = [(run_id, slot) for run_id, slot in choice.claims if not known[run_id].leased]
    rested = [run_id for run_id, _ in choice.claims if known[run_id].leased]
    held: list[int] = []
    if fresh:
        text = rows({"run_id": run_id, "slot": slot} for run_id, slot in fresh)
        held += [row["run_id"] for row in (yield "leases_insert", call | {"rows": text})]
        yield from _insist_on_who_was_seen(facts, [known[run_id] for run_id in held])
    if rested:
        again = [row["run_id"] for row in (yield "leases_retake", call | {"ids": ids(rested)})]
        yield "queue_delete", {"ids": ids(again)}
        held += again
    return [known[run_id] for run_id in held]


def _insist_on_who_was_seen(facts: Facts, held: Sequence[Queued]) -> Script[None]:
    """Counted after the insert, that is enough: who takes a higher slot has locked the leases below, or made them."""
    seen = Counter(run.claim_key for run in held if run.claim_key is not None and is_shared(run.claim_key))
    if not seen:
        return
    seen.update({key: len(facts.holders.get(key, ())) for key in seen})
    for row in (yield "leases_crowds", {"keys": texts(sorted(seen))}):
        if row["held"] > seen[row["claim_key"]]:
            raise _Crowded


def _share_rows(pool: str, reached: Mapping[tuple[Lane, int], int]) -> str:
    return rows(
        {"pool": pool, "lane": lane, "priority": priority, "tenant": "", "rank": rank}
        for (lane, priority), rank in sorted(reached.items())
    )


def _held(wish: Claim) -> Script[tuple[Claimed, ...]]:
    found = yield "leases_of_batch", {"node_id": wish.node_id, "batch": wish.batch}
    return tuple(_claimed(row) for row in found)


def _claimed(row: Row) -> Claimed:
    window = None if row["window_from_ms"] is None else (row["window_from_ms"], row["window_to_ms"])
    return Claimed(
        row["run_id"], row["attempt"], str(row["job_id"]), row["tenant"], row["name"], row["lane"], row["kind"],
        row["due_ms"], row["scheduled_for_ms"], row["deadline_ms"], row["failures"], row["losses"], window,
        row["covers"], row["revision"], row["payload"], row["batch"],
    )  # fmt: skip
