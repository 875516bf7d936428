"""Jobs that fail again and again, to be read."""

import json
from dataclasses import dataclass

from fleetcron.store.engine import Engine, Script

_MOST = 200


@dataclass(frozen=True, slots=True)
class Failing:
    """An active job with a dead run, and how many of its latest runs in a row are dead."""

    tenant: str
    name: str
    in_a_row: int
    allowed: int


@dataclass(frozen=True, slots=True)
class FailingJobs:
    last_id: int
    jobs: tuple[Failing, ...]


class FailingHistory:
    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    async def since(self, after_id: int, since_ms: int) -> FailingJobs:
        """Of the jobs that are to be paused after some failures: those with a dead run noted after an event."""

        def script() -> Script[FailingJobs]:
            found = yield "events_dead_after", {"after_id": after_id, "since_ms": since_ms, "most": _MOST}
            jobs: dict[str, Failing] = {}
            for row in found:
                job_id = str(row["job_id"])
                if row["state"] != "active" or job_id in jobs:
                    continue
                # no more of it than that: a newer release may have written things that this one cannot read
                allowed: int | None = json.loads(row["definition"]).get("pause_after_failures")
                if allowed is None:
                    continue
                call = {"job_id": job_id, "since_ms": row["updated_ms"], "most": allowed}
                ends = [end["state"] for end in (yield "runs_recent_ends", call)]
                in_a_row = next((at for at, state in enumerate(ends) if state != "dead"), len(ends))
                jobs[job_id] = Failing(row["tenant"], row["name"], in_a_row, allowed)
            last = max((row["event_id"] for row in found), default=after_id)
            return FailingJobs(last, tuple(jobs.values()))

        return await self._engine.read(script)
