"""An app as a user would write it."""

import asyncio
from typing import Any

from fleetcron import Fleetcron

app = Fleetcron("sqlite:///shop.db", name="shop")
seen: list[tuple[str, Any]] = []


@app.job(cron="30 2 * * *", timezone="America/New_York", payload={"kind": "full"})
def nightly_report(ctx: Any, payload: Any) -> dict[str, int]:
    seen.append((ctx.job, ctx.scheduled_for))
    ctx.log("for", payload["kind"])
    return {"rows": 42}


@app.job(every="1h", anchor="2027-01-01T00:00:00Z", timeout="10m", retry={"max_attempts": 1})
async def load_orders(ctx: Any) -> None:
    seen.append((ctx.job, ctx.attempt))
    ctx.progress(0.5, "half")
    await asyncio.sleep(60)
    await asyncio.to_thread(seen.append, ("loaded", ctx.scheduled_for))


@app.job(cron="0 12 * * *", retry={"max_attempts": 3, "backoff": ["10s", "1m"], "jitter": 0})
def fragile(ctx: Any) -> None:
    if ctx.attempt < 3:
        raise ConnectionError("the shop is closed")
