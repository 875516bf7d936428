"""The rules that a job carries, with their defaults. The defaults are part of the contract: shown, never hidden."""

from dataclasses import dataclass, field
from typing import Literal

MINUTE_MS = 60_000
HOUR_MS = 60 * MINUTE_MS
DAY_MS = 24 * HOUR_MS

MisfirePolicy = Literal["skip", "latest", "all"]
Lane = Literal["live", "catchup"]


@dataclass(frozen=True, slots=True)
class MisfireRule:
    """What happens to ticks that were not planned in time.

    A tick is late when `grace` has passed since it could start, or when the next tick is there. `window` and `limit`
    bound what is caught up: what is older, or more, is answered as missed.
    """

    policy: MisfirePolicy = "latest"
    window_ms: int = 24 * HOUR_MS
    limit: int = 100
    grace_ms: int = MINUTE_MS
    lane: Lane = "catchup"


@dataclass(frozen=True, slots=True)
class RetryRule:
    """When a failed attempt is tried again. `max_attempts` counts failures; lost attempts have a limit of their own."""

    max_attempts: int = 4
    backoff: Literal["list", "fixed", "exponential"] = "list"
    delays_ms: tuple[int, ...] = (30_000, 2 * MINUTE_MS, 10 * MINUTE_MS, 30 * MINUTE_MS, 2 * HOUR_MS)
    max_delay_ms: int = 2 * HOUR_MS  # of an exponential backoff
    jitter: float = 0.2
    max_losses: int = 5
    retry_on: tuple[str, ...] = ()  # empty: every error
    give_up_on: tuple[str, ...] = ()


OverlapPolicy = Literal["skip", "queue", "collapse", "allow", "cancel_previous"]


@dataclass(frozen=True, slots=True)
class OverlapRule:
    """What happens when a tick is due while the job still runs."""

    policy: OverlapPolicy = "skip"
    max_running: int | None = None  # only for allow
    concurrency_key: str | None = None


@dataclass(frozen=True, slots=True)
class AlertRule:
    """What somebody is told about."""

    on_failure: bool = True
    after_missed: int | None = 2
    on_late: bool = False
    on_duration: float | None = None  # share of the timeout
    channels: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Retention:
    """How long, and how many, runs stay in the hot store."""

    age_ms: int = 90 * DAY_MS
    runs: int | None = None


@dataclass(frozen=True, slots=True)
class CalendarUse:
    """How a job uses a named calendar.

    A calendar of days is excluded (holidays) or required (business days), and a tick on a wrong day is skipped or moved
    to the `next` or `previous` right day. A calendar of windows (a blackout) is always excluded: `skip` or `defer`.
    """

    name: str
    use: Literal["exclude", "require"] = "exclude"
    on: Literal["skip", "next", "previous", "defer"] = "skip"


@dataclass(frozen=True, slots=True)
class CronEntry:
    cron: str
    timezone: str = "UTC"
    dst_gap: Literal["skip", "shift"] = "shift"
    dst_fold: Literal["first", "second", "both"] = "first"
    month_end: Literal["skip", "clamp"] = "skip"
    chosen: frozenset[str] = field(default=frozenset(), compare=False)  # the policies that the user wrote, not derived


@dataclass(frozen=True, slots=True)
class EveryEntry:
    every_ms: int
    anchor_ms: int | None = None  # None until the job is created: its creation time


@dataclass(frozen=True, slots=True)
class OnceEntry:
    """`at` is RFC 3339 with an offset, or a local time together with a zone."""

    at: str
    timezone: str | None = None
    dst_gap: Literal["skip", "shift"] = "shift"
    dst_fold: Literal["first", "second", "both"] = "first"


Entry = CronEntry | EveryEntry | OnceEntry
