"""`fleetcron why`: one sentence about a run, or about a tick that has none."""

from typing import Any

import click

from fleetcron.cli.connection import Database, database_options
from fleetcron.cli.ledger import words
from fleetcron.cli.moments import as_json as instant_json
from fleetcron.cli.moments import instant_ms, utc
from fleetcron.cli.names import no_such_job, split
from fleetcron.cli.run_ids import no_such_run
from fleetcron.cli.sentence import told
from fleetcron.cli.tables import numbered, printable
from fleetcron.cli.when import json_option, print_json
from fleetcron.errors import ScheduleError
from fleetcron.model.situation import Situation
from fleetcron.model.standing import Standing
from fleetcron.scheduler.tables import Tables, build
from fleetcron.store.history import LedgerLine
from fleetcron.store.store import Store
from fleetcron.times.timetable import Timetable

_DIGITS = 19  # of a number that every database knows

Answered = tuple[str, dict[str, Any]]


@click.command("why")
@click.argument("what", metavar="RUN|JOB@INSTANT")
@database_options
@json_option
def command(database: Database, what: str, as_json: bool) -> None:
    """Say why a run waits, why it ended as it did, or what became of a tick.

    RUN is the number that `fleetcron runs` gives; JOB@INSTANT names a tick, such as
    acme/nightly-report@2027-01-01T02:00:00Z.
    """
    job, at, instant = what.partition("@")
    if not at and not (what.isascii() and what.isdigit() and len(what) < _DIGITS):
        raise ScheduleError(
            f"'{what}' is neither the number of a run nor JOB@INSTANT",
            hint="such as: fleetcron why 812 (numbers are in: fleetcron runs),"
            " or: fleetcron why nightly-report@2027-01-01T02:00:00Z",
        )
    at_ms = instant_ms(instant, "INSTANT") if at else None

    async def work(store: Store) -> Answered:
        return await (_of_run(store, int(what)) if at_ms is None else _of_tick(store, job, at_ms))

    sentence, data = database.run(work)
    if as_json:
        print_json({**data, "why": sentence})
    else:
        click.echo(printable(sentence))


async def _of_run(store: Store, run_id: int) -> Answered:
    known = await store.situations.of_run(run_id)
    if known is None:
        raise no_such_run(run_id)
    return await _told(store, known)


async def _told(store: Store, known: Situation) -> Answered:
    said, way = await told(store, known)
    return said, {**_run_json(known), "merged_into": way}


async def _of_tick(store: Store, job: str, at_ms: int) -> Answered:
    tenant, name = split(job)
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
            raise await no_such_job(store, job)
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
    ticks = f"{numbered(answer.ticks, 'tick')} from {utc(answer.from_ms)} to {utc(answer.to_ms)}"
    return f"{answer.answer}, with the {ticks}: {reason}"


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
