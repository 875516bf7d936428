"""What happened around a violation: who did what when, in a few lines; and how to see it again."""

from tests.simulate.evidence import Violation
from tests.simulate.record import Record
from tests.simulate.scenario import Scenario

_BEFORE_S, _AFTER_S = 40.0, 10.0
_LONGEST = 45


def told(scenario: Scenario, record: Record, violations: list[Violation], command: str) -> str:
    first = violations[0]
    lines = [
        f"seed {scenario.seed}: {len(violations)} violations in a world of {len(scenario.slots)} nodes and "
        f"{len(scenario.definitions)} jobs, {scenario.minutes:g} minutes; faults: {', '.join(scenario.faults) or '-'}",
        *(f"  {each}" for each in violations[:6]),
    ]
    lines += _about_the_run(record, first.run_id) if first.run_id is not None else []
    lines += _around(record, first)
    lines.append(f"again: {command}")
    return "\n".join(lines)


def _about_the_run(record: Record, run_id: int) -> list[str]:
    events: list[tuple[float, str]] = []
    for each in record.begun:
        if each.stay.run_id == run_id:
            events.append((each.stay.begun_s, f"attempt {each.stay.attempt} begins on {each.stay.node}"))
            if each.ending is not None:
                events.append(
                    (each.ending.at_s, f"attempt {each.stay.attempt} ends on {each.stay.node}: {each.ending.how}")
                )
    for table, words in (
        ("seen_claims", "attempt {attempt} is claimed by {node_id}"),
        ("seen_attempts", "attempt {attempt} of {node_id} is written as {outcome}"),
        ("seen_finals", "is {state} in round {round}"),
        ("seen_cancels", "attempt {attempt} is asked to stop: {reason}"),
        ("seen_wrongs", "{what}"),
        ("seen_withdrawn", "is withdrawn"),
    ):
        events += [
            (row["at_ms"] / 1000, words.format(**row))
            for row in record.tables.get(table, ())
            if row["run_id"] == run_id
        ]
    found = [row for row in record.tables.get("runs", ()) if row["run_id"] == run_id]
    return [f"run {run_id}: {found[0] if found else 'is not there'}", *_lines(sorted(events))]


def _around(record: Record, violation: Violation) -> list[str]:
    at_s = violation.at_s
    if at_s is None:
        times = [each.stay.begun_s for each in record.begun if each.stay.run_id == violation.run_id]
        at_s = times[-1] if times else None
    if at_s is None:
        return []
    near = [(when, what) for when, what in record.said if at_s - _BEFORE_S <= when <= at_s + _AFTER_S]
    return [f"in the fleet, around {at_s:.1f} s:", *_lines(near)]


def _lines(events: list[tuple[float, str]]) -> list[str]:
    cut = events if len(events) <= _LONGEST else events[-_LONGEST:]
    return [f"  {when:9.3f} s  {what}" for when, what in cut]
