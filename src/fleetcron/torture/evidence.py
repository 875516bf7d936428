"""Everything that is known after a torture, outside the processes that were tortured. It can be kept in a folder and
read again: the judge sees nothing else."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

from fleetcron.torture.handlers import LOG

Row: TypeAlias = Mapping[str, Any]
Line: TypeAlias = Mapping[str, Any]
Tables: TypeAlias = Mapping[str, Sequence[Row]]
FaultKind: TypeAlias = Literal["kill", "stop", "network", "edit"]

TABLES: Final = (
    "jobs", "job_revisions", "cursors", "runs", "ledger", "gaps", "attempts",
    "leases", "queue", "upcoming", "workers", "events",
)  # fmt: skip
_JSON: Final = {"job_revisions": ("before", "after"), "jobs": ("definition",), "events": ("detail",)}


@dataclass(frozen=True, slots=True)
class Fault:
    """What was done to whom. `node` is the name of one life of a node; `job` of a job that was changed."""

    kind: FaultKind
    what: str
    began_ms: int
    ended_ms: int
    node: str | None = None
    job: str | None = None


@dataclass(frozen=True, slots=True)
class Act:
    """A change of a job, or a run that was asked for, that the store has confirmed."""

    action: str
    job: str
    at_ms: int
    revision: int | None = None
    run_id: int | None = None


@dataclass(frozen=True, slots=True)
class Sample:
    """At `at_us` of this machine the database's clock was ahead by `low_us` at least and `high_us` at most."""

    at_us: int
    low_us: int
    high_us: int


@dataclass(frozen=True, slots=True)
class Evidence:
    """`now_ms` is the database's time when the rows were read; `anew` how often each node found by itself that its
    lease was over, and began anew; `unsettled` what had not come to rest when patience was over."""

    tables: Tables
    now_ms: int
    lines: Sequence[Line]
    faults: Sequence[Fault] = ()
    acts: Sequence[Act] = ()
    clock: Sequence[Sample] = ()
    anew: Mapping[str, int] = field(default_factory=dict)
    unsettled: Sequence[str] = ()


def plain(table: str, row: Row) -> dict[str, Any]:
    """A row of either engine as JSON has it."""
    found: dict[str, Any] = {
        key: value if isinstance(value, int | float | None) else str(value) for key, value in row.items()
    }
    for column in _JSON.get(table, ()):
        if found.get(column) is not None:
            found[column] = json.loads(found[column])
    return found


def read_lines(folder: Path) -> list[dict[str, Any]]:
    log = folder / LOG
    return [json.loads(line) for line in log.read_text("utf-8").splitlines()] if log.exists() else []


def keep(evidence: Evidence, folder: Path) -> None:
    """Beside the lines of the handlers, which are there already."""
    rest = {
        "now_ms": evidence.now_ms,
        "faults": [asdict(fault) for fault in evidence.faults],
        "acts": [asdict(act) for act in evidence.acts],
        "clock": [asdict(sample) for sample in evidence.clock],
        "anew": dict(evidence.anew),
        "unsettled": list(evidence.unsettled),
    }
    (folder / "faults.json").write_text(json.dumps(rest, indent=1), "utf-8")
    (folder / "tables.json").write_text(json.dumps(evidence.tables, indent=1), "utf-8")


def kept(folder: Path) -> Evidence:
    """What `keep` wrote."""
    rest = json.loads((folder / "faults.json").read_text("utf-8"))
    return Evidence(
        tables=json.loads((folder / "tables.json").read_text("utf-8")),
        now_ms=rest["now_ms"],
        lines=read_lines(folder),
        faults=[Fault(**each) for each in rest["faults"]],
        acts=[Act(**each) for each in rest["acts"]],
        clock=[Sample(**each) for each in rest["clock"]],
        anew=rest["anew"],
        unsettled=rest["unsettled"],
    )
