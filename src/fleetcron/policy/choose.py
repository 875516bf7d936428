"""What a worker may start now, what has to wait and for what, and what will not start at all. Pure.

The order of the questions: will it never start because its job was ended, because of other ticks, or because it is too
late; do its
upstream jobs allow it; does it wait for other ticks; has anybody held it back; is there a slot and a share of the lane;
then caps, keys and, last, the rate (so that nobody pays for a start that something else prevented).
"""

from collections import Counter
from collections.abc import Iterator
from typing import Final

from fleetcron.model.queued import Choice, Close, Facts, Holder, Park, Queued, too_late
from fleetcron.model.states import RunState
from fleetcron.policy import depends, overlap
from fleetcron.policy.fairness import order
from fleetcron.policy.turns import gives_way

LEFT_OUT: Final = (RunState.SKIPPED, RunState.EXPIRED, RunState.MERGED)


def choose(facts: Facts) -> Choice:
    return _Chooser(facts).choice()


class _Chooser:
    def __init__(self, facts: Facts) -> None:
        self.facts = facts
        self.chosen = Choice()
        self.known = {run.run_id: run for run in facts.candidates}
        self.holders: dict[str, list[Holder]] = {key: list(some) for key, some in facts.holders.items()}
        self.of_jobs: dict[str, list[Holder]] = {job_id: list(some) for job_id, some in facts.of_jobs.items()}
        self.gone: set[int] = set()  # runs that left the queue while this was decided
        self.parked: set[int] = set()
        self.judged: set[int] = set()
        self.left_out: dict[int, int] = {}  # ticks that were closed here, and the instants of that
        self.undecided: set[int] = set()  # they are looked at again when the rest is written
        self.decided: set[int] = set()  # whether they start, wait or stay
        self.heirs: dict[int, int] = {}  # of runs that were closed here
        self.kept_free: set[int] = set()  # heirs that have a slot when they are read
        self.reserved_us: dict[str, int] = {}
        self.by_tenant: Counter[str] = Counter()
        self.by_tenant_here: Counter[str] = Counter()
        self.by_type_here: Counter[str] = Counter()
        here = 0
        for (pool, tenant, kind), held in facts.limits.held.items():
            self.by_tenant[tenant] += held
            if pool == facts.pool:
                here += held
                self.by_tenant_here[tenant] += held
                self.by_type_here[kind] += held
        slots = facts.limits.slots
        self.room = facts.room if slots is None else min(facts.room, slots - here)
        self.catchup_room = min(facts.catchup_room, facts.limits.free_for_catchup(facts.pool))
        self.early_room = self.room if facts.early_room is None else facts.early_room

    def choice(self) -> Choice:
        for run in self._order():
            self._judge(run)
            self._decide(run)
            if run.run_id in self.heirs:
                self._in_its_place(run, self.heirs[run.run_id])
        # the same facts would have the same answer: who asks again needs others
        self.chosen.undecided = bool((self.undecided or self.kept_free) and self.chosen.closes)
        return self.chosen

    def _decide(self, run: Queued) -> None:
        if run.run_id in self.decided or self._is_settled(run):
            return
        self.decided.add(run.run_id)
        park = self._waits(run)
        if self._is_settled(run):
            return
        park = park or self._held_back(run)
        if park is None:
            if not self._has_room(run):
                return  # it stays where it is: the next free slot is for it
            park = self._capped(run) or self._key_taken(run) or self._too_fast(run)
        if park is None:
            self._take(run)
        else:
            self._park(park)

    def _is_settled(self, run: Queued) -> bool:
        return run.run_id in self.gone or run.run_id in self.undecided

    def _in_its_place(self, closed: Queued, heir: int) -> None:
        """Whoever stands for a run that was closed has its turn now, not when its own place is reached. One that this
        claim has not read is looked at by the next: its slot is kept free until then."""
        if heir in self.known:
            self.known[heir] = self.known[heir]._replace(rank=min(closed.rank, self.known[heir].rank))
            self._judge(self.known[heir])
            self._decide(self.known[heir])
        elif heir not in self.kept_free and self._has_room(closed):
            self.kept_free.add(heir)
            self.room -= 1
            self.catchup_room -= closed.lane == "catchup"

    def _order(self) -> Iterator[Queued]:
        """Nobody takes a key early that somebody wants who is due, of whatever lane: a job whose runs end a moment
        before its next tick would never catch up."""
        now_ms = self.facts.now_ms
        catchup_first = self.facts.catchup_first or (self.facts.catchup_turn and self.facts.limits.slots == 1)
        wanted = {run.claim_key for run in self.facts.candidates if run.due_ms <= now_ms and not run.leased}
        waits = []
        for run in order(self.facts.candidates, now_ms, catchup_first=catchup_first):
            if run.due_ms > now_ms and run.claim_key is not None and run.claim_key in wanted:
                waits.append(run)
            else:
                yield run
        yield from waits

    def _judge(self, run: Queued) -> None:
        """Whether it will never start. The ticks before it come first, wherever they stand: it may hang on them."""
        chain = [run]
        while (before := self.facts.previous.get(chain[-1].run_id)) and before.run_id in self.known:
            chain.append(self.known[before.run_id])
        for each in reversed(chain):
            if each.run_id in self.judged:
                continue
            self.judged.add(each.run_id)
            if each.ended is not None:
                self._close(Close(each.run_id, RunState.CANCELLED, f"its job was {each.ended}"))
                continue
            closes = overlap.answers(each, self.facts, self.left_out, self.undecided)
            if closes is None:
                self.undecided.add(each.run_id)
            for close in closes or ():
                self._close(close)
            if each.run_id not in self.undecided:
                self._too_late(each)

    def _too_late(self, run: Queued) -> None:
        if run.deadline_ms is not None and self.facts.now_ms > run.deadline_ms and run.is_fresh:
            self._close(too_late(run.run_id, run.deadline_ms + 1))

    def _waits(self, run: Queued) -> Park | None:
        """For upstream jobs or for other ticks. A tick that may be skipped is looked at when it is due, whatever its
        upstream jobs do: until then nobody knows what it is."""
        if run.overlap == "skip" and (park := self._behind(run)):
            return park
        return self._upstream(run) or self._behind(run)

    def _upstream(self, run: Queued) -> Park | None:
        known = self.facts.upstream.get(run.run_id)
        if not known:
            return None
        match depends.verdict(known, self.facts.now_ms, run.deadline_ms, run.since_ms):
            case depends.SkipBecause(text):
                self._close(Close(run.run_id, RunState.SKIPPED, text))
            case depends.WaitFor(job_id, look_ms):
                return Park(run.run_id, "upstream", job_id, look_ms)
        return None

    def _behind(self, run: Queued) -> Park | None:
        if run.run_id in self.gone:
            return None
        holders = self.holders.get(run.claim_key or "", [])
        found = overlap.behind(run, self.facts, holders, self.gone, self._former(run))
        if found.undecided:
            self.undecided.add(run.run_id)
        if found.cancel is not None:
            self.chosen.cancels[found.cancel] = f"cancel_previous: run {run.run_id} takes its place"
        if found.close is not None:
            self._close(found.close)
            for some in (holders, self.of_jobs.get(run.job_id, [])):
                some[:] = [each for each in some if each.run_id != found.close.run_id]
        return found.park

    def _former(self, run: Queued) -> list[Holder]:
        """Runs of its job that hold another key than it wants: the job was edited while they ran."""
        return [each for each in self.of_jobs.get(run.job_id, ()) if each.claim_key != run.claim_key]

    def _has_room(self, run: Queued) -> bool:
        if self.room <= 0 or (run.lane == "catchup" and self.catchup_room <= 0):
            return False
        return run.due_ms <= self.facts.now_ms or self.early_room > 0

    def _held_back(self, run: Queued) -> Park | None:
        for control in self.facts.limits.controls:
            names = {"tenant": run.tenant, "type": run.type, "pool": run.pool}
            if names[control.scope] == control.name and not control.lets_start(run.run_id, run.job_id, run.overlap):
                return Park(run.run_id, "paused", f"{control.scope}:{control.name}", control.until_ms)
        return None

    def _capped(self, run: Queued) -> Park | None:
        limits, pool = self.facts.limits, self.facts.pool
        cap = limits.tenants.get(run.tenant)
        if cap and cap.max_in_flight is not None and self.by_tenant[run.tenant] >= cap.max_in_flight:
            return Park(run.run_id, "tenant", run.tenant)
        if limits.per_tenant is not None and self.by_tenant_here[run.tenant] >= limits.per_tenant:
            return Park(run.run_id, "quota_tenant", f"{pool}:{run.tenant}")
        quota = limits.per_type.get(run.type)
        if quota is not None and self.by_type_here[run.type] >= quota:
            return Park(run.run_id, "quota_type", f"{pool}:{run.type}")
        return None

    def _key_taken(self, run: Queued) -> Park | None:
        if run.claim_key is None or run.leased:
            return None
        holders = self.holders.get(run.claim_key, ())
        if len(holders) >= run.max_running:
            return Park(run.run_id, "key", run.claim_key)
        if len(holders) + len(self._former(run)) >= run.max_running:
            return overlap.behind_former(run, self.facts)
        park = gives_way(run, self.facts, holders)
        if park is not None:
            self.chosen.gave_way.add(run.run_id)
        return park

    def _too_fast(self, run: Queued) -> Park | None:
        """A start is counted at its instant, so nobody with a rate is claimed early: a run that comes later and is due
        before it would wait for nothing. Those that have to wait are looked at one by one, not all at once.
        """
        cap = self.facts.limits.tenants.get(run.tenant)
        if cap is None or cap.rate_per_s is None:
            return None
        if run.due_ms > self.facts.now_ms:
            return Park(run.run_id, "rate", run.tenant, run.due_ms)
        now_us = self.facts.now_ms * 1000
        known = self.chosen.next_us.get(run.tenant, self.facts.limits.next_us.get(run.tenant, 0))
        early_us = cap.earliest_us(known, now_us)
        if early_us > now_us:
            look_us = self.reserved_us.get(run.tenant, early_us)
            self.reserved_us[run.tenant] = look_us + cap.step_us
            return Park(run.run_id, "rate", run.tenant, -(-look_us // 1000))
        self.chosen.next_us[run.tenant] = cap.after_start_us(known, now_us)
        return None

    def _take(self, run: Queued) -> None:
        slot = 0
        holders = self.holders.setdefault(run.claim_key or "", [])
        of_job = self.of_jobs.setdefault(run.job_id, [])
        if run.leased:
            for some in (holders, of_job):
                some[:] = [each._replace(node_id="") if each.run_id == run.run_id else each for each in some]
        elif run.claim_key is not None:
            taken = {each.slot for each in holders}
            slot = next(n for n in range(len(taken) + 1) if n not in taken)
            key, tick = run.claim_key, run.is_live_tick
            holders.append(Holder(slot, run.run_id, run.job_id, tick, "", key, run.scheduled_for_ms, run.due_ms))
            of_job.append(holders[-1])
        self.chosen.claims.append((run.run_id, slot))
        self.gone.add(run.run_id)
        self.by_tenant[run.tenant] += 1
        self.by_tenant_here[run.tenant] += 1
        self.by_type_here[run.type] += 1
        self.room -= 1
        if run.lane == "catchup":
            self.catchup_room -= 1
        if run.due_ms > self.facts.now_ms:
            self.early_room -= 1
        level = run.lane, run.priority
        self.chosen.reached[level] = max(run.rank, self.chosen.reached.get(level, 0))

    def _park(self, park: Park) -> None:
        self.parked.add(park.run_id)
        self.chosen.parks.append(park)

    def _close(self, close: Close) -> None:
        if close.run_id in self.gone:
            return
        self.gone.add(close.run_id)
        self.chosen.closes.append(close)
        if close.heir is not None:
            self.heirs[close.run_id] = close.heir
        if close.state in LEFT_OUT:
            self.left_out[close.run_id] = self.facts.now_ms if close.at_ms is None else close.at_ms
        if close.run_id in self.parked:  # it was parked a moment ago, and a newer one puts an end to it
            self.chosen.parks = [each for each in self.chosen.parks if each.run_id != close.run_id]
