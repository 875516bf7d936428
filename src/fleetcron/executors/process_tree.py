"""The descendants of this process, as the kernel lists them, and how to end them all."""

import os
import signal
from contextlib import suppress
from pathlib import Path
from typing import Final

KEEPER: Final = "fleetcron.executors.keeper"


def descendants(pid: int) -> list[int]:
    """Children before grandchildren. A process that begins or ends meanwhile may be missing: ask again."""
    found: list[int] = []
    waiting = [pid]
    while waiting:
        children = children_of(waiting.pop())
        found += children
        waiting += children
    return found


def children_of(pid: int) -> list[int]:
    return _listed_children(pid) if _HAS_LISTS else _searched_children(pid)


def _listed_children(pid: int) -> list[int]:
    found: list[int] = []
    with suppress(OSError):  # it has ended
        for thread in os.listdir(f"/proc/{pid}/task"):
            with suppress(OSError):
                found += map(int, Path(f"/proc/{pid}/task/{thread}/children").read_bytes().split())
    return found


def _searched_children(pid: int) -> list[int]:
    """Among all processes of the machine, where the kernel keeps no lists."""
    found: list[int] = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        with suppress(OSError):
            parent = Path(f"/proc/{name}/stat").read_text("utf-8", "replace").rpartition(")")[2].split()[1]
            if int(parent) == pid:
                found.append(int(name))
    return found


_HAS_LISTS = os.path.exists(f"/proc/{os.getpid()}/task/{os.getpid()}/children")


def keepers_of(worker: int) -> list[int]:
    """The keeper of a worker and its supervisors, also when the worker is dead: what they were started with says whose
    they are. They end after everything below them has."""
    found: list[int] = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        with suppress(OSError):
            words = Path(f"/proc/{name}/cmdline").read_bytes().split(b"\0")
            if KEEPER.encode() in words and words[-2:] == [str(worker).encode(), b""]:
                found.append(int(name))
    return found


def send_to_all(pids: list[int], number: signal.Signals) -> None:
    for pid in pids:
        with suppress(ProcessLookupError, PermissionError):
            os.kill(pid, number)


def reap() -> tuple[dict[int, int], bool]:
    """The children that have ended, with their exit codes (negative: a signal), and whether that was the last one."""
    ended: dict[int, int] = {}
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return ended, True
        if not pid:
            return ended, False
        ended[pid] = os.waitstatus_to_exitcode(status)
