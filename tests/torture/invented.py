"""The evidence of a torture that went well, invented: 20 seconds of every job, with one of each thing that can happen.

Nothing of it comes by chance, so that whoever damages it knows what is there: runs that succeed at once, attempts that
fail and are tried again, ones that are lost with a node that was killed, a line in the ledger, an edit, a trigger.
"""

from collections.abc import Iterator
from itertools import count
from typing import Any

from fleetcron.model.definition import Definition
from fleetcron.torture.enumerator import ticks
from fleetcron.torture.evidence import TABLES, Act, Evidence, Fault
from fleetcron.torture.jobs import AGAIN_MS, edited, jobs

BEGIN_MS = 1_800_000_000_400
EDIT_MS = BEGIN_MS + 9_000
KILL_MS = BEGIN_MS + 11_800
END_MS = BEGIN_MS + 20_000
NOW_MS = END_MS + 5_000
WORK_MS = 40
LATE_MS = 7  # from the instant of a run to the first word of its handler
KILLED, WELL = "node-1.1", "node-2.1"
LEDGER_TICKS = slice(2, 5)  # of every-2s


class Invention:
    def __init__(self) -> None:
        self.rows: dict[str, list[dict[str, Any]]] = {table: [] for table in TABLES}
        self.lines: list[dict[str, Any]] = []
        self.acts: list[Act] = []
        self._run_ids = count(1)
        for number, job in enumerate(jobs(once_ms=BEGIN_MS + 10_000)):
            self._job(f"job-{number}", job)

    def evidence(self) -> Evidence:
        kill = Fault("kill", "kill -9", KILL_MS, KILL_MS, node=KILLED)
        return Evidence(self.rows, NOW_MS, sorted(self.lines, key=lambda line: line["at_us"]), [kill], self.acts)

    def _job(self, job_id: str, job: Definition) -> None:
        self.rows["jobs"].append({"job_id": job_id, "name": job.name})
        self.rows["cursors"].append({"job_id": job_id, "cursor_ms": END_MS, "state": "paused"})
        expected = list(self._history(job_id, job))[: job.max_ticks]
        if job.name == "every-2s":
            skipped = expected[LEDGER_TICKS]
            del expected[LEDGER_TICKS]
            line = {"job_id": job_id, "from_ms": skipped[0], "to_ms": skipped[-1], "ticks": len(skipped)}
            self.rows["ledger"].append(line)
        for tick_ms in expected:
            self._run(job_id, job, tick_ms)
        if job.name == "second":
            run_id = self._run(job_id, job, BEGIN_MS + 4_321, kind="manual")
            self.acts.append(Act("trigger", job.name, BEGIN_MS + 4_321, run_id=run_id))

    def _history(self, job_id: str, job: Definition) -> Iterator[int]:
        """Created, perhaps edited, and paused in the end: the ticks."""
        changes = [("create", BEGIN_MS, job, "active"), ("pause", END_MS, job, "paused")]
        if job.name == "edited-1":
            changes.insert(1, ("edit", EDIT_MS, edited(job, 5), "active"))
        for revision, (action, at_ms, definition, state) in enumerate(changes, start=1):
            after = {**definition.as_document(), "state": state}
            self.rows["job_revisions"].append({"job_id": job_id, "revision": revision, "at_ms": at_ms, "after": after})
            self.acts.append(Act(action, job.name, at_ms, revision))
            until_ms = changes[revision][1] if revision < len(changes) else at_ms
            yield from ticks(after, at_ms, until_ms)

    def _run(self, job_id: str, job: Definition, tick_ms: int, kind: str = "tick") -> int:
        """Jobs that share a key take turns: every other one begins later."""
        run_id = next(self._run_ids)
        due_ms = tick_ms + min(job.jitter_ms, 1_000) + (200 if job.name == "till-2" else 0)
        said = self._attempts(job, due_ms)
        at_ms = due_ms
        for attempt, how in enumerate(said, start=1):
            at_ms = self._attempt(run_id, attempt, job.name, how, at_ms)
        self.rows["runs"].append({
            "run_id": run_id, "job_id": job_id, "kind": kind, "scheduled_for_ms": tick_ms, "run_after_ms": due_ms,
            "created_ms": tick_ms - 2_000, "finished_ms": at_ms, "attempt": len(said), "reason": None,
            "state": {"failed": "dead", "lost": "cancelled"}.get(said[-1], said[-1]),
            "failures": said.count("failed"), "losses": said.count("lost"),
        })  # fmt: skip
        return run_id

    @staticmethod
    def _attempts(job: Definition, due_ms: int) -> list[str]:
        """What the rows say of each attempt. What ran when its node was killed is lost; of a job that replaces its runs
        the lost one was asked to stop, too."""
        is_killed = due_ms <= KILL_MS < due_ms + 1_000
        match job.name:
            case "fails-once":
                return ["failed", "succeeded"]
            case "dies":
                return ["failed"] * job.retry.max_attempts
            case "every-3s" if is_killed:
                return ["lost", "succeeded"]
            case "replacing" if is_killed:
                return ["lost"]
        return ["succeeded"]

    def _attempt(self, run_id: int, attempt: int, job: str, how: str, at_ms: int) -> int:
        """When the next one may begin."""
        node, begun_ms = KILLED if how == "lost" else WELL, at_ms + LATE_MS
        who = {"run": run_id, "attempt": attempt, "job": job, "node": node}
        self.lines.append({**who, "say": "start", "at_us": begun_ms * 1000})
        ended_ms = KILL_MS + 2_000 if how == "lost" else begun_ms + WORK_MS
        if how != "lost":
            said = "done" if how == "succeeded" else how
            self.lines.append({**who, "say": "end", "how": said, "at_us": ended_ms * 1000})
        self.rows["attempts"].append({
            "run_id": run_id, "attempt": attempt, "node_id": f"{node}-abcdef", "started_ms": begun_ms,
            "finished_ms": ended_ms, "outcome": how, "error_code": None if how == "succeeded" else how,
        })  # fmt: skip
        return ended_ms + (AGAIN_MS if how == "failed" else 0)


def invented() -> Evidence:
    return Invention().evidence()
