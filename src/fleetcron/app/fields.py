"""What may be written in `@app.job(...)`: the fields of a job document, for type checkers and editors.

Nothing is checked here at run time. The document model does that, for all functions at once (`defining.py`).
"""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Literal, TypeAlias, TypedDict

Duration: TypeAlias = str | int | float | timedelta  # "30s", "1h30m", seconds
Instant: TypeAlias = str | datetime  # RFC 3339, or aware
OverlapName: TypeAlias = Literal["skip", "queue", "collapse", "allow", "cancel_previous"]
MisfireName: TypeAlias = Literal["skip", "latest", "all"]


class JobFields(TypedDict, total=False):
    """None is as if it was not written."""

    # one entry of the schedule
    cron: str | None
    every: Duration | None
    at: Instant | None
    timezone: str | None
    anchor: Instant | None
    dst_gap: Literal["skip", "shift"] | None
    dst_fold: Literal["first", "second", "both"] | None
    month_end: Literal["skip", "clamp"] | None
    # or several
    schedule: Mapping[str, Any] | Sequence[Mapping[str, Any]] | None
    # or none: it runs when somebody asks for it
    on_demand: bool | None

    name: str | None
    tenant: str | None
    description: str | None
    type: str | None
    starts_at: Instant | None
    ends_at: Instant | None
    max_ticks: int | None
    calendars: Sequence[str | Mapping[str, Any]] | None
    jitter: Duration | None
    payload: Mapping[str, Any] | None
    pool: str | None
    priority: int | None
    timeout: Duration | None
    retry: Mapping[str, Any] | None
    overlap: OverlapName | Mapping[str, Any] | None
    misfire: MisfireName | Mapping[str, Any] | None
    start_deadline: Duration | None
    depends_on: Sequence[str] | None
    on_upstream_failure: Literal["skip", "run", "wait"] | None
    region: str | None
    alerts: Mapping[str, Any] | None
    pause_after_failures: int | None
    retention: Duration | Mapping[str, Any] | None
    shadow: bool | Instant | None
