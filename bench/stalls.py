"""When the machine itself stood still: a virtual machine is not asked before its host takes a core away.

One process for each core, with the highest real-time priority where that is allowed, does nothing but wake up every
millisecond. Nothing of this machine can keep it waiting, so what makes it late is below us.
"""

import contextlib
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

TICK_S = 0.001
LATE_S = 0.001  # later than that is a stall


@dataclass
class Stalls:
    """[from, to] in seconds since 1970."""

    spans: list[tuple[float, float]] = field(default_factory=list)
    is_real_time: bool = False

    def hit(self, from_s: float, to_s: float) -> bool:
        """Whether the machine stood still at any moment between the two."""
        return any(start <= to_s and end >= from_s for start, end in self.spans)


@contextlib.contextmanager
def watched() -> Iterator[Stalls]:
    """The stalls of all cores from here on; to be read after the end."""
    stalls = Stalls()
    with tempfile.TemporaryDirectory() as folder:
        logs = [Path(folder, str(core)) for core in sorted(os.sched_getaffinity(0))]
        watchers = [subprocess.Popen([sys.executable, __file__, log.name, str(log), str(os.getpid())]) for log in logs]
        try:
            yield stalls
        finally:
            for watcher in watchers:
                watcher.terminate()
                watcher.wait()
            for log in logs:
                kind, *lines = log.read_text().splitlines()
                stalls.is_real_time = kind == "real-time"
                stalls.spans += [(float(start), float(end)) for start, end in map(str.split, lines)]


def watch(core: int, log: Path, parent: int) -> None:
    import signal
    import time

    from fleetcron.executors.linux import die_with

    die_with(parent, signal.SIGKILL)  # a benchmark that is killed must not leave such a process behind
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    os.sched_setaffinity(0, {core})
    kind = "real-time"
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(50))
    except PermissionError:
        kind = "ordinary"
    with log.open("w", buffering=1) as told:
        print(kind, file=told)
        while True:
            before = time.time()
            time.sleep(TICK_S)
            after = time.time()
            if after - before - TICK_S > LATE_S:
                print(f"{before:.6f} {after:.6f}", file=told)


if __name__ == "__main__":
    watch(int(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]))
