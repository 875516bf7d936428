"""Dependencies between jobs: what became of the upstream jobs of a run, and who depends on whom.

The period of a run B at T begins after B's previous tick (the latest of its runs and ledger lines; manual runs are no
ticks), for B's first tick after B's creation. What counts is the latest tick of each upstream in the period, wherever
its answer is: a run, the run that a merged one was merged into, or a line of the ledger. An upstream that is deleted
has no row here: it counts as satisfied. (The desk refuses to cancel or delete a job that others need.)
"""

import json
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from fleetcron.model.amendment import Amendment
from fleetcron.model.queued import Queued
from fleetcron.model.states import RunState
from fleetcron.model.upstream import Upstream
from fleetcron.store.engine import Row, Script
from fleetcron.store.rows import rows

Name: TypeAlias = tuple[str, str]  # (tenant, name)

_SHOWN: Final = 20  # dependants of one job: people read them


def upstream_facts(candidates: Sequence[Queued]) -> Script[dict[int, list[Upstream]]]:
    """Part of a claim: the upstream jobs of each run that has to ask them. Manual and replayed runs never wait, and a
    run that has started once is not asked again."""
    asking = [run for run in candidates if run.depends and run.is_fresh and run.kind != "manual"]
    known: dict[int, list[Upstream]] = {run.run_id: [] for run in asking}
    if asking:
        text = rows({"run_id": r.run_id, "job_id": r.job_id, "scheduled_for_ms": r.scheduled_for_ms} for r in asking)
        for row in (yield "upstreams_of_runs", {"rows": text}):
            known[row["run_id"]].append(_upstream(row))
    return known


@dataclass(frozen=True, slots=True)
class Around:
    """The dependencies around jobs that are about to change, as they stood at one instant."""

    starts: tuple[Name, ...]  # jobs whose dependencies change, and those they are to depend on
    ends: tuple[Name, ...]  # jobs that are to be cancelled or deleted
    edges: Mapping[Name, tuple[str, ...]]  # depends_on of every job that is reached from the starts
    dependants: Mapping[Name, tuple[str, ...]]  # some of those who depend on the ends


def read_around(starts: Iterable[Name], ends: Iterable[Name]) -> Script[Around]:
    """Part of a script. A cancelled job depends on nothing: it never runs again."""
    starts, ends = tuple(sorted(set(starts))), tuple(sorted(set(ends)))
    edges: dict[Name, tuple[str, ...]] = {}
    dependants: dict[Name, tuple[str, ...]] = {}
    if starts:
        for row in (yield "upstreams_reached", {"rows": _name_rows(starts)}):
            edges[row["tenant"], row["name"]] = tuple(json.loads(row["depends_on"]))
    for tenant, name in ends:
        found = yield "upstreams_needed", {"tenant": tenant, "name": name, "most": _SHOWN}
        dependants[tenant, name] = tuple(row["name"] for row in found)
    return Around(starts, ends, edges, dependants)


def hold_around(seen: Around) -> Script[bool]:
    """Part of a write: whether the dependencies are still as they were seen. If so, they stay until its end.

    Two edits that are right each by itself can close a cycle together, and an upstream can be deleted while somebody
    comes to depend on it. So whoever changes the dependencies of a tenant does it alone, and looks again first.
    """
    for tenant in sorted({tenant for tenant, _ in (*seen.starts, *seen.ends)}):
        yield "upstreams_lock", {"tenant": tenant}
    return (yield from read_around(seen.starts, seen.ends)) == seen


class Apart(Exception):
    """Roll back: changes of dependencies that are right only together were not all written."""


def check_together(amendments: Iterable[Amendment], written: Container[str]) -> None:
    """Part of a write: all changes of dependencies were written, or none. What was decided was about all of them."""
    if len({each.after.job.job_id in written for each in amendments if each.changes_dependencies}) == 2:
        raise Apart


def _upstream(row: Row) -> Upstream:
    return Upstream(
        str(row["job_id"]),
        row["name"],
        row["on_failure"],
        _answer(row["answer"]),
        bool(row["undecided"]),
        bool(row["paused"]),
    )


def _answer(text: str | None) -> RunState | Literal["missed"] | None:
    if text is None or text == "missed":
        return text  # type: ignore[return-value]
    return RunState(text)


def _name_rows(names: Iterable[Name]) -> str:
    return rows({"tenant": tenant, "name": name} for tenant, name in names)


__all__ = ["Apart", "Around", "check_together", "hold_around", "read_around", "upstream_facts"]
