"""One scheduler as a process of its own, which can be told to die or to fall asleep at a step.

`python -m tests.faults.node URL NAME [default]`: with short leases, or the default ones. With
FLEETCRON_FAULT="kill tick.written 3" it kills itself (-9) at the third `tick.written`. SIGUSR1 lets it fall asleep
(SIGSTOP) with its next plan in its hands, SIGUSR2 in the middle of the transaction that writes it: then it is a zombie
when somebody wakes it. It logs to standard error and says at its end, on standard output, what it counted.
"""

import asyncio
import json
import logging
import os
import signal
import sys
from collections import Counter

from fleetcron import steps
from fleetcron.config import Config
from fleetcron.config.settings import CoordinationConfig, NodeConfig, SchedulerConfig, StoreConfig
from fleetcron.node import Node, stop_on_signals

TTL_S = 2.0
VARIABLE = "FLEETCRON_FAULT"
SIGNALS = {"kill": signal.SIGKILL, "stop": signal.SIGSTOP}


def quick(url: str, name: str) -> Config:
    """Short leases, and room for all that is to be caught up: nobody works on it here."""
    return Config(
        store=StoreConfig(url=url, deadline_s=0.7),
        scheduler=SchedulerConfig(lookahead_s=1, idle_poll_s=0.5, batch_rows=2000, catch_up_room=1_000_000),
        coordination=CoordinationConfig(
            lease_ttl_s=TTL_S, heartbeat_s=TTL_S / 4, margin_s=TTL_S * 0.15, node_ttl_s=TTL_S
        ),
        node=NodeConfig(name=name, roles=("scheduler",)),
    )


class Fault:
    """Send this process a signal at the n-th time that a step is reached."""

    def __init__(self, does: str, step: str, nth: int) -> None:
        self.signal = SIGNALS[does]
        self.step = step
        self.nth = nth
        self.seen: Counter[str] = Counter()

    @classmethod
    def parsed(cls, text: str) -> "Fault":
        does, step, nth = text.split()
        return cls(does, step, int(nth))

    def __call__(self, step: str) -> None:
        self.seen[step] += 1
        if step == self.step and self.seen[step] == self.nth:
            os.kill(os.getpid(), self.signal)

    def arm(self, step: str) -> None:
        """Fall asleep at the next time of a step."""
        self.signal, self.step, self.nth = signal.SIGSTOP, step, self.seen[step] + 1


async def live(config: Config, fault: Fault) -> None:
    stop = asyncio.Event()
    stop_on_signals(stop)
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGUSR1, fault.arm, "tick.planned")
    loop.add_signal_handler(signal.SIGUSR2, fault.arm, "advance.write")
    steps.on_step(fault)
    node = await Node.start(config)
    try:
        await node.run(stop)
    finally:
        await node.close()
    print(json.dumps({"node": node.row.node_id, "rounds": node.health.rounds, **node.health.counts}), flush=True)


def main() -> None:
    logging.basicConfig(level=logging.INFO, format="%(asctime)s.%(msecs)03d %(levelname)s %(message)s")
    url, name, *leases = sys.argv[1:]
    default = Config(store=StoreConfig(url=url), node=NodeConfig(name=name, roles=("scheduler",)))
    asyncio.run(live(default if leases else quick(url, name), Fault.parsed(os.environ.get(VARIABLE, "kill never 1"))))


if __name__ == "__main__":
    main()
