"""kill -9 of the worker itself: its hosts, its commands and all that they started are gone with it."""

import errno
import json
import os
import resource
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


WITHOUT_DESCRIPTORS = """
import errno, os, resource, socket, sys
from fleetcron.executors import keeper
fork, receive, has_room = os.fork, socket.recv_fds, False
def noted(*given):
    global has_room
    has_room = resource.getrlimit(resource.RLIMIT_NOFILE)[0] > 100
    return receive(*given)
def when_there_is_room():
    if not has_room:
        raise BlockingIOError(errno.EAGAIN, "no room")
    return fork()
socket.recv_fds, os.fork = noted, when_there_is_room
os.dup2(int(sys.argv[1]), 3)
os.closerange(4, 256)
resource.setrlimit(resource.RLIMIT_NOFILE, (6 + int(sys.argv[3]), 256))  # its pipe is two
keeper.main(3, int(sys.argv[2]))
"""


@pytest.mark.parametrize("room", [0, 1])
def test_a_keeper_that_is_handed_more_than_it_can_hold_goes_on(room: int) -> None:
    """No program starts without what it was to get; whoever waits for it hears so, or sees that nobody comes."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    argv = [sys.executable, "-c", WITHOUT_DESCRIPTORS, str(theirs.fileno()), str(os.getpid()), str(room)]
    with subprocess.Popen(argv, pass_fds=[theirs.fileno()], env=ENVIRONMENT) as keeper, ours:
        theirs.close()
        refused = handed(ours)
        said = refused.recv(65536)
        if room:
            [[word, end_of_it]] = Frames().feed(said)
            full = ["not_started", f"no room for another process: {os.strerror(errno.EMFILE)}"]
            assert (word, end_of_it["error"]) == ("full", full)
            said = refused.recv(1)
        assert said == b""
        resource.prlimit(keeper.pid, resource.RLIMIT_NOFILE, (256, 256))
        served = handed(ours)
        order = {"id": 1, "argv": ["true"], "env": {}, "cwd": "/", "stdin": None, "timeout_ms": None, "grace_ms": 0}
        served.sendall(framed(["run", order]))
        assert Frames().feed(served.recv(65536))[0][0] == "done"
        ours.shutdown(socket.SHUT_WR)
        for end in (refused, served):
            end.close()


def handed(keeper: socket.socket) -> socket.socket:
    """Our end of a socket whose other end a supervisor is to have, beside one for its program."""
    end, given = socket.socketpair()
    end.settimeout(PATIENCE_S)
    with given, socket.socket() as for_program:
        socket.send_fds(keeper, [b"+"], [given.fileno(), for_program.fileno()])
    return end
