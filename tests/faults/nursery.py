"""A process that has everything imported and forks a life at a time: a life costs no start of an interpreter.

Run as a program it reads one JSON line per life from its standard input and answers with one when that life has ended.
"""

import asyncio
import json
import os
import subprocess
import sys
import traceback
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fleetcron import steps
from tests.faults.node import Fault
from tests.faults.story import life
from tests.services.guard import Guard

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Ended:
    """How a life ended: by its own hand (-9), or whole, with how often it passed each step and what time it was."""

    signal: int
    passed: Counter[str]
    now_ms: int
    log: str


class Nursery:
    def __init__(self, process: "subprocess.Popen[str]", folder: Path) -> None:
        self._process = process
        self._folder = folder
        self._lives = 0

    def live(self, url: str, number: int, fault: str | None = None) -> Ended:
        """One life; `fault` is as in `kill tick.written 3`."""
        self._lives += 1
        log = self._folder / f"{self._lives}.log"
        wish = {"url": url, "number": number, "fault": fault or "kill never 1", "log": str(log)}
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.write(json.dumps(wish) + "\n")
        self._process.stdin.flush()
        status = int(self._process.stdout.readline())
        said = log.read_text()
        if os.WIFSIGNALED(status):
            return Ended(os.WTERMSIG(status), Counter(), 0, said)
        assert os.WEXITSTATUS(status) == 0, said
        last = json.loads(said.splitlines()[-1])
        return Ended(0, Counter(last["passed"]), last["now_ms"], said)


@contextmanager
def nursery(guard: Guard, folder: Path) -> Iterator[Nursery]:
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.faults.nursery"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd=ROOT,
        text=True,
        start_new_session=True,
    )
    guard.adopt(process.pid)
    try:
        with process:
            yield Nursery(process, folder)
            assert process.stdin
            process.stdin.close()
    finally:
        process.kill()


async def tell(url: str, number: int) -> int:
    async with life(url, number) as one:
        await one.tell()
        return one.clock.now_ms()


def child(wish: dict[str, Any]) -> None:
    log = os.open(wish["log"], os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o600)
    os.dup2(log, 1)
    os.dup2(log, 2)
    fault = Fault.parsed(wish["fault"])
    steps.on_step(fault)
    now_ms = asyncio.run(tell(wish["url"], wish["number"]))
    print(json.dumps({"passed": fault.seen, "now_ms": now_ms}), flush=True)


def main() -> None:
    asyncio.run(tell(":memory:", 0))  # what is parsed and computed once is there for every child
    for line in sys.stdin:
        pid = os.fork()
        if not pid:
            try:
                child(json.loads(line))
            except BaseException:
                traceback.print_exc()
                os._exit(1)
            os._exit(0)
        print(os.waitpid(pid, 0)[1], flush=True)


if __name__ == "__main__":
    main()
