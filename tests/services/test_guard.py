"""What a killed test run started does not outlive it. Each case starts a real server in a process and kills that."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.services.catalog import SERVICES
from tests.services.guard import alive
from tests.services.provision import Provision

ROOT = Path(__file__).parents[2]
DEADLINE_S = 30
RUN = """
import os, signal, sys, threading
from tests.services.catalog import SERVICES
from tests.services.guard import Guard
from tests.services.postgres import execute
from tests.services.sources import locate

service, guard = SERVICES[{name!r}], Guard()
url = service.start(service, locate(service, print), guard)
{then}
print("ready", flush=True)
sys.stdin.read()
"""
FORK = """
if (child := os.fork()) == 0:
    signal.pause()
print("forked", child)
"""
LOOP = """
threading.Thread(target=execute, args=(url, "DO $$ BEGIN LOOP END LOOP; END $$")).start()
"""


@pytest.mark.parametrize(
    "name",
    [
        "valkey",
        "postgres18",
        pytest.param("rabbitmq", marks=pytest.mark.soak),  # a whole family of processes, but 5 s
    ],
)
def test_a_server_does_not_outlive_a_killed_run(name: str, provision: Provision) -> None:
    provision.find(SERVICES[name])
    with started(name) as (run, _):
        family = descendants(run.pid)
        folders = {folder for pid in family if "/fleetcron-" in (folder := working_folder(pid))}
        assert folders
        run.kill()
        wait_until(lambda: not any(map(alive, family)), "the servers and the guard are gone")
        assert not any(Path(folder).exists() for folder in folders)


def test_a_busy_database_session_ends_too(provision: Provision) -> None:
    provision.find(SERVICES["postgres18"])
    with started("postgres18", LOOP) as (run, _):
        wait_until(lambda: any(title(pid).endswith(" DO") for pid in descendants(run.pid)), "the session is busy")
        family = descendants(run.pid)
        run.kill()
        wait_until(lambda: not any(map(alive, family)), "the session is gone")


def test_a_forked_child_does_not_keep_the_guard_waiting(provision: Provision) -> None:
    provision.find(SERVICES["valkey"])
    with started("valkey", FORK) as (run, said):
        child = int(said[-1])
        family = [pid for pid in descendants(run.pid) if pid != child]
        run.kill()
        try:
            wait_until(lambda: not any(map(alive, family)), "the server and the guard are gone")
            assert alive(child)
        finally:
            os.kill(child, signal.SIGKILL)


@contextmanager
def started(name: str, then: str = "") -> Iterator[tuple[subprocess.Popen[str], list[str]]]:
    """A process that has started the service, and the words it said."""
    run = subprocess.Popen(
        [sys.executable, "-c", RUN.format(name=name, then=then)],
        cwd=ROOT,
        env={key: value for key, value in os.environ.items() if key != SERVICES[name].variable},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with run:
        assert run.stdout is not None
        said = []
        for line in run.stdout:
            if line == "ready\n":
                break
            said += line.split()
        assert run.poll() is None, "it ended before it was ready"
        try:
            yield run, said
        finally:
            run.kill()


def descendants(pid: int) -> list[int]:
    stats = {int(path.parent.name): read(path).rpartition(")")[2].split() for path in Path("/proc").glob("[0-9]*/stat")}
    family = [pid]
    for member in family:  # grows while we walk it
        family += [child for child, stat in stats.items() if stat and int(stat[1]) == member]
    return family[1:]


def working_folder(pid: int) -> str:
    try:
        return os.readlink(f"/proc/{pid}/cwd")
    except (FileNotFoundError, ProcessLookupError):  # it was a short-lived one
        return ""


def title(pid: int) -> str:
    return read(Path(f"/proc/{pid}/cmdline")).rstrip("\0 ")


def read(path: Path) -> str:
    try:
        return path.read_text()
    except (FileNotFoundError, ProcessLookupError):
        return ""


def wait_until(condition: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + DEADLINE_S
    while not condition():
        assert time.monotonic() < deadline, f"not within {DEADLINE_S} s: {what}"
        time.sleep(0.02)
