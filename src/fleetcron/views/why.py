"""Why: one sentence about a run, or about a tick that has none, with what it stands on."""

from typing import Any, TypeAlias

from fleetcron.model.situation import Situation
from fleetcron.model.standing import Standing
from fleetcron.scheduler.tables import Tables, build
from fleetcron.store.history import LedgerLine
from fleetcron.store.store import Store
from fleetcron.times.timetable import Timetable
from fleetcron.views.instants import as_json as instant_json
from fleetcron.views.instants import utc
from fleetcron.views.past import words
from fleetcron.views.sentence import told

Answered: TypeAlias = tuple[str, dict[str, Any]]


async def of_run(store: Store, run_id: int) -> Answered | None:
    """None: there is no such run."""
    known = await store.situations.of_run(run_id)
    return None if known is None else await _told(store, known)


async def _told(store: Store, known: Situation) -> Answered:
    said, way = await told(store, known)
    return said, {**_run_json(known), "merged_into": way}


async def of_tick(store: Store, tenant: str, name: str, at_ms: int) -> Answered | None:
    """None: there never was such a job."""
    answer = await store.situations.of_tick(tenant, name, at_ms)
    if answer.situation is not None:
        said, found = await _told(store, answer.situation)
        return f"run {answer.situation.line.run.run_id}: {said}", found
    data: dict[str, Any] = {"tenant": tenant, "name": name, "scheduled_for": instant_json(at_ms), "state": None}
    if answer.ledger is not None:
        return _ledger(answer.ledger), {**data, "state": answer.ledger.answer.answer}
    if answer.gap is not None:
        start, end, cause = answer.gap
        return f"not decided yet: the ticks after {utc(start)} until {utc(end)} are a gap ({cause})", data
    facts = await store.jobs.find([(tenant, name)])
    if (tenant, name) not in facts.standings:
        if not await store.jobs.named(tenant, name, 1):
            return None
        return f"nothing is known of this instant: {tenant}/{name} was deleted", data
    standing = facts.standings[tenant, name]
    known = await Tables(store.almanac).known(set(standing.timing.parts()), facts.epoch)
    timetable = build(standing.timing, known.almanac)
    if timetable.next_ms(at_ms - 1) != at_ms:
        return (
            f"{utc(at_ms)} is no tick of {tenant}/{name}; {_nearest(timetable, at_ms, standing.job.created_ms)}",
            data,
        )
    return _undecided(standing, at_ms, facts.now_ms), data


def why_json(answered: Answered) -> dict[str, Any]:
    """The document: a tick without a run has the same fields, and nothing in them."""
    said, data = answered
    empty: dict[str, Any] = {"run_id": None, "waiting": None, "holders": [], "workers": [], "merged_into": []}
    return {**empty, **data, "why": said}


def _nearest(timetable: Timetable, at_ms: int, since_ms: int) -> str:
    """Ticks from before the job existed have nothing to tell."""
    ticks = (timetable.prev_ms(at_ms), timetable.next_ms(max(at_ms, since_ms)))
    near = [utc(tick) for tick in ticks if tick is not None and tick > since_ms]
    if len(near) > 1:
        return f"the nearest are: {', '.join(near)}"
    return f"the nearest since it exists is: {near[0]}" if near else "there is none since it exists"


def _undecided(standing: Standing, at_ms: int, now_ms: int) -> str:
    job = standing.job
    if at_ms <= job.created_ms:
        return f"no run: the job was created later, at {utc(job.created_ms)}"
    if job.state == "paused":
        return f"the job is paused: what becomes of this tick is decided when it is resumed ({job.on_resume})"
    if job.state != "active":
        return f"no run: the job is {job.state}"
    if at_ms <= standing.at.cursor_ms:
        return (
            "no run: it was no tick when this time was planned; the schedule has changed since (fleetcron jobs history)"
        )
    if at_ms > now_ms:
        return "not planned yet: a scheduler makes its run about a minute before"
    return "not planned yet, though it is due: is a scheduler running? fleetcron nodes"


def _ledger(line: LedgerLine) -> str:
    answer = line.answer
    reason = words(answer.reason, answer.covered_by_ms)
    if answer.ticks == 1:
        return f"{answer.answer}: {reason}"
    ticks = f"{_ticks(answer.ticks)} from {utc(answer.from_ms)} to {utc(answer.to_ms)}"
    return f"{answer.answer}, with the {ticks}: {reason}"


def _ticks(number: int) -> str:
    return "1 tick" if number == 1 else f"{number:,} ticks"


def _run_json(known: Situation) -> dict[str, Any]:
    line, waiting = known.line, known.line.waiting
    return {
        "run_id": line.run.run_id,
        "tenant": line.tenant,
        "name": line.name,
        "scheduled_for": instant_json(line.run.scheduled_for_ms),
        "state": line.run.state.value,
        "waiting": waiting and {"gate": waiting.gate, "key": waiting.key, "since": instant_json(waiting.since_ms)},
        "holders": [{"run_id": each.run_id, "job": each.job, "node_id": each.node_id} for each in known.holders],
        "workers": [each.node_id for each in known.workers],
    }
