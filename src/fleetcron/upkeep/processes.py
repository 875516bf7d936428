"""Is a process of this machine still there? Told by host, boot, namespace, pid and start: a number is used again.

A worker that was killed leaves its keeper behind, which ends everything that the worker had started. That takes a
moment, and until then the worker is not gone: a run must not start again beside what is left of its last attempt.
"""

import socket
from pathlib import Path
from typing import Final

from fleetcron.executors.process_tree import keepers_of

_FIRST: Final = Path("/proc/1/stat")  # of a process that is always there, and mostly somebody else's


def this_process(pid: int) -> str:
    """What a worker writes about itself. Empty where the system does not tell."""
    start = _start(pid)
    return "" if start is None else f"{_machine()}/{pid}/{start}"


def is_gone(process: str) -> bool:
    """True only if it certainly ran on this machine, in this namespace, since this boot, and neither it nor anything
    that it has started does any more."""
    machine, _, rest = process.rpartition("/")
    machine, _, pid = machine.rpartition("/")
    if not machine or machine != _machine() or not pid.isdigit():
        return False
    return _sees_others() and _start(int(pid)) != rest and not keepers_of(int(pid))


def _sees_others() -> bool:
    """Where /proc hides the processes of other users (hidepid), they look as if they were gone."""
    try:
        _FIRST.read_bytes()
    except OSError:
        return False
    return True


def _machine() -> str:
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        namespace = Path("/proc/self/ns/pid").readlink()
    except OSError:
        return ""
    return f"{socket.gethostname()}/{boot}/{namespace}"


def _start(pid: int) -> str | None:
    """When it started, in ticks since the boot; None if there is no such process, or only what is left of one."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return None if fields[0] in ("Z", "X") else fields[19]
