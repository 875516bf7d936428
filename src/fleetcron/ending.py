"""The event loop of a node that is a process of its own: when the node has left, the process ends."""

import asyncio
import logging
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any, Final, TypeAlias

log = logging.getLogger(__name__)

_PATIENCE_S: Final = 5.0

MakeLoop: TypeAlias = Callable[[], asyncio.AbstractEventLoop]
Task: TypeAlias = "asyncio.Task[Any]"


def run_to_the_end(
    main: Coroutine[Any, Any, None], make_loop: MakeLoop | None = None, *, patience_s: float = _PATIENCE_S
) -> None:
    """As `asyncio.run`, which waits for ever for a coroutine that goes on when it is cancelled. A handler may do that
    with `isolation: inline`: it was told as timed out long ago, and must not keep a process that is to end."""
    runner = asyncio.Runner(loop_factory=make_loop)
    try:
        runner.run(main)
    finally:
        loop = runner.get_loop()
        if left := loop.run_until_complete(_cancelled(patience_s)):
            of = (
                "coroutine goes on when cancelled, and ends"
                if len(left) == 1
                else "coroutines go on when cancelled, and end"
            )
            log.warning("%d %s with the process", len(left), of)
            for task in left:
                _drop(task)
            loop.close()
        else:
            runner.close()


async def _cancelled(patience_s: float) -> set[Task]:
    """Ask everybody else to end. Those that do not."""
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    if not others:
        return set()
    _, left = await asyncio.wait(others, timeout=patience_s)
    return left


def _drop(task: Task) -> None:
    """Python would do so at its exit, and complain."""
    task._log_destroy_pending = False  # type: ignore[attr-defined]
    with suppress(RuntimeError):  # it goes on even so
        task.get_coro().close()
