"""The words between the worker and a handler host, as JSON values. Pure.

To the host:   ["hello", {...}] ["start", rows] ["ask", run, attempt, why, reason] ["force", run, attempt]
               ["find", name] ["open"] ["ping", number] ["bye"]
To the worker: ["up"] ["found", name, reason or null, is outdated] ["ready"] ["pong", number]
               ["told", rows of plain successes, rows of other reports]

"hello" is answered by "up", each "find" by a "found", whenever its import is over, and "open" by "ready".
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import astuple
from typing import Any, Final

from fleetcron.executors.assignment import Assignment
from fleetcron.executors.frames import BrokenFrames
from fleetcron.executors.performer import SUCCEEDED
from fleetcron.executors.reports import Declined, Done, LogChunk, Progress, Report
from fleetcron.model.outcome import Cancelled, Failed, Fault, Lost, Outcome, Snoozed, Succeeded, TimedOut
from fleetcron.model.target import PythonTarget

AT_ONCE: Final = 100  # in a frame: each may carry 256 KiB of payload, or 64 KiB of a log

_KINDS: Final[Mapping[str, Callable[[list[Any]], Report]]] = {
    "log": LogChunk._make,
    "progress": Progress._make,
    "declined": Declined._make,
}


def row_of(assignment: Assignment) -> tuple[Any, ...]:
    """The fields as they are, only the target as the name of its function."""
    return (*assignment[:5], assignment.target.function, *assignment[6:])  # type: ignore[union-attr]


def assignment_of(row: list[Any], targets: dict[str, PythonTarget]) -> Assignment:
    """`targets` saves making the same one again and again."""
    name = row[5]
    target = targets.get(name)
    if target is None:
        target = targets[name] = PythonTarget(name)
    row[5] = target
    return Assignment._make(row)


def told(reports: Sequence[Report]) -> list[Any]:
    plain: list[Any] = []
    others: list[Any] = []
    for report in reports:
        match report:
            case Done():
                if report.outcome is SUCCEEDED and report.result_json is None and not report.log_bytes:
                    plain.append((report.run_id, report.attempt, report.started_ms, report.finished_ms))
                else:
                    others.append(("done", *report[:2], _outcome_row(report.outcome), *report[3:]))
            case LogChunk():
                others.append(("log", *report))
            case Progress():
                others.append(("progress", *report))
            case Declined():
                others.append(("declined", *report))
    return ["told", plain, others]


def reports_of(plain: list[Any], others: list[Any]) -> list[Report]:
    """In the order in which they were told within each kind; a log comes before the end that it belongs to."""
    try:
        reports: list[Report] = []
        for kind, *row in others:
            if kind == "done":
                reports.append(Done(row[0], row[1], _outcome_of(row[2]), *row[3:]))
            else:
                reports.append(_KINDS[kind](row))
        reports += [Done(run, attempt, SUCCEEDED, started, ended) for run, attempt, started, ended in plain]
    except (TypeError, ValueError, KeyError, IndexError) as error:
        raise BrokenFrames("reports that make no sense") from error
    return reports


def _outcome_row(outcome: Outcome) -> tuple[Any, ...]:
    match outcome:
        case Succeeded():
            return ("succeeded",)
        case Failed(error, retry_after_ms, is_exact):
            return ("failed", *astuple(error), retry_after_ms, is_exact)
        case TimedOut(error):
            return ("timed_out", *astuple(error))
        case Lost(error):
            return ("lost", *astuple(error))
        case Cancelled(reason):
            return ("cancelled", reason)
        case Snoozed(seconds):
            return ("snoozed", seconds)


def _outcome_of(row: list[Any]) -> Outcome:
    match row:
        case ["succeeded"]:
            return SUCCEEDED
        case ["failed", str(code), str(text), trace, after, bool(is_exact)]:
            return Failed(Fault(code, text, trace), after, is_exact)
        case ["timed_out", str(code), str(text), trace]:
            return TimedOut(Fault(code, text, trace))
        case ["lost", str(code), str(text), trace]:
            return Lost(Fault(code, text, trace))
        case ["cancelled", str(reason)]:
            return Cancelled(reason)
        case ["snoozed", int(seconds) | float(seconds)]:
            return Snoozed(seconds)
    raise BrokenFrames("an outcome that makes no sense")
