"""A job's definition: what runs, when, for whom, under which policies. Defaults are part of the contract.

S0-18 … S0-22, S2-10 … S2-15, S4-9 and S4-10 ask for these fields; `docs/learn/jobs.md` lists them all.
"""

import json
from collections.abc import Callable, Mapping
from copy import deepcopy
from dataclasses import dataclass, field, replace
from typing import Any

from fleetcron.model import writing
from fleetcron.model.entry import entry_document, entry_from, is_hashed
from fleetcron.model.kept import made
from fleetcron.model.rules import (
    HOUR_MS,
    AlertRule,
    CalendarUse,
    Entry,
    EveryEntry,
    MisfireRule,
    OverlapRule,
    Retention,
    RetryRule,
)
from fleetcron.model.target import Target, handler_name, target_document, target_from
from fleetcron.model.tenant import DEFAULT_TENANT
from fleetcron.model.timing import Timing
from fleetcron.model.upstream import OnUpstreamFailure


@dataclass(frozen=True, slots=True, eq=False)
class Definition:
    """Equal if the documents are equal: `1` and `true` in a payload differ, as do a chosen and a derived policy."""

    name: str
    schedule: tuple[Entry, ...]
    run: Target
    tenant: str = DEFAULT_TENANT
    description: str | None = None
    type: str = ""  # the handler's name, if nobody gives one
    managed_by: str | None = None
    starts_ms: int | None = None
    ends_ms: int | None = None
    max_ticks: int | None = None
    calendars: tuple[CalendarUse, ...] = ()
    jitter_ms: int = 0
    payload: Mapping[str, Any] = field(default_factory=dict)
    pool: str = "default"
    priority: int = 0
    timeout_ms: int = HOUR_MS
    retry: RetryRule = field(default_factory=RetryRule)
    overlap: OverlapRule = field(default_factory=OverlapRule)
    misfire: MisfireRule = field(default_factory=MisfireRule)
    start_deadline_ms: int | None = None
    depends_on: tuple[str, ...] = ()
    on_upstream_failure: OnUpstreamFailure = "skip"
    region: str | None = None  # None: any
    alerts: AlertRule = field(default_factory=AlertRule)
    pause_after_failures: int | None = None
    retention: Retention = field(default_factory=Retention)
    shadow_ms: int | None = None  # earlier ticks are the old scheduler's; LAST_MS while nobody has said until when

    def __post_init__(self) -> None:
        if not self.type:
            object.__setattr__(self, "type", handler_name(self.run))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Definition) and other.body() == self.body()

    def __hash__(self) -> int:
        return hash(self.seed)

    @property
    def seed(self) -> str:
        """What H and jitter stand on: a job that is made again keeps its slot."""
        return f"{self.tenant}/{self.name}"

    def claim_key(self, job_id: str) -> str | None:
        """What only so many runs may hold at a time: the job, or a key that it shares with others. None: no bound."""
        rule = self.overlap
        if rule.concurrency_key is not None:
            return f"k:{self.tenant}:{rule.concurrency_key}"
        return None if rule.policy == "allow" and rule.max_running is None else f"j:{job_id}"

    def timing(self, created_ms: int) -> Timing:
        """What decides its ticks. It names the job only where the ticks depend on it, so that others can share it."""
        seeded = self.jitter_ms > 0 or any(map(is_hashed, self.schedule))
        return Timing(
            entries=tuple(_anchored(entry, created_ms) for entry in self.schedule),
            tenant=self.tenant if self.calendars else "",
            calendars=self.calendars,
            starts_ms=self.starts_ms,
            ends_ms=self.ends_ms,
            max_ticks=self.max_ticks,
            jitter_ms=self.jitter_ms,
            seed=self.seed if seeded else None,
            misfire=self.misfire,
            start_deadline_ms=self.start_deadline_ms,
            shadow_ms=self.shadow_ms,
        )

    def as_document(self) -> dict[str, Any]:
        """The canonical document, with every default written out. Reading it gives this definition again."""
        document: dict[str, Any] = {
            "name": self.name,
            "tenant": self.tenant,
            "description": self.description,
            "type": self.type,
            "managed_by": self.managed_by,
            "schedule": [entry_document(entry) for entry in self.schedule],
            "starts_at": writing.instant_text(self.starts_ms),
            "ends_at": writing.instant_text(self.ends_ms),
            "max_ticks": self.max_ticks,
            "calendars": [writing.calendar_use_document(use) for use in self.calendars],
            "jitter": writing.duration_text(self.jitter_ms),
            "run": target_document(self.run),
            "payload": deepcopy(dict(self.payload)),
            "pool": self.pool,
            "priority": self.priority,
            "timeout": writing.duration_text(self.timeout_ms),
            "retry": writing.retry_document(self.retry),
            "overlap": writing.overlap_document(self.overlap),
            "misfire": writing.misfire_document(self.misfire),
            "start_deadline": writing.duration_text(self.start_deadline_ms),
            "depends_on": list(self.depends_on),
            "on_upstream_failure": self.on_upstream_failure,
            "region": self.region,
            "alerts": writing.alerts_document(self.alerts),
            "pause_after_failures": self.pause_after_failures,
            "retention": writing.retention_document(self.retention),
            "shadow": writing.shadow_document(self.shadow_ms),
        }
        if self.type == handler_name(self.run):
            document["derived"] = ["type"]  # so that another handler gives another type
        return document

    def body(self) -> str:
        """The canonical document as text, for the store: equal definitions have equal texts."""
        return json.dumps(self.as_document(), sort_keys=True, separators=(",", ":"))

    @classmethod
    def from_body(cls, body: str) -> "Definition":
        """The definition that `body` wrote. What people may write was checked then; here only what a newer release can
        have written is (`kept.py`)."""
        return cls.from_document(json.loads(body))

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> "Definition":
        """The definition that `as_document` wrote."""
        given = {name: document[name] for name in _AS_THEY_ARE if name in document}
        for name, (attribute, converted) in _CONVERTED.items():
            if name in document:
                given[attribute] = converted(document[name])
        return made(cls, given)


def _anchored(entry: Entry, created_ms: int) -> Entry:
    if isinstance(entry, EveryEntry) and entry.anchor_ms is None:
        return replace(entry, anchor_ms=created_ms - created_ms % 1000)  # whole seconds: people read these instants
    return entry


_AS_THEY_ARE = (
    "name", "tenant", "description", "type", "managed_by", "max_ticks", "payload", "pool", "priority",
    "on_upstream_failure", "region", "pause_after_failures",
)  # fmt: skip
_CONVERTED: Mapping[str, tuple[str, Callable[[Any], Any]]] = {
    "schedule": ("schedule", lambda entries: tuple(map(entry_from, entries))),
    "starts_at": ("starts_ms", writing.instant_from),
    "ends_at": ("ends_ms", writing.instant_from),
    "calendars": ("calendars", lambda uses: tuple(map(writing.calendar_use_from, uses))),
    "jitter": ("jitter_ms", writing.duration_from),
    "run": ("run", target_from),
    "timeout": ("timeout_ms", writing.duration_from),
    "retry": ("retry", writing.retry_from),
    "overlap": ("overlap", writing.overlap_from),
    "misfire": ("misfire", writing.misfire_from),
    "start_deadline": ("start_deadline_ms", writing.duration_from),
    "depends_on": ("depends_on", tuple),
    "alerts": ("alerts", writing.alerts_from),
    "retention": ("retention", writing.retention_from),
    "shadow": ("shadow_ms", writing.shadow_from),
}
