"""I3 … I9, I11, I12: what handlers saw, what was written, and what was done to the world agree."""

from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import Final

from tests.simulate.evidence import Evidence, Violation
from tests.simulate.jobs import LATE_HANDLER
from tests.simulate.record import Begun, Row, Trouble

_SAID: Final = {"succeeded": "succeeded", "failed": "failed", "timed_out": "timedout", "snoozed": "snoozed"}
_NEVER_BEGUN: Final = ("skipped", "expired", "merged")
_SLACK_MS: Final = 100
_SLA_S: Final = 1.0
_BOOT_S: Final = 20.0  # until then a fleet that starts has taken its shards


def i3_one_attempt_at_a_time(seen: Evidence) -> Iterator[Violation]:
    """I3: no two attempts of one run execute at the same time."""
    for run_id, begun in seen.begun.items():
        last: Begun | None = None
        for each in sorted(begun, key=lambda one: one.stay.begun_s):
            if last is not None and each.stay.begun_s < last.ended_s(seen.record.ended_s):
                these = (
                    f"attempt {each.stay.attempt} on {each.stay.node}",
                    f"attempt {last.stay.attempt} on {last.stay.node}",
                )
                text = f"run {run_id}: {these[0]} began while {these[1]} ran"
                yield Violation("I3", text, run_id, at_s=each.stay.begun_s)
            last = each


def i3_no_overlap_unless_allowed(seen: Evidence) -> Iterator[Violation]:
    """I3, promise 6: never more runs of a job or key at the same time than its rule allows."""
    by_key: dict[str, list[Begun]] = defaultdict(list)
    most: dict[str, int] = {}
    for each in seen.record.begun:
        run = seen.runs.get(each.stay.run_id)
        if run is None:
            yield Violation("I11", f"run {each.stay.run_id} was executed and is not there", each.stay.run_id)
            continue
        definition = seen.definitions[run["job_id"]]
        key = definition.claim_key(run["job_id"])
        if key is not None:
            by_key[key].append(each)
            most[key] = definition.overlap.max_running or 1
    for key, begun in by_key.items():
        running: list[Begun] = []
        for each in sorted(begun, key=lambda one: one.stay.begun_s):
            running = [one for one in running if one.ended_s(seen.record.ended_s) > each.stay.begun_s]
            running.append(each)
            if len({one.stay.run_id for one in running}) > most[key]:
                text = f"{key}: runs {[one.stay.run_id for one in running]} at the same time"
                yield Violation("I3", text, each.stay.run_id, at_s=each.stay.begun_s)


def i4_never_early(seen: Evidence) -> Iterator[Violation]:
    """I4: no start before scheduled_for and jitter by the database's time, as the worker could know it."""
    for each in seen.record.begun:
        run = seen.runs.get(each.stay.run_id)
        if run is None:
            continue
        shifts = seen.record.shifts_around(each.stay.begun_s, seen.scenario.ttl_s)
        now_ms = each.at_us / 1000 - shifts[-1]
        if now_ms + max(shifts) < run["run_after_ms"]:
            early_ms = run["run_after_ms"] - now_ms - max(shifts)
            yield Violation(
                "I4", f"run {run['run_id']} began {early_ms:.1f} ms early", run["run_id"], at_s=each.stay.begun_s
            )
        deadline_ms = seen.definitions[run["job_id"]].start_deadline_ms
        final = seen.first_final(run)
        is_replayed = final is not None and each.stay.begun_s * 1000 > final["at_ms"]
        if deadline_ms is not None and each.stay.attempt == 1 and run["kind"] == "tick" and not is_replayed:
            late_ms = now_ms + min(shifts) - run["scheduled_for_ms"] - deadline_ms
            if late_ms > _SLACK_MS:
                text = f"run {run['run_id']} began first {late_ms:.0f} ms after its start deadline"
                yield Violation("I4", text, run["run_id"], at_s=each.stay.begun_s)


def i5_everything_ends(seen: Evidence) -> Iterator[Violation]:
    """I5: after everything is healed whatever was due becomes final, nobody asks without rest, and no node ends by a
    fault of its own."""
    if seen.record.busy is not None:
        at_s, asked = seen.record.busy
        yield Violation("I5", f"the store was asked {asked} times in a moment", at_s=at_s)
    if seen.record.unsettled is not None:
        yield Violation(
            "I5", f"not final after everything was healed: {seen.record.unsettled}", at_s=seen.record.ended_s
        )
    for name, fault in seen.record.node_faults:
        yield Violation("I5", f"{name} ended by a fault of its own: {fault!r}")


def i5_healthy(seen: Evidence) -> Iterator[Violation]:
    """I5: without faults a run that waits for nothing starts within the SLA, and nothing is lost, late or refused."""
    if not seen.scenario.is_healthy:
        return
    for rows in seen.attempts.values():
        for row in rows:
            if row["outcome"] == "lost":
                yield Violation("I5", f"attempt {row['attempt']} of run {row['run_id']} was lost", row["run_id"])
    for kind in ("worker_lost", "finish_refused", "shard_lost"):
        for row in seen.record.tables["events"]:
            if row["kind"] == kind:
                yield Violation("I5", f"an event that only faults cause: {kind} {row['detail']}")
    for lines in seen.ledger.values():
        for line in lines:
            if line["reason"] in ("misfire", "too_old", "over_limit", "start_deadline"):
                job = {each.state for each in seen.stretches[line["job_id"]]}
                if "paused" not in job:
                    yield Violation("I5", f"a tick was late without a fault: {line}", job_id=line["job_id"])
    for run in seen.runs.values():
        if (run["reason"] or "").startswith("misfire"):
            yield Violation("I5", f"run {run['run_id']} was left out without a fault: {run['reason']}", run["run_id"])
        yield from _started_in_time(seen, run)


def _started_in_time(seen: Evidence, run: Row) -> Iterator[Violation]:
    definition = seen.definitions[run["job_id"]]
    final = seen.first_final(run)
    is_plain = definition.overlap.policy == "allow" and definition.overlap.max_running is None
    is_plain = is_plain and not definition.depends_on and run["kind"] == "tick" and run["round"] == 0
    is_plain &= definition.tenant not in seen.scenario.tenants and definition.pool not in seen.scenario.pools
    is_plain &= not str(getattr(definition.run, "function", "")).startswith(LATE_HANDLER)
    if not is_plain or final is None or final["lane"] != "live" or final["state"] == "cancelled":
        return  # that somebody asked for it is another law
    stretch = seen.ticks(run["job_id"]).get(run["scheduled_for_ms"])
    if stretch is None:
        return  # another law says so
    begun = seen.begun[run["run_id"]]
    known_ms = stretch.end if stretch.state == "paused" else stretch.begin  # who resumes a job may wish what it missed
    due_s = max((max(run["run_after_ms"], known_ms) - seen.scenario.begin_ms) / 1000, _BOOT_S)
    slots = min(
        int(part.split("=")[1])
        for slot in seen.scenario.slots
        for part in slot.pools.split(",")
        if part.startswith(definition.pool)
    )
    rivals = [
        each for each in seen.record.begun
        if each.stay.begun_s < due_s + 2 and each.ended_s(1e9) > due_s - 2 and each.stay.run_id != run["run_id"]
    ]  # fmt: skip
    if len(rivals) >= slots:
        return  # perhaps it had to wait for a slot
    if not begun or begun[0].stay.begun_s > due_s + _SLA_S:
        when = f"after {begun[0].stay.begun_s - due_s:.2f} s" if begun else "never"
        yield Violation("I5", f"run {run['run_id']} of {definition.name} started {when}", run["run_id"], at_s=due_s)


def i6_at_most_one_extra_attempt_per_fault(seen: Evidence) -> Iterator[Violation]:
    """I6: at most one extra attempt per run held by a killed or cut-off process, per fault. An orderly
    stop costs nothing: none is called so unless somebody asked that node to stop."""
    claims = {
        (row["run_id"], row["attempt"], row["node_id"]): row["at_ms"] / 1000
        for row in seen.record.tables["seen_claims"]
    }
    lost: dict[int, list[Row]] = defaultdict(list)
    for row in seen.record.tables["seen_attempts"]:
        if row["outcome"] == "lost":
            lost[row["run_id"]].append(row)
    for run_id, rows in lost.items():
        used: set[int] = set()
        for row in rows:
            at_s = row["at_ms"] / 1000
            claimed_s = claims.get((run_id, row["attempt"], row["node_id"]), at_s)
            causes = [
                number
                for number, each in enumerate(seen.record.troubles)
                if _explains(seen, each, row["node_id"], claimed_s, at_s)
                and (each.kind == "rolling" or row["error_code"] != "worker_stopped")  # which is free: not for others
            ]
            fresh = [number for number in causes if seen.record.troubles[number].often or number not in used]
            if not fresh:
                why = "again for the same fault" if causes else "without a fault"
                text = f"attempt {row['attempt']} of run {run_id} on {row['node_id']} was lost {why}"
                yield Violation("I6", text, run_id, at_s=at_s)
            else:
                used.add(fresh[0])


def _explains(seen: Evidence, trouble: Trouble, node_id: str, claimed_s: float, lost_s: float) -> bool:
    """Whether a fault can cost an attempt that was held from `claimed_s` to `lost_s`."""
    ttl_s, lasts_s = seen.scenario.ttl_s, trouble.to_s - trouble.from_s
    if trouble.slot not in (None, node_id.partition(".")[0]) or trouble.from_s > lost_s:
        return False
    if trouble.to_s < claimed_s - ttl_s - 2:
        return False
    match trouble.kind:
        case "kill" | "step" | "outage" | "lossy" | "straggle" | "aimed" | "slow":
            return True
        case "freeze" | "cut" | "down":  # a short one is survived
            return lasts_s >= 0.25 * ttl_s
        case "rolling":  # what ends within the drain time is not lost
            drain_s = float(seen.scenario.settings["worker.drain"].rstrip("s"))
            return lost_s >= trouble.from_s + drain_s - 0.5
    return False


def i7_final_is_final(seen: Evidence) -> Iterator[Violation]:
    """I7: final is final, and one finish is accepted per run and round."""
    for row in seen.record.tables["seen_wrongs"]:
        yield Violation(row["law"], f"run {row['run_id']}: {row['what']}", row["run_id"], at_s=row["at_ms"] / 1000)
    ends = Counter((row["run_id"], row["round"]) for row in seen.record.tables["seen_finals"])
    for (run_id, turn), number in ends.items():
        if number > 1:
            yield Violation("I7", f"run {run_id} ended {number} times in round {turn}", run_id)
    for row in seen.record.tables["seen_finals"]:
        if (row["run_id"], row["round"] + 1) in seen.finals or row["run_id"] not in seen.runs:
            continue
        if seen.runs[row["run_id"]]["round"] > row["round"]:
            continue
        for each in seen.begun[row["run_id"]]:
            if each.stay.begun_s * 1000 > row["at_ms"] + 1:
                text = f"attempt {each.stay.attempt} of run {row['run_id']} began after the run was {row['state']}"
                yield Violation("I7", text, row["run_id"], at_s=each.stay.begun_s)


def i8_attempts_without_holes(seen: Evidence) -> Iterator[Violation]:
    """I8: attempt numbers are 1 … n without holes, rise with time, and none is used twice."""
    for run_id, run in seen.runs.items():
        numbers = sorted(row["attempt"] for row in seen.attempts.get(run_id, ()))
        if numbers != list(range(1, len(numbers) + 1)) or (
            run["finished_ms"] is not None and run["attempt"] != len(numbers)
        ):
            yield Violation("I8", f"run {run_id} at attempt {run['attempt']} has the attempts {numbers}", run_id)
    for run_id, begun in seen.begun.items():
        numbers = [each.stay.attempt for each in sorted(begun, key=lambda one: one.stay.begun_s)]
        if numbers != sorted(set(numbers)):
            yield Violation("I8", f"the handlers of run {run_id} saw the attempts {numbers}", run_id)


def i9_no_stale_token(seen: Evidence) -> Iterator[Violation]:
    """I9: what was accepted as the end of an attempt was said by the handler of that very attempt."""
    by_key = {(each.stay.node, *each.key): each for each in seen.record.begun}
    for row in seen.record.tables["seen_attempts"]:
        said = _SAID.get(row["outcome"])
        if said is None:
            continue
        each = by_key.get((row["node_id"], row["run_id"], row["attempt"]))
        if each is None or each.ending is None or each.ending.how != said or each.ending.at_s * 1000 > row["at_ms"] + 1:
            how = "never began there" if each is None else f"was {each.ending and each.ending.how}"
            text = f"attempt {row['attempt']} of run {row['run_id']} on {row['node_id']} is {row['outcome']}, and {how}"
            yield Violation("I9", text, row["run_id"], at_s=row["at_ms"] / 1000)


def i9_who_renews_is_not_lost(seen: Evidence) -> Iterator[Violation]:
    """I9: a worker is declared lost only when it has been silent for a whole lease, whatever any clock of the fleet
    says: whoever declares it so on older knowledge is stale."""
    for row in seen.record.tables["seen_burials"]:
        if row["silent_ms"] < seen.scenario.ttl_s * 999 - 5:
            text = f"{row['node_id']} was declared lost {row['silent_ms']} ms after it had renewed its lease"
            yield Violation("I9", text, at_s=row["at_ms"] / 1000)


def i10_fair_shares(seen: Evidence) -> Iterator[Violation]:
    """I10: each of k backlogged tenants gets at least 0.8 of its fair share of starts over any 60 s."""
    if not seen.scenario.is_crowded:
        return
    weights = {name: int(str(fields["weight"])) for name, fields in seen.scenario.tenants.items()}
    samples = [(at_s, {tenant: number for (_, tenant), number in found.items()}) for at_s, found in seen.record.waiting]
    for at, (from_s, _) in enumerate(samples):
        window = [found for when, found in samples[at:] if when <= from_s + 60.5]
        if len(window) < 7 or any(found.get(name, 0) < 3 for found in window for name in weights):
            continue
        starts = Counter(each.stay.tenant for each in seen.record.begun if from_s <= each.stay.begun_s < from_s + 60)
        for name, weight in weights.items():
            share = weight / sum(weights.values()) * starts.total()
            if starts[name] < 0.8 * share - 1:
                text = f"{name} has {starts[name]} of {starts.total()} starts, its share is {share:.1f}"
                yield Violation("I10", text, at_s=from_s)


def i11_conservation(seen: Evidence) -> Iterator[Violation]:
    """I11: what was created is final, live or was withdrawn; every live run is at exactly one place."""
    created = {row["run_id"] for row in seen.record.tables["seen_created"]}
    withdrawn = {row["run_id"] for row in seen.record.tables["seen_withdrawn"]}
    if created - withdrawn != set(seen.runs):
        yield Violation("I11", f"created and not accounted for: {sorted((created - withdrawn) ^ set(seen.runs))[:10]}")
    for at_s, what in seen.record.samples[:5]:
        yield Violation("I11", what, run_id=int(what.split()[1]), at_s=at_s)
    if seen.record.unsettled is None and seen.record.busy is None:
        for table in ("queue", "leases", "upcoming"):
            for row in seen.record.tables[table]:
                yield Violation("I11", f"run {row['run_id']} has ended and is left in {table}", row["run_id"])
    for row in seen.record.tables["events"]:
        if row["kind"] == "sweep_found":
            yield Violation("I11", f"the safety net found something: {row['detail']}")


def i12_one_story(seen: Evidence) -> Iterator[Violation]:
    """I12: runs, attempts, events and handlers tell one consistent story."""
    dead = {(event["job_id"], event["detail"]) for event in seen.record.tables["events"] if event["kind"] == "run_dead"}
    for run_id, run in seen.runs.items():
        attempts = seen.attempts.get(run_id, [])
        if why := _contradiction(seen, run, attempts):
            yield Violation("I12", f"run {run_id} is {run['state']}: {why}", run_id)
        if run["state"] == "dead" and not any(f'"run":{run_id},' in text.replace(" ", "") for _, text in dead):
            yield Violation("I12", f"run {run_id} is dead and no event says so", run_id)
        for row in attempts:
            if row["finished_ms"] < row["started_ms"]:
                yield Violation("I12", f"attempt {row['attempt']} of run {run_id} ended before it began", run_id)


def _contradiction(seen: Evidence, run: Row, attempts: list[Row]) -> str | None:
    outcomes = Counter(row["outcome"] for row in attempts)
    stops = sum(row["error_code"] == "worker_stopped" for row in attempts)  # those cost nothing
    last = attempts[-1]["outcome"] if attempts else None
    rule = seen.definitions[run["job_id"]].retry
    match run["state"]:
        case "succeeded" if last != "succeeded":
            return f"its last attempt is {last}"
        case "dead" if last not in ("failed", "timed_out", "lost"):
            return f"its last attempt is {last}"
        case "dead" if run["failures"] < rule.max_attempts and run["losses"] < rule.max_losses:
            return f"{run['failures']} failures and {run['losses']} losses are within its budget"
        case "skipped" | "expired" | "merged" if run["round"] == 0 and seen.begun[run["run_id"]]:
            return "it was executed"
    if run["state"] != "succeeded" and "succeeded" in outcomes:
        return "one of its attempts succeeded"
    if run["round"] == 0:
        if run["failures"] != outcomes["failed"] + outcomes["timed_out"] and run["state"] != "cancelled":
            return f"{run['failures']} failures, its attempts are {dict(outcomes)}"
        if run["losses"] != outcomes["lost"] - stops and run["state"] != "cancelled":
            return f"{run['losses']} losses, its attempts are {dict(outcomes)}"
        if run["failures"] > rule.max_attempts or run["losses"] > rule.max_losses:
            return "it was tried more often than it may be"
    return None
