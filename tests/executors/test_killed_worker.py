"""kill -9 of the worker itself: its hosts, its commands and all that they started are gone with it."""

import json
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from fleetcron.executors.frames import Frames, framed
from fleetcron.executors.process_tree import descendants
from fleetcron.upkeep import processes
from tests.executors.processes import still_alive
from tests.executors.stage import ENVIRONMENT, PATIENCE_S, ROOT
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


def test_a_process_is_gone_only_if_it_would_be_seen(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Where /proc hides the processes of others, a worker of another user must not be taken for dead."""
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE) as program:
        told = processes.this_process(program.pid)
        assert not processes.is_gone(told)
    assert processes.is_gone(told)
    monkeypatch.setattr(processes, "_FIRST", tmp_path / "hidden")
    assert not processes.is_gone(told)


FULL_AT_FIRST = """
import errno, os, sys
from fleetcron.executors import keeper
fork = os.fork
def full():
    os.fork = fork
    raise BlockingIOError(errno.EAGAIN, "no room")
os.fork = full
keeper.main(int(sys.argv[1]), int(sys.argv[2]))
"""


def test_a_keeper_without_room_for_a_supervisor_goes_on() -> None:
    """One program is not started; what runs already is not to end because of it."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    argv = [sys.executable, "-c", FULL_AT_FIRST, str(theirs.fileno()), str(os.getpid())]
    with subprocess.Popen(argv, pass_fds=[theirs.fileno()], env=ENVIRONMENT) as keeper, ours:
        theirs.close()
        ends = []
        for _ in range(2):
            end, given = socket.socketpair()
            end.settimeout(PATIENCE_S)
            socket.send_fds(ours, [b"+"], [given.fileno()])
            given.close()
            ends.append(end)
        refused, served = ends
        [[word, end_of_it]] = Frames().feed(refused.recv(65536))
        assert (word, end_of_it["error"]) == ("full", ["not_started", "no room for another process: no room"])
        assert refused.recv(1) == b""
        order = {"id": 1, "argv": ["true"], "env": {}, "cwd": "/", "stdin": None, "timeout_ms": None, "grace_ms": 0}
        served.sendall(framed(["run", order]))
        assert Frames().feed(served.recv(65536))[0][0] == "done"
        assert keeper.poll() is None
        ours.shutdown(socket.SHUT_WR)
        for end in ends:
            end.close()
