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
from fleetcron.model.queued import Choice, Facts, Queued
from fleetcron.model.states import RunState
from fleetcron.model.upstream import COUNTED, FRONT, Upstream
from fleetcron.store.closing import release_following
from fleetcron.store.engine import Row, Script
from fleetcron.store.rows import rows, texts

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
    return (yield from _with_crowds(asking, known))


def _with_crowds(asking: Sequence[Queued], known: dict[int, list[Upstream]]) -> Script[dict[int, list[Upstream]]]:
    """And how many wait already, where somebody may have to."""
    open_ids = {each.job_id for some in known.values() for each in some if not each.is_satisfied}
    if not open_ids:
        return known
    found = yield "queue_crowds", {"keys": texts(sorted(open_ids)), "most": COUNTED, "front": FRONT}
    crowds = {row["key"]: (row["waiting"], row["front_ms"]) for row in found}

    def seen(run: Queued, upstream: Upstream) -> Upstream:
        waiting, front_ms = crowds.get(upstream.job_id, (0, None))
        return upstream._replace(waiting=waiting, in_front=front_ms is None or run.scheduled_for_ms <= front_ms)

    return {run.run_id: [seen(run, each) for each in known[run.run_id]] for run in asking}


def let_follow(facts: Facts, choice: Choice) -> Script[set[str]]:
    """Part of a claim: who got past upstream jobs that he had waited for lets others follow. The pools that have
    more."""
    waited = {run.run_id: run.scheduled_for_ms for run in facts.candidates if run.since_ms is not None}
    through = [run_id for run_id, _ in choice.claims] + [each.run_id for each in choice.closes]
    passed = [
        (each.job_id, waited[run_id])
        for run_id in through
        if run_id in waited
        for each in facts.upstream.get(run_id, ())
    ]
    return (yield from release_following(passed, facts.pool))


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


__all__ = ["Apart", "Around", "check_together", "hold_around", "let_follow", "read_around", "upstream_facts"]
