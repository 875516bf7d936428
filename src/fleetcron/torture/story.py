"""What happened to one run, in order: who planned it, who worked on it, and what was done to them meanwhile."""

from collections.abc import Iterator, Sequence
from typing import Final

from fleetcron.torture.case import name_of
from fleetcron.torture.evidence import Evidence, Fault
from fleetcron.torture.judge_ticks import shown

_MOST: Final = 24


def story(evidence: Evidence, run_id: int) -> list[str]:
    """Lines for people. Instants of handlers and faults are of this machine's clock, the others of the database's."""
    told = sorted(_moments(evidence, run_id), key=lambda moment: moment[0])
    lines = [f"{shown(at_ms)}  {what}" for at_ms, what in told]
    return lines if len(lines) <= _MOST else [*lines[: _MOST - 1], f"… and {len(lines) - _MOST + 1} more"]


def _moments(evidence: Evidence, run_id: int) -> Iterator[tuple[int, str]]:
    run = next((each for each in evidence.tables["runs"] if each["run_id"] == run_id), None)
    if run is not None:
        yield (
            run["created_ms"],
            f"planned for {shown(run['scheduled_for_ms'])}, not before {shown(run['run_after_ms'])}",
        )
        if run["finished_ms"] is not None:
            reason = f" ({run['reason']})" if run["reason"] else ""
            yield run["finished_ms"], f"{run['state']}{reason}"
    for line in evidence.lines:
        if line["run"] == run_id:
            yield line["at_us"] // 1000, f"{line['node']}: its handler {_said(line['say'], line.get('how', ''))}"
    nodes = set()
    for row in evidence.tables["attempts"]:
        if row["run_id"] == run_id:
            nodes.add(name_of(row["node_id"]))
            yield (
                row["finished_ms"],
                f"{name_of(row['node_id'])}: attempt {row['attempt']} is written as {row['outcome']}",
            )
    yield from _suffered(evidence.faults, nodes | {line["node"] for line in evidence.lines if line["run"] == run_id})


def _said(say: str, how: str) -> str:
    return {"start": "begins", "beside": "finds another one beside it"}.get(say, f"ends: {how}")


def _suffered(faults: Sequence[Fault], nodes: set[str]) -> Iterator[tuple[int, str]]:
    for fault in faults:
        if fault.node in nodes:
            yield fault.began_ms, f"{fault.node}: {fault.kind}, {fault.what}"
