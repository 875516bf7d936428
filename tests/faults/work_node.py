"""Nodes that work, as processes of their own, which can be told to die, to fall asleep or to leave at a step.

The nursery forks them (`live`).
"""

import asyncio
import json
import logging
import os
import signal
import threading
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import fleetcron.node
from fleetcron import steps
from fleetcron.clock import SystemClock
from fleetcron.config import Config
from fleetcron.config.settings import (
    CoordinationConfig,
    ExecutorConfig,
    NodeConfig,
    SchedulerConfig,
    StoreConfig,
    WorkerConfig,
)
from fleetcron.executors.programs import Programs
from fleetcron.node import Node, stop_on_signals
from fleetcron.upkeep.processes import this_process
from tests.faults import work_handlers

HANDLERS = "tests.faults.work_handlers"
SLOW = "tests.faults.work_slow"
GUARDED = "tests.faults.work_guarded"
SHARDS = 4
SIGNALS = {"kill": signal.SIGKILL, "stop": signal.SIGSTOP, "term": signal.SIGTERM}


@dataclass(frozen=True)
class Wish:
    """`faults` are as in ("kill", "claim.written", 2): at the second time. `elsewhere`: it says that it runs on another
    machine, so that nobody can look whether its process is there, and only its lease tells."""

    url: str
    name: str
    truth: str
    log: str
    faults: list[tuple[str, str, int]] = field(default_factory=list)
    elsewhere: bool = False
    roles: list[str] = field(default_factory=lambda: ["worker"])
    isolation: str = "host"
    slots: int = 6
    ttl_s: float = 2
    deadline_s: float = 0.7
    drain_s: float = 5
    grace_s: float = 1
    switch: bool = True  # False: as if there were no dead man's switch

    def config(self) -> Config:
        ttl_s = self.ttl_s
        return Config(
            store=StoreConfig(url=self.url, deadline_s=self.deadline_s, connections=3),
            scheduler=SchedulerConfig(lookahead_s=2, idle_poll_s=0.5, shards=SHARDS),
            coordination=CoordinationConfig(lease_ttl_s=3, heartbeat_s=0.75, margin_s=0.4, node_ttl_s=3),
            node=NodeConfig(name=self.name, roles=tuple(self.roles)),
            worker=WorkerConfig(
                pools=(f"default={self.slots}",),
                lease_ttl_s=ttl_s,
                renew_s=ttl_s / 4,
                drain_s=self.drain_s,
                ahead_s=1,
                poll_s=0.5,
            ),
            executor=ExecutorConfig(
                handlers=(HANDLERS, SLOW, GUARDED),
                isolation=self.isolation,
                grace_s=self.grace_s,
                environment=(work_handlers.FOLDER, work_handlers.NODE),
            ),
        )


class Faults:
    """Send this process a signal at the n-th time that a step is reached, and say so: who dies otherwise has crashed.
    "working store.committed" counts from its first claim on. Where a `pillow` is put it falls asleep after its next
    commit."""

    def __init__(self, faults: list[tuple[str, str, int]], pillow: Path) -> None:
        self._faults = {(step, nth): SIGNALS[does] for does, step, nth in faults}
        self._pillow = pillow
        self.passed: Counter[str] = Counter()

    def __call__(self, step: str) -> None:
        for name in (step, *([f"working {step}"] if self.passed["claim.written"] else [])):
            self.passed[name] += 1
            number = self._faults.get((name, self.passed[name]))
            if number is not None:
                os.write(1, f"{number.name} at {name}\n".encode())
                # To this thread, which stops here: another one may take its time, and this one be in its next
                # transaction by then, with everybody kept from a SQLite file.
                signal.pthread_kill(threading.get_ident(), number)
        if step == "store.committed" and self._pillow.exists():
            self._pillow.unlink()
            signal.pthread_kill(threading.get_ident(), signal.SIGSTOP)


def pillow_of(log: str) -> Path:
    return Path(log).with_suffix(".pillow")


async def work(wish: Wish) -> None:
    stop = asyncio.Event()
    stop_on_signals(stop)
    faults = Faults(wish.faults, pillow_of(wish.log))
    steps.on_step(faults)
    if wish.elsewhere:
        fleetcron.node.this_process = lambda pid: f"elsewhere/{this_process(pid)}"  # type: ignore[attr-defined]
    if not wish.switch:
        Programs.allow_until = lambda *_: None  # type: ignore[method-assign]
    node = await Node.start(wish.config(), SystemClock())
    try:
        await node.run(stop)
    finally:
        await node.close()
    counts = dict(node.worker.health.counts) if node.worker else {}
    print(json.dumps({"node": node.row.node_id, "counts": counts, "passed": faults.passed}), flush=True)


def live(given: Mapping[str, Any]) -> None:
    wish = Wish(**given)
    os.environ.update({work_handlers.FOLDER: wish.truth, work_handlers.NODE: wish.name})
    logging.basicConfig(level=logging.INFO, format="%(asctime)s.%(msecs)03d %(levelname)s %(name)s: %(message)s")
    asyncio.run(work(wish))
