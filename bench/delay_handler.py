"""The handler of `bench/delay.py`: its first line reads the clock."""

import os
import time
from typing import Any


def note(ctx: Any) -> None:
    now_ms = time.time_ns() / 1e6
    delay_ms = now_ms - ctx.scheduled_for.timestamp() * 1000
    with open(os.environ["BENCH_DELAYS"], "a") as log:
        log.write(f"{delay_ms:.3f} {now_ms / 1000:.6f}\n")
