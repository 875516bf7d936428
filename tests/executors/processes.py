"""Processes, as /proc shows them."""

import os
import time
from pathlib import Path

from fleetcron.executors.process_tree import children_of, descendants


def alive(pid: int) -> bool:
    """Running; one that is dead but not reaped is not."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state not in "ZX"


def still_alive(pids: list[int], within_s: float) -> list[int]:
    """Those that are not gone by then. Looks often, because nobody tells when a stranger's process ends."""
    deadline = time.monotonic() + within_s
    while (left := [pid for pid in pids if alive(pid)]) and time.monotonic() < deadline:
        time.sleep(0.01)
    return left


def keepers() -> list[int]:
    """The keepers of this process. The servers that other tests have started are its children too, and not ours."""
    return [pid for pid in children_of(os.getpid()) if b"fleetcron.executors.keeper" in _command(pid)]


def ours() -> list[int]:
    """The keepers, and everything below them."""
    return [pid for keeper in keepers() for pid in (keeper, *descendants(keeper))]


def _command(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return b""


def zombies() -> list[int]:
    found = []
    for pid in ours():
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except (FileNotFoundError, ProcessLookupError):
            continue
        if state == "Z":
            found.append(pid)
    return found


def open_files(pid: int) -> int:
    return len(os.listdir(f"/proc/{pid}/fd"))
