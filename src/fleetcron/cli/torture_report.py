"""What `fleetcron torture` shows: the plan, how far it is, the verdict, and the story of what was broken."""

import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import click

from fleetcron.cli.tables import numbered, printable, shortened, table
from fleetcron.cli.when import print_json
from fleetcron.torture.siege import Plan, Progress, Result
from fleetcron.torture.story import story
from fleetcron.torture.torment import KINDS
from fleetcron.torture.verdict import Violation

_EVERY_S: Final = 10.0
_VIOLATIONS: Final = 10
_STORIES: Final = 3
_PHASES: Final = {
    "starting": "the nodes start",
    "hurting": "the nodes are hurt",
    "healing": "the faults are over: everything that is due gets its answer",
}
_BAR: Final = 30
_NO_FAULT: Final = "nobody was hurt in so short a time, so this says little; take longer (--for) or more (--rate)"
_NAMES: Final = {"kill": "kill", "stop": "freeze", "network": "network fault", "edit": "edit"}


class Silent:
    """For --json: nothing until the verdict."""

    def hears(self, plan: Plan) -> None: ...

    def sees(self, progress: Progress) -> None: ...

    def ends(self) -> None: ...


class Spoken:
    """Without a terminal: a line at each turn, and every ten seconds."""

    def __init__(self) -> None:
        self._phase = ""
        self._said_s = 0.0

    def hears(self, plan: Plan) -> None:
        click.echo("\n".join(_plan_lines(plan)))

    def sees(self, progress: Progress) -> None:
        if progress.phase != self._phase:
            self._phase, self._said_s = progress.phase, 0.0
            click.echo(_PHASES[progress.phase], err=True)
        elif progress.passed_s >= self._said_s + _EVERY_S:
            self._said_s = progress.passed_s
            of = f"{progress.passed_s:.0f} s of {progress.of_s:.0f} s" + (" at most" if progress.missing else "")
            click.echo(f"{of}: {_so_far(progress)}", err=True)

    def ends(self) -> None: ...


class Terminal(Spoken):
    """One line that changes, with a bar."""

    def sees(self, progress: Progress) -> None:
        room = shutil.get_terminal_size().columns
        filled = round(_BAR * min(1.0, progress.passed_s / progress.of_s))
        bar = f"[{'#' * filled}{'-' * (_BAR - filled)}]" if progress.phase == "hurting" else ""
        so_far = "" if progress.phase == "starting" else _so_far(progress)
        text = " ".join(part for part in (progress.phase, bar, f"{progress.passed_s:.0f}s ", so_far) if part)
        click.echo(f"\r{shortened(text, room - 1):<{room - 1}}", nl=False, err=True)

    def ends(self) -> None:
        """The line is gone, so that what comes next stands alone."""
        click.echo(f"\r{'':<{shutil.get_terminal_size().columns - 1}}\r", nl=False, err=True)


def print_result(result: Result, folder: Path | None, *, as_json: bool) -> None:
    """`folder` is where the evidence is, if it was kept."""
    if as_json:
        print_json(_as_json(result, folder))
        return
    rows = [
        [words, numbered(checked, noun), _count(violations)]
        for _, words, noun, checked, violations in result.verdict.lines()
    ]
    click.echo()
    click.echo(table(("PROMISE", "CHECKED", "VIOLATIONS"), rows))
    click.echo()
    click.echo(_sum(result))
    for ended in result.ended_themselves:
        click.echo(f"a node ended by itself: {printable(ended)}")
    if result.verdict.holds:
        click.echo(click.style("All promises hold.", fg="green", bold=True))
        if not result.faults:
            click.echo(f"note: {_NO_FAULT}")
    else:
        _tell_violations(result)
    if folder is not None:
        click.echo(f"The evidence is in {folder}: what the handlers said, the faults, the final rows, the logs.")
    if result.plan.wish.keep:
        click.echo(f"Kept: {result.plan.what}. It is removed with: fleetcron torture --database URL --clean")


# -- for people


def _plan_lines(plan: Plan) -> list[str]:
    wish = plan.wish
    faults = f"{', '.join(plan.kinds)}; about {numbered(max(1, round(wish.for_s * wish.rate)), 'fault')}"
    lines = [
        f"{plan.facts.database} ({'; '.join(plan.facts.details)})",
        f"Makes {plan.what}, starts {numbered(wish.nodes, 'node')} with {plan.jobs} jobs, hurts them "
        f"for {wish.for_s:g} s ({faults}, seed {wish.seed}),",
        "waits until everything that was due has its answer, judges, and "
        + ("keeps it." if wish.keep else "removes what it has made."),
    ]
    if plan.left_out is not None:
        lines.append(f"note: without faults of the network: {plan.left_out}")
    lines += [f"note: {note}" for note in plan.facts.notes]
    return list(map(printable, lines))


def _so_far(progress: Progress) -> str:
    if progress.phase == "healing":
        return progress.missing or ""
    return f"{_faults(progress.faults)}; {numbered(progress.begun, 'attempt')}"


def _faults(counts: Mapping[Any, int]) -> str:
    kinds = ", ".join(numbered(counts[kind], _NAMES[kind]) for kind in KINDS if counts.get(kind))
    total = numbered(sum(counts.values()), "fault")
    return f"{total} ({kinds})" if kinds else total


def _count(violations: int) -> str:
    return click.style(f"{violations:,}", fg="red", bold=True) if violations else "0"


def _sum(result: Result) -> str:
    verdict = result.verdict
    lost = verdict.attempts.get("lost", 0)
    return (
        f"{_faults(result.faults)}. {numbered(sum(verdict.runs.values()), 'run')},"
        f" {numbered(sum(verdict.attempts.values()), 'attempt')}: {lost:,} lost or stopped with their workers,"
        f" and {numbered(verdict.refused, 'write')} of stale owners refused. Healed in {result.healed_s:.0f} s."
    )


def _tell_violations(result: Result) -> None:
    violations = sorted(result.verdict.violations, key=lambda each: each.job is not None)  # the general ones first
    click.echo(click.style(f"Broken: {numbered(len(violations), 'violation')}.", fg="red", bold=True))
    for violation in violations[:_VIOLATIONS]:
        click.echo(f"  {printable(_violation(violation))}")
    if len(violations) > _VIOLATIONS:
        click.echo(f"  … and {len(violations) - _VIOLATIONS:,} more")
    runs = list(dict.fromkeys(each.run_id for each in violations if each.run_id is not None))
    for run_id in runs[:_STORIES]:
        click.echo(f"\nWhat happened to run {run_id}:")
        for line in story(result.evidence, run_id):
            click.echo(f"  {printable(line)}")
    click.echo()


def _violation(violation: Violation) -> str:
    run = "" if violation.run_id is None else f" run {violation.run_id}"
    who = f"{violation.job or ''}{run}".strip()
    return f"{violation.promise}: {who}: {violation.what}" if who else f"{violation.promise}: {violation.what}"


# -- for programs


def _notes(result: Result) -> Iterator[str]:
    yield from result.plan.facts.notes
    if result.plan.left_out is not None:
        yield f"no faults of the network: {result.plan.left_out}"
    if not result.faults:
        yield _NO_FAULT


def _as_json(result: Result, folder: Path | None) -> dict[str, Any]:
    verdict, plan, wish = result.verdict, result.plan, result.plan.wish
    return {
        "holds": verdict.holds,
        "database": plan.facts.database,
        "details": list(plan.facts.details),
        "notes": list(_notes(result)),
        "seed": wish.seed,
        "nodes": wish.nodes,
        "seconds": wish.for_s,
        "faults": {kind: result.faults.get(kind, 0) for kind in KINDS},
        "runs": dict(verdict.runs),
        "attempts": dict(verdict.attempts),
        "refused_writes": verdict.refused,
        "healed_seconds": round(result.healed_s, 1),
        "promises": [
            {"promise": key, "words": words, "checked": checked, "violations": violations}
            for key, words, _, checked, violations in verdict.lines()
        ],
        "violations": [
            {"promise": each.promise, "job": each.job, "run_id": each.run_id, "what": each.what}
            for each in verdict.violations
        ],
        "ended_themselves": list(result.ended_themselves),
        "evidence": None if folder is None else str(folder),
        "kept": plan.what if wish.keep else None,
    }
