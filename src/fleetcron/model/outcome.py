"""What a handler said, or what became of it. What fleetcron makes of it is decided elsewhere (policy/settle)."""

from dataclasses import dataclass
from typing import Any, Final, TypeAlias

WORKER_STOPPED: Final = "worker_stopped"


@dataclass(frozen=True, slots=True)
class Fault:
    """Why an attempt did not succeed. `code` is what `retry_on` and `give_up_on` name."""

    code: str
    text: str = ""
    trace: str | None = None


@dataclass(frozen=True, slots=True)
class Succeeded:
    result: Any = None


@dataclass(frozen=True, slots=True)
class Failed:
    """`retry_after_ms`: at least so long, what the other side asked for (an HTTP Retry-After); exactly so long if the
    handler itself says so."""

    error: Fault
    retry_after_ms: int | None = None
    is_exact: bool = False


@dataclass(frozen=True, slots=True)
class TimedOut:
    error: Fault


@dataclass(frozen=True, slots=True)
class Lost:
    """The worker vanished, or could not renew its lease. Nobody's fault, so it has a budget of its own."""

    error: Fault

    @property
    def is_orderly(self) -> bool:
        """Somebody stopped the worker, and it said so."""
        return self.error.code == WORKER_STOPPED


@dataclass(frozen=True, slots=True)
class Cancelled:
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Snoozed:
    """The handler asks to be called again later. It costs no failure."""

    seconds: float


Outcome: TypeAlias = Succeeded | Failed | TimedOut | Lost | Cancelled | Snoozed
