"""Where handlers are at home: the store of the worker that calls them. What they ask for and what they guard is there.

A handler host is at home with one worker. In a worker's own process (`isolation: inline`) each attempt knows its own.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

from fleetcron.executors.allowed import is_allowed


@dataclass(frozen=True, slots=True)
class Home:
    """`allowed`: the handlers that its operator allows, which are those of its apps."""

    store_url: str | None = field(default=None, repr=False)  # the password may be in it
    allowed: tuple[str, ...] = ()

    def is_of(self, functions: Iterable[str]) -> bool:
        """Whether this worker may call one of them."""
        return any(is_allowed(name, self.allowed) is not None for name in functions)


NOWHERE = Home()
_process = NOWHERE


def settle_in(home: Home) -> None:
    """This whole process is a worker's, also the threads that its handlers start."""
    global _process
    _process = home


def of_process() -> Home:
    return _process
