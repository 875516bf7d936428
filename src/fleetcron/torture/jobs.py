"""The jobs of a torture: every schedule that can be counted by hand, every overlap, misfire and retry policy."""

import sys
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

from fleetcron.model.definition import Definition
from fleetcron.model.entry import cron_entry, once_entry
from fleetcron.model.rules import (
    Entry,
    EveryEntry,
    MisfirePolicy,
    MisfireRule,
    OverlapPolicy,
    OverlapRule,
    RetryRule,
)
from fleetcron.model.target import CommandTarget, PythonTarget, Target
from fleetcron.times.instants import from_ms

TENANT: Final = "torture"
POOL: Final = "torture"
AGAIN_MS: Final = 300  # from a failure to the next attempt
HANDLERS: Final = "fleetcron.torture.handlers"
_ANCHOR_MS: Final = 1_767_225_600_000  # 2026-01-01T00:00:00Z
_GRACE_MS: Final = 2000
_HOUR_MS: Final = 3_600_000
_QUICK_S: Final = 0.3


def jobs(once_ms: int) -> list[Definition]:
    """All of them; one of them runs only once, at this instant."""
    return [
        _job("second", cron_entry("* * * * * *"), "works", 0.02),
        _job("every-2s", _every(2), "blocks", 0.1, misfire="skip"),
        _job("every-3s", _every(3), "works", 0.3, overlap="queue", misfire="all"),
        _job("long", cron_entry("* * * * * *"), "works", 1.4),
        _job("collapsing", cron_entry("* * * * * *"), "works", 1.3, overlap="collapse"),
        _job("replacing", _every(2), "works", 2.6, overlap="cancel_previous"),
        _job("beside", cron_entry("* * * * * *"), "works", 1.2, overlap="allow"),
        _job("pair", cron_entry("* * * * * *"), "works", 1.5, overlap="allow", most=2),
        _job("till-1", _every(2), "works", 0.3, overlap="queue", key="till"),
        _job("till-2", _every(2), "blocks", 0.3, overlap="queue", key="till"),
        _job("fails-once", _every(2), "fails_at_first", 0.02),
        _job("dies", _every(5), "fails", 0.02),
        replace(_job("jittered", _every(3), "works", 0.02), jitter_ms=2500),
        _job("minute", cron_entry("* * * * *", "Asia/Kolkata"), "works", 0.1, misfire="all"),
        _job("once", once_entry(from_ms(once_ms)), "works", 0.1),
        replace(_job("counted", _every(1), "works", 0.02, misfire="all"), max_ticks=9),
        _job("program", _every(2), _program("program"), 0.1),
        _job("edited-1", cron_entry("*/2 * * * * *"), "works", 0.05, misfire="all"),
        _job("edited-2", cron_entry("*/2 * * * * *"), "works", 0.05),
    ]


def may_be_paused(all_jobs: Sequence[Definition]) -> list[Definition]:
    return [job for job in all_jobs if job.name not in ("once", "counted")]


def resume_policies(job: Definition) -> Sequence[MisfirePolicy]:
    """What may become of its ticks while it was paused. All of them only where that is quickly done: a job that works
    for longer than its interval would take longer to catch up than it was away."""
    return ("skip", "latest", "all") if job.payload["s"] <= _QUICK_S else ("skip", "latest")


def may_be_edited(all_jobs: Sequence[Definition]) -> list[Definition]:
    return [job for job in all_jobs if job.name.startswith("edited")]


def edited(job: Definition, step: int) -> Definition:
    """The same every so many seconds."""
    return replace(job, schedule=(cron_entry(f"*/{step} * * * * *"),))


def _job(
    name: str,
    entry: Entry,
    run: Target | str,
    seconds: float,
    *,
    overlap: OverlapPolicy = "skip",
    misfire: MisfirePolicy = "latest",
    most: int | None = None,
    key: str | None = None,
) -> Definition:
    payload: dict[str, Any] = {"s": seconds}
    if overlap != "allow":
        payload["alone"] = key or name
    return Definition(
        name,
        (entry,),
        PythonTarget(f"{HANDLERS}:{run}") if isinstance(run, str) else run,
        tenant=TENANT,
        pool=POOL,
        payload=payload,
        timeout_ms=60_000,
        # what is lost is tried again as often as it takes: giving up would hide how often that was
        retry=RetryRule(max_attempts=3, backoff="fixed", delays_ms=(AGAIN_MS,), jitter=0, max_losses=1000),
        overlap=OverlapRule(overlap, most, key),
        misfire=MisfireRule(misfire, window_ms=24 * _HOUR_MS, limit=10_000, grace_ms=_GRACE_MS),
    )


def _every(seconds: int) -> EveryEntry:
    return EveryEntry(seconds * 1000, _ANCHOR_MS)


def _program(alone: str) -> CommandTarget:
    return CommandTarget((sys.executable, "-P", "-m", HANDLERS, "0.1", alone))
