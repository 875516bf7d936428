"""What runs do in the benchmarks of workers: nothing, or nothing for a while."""

import asyncio
from collections.abc import Mapping
from typing import Any

NOTHING = "bench.handlers:nothing"
WHILE = "bench.handlers:a_while"


async def nothing() -> None:
    """The least that a handler can be."""


async def a_while(ctx: Any, payload: Mapping[str, float]) -> None:
    del ctx
    await asyncio.sleep(payload["s"])
