"""Markers at every boundary where a process may die: `step("plan.committed")`.

They do nothing in production. A test puts a function here that kills the process at the n-th time a step is reached, or
that lets two processes interleave in a given order.
"""

from collections.abc import Callable


def _nothing(name: str) -> None:
    """In production a step is no step."""


_hook: Callable[[str], None] = _nothing


def step(name: str) -> None:
    _hook(name)


def on_step(hook: Callable[[str], None] | None) -> None:
    """Call `hook` with the name of every step from now on; None switches it off."""
    global _hook
    _hook = _nothing if hook is None else hook
