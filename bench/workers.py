"""Workers in processes of their own, and how to lead them: `python -m bench.workers SETTINGS`.

A process says `ready`, waits for a line, works until its input ends, and then says what it has seen.
"""

import asyncio
import json
import os
import random
import subprocess
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from bench.cpu import children, process_s
from bench.tables import DEADLINE_S
from fleetcron.clock import SystemClock
from fleetcron.config import ExecutorConfig, StoreConfig, WorkerConfig
from fleetcron.executors.assembly import executors
from fleetcron.executors.programs import Programs
from fleetcron.node import tune_interpreter
from fleetcron.store.store import Store
from fleetcron.upkeep.processes import this_process
from fleetcron.worker.loop import Worker

LOOK_S = 0.002
_ROOT = Path(__file__).parent.parent


class Crew:
    """Processes that have said `ready`."""

    def __init__(self, processes: Sequence[subprocess.Popen[str]]) -> None:
        self._processes = processes

    def go(self) -> None:
        for each in self._processes:
            assert each.stdin is not None
            each.stdin.write("go\n")
            each.stdin.flush()

    def check(self) -> None:
        for each in self._processes:
            assert each.poll() is None, f"a worker has ended with {each.returncode}"

    def cpu_s(self) -> tuple[float, float]:
        """Of the workers, and of the processes that run functions for them."""
        hosts = {child for each in self._processes for child in children(each.pid)}
        return sum(process_s(each.pid) for each in self._processes), sum(map(process_s, hosts))

    async def stop(self) -> list[dict[str, Any]]:
        """What each has seen."""
        said = await asyncio.gather(*(asyncio.to_thread(each.communicate) for each in self._processes))
        return [json.loads(text) for text, _ in said if text.strip()]


@asynccontextmanager
async def crew(commands: Sequence[Sequence[str]]) -> AsyncIterator[Crew]:
    """One process for each command."""
    environment = {**os.environ, "PYTHONPATH": str(_ROOT)}
    processes = [
        subprocess.Popen(command, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment)
        for command in commands
    ]
    try:
        for each in processes:
            assert each.stdout is not None
            said = await asyncio.to_thread(each.stdout.readline)
            assert said == "ready\n", f"a worker said {said!r}"
        yield Crew(processes)
    finally:
        for each in processes:
            if each.poll() is None:
                each.kill()
            each.wait()


def command(url: str, name: str, slots: int, *, isolation: str = "inline", **settings: Any) -> list[str]:
    given = {"url": url, "name": name, "slots": slots, "isolation": isolation, **settings}
    return [sys.executable, "-m", "bench.workers", json.dumps(given)]


# -- in the process


async def _work(settings: dict[str, Any]) -> dict[str, Any]:
    tune_interpreter()  # as `fleetcron worker` does
    clock = SystemClock()
    config = StoreConfig(url=settings["url"], deadline_s=DEADLINE_S)
    store = await Store.open(config, clock)
    programs = Programs(dict(os.environ))
    executor = ExecutorConfig(isolation=settings["isolation"], handlers=("bench.handlers",))
    worker = Worker(
        store,
        settings["name"],
        WorkerConfig(pools=(f"default={settings['slots']}",)),
        executors(programs, executor, dict(os.environ), clock),
        process=this_process(os.getpid()),
        clock=clock,
        chance=random.random,
        allow=programs.allow_until,
    )
    loop = asyncio.get_running_loop()
    print("ready", flush=True)
    await loop.run_in_executor(None, sys.stdin.readline)
    stop = asyncio.Event()
    working = asyncio.create_task(worker.run(stop))
    looking = asyncio.create_task(_look(worker)) if settings.get("look") else None
    await loop.run_in_executor(None, sys.stdin.read)
    seen: dict[str, Any] = {"counts": dict(worker.health.counts), "free": []}
    if looking is not None:
        looking.cancel()
        seen["free"] = _SEEN
    stop.set()
    await working
    await programs.close()
    await store.close()
    return seen


_SEEN: list[tuple[float, int]] = []  # instants, and how many slots were free


async def _look(worker: Worker) -> None:
    [pool] = worker._hands.pools
    clock = SystemClock()
    while True:
        _SEEN.append((clock.now_ms(), pool.room))
        await asyncio.sleep(LOOK_S)


if __name__ == "__main__":
    print(json.dumps(asyncio.run(_work(json.loads(sys.argv[1])))))
