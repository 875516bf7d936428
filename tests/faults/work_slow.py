"""A module of handlers whose import takes its time."""

import time
from typing import Any

from tests.faults import work_handlers


async def works(ctx: Any) -> None:
    await work_handlers.works(ctx)


time.sleep(4)  # longer than the lease in the tests: that is what they are about
