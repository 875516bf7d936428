"""What became of many jobs, and what would, as the API shows it."""

from typing import Any, Literal

from pydantic import Field

from fleetcron.api.job_shapes import Change
from fleetcron.api.parameters import Shown

CalendarWord = Literal["created", "changed", "unchanged"]


class AppliedCalendar(Shown):
    tenant: str
    name: str
    done: CalendarWord
    jobs_moved: int
    jobs_stuck: int


class AppliedJob(Shown):
    tenant: str
    name: str
    done: str
    state: str | None
    revision: int | None
    next: str | None
    changes: list[Change]
    reason: str | None
    warning: str | None = Field(description="what was accepted and will not work")
    schedule: str | None
    managed_by: str | None


class AppliedFiles(Shown):
    dry_run: bool
    counts: dict[str, int]
    calendars: list[AppliedCalendar]
    jobs: list[AppliedJob]


class PlannedCalendar(AppliedCalendar):
    ticks: list[dict[str, Any]] = Field(description="of each timing: how many jobs have it, and what it does to them")


class PlannedJob(Shown):
    tenant: str
    name: str
    change: Literal["+", "~", "-", "!"]
    done: str
    state: str | None
    changes: list[Change]
    ticks: dict[str, Any] | None = Field(description="which appear, vanish and move; null: none does")
    warnings: list[str]
    reason: str | None
    schedule: str | None


class PlannedFiles(Shown):
    at: str
    days: int
    counts: dict[str, int]
    calendars: list[PlannedCalendar]
    jobs: list[PlannedJob] = Field(description="those that would change")
