"""`fleetcron shadow`: jobs in shadow next to what the old scheduler did, and the hand-over."""

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import click

from fleetcron.cli.asking import Doc
from fleetcron.cli.connection import Database, database_options
from fleetcron.cli.moments import as_json as as_json_instant
from fleetcron.cli.moments import instant_ms, local, ms_of, shown
from fleetcron.cli.names import by_option, naming, split_there, the_job
from fleetcron.cli.tables import numbered, printable, table
from fleetcron.cli.when import json_option, print_json
from fleetcron.errors import RefusedError, ScheduleError
from fleetcron.scheduler.desk import Desk
from fleetcron.store.jobs import JobFilter, JobLine
from fleetcron.store.store import Store
from fleetcron.times import zones
from fleetcron.times.durations import rough_text
from fleetcron.times.instants import to_ms
from fleetcron.times.once import Once
from fleetcron.views.shadow import ANYWAY, Report, check_able, handed_json, report_json, reports
from fleetcron.views.shadow import hand_over as handed_over

if TYPE_CHECKING:
    from fleetcron.client.blocking import Client

_PAGE: Final = 500
_SHOWN: Final = 20
_HEADS: Final = ("JOB", "TICKS", "MATCHED", "MISSED", "DOUBLED", "UNEXPECTED", "FAILED", "DELAY", "HAND OVER AT", "")


@click.command("shadow")
@click.argument("names", nargs=-1, metavar="[JOB...]")
@click.option("--since", metavar="T", help="Compare from this instant on, or so long back, such as 2d. [default: 7d]")
@click.option("--hand-over", "wants_over", is_flag=True, help="From --at on the ticks of JOB are ours.")
@click.option(
    "--back", "wants_back", is_flag=True, help="Put JOB into shadow again, or for the first time, from now on."
)
@click.option("--at", metavar="T", help="With --hand-over: the instant. [default: the one that the report names]")
@click.option("--anyway", is_flag=True, help="With --hand-over: also if no worker that lives could run it.")
@click.option("--all", "wants_all", is_flag=True, help="With --hand-over: all jobs that are the same so far.")
@by_option
@database_options
@json_option
def command(
    database: Database,
    names: tuple[str, ...],
    since: str | None,
    wants_over: bool,
    wants_back: bool,
    at: str | None,
    anyway: bool,
    wants_all: bool,
    by: str,
    as_json: bool,
) -> None:
    """Compare jobs in shadow with what the old scheduler did, or hand them over.

    In shadow a job runs nothing: its ticks are noted in the ledger, while the old scheduler runs the work and says so
    with `fleetcron ping`. Exit code 1 when something differs.
    """
    _check_wishes(names, over=wants_over, back=wants_back, wants_all=wants_all, more=at is not None or anyway)
    since_ms = instant_ms(since, "--since")
    if not wants_over and not wants_back:
        _show(
            database.ask(lambda s: _documents(s, names, since_ms), lambda c: _there(c, names, since_ms)),
            as_json,
            bool(names),
        )
        return
    at_ms = None if at is None else _instant(at)

    async def of_store(store: Store) -> list[Any]:
        desk = Desk(store, actor=by, shards=database.config().scheduler.shards)
        found = await _reports(store, names, since_ms)
        lines = {each.line.job.job_id: each.line for each in found}
        return [
            handed_json(await handed_over(store, desk, lines[told["job_id"]], instant, anyway=True))
            for told, instant in chosen([report_json(each) for each in found])
        ]

    def of_api(client: "Client") -> list[Any]:
        return [_handed(client, told, instant, anyway) for told, instant in chosen(_there(client, names, since_ms))]

    def chosen(found: Sequence[Doc]) -> list[tuple[Doc, int | None]]:
        """All of them are looked at before the first one is handed over: whether it can be run, too."""
        asked = [told for told in found if not wants_all or _is_ready(told)]
        if wants_back:
            return [(told, None) for told in asked]
        instants = [(told, _chosen(told, at_ms)) for told in asked]
        if not anyway:
            _check_able(instants)
        return list(instants)

    _say(database.ask(of_store, of_api), as_json)


def _is_ready(report: Doc) -> bool:
    return bool(report["in_shadow"] and report["verdict"] == "same")


def _check_wishes(names: Sequence[str], *, over: bool, back: bool, wants_all: bool, more: bool) -> None:
    """Nobody guesses which of two contrary wishes is meant: one of them starts a job, the other stops it."""
    if over and back:
        raise click.UsageError("--hand-over and --back exclude each other: say one of them")
    if (wants_all or more) and not over:
        raise click.UsageError("--at, --all and --anyway go with --hand-over")
    if names and wants_all:
        raise click.UsageError("--all is every job that is the same so far: leave it out, or the names")
    if (over or back) and not names and not wants_all:
        raise click.UsageError("say which jobs: their names, or --all" if over else "say which jobs")


def _chosen(report: Doc, at_ms: int | None) -> int:
    """The instant of the hand-over."""
    if at_ms is not None:
        return at_ms
    if report["hand_over_at"] is None:
        if report["shadow"] is False:
            raise RefusedError(f"{_full(report)} is not in shadow: there is nothing to hand over")
        raise RefusedError(f"{_full(report)}: {report['words']}. Name the instant yourself if you are sure: --at T")
    return ms_of(report["hand_over_at"])


def _check_able(chosen: Sequence[tuple[Doc, int]]) -> None:
    """All that nobody could run are named at once: whoever has to start workers starts them all."""
    unable = {
        _full(report): report["unable"]
        for report, at_ms in chosen
        if report["in_shadow"]
        and report["shadow"] != as_json_instant(at_ms)
        and at_ms > ms_of(report["until"])
        and report.get("unable") is not None  # an older API does not say it
    }
    if len(unable) == 1:
        check_able(*next(iter(unable.items())))
    elif unable:
        listed = "; ".join(f"{name}: {why}" for name, why in unable.items())
        raise RefusedError(f"nothing is handed over, since these would not run: {listed}. {ANYWAY}")


def _full(job: Doc) -> str:
    return f"{job['tenant']}/{job['name']}"


async def _documents(store: Store, names: Sequence[str], since_ms: int | None) -> list[Any]:
    return [report_json(report) for report in await _reports(store, names, since_ms)]


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


def _there(client: "Client", names: Sequence[str], since_ms: int | None) -> list[Any]:
    since = as_json_instant(since_ms)
    if not names:
        return list(client.shadow.list(since=since))
    found: list[Any] = []
    for each in dict.fromkeys(names):
        tenant, name = split_there(each)
        with naming(client, each):
            found.append(client.shadow.get(name, since=since, tenant=tenant))
    return found


def _handed(client: "Client", report: Doc, at_ms: int | None, anyway: bool) -> Doc:
    name, tenant = report["name"], report["tenant"]
    if at_ms is None:
        return client.shadow.begin(name, tenant=tenant)
    return client.shadow.hand_over(name, as_json_instant(at_ms), anyway=anyway, tenant=tenant)


def _instant(text: str) -> int:
    try:
        return to_ms(Once(text, "UTC", "shift", "first").at)
    except ScheduleError:
        raise ScheduleError(f"--at: '{text}' is not an instant", hint="write it as 2027-01-01T09:00:00Z") from None


# -- for people


def _show(found: Sequence[Doc], as_json: bool, in_detail: bool) -> None:
    if as_json:
        print_json({"jobs": found})
    elif not found:
        click.echo("No job is in shadow. Import some: fleetcron import crontab FILE --shadow")
    else:
        click.echo(table(_HEADS, [_row(report) for report in found]))
        if any(report["shadow"] is True and report["hand_over_at"] for report in found):
            click.echo("(in brackets: not handed over; from then on it could be: fleetcron shadow JOB --hand-over)")
        for report in found:
            if report["in_shadow"] and report.get("unable"):
                warning = click.style("warning", fg="yellow")
                click.echo(f"{warning} {_full(report)} could not run here now: {printable(report['unable'])}")
        for report in found if in_detail else ():
            for difference in report["differences"][:_SHOWN]:
                click.echo(f"{_full(report)}: {_difference(difference, report)}")
    if any(report["verdict"] == "differs" for report in found):
        sys.exit(1)


def _row(report: Doc) -> list[str]:
    colour = {"same": "green", "differs": "red", "nothing yet": "yellow"}[report["verdict"]]
    numbers = [f"{report[kind]:,}" if report[kind] else "" for kind in ("missed", "doubled", "unexpected", "failed")]
    return [
        _full(report),
        f"{report['ticks']:,}",
        f"{report['matched']:,}",
        *numbers,
        "" if report["delay"] is None else rough_text(report["delay"]["median_ms"]),
        _hand_over(report),
        click.style(printable(report["words"]), fg=colour),
    ]


def _hand_over(report: Doc) -> str:
    """An instant that somebody has chosen, or one that could be."""
    at = report["hand_over_local"] or ""
    return f"({at})" if at and report["shadow"] is True else at


def _difference(difference: Doc, report: Doc) -> str:
    pings = [
        f"{printable(ping['host'] or '') or '?'} at {shown(ping['at'])}{_ended(ping['exit_code'])}"
        for ping in difference["pings"]
    ]
    return f"{difference['what']} {_local(difference['at'], report)}" + (f": {', '.join(pings)}" if pings else "")


def _local(instant: str, job: Doc) -> str:
    """In the zone of the job; a zone that only a newer server knows is UTC here."""
    try:
        zone = zones.zone(job["timezone"])
    except ScheduleError:
        zone = zones.zone("UTC")
    return local(ms_of(instant), zone)


def _ended(exit_code: int | None) -> str:
    return f" (exit code {exit_code})" if exit_code else ""


def _say(found: Sequence[Doc], as_json: bool) -> None:
    if as_json:
        print_json({"jobs": found})
        return
    for each in found:
        click.echo(_said(each))
    if any(each["at"] is not None for each in found):
        click.echo(
            "Take their lines out of the crontab after the last tick of the old scheduler and before ours, or put a "
            "guard in front of them now: fleetcron ping JOB --until T -- COMMAND. Undo: fleetcron shadow --back JOB"
        )
    elif not found:
        click.echo("Nothing was handed over: no job in shadow is the same so far.")


def _said(each: Doc) -> str:
    last, first = ("none" if at is None else _local(at, each) for at in (each["last_before"], each["first_after"]))
    if each["at"] is None:
        left = f"; {numbered(each['open_runs'], 'run')} of earlier ticks still to end" if each["open_runs"] else ""
        return f"{_full(each)}: in shadow; the old scheduler has its ticks from {first} on{left}"
    said = "was handed over before" if each["done"] == "unchanged" else "handed over"
    return f"{_full(each)}: {said}, at {shown(each['at'])}. The old scheduler's last tick: {last}; our first: {first}"
