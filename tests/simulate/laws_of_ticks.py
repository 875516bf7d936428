"""I1, I2, I4: every tick has one answer, and the answer is one that its policies allow."""

from collections import Counter
from collections.abc import Iterator

from fleetcron.model.rules import MisfireRule
from tests.simulate.evidence import Evidence, Stretch, Violation
from tests.simulate.record import Row

_LEFT_OUT = ("skipped", "expired", "merged")
_SLACK_MS = 200  # the clocks of a world drift a little
_NEVER = 1 << 60


def i1_no_tick_lost(seen: Evidence) -> Iterator[Violation]:
    """I1: every tick of the slow enumerator has one final answer, a run or a ledger line, and nothing else has."""
    for job_id in seen.jobs:
        expected = seen.ticks(job_id)
        runs = {row["scheduled_for_ms"]: row for row in seen.runs_of(job_id) if row["kind"] != "manual"}
        answered: Counter[int] = Counter(runs.keys())
        for line in seen.ledger.get(job_id, ()):
            inside = [tick for tick in expected if line["from_ms"] <= tick <= line["to_ms"]]
            inside = [tick for tick in inside if tick not in runs or runs[tick]["kind"] == "tick"]
            if len(inside) != line["ticks"]:
                yield Violation(
                    "I1",
                    f"a line of the ledger counts {line['ticks']} ticks, it has {len(inside)}: {line}",
                    job_id=job_id,
                )
            answered.update(inside)
        for tick in expected:
            if answered[tick] != 1:
                name = seen.jobs[job_id]["name"]
                yield Violation("I1", f"the tick {tick} of {name} has {answered[tick]} answers", job_id=job_id)
        for tick, run in runs.items():
            if run["kind"] == "tick" and tick not in expected and seen.kept_of(run) is None:
                yield Violation("I1", f"run {run['run_id']} is for {tick}, which is no tick", run["run_id"], job_id)
            if run["state"] == "planned" or run["finished_ms"] is None:
                yield Violation("I1", f"run {run['run_id']} has no final answer", run["run_id"], job_id)


def i1_left_out_only_by_policy(seen: Evidence) -> Iterator[Violation]:
    """I1: a tick is left out only where a policy says so."""
    for job_id in seen.jobs:
        expected = seen.ticks(job_id)
        for line in seen.ledger.get(job_id, ()):
            for tick, stretch in expected.items():
                if line["from_ms"] <= tick <= line["to_ms"] and (why := _wrong_line(seen, line, tick, stretch)):
                    yield Violation("I1", f"{line['answer']} ({line['reason']}) for {tick}: {why}", job_id=job_id)
        for run in seen.runs_of(job_id):
            final = seen.first_final(run)
            if final is not None and (why := _wrong_final(seen, run, final)):
                yield Violation("I1", f"run {run['run_id']} is {final['state']}: {why}", run["run_id"], job_id)


def _wrong_line(seen: Evidence, line: Row, tick: int, stretch: Stretch) -> str | None:
    rule = stretch.definition.misfire
    policy = (stretch.on_resume or "skip") if stretch.state == "paused" else rule.policy
    # a clock that was set back notes what has been decided by the instants that it had shown before
    shifts = [shift for _, shift in seen.record.shifts]
    reason, noted_ms = line["reason"], line["noted_ms"] + max(shifts) - min(shifts)
    if reason in ("misfire", "covered") and stretch.state != "paused" and noted_ms <= stretch.late_after(tick):
        return f"it was not late at {noted_ms}"
    match reason:
        case "misfire" if policy != "skip":
            return f"the policy is {policy}"
        case "paused" if stretch.state != "paused" or policy != "skip":
            return f"the job was {stretch.state}, with {policy}"
        case "covered" if policy != "latest":
            return f"the policy is {policy}"
        case "covered":
            return _wrong_cover(seen, line)
        case "too_old" if noted_ms - tick <= rule.window_ms:
            return f"it is {noted_ms - tick} ms old"
        case "over_limit" if policy != "all":
            return f"the policy is {policy}"
        case "start_deadline":
            deadline_ms = stretch.definition.start_deadline_ms
            return None if deadline_ms is not None and noted_ms > tick + deadline_ms else "it was not too late"
        case "job_cancelled" | "job_deleted":
            ended = {each.state for each in seen.stretches[line["job_id"]]}
            return None if ended & {"cancelled", "deleted"} else "the job has not ended"
        case "in_the_past":
            return "no job was made too late"
    return None


def _wrong_cover(seen: Evidence, line: Row) -> str | None:
    found = [row for row in seen.runs_of(line["job_id"]) if row["scheduled_for_ms"] == line["covered_by_ms"]]
    return (
        None if any(row["kind"] != "manual" for row in found) else f"nothing stands for it at {line['covered_by_ms']}"
    )


def _wrong_final(seen: Evidence, run: Row, final: Row) -> str | None:
    definition = seen.definitions[run["job_id"]]
    policy, reason = definition.overlap.policy, final["reason"] or ""
    if reason.startswith("misfire: "):
        return _wrong_misfire(seen, run, final)
    match final["state"]:
        case "skipped":
            if reason.startswith("upstream"):  # backfilled ticks need theirs as well
                needs = bool(definition.depends_on) and definition.on_upstream_failure == "skip"
                return None if needs and run["kind"] != "manual" else "it waits for no upstream job"
            if run["kind"] != "tick":
                return f"it is {run['kind']}"
            return None if policy == "skip" else f"overlap is {policy}"
        case "expired":
            return None if definition.start_deadline_ms is not None and run["kind"] == "tick" else "it has no deadline"
        case "merged":
            return None if policy == "collapse" and run["kind"] == "tick" else f"overlap is {policy}"
        case "cancelled":
            ended = {each.state for each in seen.stretches[run["job_id"]]} & {"cancelled", "deleted"}
            if run["run_id"] in seen.record.asked_to_cancel or (policy == "cancel_previous" and run["kind"] == "tick"):
                return None
            return None if ended and reason.startswith("its job was ") else "nobody asked for it"
    return None


def _wrong_misfire(seen: Evidence, run: Row, final: Row) -> str | None:
    """A run that was planned in time, and nobody was there to queue it: the misfire rule holds for it too."""
    stretch = next((each for each in seen.stretches[run["job_id"]] if run["scheduled_for_ms"] in each.ticks), None)
    if stretch is None or run["kind"] != "tick":
        return "it is no tick"
    shifts = [shift for _, shift in seen.record.shifts]
    at_ms = seen.scenario.begin_ms + final["at_ms"]
    from_ms, to_ms = at_ms + min(shifts) - _SLACK_MS, at_ms + max(shifts) + _SLACK_MS
    # the rule of the job when it was decided, which may be another one than it had before or has in the end
    stretches = seen.stretches[run["job_id"]]
    rules = [each.definition.misfire for each in stretches if each.begin <= to_ms and from_ms <= each.end]
    wrongs = [_wrong_by_rule(stretch, run, final, rule, to_ms) for rule in rules]
    return None if None in wrongs else wrongs[0]


def _wrong_by_rule(stretch: Stretch, run: Row, final: Row, rule: MisfireRule, at_ms: int) -> str | None:
    if final["state"] == "merged" and rule.policy != "latest":
        return f"the misfire policy is {rule.policy}"
    following = stretch.following(run["scheduled_for_ms"])
    due_ms = run["run_after_ms"]
    if run["created_ms"] > due_ms + rule.grace_ms:
        return "it was late when it was planned: it had its answer"
    earliest_ms = due_ms + min(rule.grace_ms, 2_000 if following is None else stretch.start(following) - due_ms)
    return None if at_ms >= min(earliest_ms, due_ms + 2_000) else "it was not late"


def i1_overlap_is_decided_by_facts(seen: Evidence) -> Iterator[Violation]:
    """I1: a live tick is skipped for overlap exactly if the live run before it was not final when it was due. A run
    that was replayed is not live any more: what is decided after that looks past it. (Within the millisecond in which
    both happened, either is right.) So a run that waited may be skipped for what a replay has uncovered: whoever was
    decided before that has seen it waiting. And nobody waits for a run that is not there yet: what an edit left behind
    may be planned when the next tick has run, if whoever held the shard died between the two."""
    if seen.clock_was_set:
        return  # what was final at an instant is not told by a clock that went back
    tables = seen.record.tables
    replayed, claimed, created = (_first_ms(tables[name]) for name in ("seen_replays", "seen_claims", "seen_created"))
    for job_id, definition in seen.definitions.items():
        if definition.overlap.policy != "skip":
            continue
        before: list[tuple[Row, Row]] = []
        for run in sorted(seen.runs_of(job_id), key=lambda row: row["scheduled_for_ms"]):
            final = seen.first_final(run)
            if run["kind"] == "tick" and final is not None and final["lane"] == "live":
                skipped = final["state"] == "skipped"
                due_ms = run["run_after_ms"]
                decided_ms = final["at_ms"] if skipped else claimed.get(run["run_id"], final["at_ms"])
                found = {
                    _overlaps([each for each in before if created[each[0]["run_id"]] < at_ms], replayed, due_ms, at_ms)
                    for at_ms in (decided_ms, decided_ms + 1)
                }
                elsewhere = (final["reason"] or "").startswith(("upstream", "misfire"))
                if skipped and found == {False} and not elsewhere:
                    yield Violation("I1", f"run {run['run_id']} was skipped and did not overlap", run["run_id"], job_id)
                began = any(each.stay.begun_s * 1000 <= final["at_ms"] for each in seen.begun[run["run_id"]])
                if found == {True} and not skipped and began:  # who is replayed later is never skipped
                    yield Violation("I1", f"run {run['run_id']} overlapped and was not skipped", run["run_id"], job_id)
                before.append((run, final))


def _first_ms(rows: list[Row]) -> dict[int, int]:
    """By run. They are in the order in which they were written."""
    return {row["run_id"]: row["at_ms"] for row in reversed(rows)}


def _overlaps(before: list[tuple[Row, Row]], replayed: dict[int, int], due_ms: int, at_ms: int) -> bool:
    """For whom is decided at an instant."""
    replays = [when for run, _ in before if (when := replayed.get(run["run_id"], _NEVER)) >= at_ms]
    for run, final in reversed(before):
        if replayed.get(run["run_id"], _NEVER) < at_ms:
            continue
        if final["state"] in _LEFT_OUT and final["finished_ms"] <= due_ms:
            if not any(when <= final["at_ms"] for when in replays):
                continue
            return True  # it was left out after a replay, and waited until then
        return bool(final["finished_ms"] > due_ms)
    return False


def i2_one_row_per_tick(seen: Evidence) -> Iterator[Violation]:
    """I2: one row per job and tick."""
    rows = Counter((row["job_id"], row["scheduled_for_ms"]) for row in seen.runs.values() if row["kind"] != "manual")
    for (job_id, tick), number in rows.items():
        if number > 1:
            yield Violation("I2", f"{number} runs for the tick {tick}", job_id=job_id)


def i4_planned_for_the_right_instant(seen: Evidence) -> Iterator[Violation]:
    """I4: a run may start at its tick plus jitter, as the enumerator says."""
    for job_id in seen.jobs:
        expected = seen.ticks(job_id)
        for run in seen.runs_of(job_id):
            stretch = seen.kept_of(run) or expected.get(run["scheduled_for_ms"])
            if run["kind"] == "tick" and stretch is not None:
                start_ms = stretch.start(run["scheduled_for_ms"])
                if run["run_after_ms"] != start_ms:
                    text = f"run {run['run_id']} may start at {run['run_after_ms']} and not at {start_ms}"
                    yield Violation("I4", text, run["run_id"], job_id)
