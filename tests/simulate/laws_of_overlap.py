"""I1, I3, I4: what a tick does that is due while its job runs or waits. Judged by who waited in the queue when somebody
was taken from it, by what handlers saw, and by the database's clock at that instant: what it said then decides what is
due, however it was set before or after."""

from collections.abc import Iterator
from typing import Final

from tests.simulate.evidence import Evidence, Queued, Violation
from tests.simulate.record import Row

_FOR_EVER: Final = 1 << 60


def i4_queued_ticks_start_in_order(seen: Evidence) -> Iterator[Violation]:
    """I4: no run of a job that queues is taken for the first time while one with an earlier tick waits. One that came
    into the queue later (caught up, replayed, put back) is in nobody's way before that."""
    for run, claim in _first_taken(seen, "queue"):
        for each in seen.queued[run["job_id"]]:
            if _place(each.run) < _place(run) and each.surely_at(claim["at_ms"]):
                text = f"run {run['run_id']} was taken while run {each.run['run_id']} waited, which comes first"
                yield Violation("I4", text, run["run_id"], run["job_id"], claim["at_ms"] / 1000)
                break


def i1_waiting_ticks_give_way(seen: Evidence) -> Iterator[Violation]:
    """I1: of the ticks of a job that collapses only the newest that is due is ever taken, and the same is true for the
    live ones of a job that cancels: the others are merged into it, or cancelled by it. One that has begun, or was
    replayed, is not left out any more; nobody gives way to such a one."""
    replayed = {row["run_id"] for row in seen.record.tables["seen_replays"]}
    for policy in ("collapse", "cancel_previous"):
        for run, claim in _first_taken(seen, policy):
            if run["kind"] != "tick" or run["run_id"] in replayed:
                continue
            mine = [each for each in seen.queued[run["job_id"]] if each.run is run and each.maybe_at(claim["at_ms"])]
            if policy == "cancel_previous" and not all(each.lane == "live" for each in mine):
                continue
            newer = _newer_due(seen, run, claim["now_ms"], only_live=policy == "cancel_previous")
            for each in newer:
                if each.surely_at(claim["at_ms"]) and each.run["run_id"] not in replayed and _is_fresh(seen, each):
                    text = f"run {run['run_id']} was taken while run {each.run['run_id']} waited, which takes its place"
                    yield Violation("I1", text, run["run_id"], run["job_id"], claim["at_ms"] / 1000)
                    break


def i3_the_previous_run_is_asked_to_stop(seen: Evidence) -> Iterator[Violation]:
    """I3: where a live tick of a job that cancels is due and has to wait for its key, the live tick of that job that is
    at work has been asked to stop, in the same transaction. Whoever waits for anything else, or in a pool in which
    nobody looks, has asked nobody yet; and nobody is asked by or for a run that is caught up, replayed or manual."""
    asked = {(row["run_id"], row["attempt"]): row["at_ms"] for row in reversed(seen.record.tables["seen_cancels"])}
    live = _live_ticks(seen)
    for row in seen.record.tables["seen_parked"]:
        waits, at_ms = seen.runs.get(row["run_id"]), row["at_ms"]
        if waits is None or waits["run_id"] not in live or row["gate"] != "key":
            continue
        claim = seen.first_claims.get(waits["run_id"])
        if row["now_ms"] < waits["run_after_ms"] or (claim is not None and claim["at_ms"] <= at_ms):
            continue
        for other in seen.runs_of(waits["job_id"]):
            for each in seen.begun[other["run_id"]] if other["run_id"] in live else ():
                at_work = each.stay.begun_s * 1000 < at_ms - 1 and at_ms + 1 < each.ended_s(_FOR_EVER) * 1000
                if at_work and asked.get(each.key, _FOR_EVER) > at_ms + 1:
                    text = (
                        f"run {other['run_id']} went on while run {waits['run_id']} waited, and nobody asked it to stop"
                    )
                    yield Violation("I3", text, other["run_id"], waits["job_id"], at_ms / 1000)


def _live_ticks(seen: Evidence) -> set[int]:
    """Of jobs that cancel. Not those that were ever caught up or replayed: when exactly does not matter here."""
    lanes = [(each.run["run_id"], each.lane) for some in seen.queued.values() for each in some]
    other = {run_id for run_id, lane in lanes if lane != "live"}
    other |= {row["run_id"] for row in seen.record.tables["seen_replays"]}
    return {
        run["run_id"] for run in seen.runs.values()
        if run["kind"] == "tick" and run["run_id"] not in other
        and seen.definitions[run["job_id"]].overlap.policy == "cancel_previous"
    }  # fmt: skip


def i1_cancelled_only_by_a_newer_tick(seen: Evidence) -> Iterator[Violation]:
    """I1: a run of a job that cancels is cancelled because people or its job's end wanted it, or a newer live tick was
    due and waited when the run was asked to stop; if it never was, one that waited or was at work when it ended."""
    asked = {row["run_id"]: row for row in reversed(seen.record.tables["seen_cancels"])}
    for run in seen.runs.values():
        final = seen.first_final(run)
        if final is None or final["state"] != "cancelled" or run["run_id"] in seen.record.asked_to_cancel:
            continue
        if seen.definitions[run["job_id"]].overlap.policy != "cancel_previous":
            continue  # nobody asked for it: another law says so
        if {each.state for each in seen.stretches[run["job_id"]]} & {"cancelled", "deleted"}:
            continue
        was_at_work = run["run_id"] in asked
        when = asked.get(run["run_id"], final)
        newer = list(_newer_due(seen, run, when["now_ms"], only_live=True))
        if was_at_work:
            is_right = any(each.maybe_at(when["at_ms"]) for each in newer)
        else:
            is_right = any(each.maybe_at(when["at_ms"]) or _is_at_work(seen, each, when["at_ms"]) for each in newer)
        if not is_right:
            text = f"run {run['run_id']} was cancelled and no newer tick was due"
            yield Violation("I1", text, run["run_id"], run["job_id"], when["at_ms"] / 1000)


def i1_merged_into_a_newer_tick(seen: Evidence) -> Iterator[Violation]:
    """I1: a run is merged into a newer tick of its job, which is there and was due by then."""
    for run in seen.runs.values():
        final = seen.first_final(run)
        if final is None or final["state"] != "merged":
            continue
        other = seen.runs.get(run["covered_by"])
        if other is None or other["job_id"] != run["job_id"] or other["kind"] == "manual":
            why = "is no tick of its job"
        elif other["scheduled_for_ms"] <= run["scheduled_for_ms"]:
            why = "is not newer"
        elif other["run_after_ms"] > final["now_ms"]:
            why = "was not due"
        else:
            continue
        text = f"run {run['run_id']} was merged into run {run['covered_by']}, which {why}"
        yield Violation("I1", text, run["run_id"], run["job_id"], final["at_ms"] / 1000)


def _first_taken(seen: Evidence, policy: str) -> Iterator[tuple[Row, Row]]:
    """The runs of all jobs with a policy, and when each was claimed for the first time."""
    for run_id, claim in seen.first_claims.items():
        run = seen.runs.get(run_id)
        if run is not None and seen.definitions[run["job_id"]].overlap.policy == policy:
            yield run, claim


def _newer_due(seen: Evidence, run: Row, now_ms: int, *, only_live: bool) -> Iterator[Queued]:
    for each in seen.queued[run["job_id"]]:
        is_newer = each.run["kind"] == "tick" and each.run["scheduled_for_ms"] > run["scheduled_for_ms"]
        if is_newer and each.run["run_after_ms"] <= now_ms and (each.lane == "live" or not only_live):
            yield each


def _is_at_work(seen: Evidence, each: Queued, at_ms: int) -> bool:
    """It was taken from there for the first time, and has not come to its first end."""
    claim, final = seen.first_claims.get(each.run["run_id"]), seen.first_final(each.run)
    taken = claim is not None and each.maybe_at(claim["at_ms"]) and claim["at_ms"] <= at_ms
    return taken and (final is None or at_ms <= final["at_ms"])


def _is_fresh(seen: Evidence, waits: Queued) -> bool:
    """It was not taken before it waited."""
    claim = seen.first_claims.get(waits.run["run_id"])
    return claim is None or claim["at_ms"] >= waits.to_ms


def _place(run: Row) -> tuple[int, int]:
    return run["scheduled_for_ms"], run["run_id"]
