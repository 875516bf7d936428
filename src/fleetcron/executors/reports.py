"""What an executor tells: always in batches, through one function that was given at the start.

Instants are milliseconds of the steady clock (`Clock.monotonic_ms`), which is the same in all processes of a machine:
only their differences mean something.
"""

import asyncio
from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeAlias

from fleetcron.model.outcome import Outcome


class Done(NamedTuple):
    """An attempt has ended. Of a command no process is alive any more; what a function started lives in its host.

    The result stands in `result_json`, never in the outcome: it was made into JSON where the handler ran and goes to
    the store as it is.
    """

    run_id: int
    attempt: int
    outcome: Outcome
    started_ms: int
    finished_ms: int
    result_json: str | None = None
    log_tail: str = ""  # the last 64 KiB
    log_bytes: int = 0  # all that was printed, kept or not


class LogChunk(NamedTuple):
    """A piece of what it prints, in order: the first 8 MiB, and the last 64 KiB. `truncated`: after this one something
    is left out."""

    run_id: int
    attempt: int
    seq: int
    text: str
    truncated: bool = False


class Progress(NamedTuple):
    """How far it is, from 0 to 1. Only the newest counts; what comes too fast is left out."""

    run_id: int
    attempt: int
    share: float
    note: str = ""


class Declined(NamedTuple):
    """It did not start, because there is no such handler here. That is no failure and costs no attempt."""

    run_id: int
    attempt: int
    reason: str


Report: TypeAlias = Done | LogChunk | Progress | Declined
Tell: TypeAlias = Callable[[Sequence[Report]], None]


class Outbox:
    """Reports that are told together, in the next turn of the event loop."""

    def __init__(self, tell: Tell) -> None:
        self._loop = asyncio.get_running_loop()
        self._tell = tell
        self._reports: list[Report] = []

    def put(self, report: Report) -> None:
        if not self._reports:
            self._loop.call_soon(self.flush)
        self._reports.append(report)

    def ending(self) -> set[tuple[int, int]]:
        """Those whose end is on its way."""
        return {(report.run_id, report.attempt) for report in self._reports if isinstance(report, Done | Declined)}

    def flush(self) -> None:
        if self._reports:
            reports, self._reports = self._reports, []
            self._tell(reports)
