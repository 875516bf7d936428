"""What is written down when something leaves the normal path. One name for each, used in the log, the API and the docs.

On the normal path the rows of runs and attempts are the events.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

KINDS: Final[Mapping[str, str]] = {
    "job_created": "a job was created",
    "job_edited": "a job's definition was changed; forecasts were withdrawn and the cursor rewound",
    "job_paused": "a job was paused",
    "job_resumed": "a paused job was resumed",
    "job_handed_over": "the end of a job's shadow was set: from that instant on its ticks are ours",
    "job_shadowed": "a job was put into shadow: another scheduler runs it, and its ticks are only noted",
    "job_cancelled": "a job was cancelled for good",
    "job_deleted": "a job was deleted; its history stays",
    "job_finished": "the last tick of a job has passed",
    "job_stuck": "a job has no ticks under the fleet's tables",
    "runs_withdrawn": "forecasts of a job were deleted because its definition, state or tables changed",
    "run_conflict": "a run that was to be created existed already: another scheduler was faster",
    "plan_refused": "a scheduler wrote with a term or an epoch that is no longer valid",
    "shard_taken": "a scheduler took a shard that nobody held",
    "shard_taken_over": "a scheduler took a shard whose owner had let its lease expire",
    "shard_released": "a scheduler gave a shard back",
    "shard_lost": "a scheduler found that a shard was no longer its own",
    "shards_changed": "the jobs were divided into another number of shards",
    "node_joined": "a node started",
    "node_left": "a node stopped and said so",
    "node_vanished": "a node stopped without a word",
    "zone_adopted": "the fleet plans with a newer table of a zone",
    "calendar_changed": "a calendar was created or changed",
    "sweep_found": "the safety net found runs that were stuck or stood nowhere, and put them on their way",
    "worker_lost": "a worker vanished; what it held is tried again elsewhere",
    "finish_refused": "a worker wrote the end of attempts that it no longer held; nothing was changed",
    "run_dead": "a run has no attempts left, or its error is not worth another: a dead letter",
    "run_triggered": "somebody asked for a run outside the schedule",
    "run_cancelled": "somebody cancelled a run, or asked one that was running to stop",
    "run_replayed": "somebody opened dead or cancelled runs again",
    "run_discarded": "somebody took dead runs from the list of dead letters",
    "runs_backfilled": "somebody asked for the runs of ticks in the past",
    "ledger_superseded": "ticks that had been answered in the ledger got a run after all; the detail has the old line",
    "tenant_changed": "the share or the limits of a tenant were changed",
    "pool_changed": "the slots or the quotas of a pool were changed",
    "control_set": "a tenant, a pool or a type was held back or slowed down, or let go on by and by",
    "control_released": "a tenant, a pool or a type was let go on",
    "key_created": "somebody created an API key; the detail has its role and its tenant, never its secret",
    "key_revoked": "somebody revoked an API key, and with it the sessions that began with it",
    "session_began": "somebody logged in to the dashboard with a key",
    "session_ended": "somebody logged out of the dashboard",
    "schema_migrated": "the tables were brought to a new version",
}
OF_KEYS: Final = ("key_created", "key_revoked", "session_began", "session_ended")  # of the tenant in their detail


@dataclass(frozen=True, slots=True)
class Event:
    kind: str
    job_id: str | None = None
    node_id: str | None = None
    actor: str | None = None
    count: int = 1
    detail: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ValueError(f"'{self.kind}' is not a kind of event")
