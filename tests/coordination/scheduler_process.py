"""A process that only holds shards, and writes a line of JSON whenever that changes: `[[region, shard, term], …]`.

SIGTERM ends it in order. It also ends when its input is closed, so that it does not outlive the test run.
"""

import asyncio
import json
import os
import signal
import sys
import threading

from fleetcron.clock import SystemClock
from fleetcron.config import CoordinationConfig
from fleetcron.coordination.holder import Holder
from fleetcron.store.nodes import Node
from fleetcron.store.opening import open_engine

QUICK = CoordinationConfig(lease_ttl_s=2, heartbeat_s=0.5, margin_s=0.25, node_ttl_s=2)
SHARDS = 4


async def main(url: str, name: str) -> None:
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    engine = await open_engine(url, clock=SystemClock(), deadline_s=0.7)
    node = Node(name, "host", os.getpid(), ("scheduler",))
    holder = Holder(engine, node, QUICK, shards=SHARDS, clock=SystemClock())
    running = asyncio.create_task(holder.run(stop))
    told: list[list[object]] | None = None
    while not running.done():
        changed = asyncio.create_task(holder.changed.wait())
        await asyncio.wait({running, changed}, return_when=asyncio.FIRST_COMPLETED)
        changed.cancel()
        holder.changed.clear()
        now = [[held.region, held.shard, held.term] for held in holder.held()]
        if now != told:
            print(json.dumps(now), flush=True)
            told = now
    await running
    await engine.close()


def end_with_the_parent() -> None:
    sys.stdin.read()
    os._exit(1)


if __name__ == "__main__":
    threading.Thread(target=end_with_the_parent, daemon=True).start()
    asyncio.run(main(sys.argv[1], sys.argv[2]))
