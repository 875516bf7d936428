"""The plan of an import for people and for scripts, and what follows from it: a file, or jobs in the store."""

import asyncio
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import click

from fleetcron.applying.apply import Report, mark_unable
from fleetcron.cli.apply import progress_bar
from fleetcron.cli.changes import change_words
from fleetcron.cli.connection import Database, is_named, opened, sqlite_path
from fleetcron.cli.import_marks import carry_out
from fleetcron.cli.rehearsal import rehearsing
from fleetcron.cli.tables import coloured, numbered, printable, shortened
from fleetcron.cli.when import print_json
from fleetcron.cli.yamltext import dumped
from fleetcron.config import Config
from fleetcron.errors import ConfigError, FleetcronError, Mistake, RefusedError
from fleetcron.imports.plan import Finding, ImportedJob, Level, Plan
from fleetcron.model.definition import Definition
from fleetcron.model.reading import read_definitions
from fleetcron.views.able import Crew, fleet
from fleetcron.views.shadow import ANYWAY

_WORDS: Final[Mapping[Level, str]] = {
    "left_out": "LEFT OUT",
    "differs": "DIFFERS",
    "note": "NOTE",
}
_COLOURS: Final[Mapping[Level, str]] = {"left_out": "red", "differs": "yellow", "note": "cyan"}
_WRITES: Final = ("created", "changed")
_NAMED: Final = 4  # jobs in one line
_LOOK: Final = "look at the name and the rights; the folder has to be there"


@dataclass(frozen=True, slots=True)
class Outcome:
    """What is to be done with a plan."""

    database: Database
    by: str
    as_json: bool
    output: str | None = None
    apply: bool = False
    yes: bool = False
    anyway: bool = False
    force: bool = False


def finish(plan: Plan, outcome: Outcome) -> None:
    """Show it, write it, and apply it if that was asked for."""
    if outcome.as_json and outcome.apply and not outcome.yes:
        raise click.UsageError("--json cannot ask: add --yes, or leave out --apply")
    seen = _looked(plan, outcome)
    text = yaml_of(plan)
    files = plan.files if outcome.output is None else {Path(outcome.output): text, **plan.files}
    _check_free(files, outcome.force)
    report = None
    if outcome.as_json:
        _write(plan, files)
        report = _applied(plan, outcome) if outcome.apply and plan.jobs else None
        print_json(_json(plan, outcome, report))
    else:
        # the YAML may be on its way into a file: people read beside it
        beside = outcome.output is None and not outcome.apply
        if beside and plan.jobs:
            click.echo(text, nl=False)
        _show(plan, err=beside)
        _show_pinged(plan, err=beside)
        if seen is not None and outcome.apply:
            _show_before(seen)
        if not outcome.apply or not plan.jobs or outcome.yes or _agreed(seen):
            _write(plan, files)
            _say_written(files, outcome, err=beside)
            report = _applied(plan, outcome) if outcome.apply and plan.jobs else None
            if report is not None:
                _say_applied(report)
        else:
            click.echo("Nothing was applied, and nothing written." if files else "Nothing was applied.")
    if (report is not None and report.refused) or any(each.level == "left_out" for each in plan.all_findings()):
        sys.exit(1)


def _looked(plan: Plan, outcome: Outcome) -> Report | None:
    """What would become of each job in the store, if there is one to look at. Whoever applies has to know; for others
    it is a help."""
    if not plan.jobs:
        return None
    try:
        if not outcome.apply and not _is_known(outcome.database):
            return None
        report = asyncio.run(_rehearse(plan, outcome, outcome.database.config()))
    except (FleetcronError, OSError) as error:
        if outcome.apply:
            raise
        plan.say("note", f"whether the store has such names already is not known: {error}")
        return None
    if outcome.apply:
        plan.stand_back({(job.applied.tenant, job.applied.name) for job in report.refused})
    else:
        _say_taken(plan, report)
    return report


def _is_known(database: Database) -> bool:
    """Whether there is a database to look at, which nobody has to wait for or to make."""
    if database.api is not None:
        return False
    config = database.settings()
    path = sqlite_path(config.store.url)
    if database.there is not None and not is_named(config):
        return False
    return path.exists() if path is not None else is_named(config)


async def _rehearse(plan: Plan, outcome: Outcome, config: Config) -> Report:
    async with rehearsing(config) as store:
        return await carry_out(store, plan, by=outcome.by, config=config)


def _say_taken(plan: Plan, report: Report) -> None:
    """Who writes a file applies it by hand, and that changes whatever has these names. It is no comment in the file,
    which is the same whatever the store has."""
    done = {(each.applied.tenant, each.applied.name): each.applied.done for each in report.jobs}
    hint = "look at it before you apply; if it is another job, --prefix NAME- gives these other names"
    for job in plan.jobs:
        if done[job.full_name] in ("refused", "changed"):
            said = "the store has a job of this name, which says something else or is live"
            plan.findings.append(Finding("differs", said, hint, job.origin, job.name))


def _show_before(report: Report) -> None:
    """What an answer of yes would change, and what it would not touch."""
    for job in report.jobs:
        if job.applied.done == "changed":
            said = ", ".join(change_words(each) for each in job.changed)
            click.echo(f"{coloured('changed')} {job.full_name}: {said}")
    for job in report.refused:
        click.echo(f"{coloured('refused')} {job.full_name}: {printable(job.applied.reason or '')}")


def _check_free(files: Mapping[Path, str], force: bool) -> None:
    """Somebody may have edited what an import has written before."""
    taken = [] if force else [path for path, text in files.items() if path.is_file() and not _says(path, text)]
    if taken:
        hint = "--force writes over it; or name another file"
        raise ConfigError([Mistake(str(path), "is there already, and says something else", hint) for path in taken])


def _write(plan: Plan, files: Mapping[Path, str]) -> None:
    for path in plan.files:
        path.parent.mkdir(parents=True, exist_ok=True)
    for path, text in files.items():
        try:
            path.write_text(text, "utf-8", newline="")
        except OSError as error:
            raise ConfigError([Mistake(str(path), f"cannot be written: {error.strerror}", _LOOK)]) from None


def _say_written(files: Mapping[Path, str], outcome: Outcome, err: bool) -> None:
    if not files:
        return
    following = "" if outcome.apply or not outcome.output else f" Next: fleetcron apply -f {outcome.output} --dry-run"
    click.echo(f"Written: {', '.join(map(str, files))}.{following}", err=err)


def _says(path: Path, text: str) -> bool:
    return path.read_bytes() == text.encode()


def yaml_of(plan: Plan) -> str:
    """The document, with a comment above each job: where it comes from, and what is to be known about it."""
    if not plan.jobs:
        return "jobs: []\n"
    return "jobs:\n" + "\n".join(_commented(job) for job in plan.jobs)


def _commented(job: ImportedJob) -> str:
    lines = [f"# {printable(str(job.origin))}"]
    lines += [f"# {_WORDS[each.level].lower()}: {printable(str(each))}" for each in job.findings]
    lines += dumped([job.document]).splitlines()
    return "".join(f"  {line}\n" for line in lines)


def _show(plan: Plan, err: bool) -> None:
    for (level, said), where in _grouped(plan).items():
        word = click.style(_WORDS[level], fg=_COLOURS[level], bold=level == "left_out")
        click.echo(
            f"{word}  {printable(said)}\n    {printable(where)}" if where else f"{word}  {printable(said)}", err=err
        )
    left_out = sum(each.level == "left_out" for each in plan.all_findings())
    exact = sum(all(each.level == "note" for each in job.findings) for job in plan.jobs)
    said = f"{numbered(len(plan.jobs), 'job')}: {exact:,} as before, {len(plan.jobs) - exact:,} with differences"
    click.echo(f"{said}; {left_out:,} left out. Nothing is applied yet.", err=err)


def _show_pinged(plan: Plan, err: bool) -> None:
    """The lines for the old scheduler."""
    if not plan.wish.shadow or not plan.jobs:
        return
    if not plan.pinged:
        said = "The jobs will be in shadow. Let the old scheduler say what it runs: docs/learn/move-from-cron.md"
        click.echo(said, err=err)
    for each in plan.pinged:
        for number, line in each.lines.items():
            click.echo(
                f"{click.style('WITH PING', fg='cyan')}  {printable(f'{each.file}:{number}')}\n    {printable(line)}",
                err=err,
            )


def _grouped(plan: Plan) -> dict[tuple[Level, str], str]:
    """Findings by what they say, the worst first: forty jobs with one PATH are one line."""
    found: dict[tuple[Level, str], list[str]] = {}
    for level in _WORDS:
        for each in plan.all_findings():
            if each.level == level:
                found.setdefault((level, str(each)), []).append(_where(each))
    return {key: _listed(where) for key, where in found.items()}


def _where(finding: Finding) -> str:
    origin = "" if finding.origin is None else str(finding.origin)
    return f"{finding.job} ({origin})" if finding.job and origin else finding.job or origin


def _listed(where: Sequence[str]) -> str:
    shown = [shortened(each, 120) for each in where[:_NAMED] if each]
    more = f", and {numbered(len(where) - _NAMED, 'other')}" if len(where) > _NAMED else ""
    return ", ".join(shown) + more


def _agreed(seen: Report | None) -> bool:
    """Where nothing would change there is nothing to ask."""
    counts = {} if seen is None else seen.counts
    if not counts.get("created") and not counts.get("changed"):
        return True
    parts = ", ".join(f"{number:,} to be {done}" for done, number in counts.items() if number and done in _WRITES)
    return click.confirm(f"Apply them? {parts}", default=False)


def _applied(plan: Plan, outcome: Outcome) -> Report:
    return asyncio.run(_apply(plan, outcome, outcome.database.config()))


async def _apply(plan: Plan, outcome: Outcome, config: Config) -> Report:
    async with opened(config, "made") as store:
        if plan.wish.hand_over_ms is not None and not outcome.anyway:
            _check_able(read_definitions(plan.as_document()).jobs, await fleet(store))
        with progress_bar(len(plan.jobs), "applying") as progress:
            report = await carry_out(store, plan, by=outcome.by, config=config, progress=progress)
        await mark_unable(store, report)
        return report


def _check_able(jobs: Sequence[Definition], crew: Crew) -> None:
    """At the instant of the hand-over the old scheduler ends: what nobody can run then is lost."""
    unable = {job.name: why for job in jobs if (why := crew.why_not(job)) is not None}
    if unable:
        names, reasons = list(unable), list(dict.fromkeys(unable.values()))
        more = f" and {len(names) - _NAMED:,} more" if len(names) > _NAMED else ""
        raise RefusedError(
            f"nothing is applied, since after the hand-over these would not run: {', '.join(names[:_NAMED])}{more}: "
            f"{'; '.join(reasons[:_NAMED])}. {ANYWAY}"
        )


def _say_applied(report: Report) -> None:
    for warning, names in report.warnings.items():
        click.echo(f"{click.style('warning', fg='yellow')} {warning}: {', '.join(names)}")
    counts = ", ".join(f"{number:,} {done}" for done, number in report.counts.items() if number)
    click.echo(f"{numbered(len(report.jobs), 'job')}: {counts}. Look at them: fleetcron jobs.")


def _json(plan: Plan, outcome: Outcome, report: Report | None) -> dict[str, Any]:
    return {
        "jobs": [
            {"origin": str(job.origin), "findings": [_finding(each) for each in job.findings], "job": job.document}
            for job in plan.jobs
        ],
        "findings": [_finding(each) for each in plan.findings],
        "crontabs": [{"file": each.file, "text": each.text} for each in plan.pinged],
        "written": outcome.output,
        "files": [str(path) for path in plan.files],
        "applied": None if report is None else [job.as_json() for job in report.jobs],
    }


def _finding(finding: Finding) -> dict[str, Any]:
    origin = finding.origin
    return {
        "level": finding.level,
        "text": finding.text,
        "hint": finding.hint,
        "job": finding.job,
        "file": None if origin is None else origin.file,
        "line": None if origin is None else origin.line,
        "entry": None if origin is None else origin.entry,
    }
