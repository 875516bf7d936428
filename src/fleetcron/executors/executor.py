"""What the worker asks of whoever does the work."""

from collections.abc import Sequence
from typing import Protocol

from fleetcron.executors.assignment import Assignment, Key
from fleetcron.model.target import Target


class Executor(Protocol):
    """Created with a function that it tells its reports to (`reports.py`), inside a running event loop.

    Every assignment that was started gets exactly one `Done` or `Declined`, whatever happens.
    """

    async def learn(self, targets: Sequence[Target]) -> None:
        """Find out which of these can be run here, so that `knows` and `why_not` can answer."""
        ...

    def knows(self, target: Target) -> bool:
        """May a run of this target be claimed? Without `learn`, a Python function is not known."""
        ...

    def why_not(self, target: Target) -> str | None:
        """The reason for people, if it is not known."""
        ...

    def start(self, assignments: Sequence[Assignment]) -> None:
        """Take these; returns at once. Functions beyond the slots of their hosts wait, and so do their timeouts."""
        ...

    def cancel(self, run_id: int, attempt: int, reason: str, grace_s: float | None = None) -> None:
        """Ask it to stop; after the grace (the configured one, if none is given) it is stopped.

        Asking again with a shorter grace hurries it. An attempt that is not running is no mistake.
        """
        ...

    def running(self) -> set[Key]:
        """Everything that was started and has no `Done` yet."""
        ...

    async def close(self, grace_s: float) -> None:
        """Ask everything to stop, and stop it after this time. What did not end by itself is told as lost."""
        ...
