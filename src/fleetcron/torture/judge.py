"""The judge: were the promises kept? Asked of the rows, of what the handlers said and of what was done to nodes."""

from collections import Counter

from fleetcron.torture.case import Case
from fleetcron.torture.evidence import Evidence
from fleetcron.torture.judge_ticks import judge_ticks
from fleetcron.torture.judge_work import judge_work
from fleetcron.torture.verdict import Verdict


def judge(evidence: Evidence) -> Verdict:
    """Meant for the time after healing: everything has come to rest and everybody has left."""
    case = Case(evidence)
    judge_ticks(case)
    judge_work(case)
    refused = [row for row in evidence.tables["events"] if row["kind"] in ("finish_refused", "plan_refused")]
    return Verdict(
        checked=case.checked,
        violations=case.violations,
        runs=Counter(run["state"] for run in evidence.tables["runs"]),
        attempts=Counter(row["outcome"] for row in evidence.tables["attempts"]),
        refused=sum(row["count"] for row in refused),
    )
