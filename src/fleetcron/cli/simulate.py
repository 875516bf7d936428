"""`fleetcron simulate`: what would run, and what would not, on the real engine and on virtual time."""

import gc
import logging
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from fleetcron.cli.connection import Database, database_options
from fleetcron.cli.files import files_option
from fleetcron.cli.simulating import Asked, Prepared, prepare, refuse
from fleetcron.cli.tables import numbered, table
from fleetcron.cli.when import json_option, print_json
from fleetcron.simulate.durations import DEFAULT_MS
from fleetcron.simulate.outlook import ANSWERS, Facts, Figures, Outlook, Peak, outlook
from fleetcron.simulate.scenario import MOST_TICKS, rehearse
from fleetcron.simulate.timeline import svg
from fleetcron.times.durations import duration_text, rough_text
from fleetcron.times.instants import from_ms, iso

_SHOWN = 40  # jobs
_OPTIONS = (
    click.option("--from", "since", metavar="T", help="Where the period begins; 2h is two hours ago. [default: now]"),
    click.option("--to", "until", metavar="T", help="Where it ends. [default: 24 hours later]"),
    click.option("--for", "length", metavar="DURATION", help="How long it is, instead of --to."),
    click.option("--outage", "outages", multiple=True, metavar="FROM/TO",
                 help="The whole fleet is down: two instants, or an instant and a duration. +6h counts from --from. "
                 "Repeatable."),
    click.option("--duration", "durations", multiple=True, metavar="JOB=DURATION",
                 help="How long a job takes; JOB may have *. Repeatable. [default: as the database has seen it]"),
    click.option("--default-duration", metavar="DURATION", default=duration_text(DEFAULT_MS), show_default=True,
                 help="How long a job takes that nobody has seen."),
    click.option("--slots", "slots", multiple=True, metavar="POOL=NUMBER",
                 help="Slots of each worker in a pool. Repeatable. [default: as the living workers have, or 10]"),
    click.option("--workers", type=click.IntRange(1, 100), help="How many workers there are, each with the slots of an "
                 "average living one. [default: one, with the slots of all that live]"),
    click.option("--set", "changes", multiple=True, metavar="JOB.FIELD=VALUE",
                 help="Another policy, such as 'report.misfire=all' or '*.overlap=queue'. Repeatable."),
    click.option("--against", metavar="FILE", help="Other jobs to compare with."),
    click.option("--compare", is_flag=True, help="Simulate without --set too, and show both side by side."),
    click.option("--past", is_flag=True, help="The past of the database again: every attempt takes as long and ends "
                 "as it did. [default period: the last 24 hours]"),
    click.option("--svg", "picture", metavar="FILE", help="Write a timeline."),
    click.option("--max-ticks", default=MOST_TICKS, show_default=True, type=click.IntRange(1, 10_000_000),
                 help="Refuse a period with more ticks."),
)  # fmt: skip


def _options(function: Callable[..., Any]) -> Callable[..., Any]:
    for option in reversed(_OPTIONS):
        function = option(function)
    return function


@click.command("simulate")
@files_option
@click.option("--app", "app_name", metavar="MODULE:NAME", help="The jobs of a Fleetcron app, such as shop.jobs:app.")
@_options
@database_options
@json_option
def command(database: Database, as_json: bool, picture: str | None, **given: Any) -> None:
    """Say what would run, be skipped, merged, missed or late in a period, and how full the workers would be.

    The real scheduler and worker run on virtual time and a database in memory; nothing is executed, and nothing is
    written. Jobs come from files (-f), from a Python app (--app), or from the database.
    """
    prepared = prepare(database, Asked(**given))
    if picture is not None:
        _can_be_written(picture)
    with _undisturbed(), _progress(len(prepared.scenarios)) as progress:
        played = [(title, rehearse(scenario, progress)) for title, scenario in prepared.scenarios]
    if picture is not None:
        _draw(picture, played)
    seen = [(title, outlook(facts)) for title, facts in played]
    if as_json:
        print_json(_as_json(prepared, played, seen))
        return
    _show(prepared, played, seen)
    if picture is not None:
        click.echo(f"The timeline is in {picture}.")


@contextmanager
def _undisturbed() -> Iterator[None]:
    """What simulated nodes complain about is no news. And batches are many objects, none of them in a circle: Python
    is to look for circles less often, as in a node."""
    log, often = logging.getLogger("fleetcron"), gc.get_threshold()
    level = log.level
    log.setLevel(logging.CRITICAL)
    gc.set_threshold(20_000, 20, 20)
    try:
        yield
    finally:
        log.setLevel(level)
        gc.set_threshold(*often)


@contextmanager
def _progress(scenarios: int) -> Iterator[Callable[[float], None]]:
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    with click.progressbar(length=1000 * scenarios, label="simulating", file=sys.stderr) as bar:
        before = 0.0

        def move(share: float) -> None:
            nonlocal before
            bar.update(round(1000 * (share - before)) if share >= before else round(1000 * share))
            before = share % 1.0

        yield move


def _draw(name: str, played: list[tuple[str, Facts]]) -> None:
    with _written(name):
        Path(name).write_text(svg(played), "utf-8")


def _can_be_written(name: str) -> None:
    """Asked before anything is simulated, which may take minutes. What is there stays."""
    with _written(name):
        was_there = Path(name).exists()
        Path(name).open("a").close()
        if not was_there:
            Path(name).unlink()


@contextmanager
def _written(name: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        refuse("--svg", f"{name} cannot be written: {error.strerror}", "look at the name and the rights")


def _as_json(prepared: Prepared, played: list[tuple[str, Facts]], seen: list[tuple[str, Outlook]]) -> dict[str, Any]:
    facts = played[0][1]
    return {
        "from": iso(from_ms(facts.from_ms)),
        "to": iso(from_ms(facts.to_ms)),
        "outages": [{"from": iso(from_ms(begin)), "to": iso(from_ms(end))} for begin, end in facts.outages],
        "left_out": prepared.left_out,
        "idle_upstreams": [
            {"job": each.job, "state": each.state, "needed_by": list(each.needed_by)}
            for each in prepared.idle_upstreams
        ],
        "durations": prepared.durations,
        "workers": prepared.scenarios[0][1].workers,
        "slots": prepared.capacity(),
        "simulations": [{"title": title, **each.as_json()} for title, each in seen],
    }


# -- for people


def _show(prepared: Prepared, played: list[tuple[str, Facts]], seen: list[tuple[str, Outlook]]) -> None:
    facts = played[0][1]
    ticks = numbered(seen[0][1].total.ticks, "tick")
    click.echo(f"{iso(from_ms(facts.from_ms))} to {iso(from_ms(facts.to_ms))}, {ticks}")
    for begin, end in facts.outages:
        click.echo(f"outage {iso(from_ms(begin))} to {iso(from_ms(end))} ({rough_text(end - begin)})")
    for note in prepared.notes:
        click.echo(note)
    click.echo()
    _jobs(seen)
    for title, each in seen:
        name = f"{title}: " if len(seen) > 1 else ""
        pools = ", ".join(f"{pool} {peak.most}" for pool, peak in each.running_by_pool.items())
        more = f" ({pools})" if len(each.running_by_pool) > 1 else ""
        click.echo(f"{name}running at most {_peak(each.running)}{more}; waiting at most {_peak(each.waiting)}")


def _peak(peak: Peak) -> str:
    return str(peak.most) if peak.at_ms is None else f"{peak.most} at {from_ms(peak.at_ms):%Y-%m-%d %H:%M:%SZ}"


def _jobs(seen: list[tuple[str, Outlook]]) -> None:
    titled = len(seen) > 1
    names = list(dict.fromkeys(job for _, each in seen for job in each.by_job))
    kinds = [kind for kind in ANSWERS if any(each.total.answers[kind] for _, each in seen)]
    rows: list[list[str]] = []
    for job in names[:_SHOWN]:
        rows += _rows(job, [(title, each.by_job[job]) for title, each in seen if job in each.by_job], kinds, titled)
    rows += _rows("all", [(title, each.total) for title, each in seen], kinds, titled)
    heads = ["JOB", "", "TICKS", *(kind.upper() for kind in kinds), "TRIES", "LATE P50", "P95", "MAX"]
    if titled:
        heads[1] = "WITH"
    click.echo(table(heads, rows))
    if len(names) > _SHOWN:
        click.echo(f"… and {numbered(len(names) - _SHOWN, 'more job')} (--json lists them all)")


def _rows(job: str, found: list[tuple[str, Figures]], kinds: list[str], titled: bool) -> list[list[str]]:
    rows = []
    for at, (title, each) in enumerate(found):
        late = [each.late(percent) for percent in (50, 95, 100)]
        rows.append(
            [
                job if at == 0 else "",
                title if titled else "",
                f"{each.ticks:,}",
                *(f"{each.answers[kind]:,}" for kind in kinds),
                f"{each.attempts:,}",
                *("-" if ms is None else rough_text(ms) for ms in late),
            ]
        )
    return rows
