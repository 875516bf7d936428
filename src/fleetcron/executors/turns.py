"""Imports take turns, and one that takes long loses its turn.

Modules that import each other must not be begun in two threads at once: one of them sees half of the other and fails,
although nothing is wrong with it. So they are begun one after the other. But an import may hang for ever, and nobody is
to wait for it but those who asked for its functions.
"""

import asyncio
from collections.abc import Callable
from typing import Any, Final

_TURN_S: Final = 1.0


class Turns:
    def __init__(self) -> None:
        self._turn = asyncio.Lock()  # who comes first goes first
        self._begun: set[str] = set()

    async def take(self, module: str, begin: Callable[[], "asyncio.Future[Any]"]) -> None:
        """Until the turn is over; what `begin` began may last longer."""
        async with self._turn:
            over = begin()
            if module not in self._begun:  # otherwise Python has it, or makes this one wait for that import
                self._begun.add(module)
                await asyncio.wait([over], timeout=_TURN_S)
