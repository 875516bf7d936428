"""`fleetcron shadow`: jobs in shadow next to what the old scheduler did, and the hand-over."""

import sys
from collections.abc import Sequence
from typing import Final

import click

from fleetcron.cli.connection import Database, database_options
from fleetcron.cli.moments import instant_ms, local, utc, zone_of
from fleetcron.cli.names import by_option, the_job
from fleetcron.cli.tables import numbered, printable, table
from fleetcron.cli.when import json_option, print_json
from fleetcron.errors import RefusedError, ScheduleError
from fleetcron.policy.shadow import Difference
from fleetcron.scheduler.desk import Desk
from fleetcron.store.jobs import JobFilter, JobLine
from fleetcron.store.store import Store
from fleetcron.times.durations import rough_text
from fleetcron.times.instants import to_ms
from fleetcron.times.once import Once
from fleetcron.views.shadow import Handed, Report, count, handed_json, newest, report_json, reports, words
from fleetcron.views.shadow import hand_over as handed_over

_PAGE: Final = 500
_SHOWN: Final = 20
_HEADS: Final = ("JOB", "TICKS", "MATCHED", "MISSED", "DOUBLED", "UNEXPECTED", "FAILED", "DELAY", "HAND OVER AT", "")


@click.command("shadow")
@click.argument("names", nargs=-1, metavar="[JOB...]")
@click.option("--since", metavar="T", help="Compare from this instant on, or so long back, such as 2d. [default: 7d]")
@click.option("--hand-over", "wants", flag_value="hand-over", help="From --at on the ticks of JOB are ours.")
@click.option(
    "--back", "wants", flag_value="back", help="Put JOB into shadow again, or for the first time, from now on."
)
@click.option("--at", metavar="T", help="With --hand-over: the instant. [default: the one that the report names]")
@click.option("--all", "wants_all", is_flag=True, help="With --hand-over: all jobs that are the same so far.")
@by_option
@database_options
@json_option
def command(
    database: Database,
    names: tuple[str, ...],
    since: str | None,
    wants: str | None,
    at: str | None,
    wants_all: bool,
    by: str,
    as_json: bool,
) -> None:
    """Compare jobs in shadow with what the old scheduler did, or hand them over.

    In shadow a job runs nothing: its ticks are noted in the ledger, while the old scheduler runs the work and says so
    with `fleetcron ping`. Exit code 1 when something differs.
    """
    if (at is not None or wants_all) and wants != "hand-over":
        raise click.UsageError("--at and --all go with --hand-over")
    if wants is not None and bool(names) == wants_all:
        raise click.UsageError("say which jobs: their names, or --all" if wants == "hand-over" else "say which jobs")
    since_ms = instant_ms(since, "--since")
    if wants is None:
        _show(database.run(lambda store: _reports(store, names, since_ms)), as_json, bool(names))
        return
    at_ms = None if at is None else _instant(at)
    shards = database.config().scheduler.shards

    async def work(store: Store) -> list[Handed]:
        found = await _reports(store, names, since_ms)
        desk = Desk(store, actor=by, shards=shards)
        if wants == "back":
            return [await handed_over(store, desk, report.line, None) for report in found]
        chosen = [each for each in found if not wants_all or (each.in_shadow and each.verdict == "same")]
        return [await handed_over(store, desk, each.line, _chosen(each, at_ms)) for each in chosen]

    _say(database.run(work), as_json)


def _chosen(report: Report, at_ms: int | None) -> int:
    if at_ms is not None:
        return at_ms
    if report.hand_over_ms is None:
        definition = report.line.job.definition
        if definition.shadow_ms is None:
            raise RefusedError(f"{definition.seed} is not in shadow: there is nothing to hand over")
        raise RefusedError(f"{definition.seed}: {words(report)}. Name the instant yourself if you are sure: --at T")
    return report.hand_over_ms


async def _reports(store: Store, names: Sequence[str], since_ms: int | None) -> list[Report]:
    if names:
        return await reports(store, [await the_job(store, name) for name in dict.fromkeys(names)], since_ms)
    found: list[Report] = []
    after: tuple[str, str] | None = None
    while True:
        lines: list[JobLine] = await store.jobs.list(JobFilter(shadow=True, after=after), _PAGE)
        found += await reports(store, lines, since_ms)
        if len(lines) < _PAGE:
            return found
        after = lines[-1].job.definition.tenant, lines[-1].job.definition.name


def _instant(text: str) -> int:
    try:
        return to_ms(Once(text, "UTC", "shift", "first").at)
    except ScheduleError:
        raise ScheduleError(f"--at: '{text}' is not an instant", hint="write it as 2027-01-01T09:00:00Z") from None


# -- for people


def _show(found: Sequence[Report], as_json: bool, in_detail: bool) -> None:
    if as_json:
        print_json({"jobs": [report_json(report) for report in found]})
    elif not found:
        click.echo("No job is in shadow. Import some: fleetcron import crontab FILE --shadow")
    else:
        click.echo(table(_HEADS, [_row(report) for report in found]))
        for report in found if in_detail else ():
            for difference in newest(report.compared, _SHOWN):
                click.echo(f"{report.line.job.definition.seed}: {_difference(difference, report)}")
    if any(report.verdict == "differs" for report in found):
        sys.exit(1)


def _row(report: Report) -> list[str]:
    compared, counts, delays = report.compared, count(report.compared), report.compared.delays_ms()
    definition = report.line.job.definition
    colour = {"same": "green", "differs": "red", "nothing yet": "yellow"}[report.verdict]
    numbers = [f"{counts[kind]:,}" if counts[kind] else "" for kind in ("missed", "doubled", "unexpected", "failed")]
    return [
        definition.seed,
        f"{len(compared.ticks):,}",
        f"{compared.matched:,}",
        *numbers,
        "" if delays is None else rough_text(delays[0]),
        "" if report.hand_over_ms is None else local(report.hand_over_ms, zone_of(definition)),
        click.style(printable(words(report)), fg=colour),
    ]


def _difference(difference: Difference, report: Report) -> str:
    where = local(difference.at_ms, zone_of(report.line.job.definition))
    pings = [f"{printable(ping.host) or '?'} at {utc(ping.at_ms)}{_ended(ping.exit_code)}" for ping in difference.pings]
    return f"{difference.what} {where}" + (f": {', '.join(pings)}" if pings else "")


def _ended(exit_code: int | None) -> str:
    return f" (exit code {exit_code})" if exit_code else ""


def _say(found: Sequence[Handed], as_json: bool) -> None:
    if as_json:
        print_json({"jobs": [handed_json(each) for each in found]})
        return
    for each in found:
        click.echo(_said(each))
    if any(each.at_ms is not None for each in found):
        click.echo(
            "Take their lines out of the crontab after the last tick of the old scheduler and before ours, or put a "
            "guard in front of them now: fleetcron ping JOB --until T -- COMMAND. Undo: fleetcron shadow --back JOB"
        )
    elif not found:
        click.echo("Nothing was handed over: no job in shadow is the same so far.")


def _said(each: Handed) -> str:
    definition = each.line.job.definition
    zone = zone_of(definition)

    def shown(ms: int | None) -> str:
        return "none" if ms is None else local(ms, zone)

    if each.at_ms is None:
        left = f"; {numbered(each.open_runs, 'run')} of earlier ticks still to end" if each.open_runs else ""
        return f"{definition.seed}: in shadow; the old scheduler has its ticks from {shown(each.first_ms)} on{left}"
    said = "was handed over before" if each.applied.done == "unchanged" else "handed over"
    last, first = shown(each.last_ms), shown(each.first_ms)
    return f"{definition.seed}: {said}, at {utc(each.at_ms)}. The old scheduler's last tick: {last}; our first: {first}"
