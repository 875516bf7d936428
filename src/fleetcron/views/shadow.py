"""Jobs in shadow, next to what the old scheduler did: the report as a value, and as a document."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from fleetcron.errors import RefusedError
from fleetcron.model.past import Entry
from fleetcron.model.ping import Ping
from fleetcron.model.standing import Standing
from fleetcron.model.writing import shadow_document
from fleetcron.policy import shadow
from fleetcron.policy.shadow import Comparison, Difference, Verdict
from fleetcron.scheduler.desk import Applied, Desk
from fleetcron.scheduler.tables import Tables, build
from fleetcron.store.jobs import Found, JobLine
from fleetcron.store.pings import Noted
from fleetcron.store.store import Store
from fleetcron.times.durations import rough_text
from fleetcron.times.instants import LAST_MS
from fleetcron.times.timetable import Timetable
from fleetcron.views.able import fleet
from fleetcron.views.instants import as_json as instant_json
from fleetcron.views.instants import local, utc, zone_of
from fleetcron.views.schedules import short

SINCE_MS: Final = 7 * 86_400_000
MOST_TICKS: Final = 20_000
MOST_DIFFERENCES: Final = 100  # the newest
_OPEN: Final = 1_000
ANYWAY: Final = "Start it first; if it will be there in time, hand over anyway (--anyway, anyway: true)"


@dataclass(frozen=True, slots=True)
class Report:
    line: JobLine
    now_ms: int
    since_ms: int
    compared: Comparison
    hand_over_ms: int | None  # when to hand it over, or when it is or was
    unable: str | None = None  # why no worker that lives could run it

    @property
    def in_shadow(self) -> bool:
        return is_in_shadow(self.line, self.now_ms)

    @property
    def verdict(self) -> Verdict:
        return self.compared.verdict


def is_in_shadow(line: JobLine, now_ms: int) -> bool:
    return (line.job.definition.shadow_ms or 0) > now_ms


async def reports(store: Store, lines: Sequence[JobLine], since_ms: int | None = None) -> list[Report]:
    """One for each job. Of a week unless `since_ms` says otherwise; of jobs with very many ticks of their last ones."""
    tables, crew = Tables(store.almanac), await fleet(store)
    found = await store.jobs.find([(line.job.definition.tenant, line.job.definition.name) for line in lines])
    made = []
    for line in lines:
        standing = found.standings.get((line.job.definition.tenant, line.job.definition.name))
        if standing is not None and standing.job.job_id == line.job.job_id:
            report = await _report(store, tables, found, line, standing, since_ms)
            made.append(replace(report, unable=crew.why_not(line.job.definition)))
    return made


async def timetable_of(tables: Tables, standing: Standing, epoch: int) -> Timetable:
    return build(standing.timing, (await tables.known(standing.timing.parts(), epoch)).almanac)


async def _report(
    store: Store, tables: Tables, found: Found, line: JobLine, standing: Standing, since_ms: int | None
) -> Report:
    definition, now_ms = line.job.definition, found.now_ms
    since = now_ms - SINCE_MS if since_ms is None else since_ms
    past = await store.backfills.look(line.job.job_id, since - shadow.ENDED_WITHIN_MS, now_ms)
    ticks = await _ticks(tables, () if past is None else past.entries)
    shadow_ms = definition.shadow_ms
    ours = [] if past is None or shadow_ms is None else [tick for tick in past.runs if tick < shadow_ms]
    if ours:  # it was handed over once and taken back: what the old scheduler did meanwhile is another story
        since = max(since, *(tick + 1 for tick in ours))
        ticks = [tick for tick in ticks if tick >= since]
    if len(ticks) >= MOST_TICKS:
        since = max(since, ticks[0] + shadow.STARTED_WITHIN_MS)
    timetable = await timetable_of(tables, standing, found.epoch)
    gaps = () if past is None else past.gaps
    until = shadow.horizon_ms(timetable, standing.at.cursor_ms, shadow_ms, gaps)
    pings = await store.pings.list(line.job.job_id, since, now_ms + 1 if until is None else min(until, now_ms + 1))
    ours_ms = None if shadow_ms is None else timetable.next_ms(shadow_ms - 1)
    compared = shadow.compare(ticks, pings, since_ms=since, now_ms=now_ms, shadow_ms=shadow_ms, ours_ms=ours_ms)
    if shadow_ms == LAST_MS:
        is_same = compared.verdict == "same" and line.job.state == "active"
        shadow_ms = shadow.hand_over_ms(timetable, now_ms) if is_same else None
    return Report(line, now_ms, since, compared, shadow_ms)


async def _ticks(tables: Tables, entries: Iterable[Entry]) -> list[int]:
    """The ticks in shadow, from the ledger: what was noted is the truth about what we would have run."""
    mine = [entry for entry in entries if entry.answer.reason == "shadow"]
    found: list[int] = []
    for entry in reversed(mine):
        known = await tables.timetables([entry.timing_id], entry.almanac)
        answer = entry.answer
        found += reversed(list(known[entry.timing_id][1].ticks_ms(answer.from_ms - 1, answer.to_ms)))
        if len(found) >= MOST_TICKS:
            break
    return found[:MOST_TICKS][::-1]


def report_json(report: Report) -> dict[str, Any]:
    definition, compared = report.line.job.definition, report.compared
    zone, delays = zone_of(definition), compared.delays_ms()
    counts = count(compared)
    at_ms = report.hand_over_ms
    return {
        "tenant": definition.tenant,
        "name": definition.name,
        "job_id": report.line.job.job_id,
        "schedule": short(definition),
        "state": report.line.job.state,
        "shadow": shadow_document(definition.shadow_ms),
        "in_shadow": report.in_shadow,
        "since": instant_json(report.since_ms),
        "until": instant_json(report.now_ms),
        "ticks": len(compared.ticks),
        "matched": compared.matched,
        "waiting": compared.waiting,
        **{name.replace(" ", "_").replace("-", "_"): number for name, number in counts.items()},
        "delay": None if delays is None else {"median_ms": delays[0], "longest_ms": delays[1]},
        "hosts": hosts(each for matched in compared.ticks for each in matched.pings),
        "verdict": report.verdict,
        "words": words(report),
        "unable": report.unable,
        "hand_over_at": instant_json(at_ms),
        "hand_over_local": None if at_ms is None else local(at_ms, zone),
        "timezone": zone.name,
        "differences": [_difference(each) for each in newest(compared)],
    }


def count(compared: Comparison) -> dict[str, int]:
    kinds = ("missed", "doubled", "unexpected", "failed", "after hand-over")
    found = [each.what for each in compared.differences()]
    return {kind: found.count(kind) for kind in kinds}  # type: ignore[arg-type]


def newest(compared: Comparison, most: int = MOST_DIFFERENCES) -> list[Difference]:
    return list(compared.differences())[::-1][:most]


def hosts(pings: Iterable[Ping]) -> list[str]:
    return sorted({ping.host for ping in pings if ping.host})


def words(report: Report) -> str:
    """What it comes to, for people."""
    compared, counts = report.compared, count(report.compared)
    failed = f"; {counts['failed']:,} failed" if counts["failed"] else ""
    match report.verdict:
        case "nothing yet":
            return "nothing to compare yet: none of its ticks has come" if not compared.ticks else "no ping yet"
        case "same":
            median, longest = compared.delays_ms() or (0, 0)
            delay = f"delay {rough_text(median)}, at most {rough_text(longest)}"
            return f"same so far: {compared.matched:,} of {compared.matched:,} ticks, {delay}{failed}"
        case "differs":
            if counts["after hand-over"]:
                where = ", ".join(hosts(compared.after)) or "somewhere"
                ours = "so do we; take its line out" if report.unable is None else f"ours waits: {report.unable}"
                return f"differs: the old scheduler still runs it ({where}), and {ours}"
            if not compared.matched and not compared.unexpected:
                return f"differs: {counts['missed']:,} ticks, and no ping: does its line say fleetcron ping?"
            found = [f"{number:,} {kind}" for kind, number in counts.items() if number and kind != "failed"]
            twice = hosts(each for tick in compared.ticks if len(tick.pings) > 1 for each in tick.pings)
            by = f" (by {', '.join(twice)})" if counts["doubled"] and twice else ""
            return f"differs: {', '.join(found)}{by}{failed}"


def _difference(each: Difference) -> dict[str, Any]:
    return {
        "what": each.what,
        "at": instant_json(each.at_ms),
        "pings": [ping_json(ping) for ping in each.pings],
    }


def ping_json(ping: Ping) -> dict[str, Any]:
    return {
        "id": ping.ping_id,
        "at": instant_json(ping.at_ms),
        "started_at": instant_json(ping.started_ms),
        "finished_at": instant_json(ping.finished_ms),
        "exit_code": ping.exit_code,
        "host": ping.host or None,
    }


def noted_json(tenant: str, name: str, noted: Noted, warning: str | None) -> dict[str, Any]:
    """The answer to a ping."""
    return {
        "tenant": tenant,
        "name": name,
        "ping": ping_json(noted.ping),
        "shadow": shadow_document(noted.shadow_ms),
        "warning": warning,
    }


async def warned(store: Store, tenant: str, name: str, noted: Noted) -> str | None:
    """What whoever pings has to know: the ticks are ours by now. While the job is in shadow nothing is asked."""
    if noted.shadow_ms is not None and noted.ping.at_ms < noted.shadow_ms:
        return None
    ours = "it is not in shadow" if noted.shadow_ms is None else f"it was handed over at {utc(noted.shadow_ms)}"
    standing = (await store.jobs.find([(tenant, name)])).standings.get((tenant, name))
    if standing is not None and standing.job.state != "active":
        return f"{ours}, and it is {standing.job.state} here: we do not run it. Resume it, or take its line out"
    unable = None if standing is None else (await fleet(store)).why_not(standing.job.definition)
    if unable is not None:
        then = f"what waits will run too, unless it is cancelled: fleetcron runs --job {name}"
        return f"{ours}, and our runs wait: {unable}. Keep its line, or: fleetcron shadow --back {name}; {then}"
    return f"{ours}, and runs twice now: take its line out"


# -- the hand-over


@dataclass(frozen=True, slots=True)
class Handed:
    """A job that was handed over at `at_ms`, or put into shadow (None): the last tick of the old scheduler before that
    instant and the first of the new one from it on; and what of ours has not ended."""

    line: JobLine
    applied: Applied
    at_ms: int | None
    last_ms: int | None
    first_ms: int | None
    open_runs: int = 0


async def hand_over(store: Store, desk: Desk, line: JobLine, at_ms: int | None, *, anyway: bool = False) -> Handed:
    """Hand a job over at an instant, or put it into shadow from now on. A RefusedError if that cannot be, or if no
    worker that lives could run it: its ticks would be nobody's. `anyway`: they will be there by then."""
    tenant, name = line.job.definition.tenant, line.job.definition.name
    if at_ms is not None and not anyway:
        crew, shadow_ms = await fleet(store), line.job.definition.shadow_ms or 0
        # the desk refuses what is not in shadow or has passed; and whoever asks again is told the same again
        if min(shadow_ms, at_ms) > crew.now_ms and shadow_ms != at_ms:
            check_able(f"{tenant}/{name}", crew.why_not(line.job.definition))
    applied = await (desk.take_back(tenant, name) if at_ms is None else desk.hand_over(tenant, name, at_ms))
    found = await store.jobs.find([(tenant, name)])
    standing = found.standings.get((tenant, name))
    if standing is None:  # deleted in the same moment
        return Handed(line, applied, at_ms, None, None)
    timetable = await timetable_of(Tables(store.almanac), standing, found.epoch)
    since_ms = standing.job.updated_ms + 1 if at_ms is None else at_ms
    last, first = timetable.prev_ms(since_ms), timetable.next_ms(since_ms - 1)
    left = await store.history.open(line.job.job_id, limit=_OPEN) if at_ms is None else ()
    return Handed(line, applied, at_ms, last, first, len(left))


def check_able(name: str, unable: str | None) -> None:
    if unable is not None:
        raise RefusedError(f"{name} is not handed over, since its ticks would not run: {unable}. {ANYWAY}")


def handed_json(handed: Handed) -> dict[str, Any]:
    applied = handed.applied
    return {
        "tenant": applied.tenant,
        "name": applied.name,
        "done": applied.done,
        "revision": applied.job and applied.job.revision,
        "shadow": shadow_document(LAST_MS if handed.at_ms is None else handed.at_ms),
        "at": instant_json(handed.at_ms),
        "last_before": instant_json(handed.last_ms),
        "first_after": instant_json(handed.first_ms),
        "timezone": zone_of(handed.line.job.definition).name,
        "open_runs": handed.open_runs,
    }
