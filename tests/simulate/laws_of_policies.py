"""I1, I3, I4: dependencies, deadlines and limits. What a run was said to wait for, or to have missed, is compared with
what the handlers, the enumerator and the observers in the database saw."""

from collections import defaultdict
from collections.abc import Iterator
from typing import Final, Literal, NamedTuple, TypeAlias

from tests.simulate.evidence import Evidence, Stretch, Violation
from tests.simulate.record import Begun, Row

Answer: TypeAlias = Literal["succeeded", "failed", "open"]
_NO_LIMIT: Final = 1 << 30


class _Need(NamedTuple):
    """What a run waits for: the run of its upstream job in its period, or nothing but a line of the ledger."""

    job_id: str
    name: str
    tick: int
    run: Row | None


def i4_upstream_comes_first(seen: Evidence) -> Iterator[Violation]:
    """I4: a tick is taken for the first time only when the latest tick of each upstream job in its period has
    succeeded; or has ended, if its job says that it is to run then. One that ended before (somebody cancelled it) was
    replayed, and whoever is replayed waits for nobody."""
    for run_id, run in seen.runs.items():
        claim, on_failure = seen.first_claims.get(run_id), seen.definitions[run["job_id"]].on_upstream_failure
        final = seen.first_final(run)
        if claim is None or (final is not None and final["at_ms"] <= claim["at_ms"]):
            continue
        for need in _needs(seen, run, claim):
            answer = _answer(seen, need, claim["at_ms"])
            if answer == "open" or (answer == "failed" and on_failure != "run"):
                is_ = "had not ended" if answer == "open" else "had not succeeded"
                text = f"run {run_id} was taken while {need.name} {is_} for {need.tick} ({on_failure})"
                yield Violation("I4", text, run_id, run["job_id"], claim["at_ms"] / 1000)


def i1_skipped_only_for_upstream_that_failed(seen: Evidence) -> Iterator[Violation]:
    """I1: a run that is skipped for its upstream job has one whose latest tick in its period ended without success."""
    for run in seen.runs.values():
        final = seen.first_final(run)
        if final is None or final["state"] != "skipped" or not (final["reason"] or "").startswith("upstream"):
            continue
        needs = _needs(seen, run, final)
        wanted = seen.definitions[run["job_id"]].depends_on
        answers = [_answer(seen, need, final["at_ms"]) for need in needs]
        if wanted and len(needs) == len(wanted) and "failed" not in answers:
            told = ", ".join(f"{need.name} {answer}" for need, answer in zip(needs, answers, strict=True))
            text = f"run {run['run_id']} was skipped for its upstream job: {told}"
            yield Violation("I1", text, run["run_id"], run["job_id"], final["at_ms"] / 1000)


def _needs(seen: Evidence, run: Row, decided: Row) -> list[_Need]:
    """What a tick has to wait for, as far as it is certain; `decided` has the instant at which somebody looked.

    It is not where the clock of the database was set: ticks are told apart by it. Nor where a job was edited between
    that instant and the tick, so that others saw other ticks; where a tick was backfilled, which is there from any time
    on; where the upstream job was paused, since what it would have done nobody knows; and where that one was deleted.
    A tick of its own before it that is not decided yet makes its period longer: then what is in the shorter one counts
    all the same, and of what is only in the longer one nothing is said here."""
    definition, tick = seen.definitions[run["job_id"]], run["scheduled_for_ms"]
    own = seen.standing(run["job_id"])
    if (
        seen.clock_was_set
        or not definition.depends_on
        or run["kind"] != "tick"
        or tick not in seen.ticks(run["job_id"])
    ):
        return []
    since = max((each for each in own if each < tick), default=seen.jobs[run["job_id"]]["created_ms"])
    if _changed(seen, run["job_id"], decided["now_ms"], tick) or _backfilled(seen, run["job_id"], since, tick):
        return []
    found = []
    for name in definition.depends_on:
        ids = [job_id for job_id, row in seen.jobs.items() if (row["tenant"], row["name"]) == (definition.tenant, name)]
        need = _need(seen, ids[0], name, since, tick, decided["now_ms"]) if len(ids) == 1 else None
        found += [need] if need is not None else []
    return found


def _need(seen: Evidence, job_id: str, name: str, since: int, until: int, now_ms: int) -> _Need | None:
    ticks: dict[int, Stretch] = {at: each for at, each in seen.standing(job_id).items() if since < at <= until}
    states = {each.state for each in seen.stretches[job_id]}
    if not ticks or states & {"cancelled", "deleted"} or _changed(seen, job_id, now_ms, until):
        return None
    tick = max(ticks)
    if ticks[tick].state != "active" or _backfilled(seen, job_id, tick - 1, until + 1):
        return None
    at = {row["scheduled_for_ms"]: row for row in seen.runs_of(job_id) if row["kind"] != "manual"}
    run = at.get(tick)
    if run is None:
        run = next((at.get(line["covered_by_ms"]) for line in seen.lines_of(job_id, tick)), None)
    walked = set()
    while run is not None and run["state"] == "merged" and run["run_id"] not in walked:
        walked.add(run["run_id"])
        run = seen.runs.get(run["covered_by"])
    return _Need(job_id, name, tick, run)


def _changed(seen: Evidence, job_id: str, from_ms: int, to_ms: int) -> bool:
    """By people, between the two. (By the database's clock, which drifts: a second more.)"""
    return any(from_ms - 1000 <= each.begin <= to_ms + 1000 for each in seen.stretches[job_id][1:])


def _backfilled(seen: Evidence, job_id: str, after: int, before: int) -> bool:
    return any(
        row["kind"] == "backfill" and after < row["scheduled_for_ms"] < before for row in seen.runs_of(job_id)
    )  # fmt: skip


def _answer(seen: Evidence, need: _Need, at_ms: int) -> Answer:
    """At an instant of the loop; whoever ended in the same millisecond had ended."""
    if need.run is None:
        return "failed"
    ends = [
        row["state"] for (run_id, _), row in seen.finals.items()
        if run_id == need.run["run_id"] and row["at_ms"] <= at_ms
    ]  # fmt: skip
    if not ends:
        return "open"
    return "succeeded" if "succeeded" in ends else "failed"


def i1_expired_after_the_deadline(seen: Evidence) -> Iterator[Violation]:
    """I1: a run has expired only when its start deadline was over, by the clock that the database had then."""
    for run in seen.runs.values():
        final, deadline_ms = seen.first_final(run), seen.definitions[run["job_id"]].start_deadline_ms
        if final is None or final["state"] != "expired" or deadline_ms is None:
            continue
        left_ms = run["scheduled_for_ms"] + deadline_ms - final["now_ms"]
        if left_ms >= 0:
            text = f"run {run['run_id']} has expired {left_ms} ms before its deadline was over"
            yield Violation("I1", text, run["run_id"], run["job_id"], final["at_ms"] / 1000)


def i3_within_the_limits(seen: Evidence) -> Iterator[Violation]:
    """I3: never more runs at work than a tenant's cap, a pool's slots in the fleet, its quota for a tenant, and the
    slots of a worker allow.

    A limit holds for whoever is taken, and stops nobody who is at work when it is lowered. So of all that are at work
    together the one counts that was taken last: the others were held by then, and the limit of that instant had room
    for all of them."""
    limits = _limits(seen)
    groups: dict[tuple[str, str, str], list[Begun]] = defaultdict(list)
    for each in seen.record.begun:
        if each.stay.run_id in seen.runs:  # if not, another law says so
            for where in _places(seen, each):
                groups[where].append(each)
    taken: dict[tuple[str, int, int], list[int]] = defaultdict(list)
    for row in seen.record.tables["seen_claims"]:
        taken[row["node_id"], row["run_id"], row["attempt"]].append(row["at_ms"])
    for (scope, name, of), begun in groups.items():
        together: list[Begun] = []
        for each in sorted(begun, key=lambda one: one.stay.begun_s) if (scope, name) in limits else ():
            together = [one for one in together if one.ended_s(seen.record.ended_s) > each.stay.begun_s]
            together.append(each)
            most = _most(limits[scope, name], max(_taken_ms(one, taken) for one in together))
            if len(together) > most:
                ids = [one.stay.run_id for one in together]
                text = f"{scope} {name} {of}: runs {ids} at the same time, the limit is {most}"
                yield Violation("I3", text, each.stay.run_id, at_s=each.stay.begun_s)


def _places(seen: Evidence, each: Begun) -> list[tuple[str, str, str]]:
    """Where it counts."""
    pool, tenant = seen.definitions[seen.runs[each.stay.run_id]["job_id"]].pool, each.stay.tenant
    return [
        ("worker", f"{each.stay.node.partition('.')[0]} {pool}", each.stay.node),
        ("tenant", tenant, ""),
        ("pool", pool, ""),
        ("per_tenant", pool, tenant),
    ]


def _taken_ms(each: Begun, taken: dict[tuple[str, int, int], list[int]]) -> int:
    begun_ms = round(each.stay.begun_s * 1000)
    known = [at_ms for at_ms in taken[each.stay.node, *each.key] if at_ms <= begun_ms]
    return max(known, default=begun_ms)


def _limits(seen: Evidence) -> dict[tuple[str, str], list[tuple[int, int]]]:
    """Since when how many are allowed."""
    found: dict[tuple[str, str], list[tuple[int, int]]] = defaultdict(list)
    for slot in seen.scenario.slots:
        for pool, _, slots in (part.partition("=") for part in slot.pools.split(",")):
            found["worker", f"{slot.name} {pool}"].append((-1, int(slots)))
    for row in seen.record.tables["seen_caps"]:
        most = _NO_LIMIT if row["most"] is None else row["most"]
        found[row["scope"], row["name"]].append((row["at_ms"], most))
    return found


def _most(known: list[tuple[int, int]], at_ms: int) -> int:
    """At an instant; if it was changed in that millisecond, the larger one."""
    before = [most for since_ms, most in known if since_ms < at_ms][-1:] or [_NO_LIMIT]
    return max(before + [most for since_ms, most in known if since_ms == at_ms])
