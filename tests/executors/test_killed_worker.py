"""kill -9 of the worker itself: its hosts, its commands and all that they started are gone with it."""

import json
import os
import signal
import subprocess
import sys

import pytest

from fleetcron.executors.process_tree import descendants
from tests.executors.processes import still_alive
from tests.executors.stage import ENVIRONMENT, ROOT
from tests.executors.test_commands import STUBBORN


@pytest.mark.parametrize("farewell", [signal.SIGKILL, signal.SIGTERM])
def test_nobody_outlives_the_worker(farewell: signal.Signals) -> None:
    """A hanging function, one that holds the interpreter, a daemon of a function, a command that ignores SIGTERM with a
    daemon of its own; and a grace of a minute, which nobody is there to wait for."""
    worker = subprocess.Popen(
        [sys.executable, "-m", "tests.executors.worker_process", STUBBORN],
        cwd=ROOT,
        env=ENVIRONMENT,
        stdout=subprocess.PIPE,
    )
    with worker:
        assert worker.stdout
        said = [int(pid) for pid in json.loads(worker.stdout.readline())]
        below = descendants(worker.pid)
        assert set(said) <= set(below)
        assert len(said) == 5
        os.kill(worker.pid, farewell)
        worker.wait()
    assert still_alive(sorted({*said, *below}), 2) == []
