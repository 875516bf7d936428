"""How long processes have computed, as the kernel counts it."""

import os
from pathlib import Path

_TICK_S = 1 / os.sysconf("SC_CLK_TCK")


def process_s(pid: int) -> float:
    """One process, with all its threads; those that it has started are not in it."""
    return _times(pid)[0]


def children(pid: int) -> list[int]:
    """Those that it has started, and those that they have started, as far as they live."""
    parents = {int(each.name): _parent(int(each.name)) for each in Path("/proc").iterdir() if each.name.isdigit()}
    found = [pid]
    for one in found:
        found += [child for child, parent in parents.items() if parent == one]
    return found[1:]


def database_s(pid: int) -> float | None:
    """The whole server, told by the process of one of its sessions. None: it runs elsewhere."""
    server = _parent(pid)
    if server is None or "postgres" not in _name(pid):
        return None
    ended_s = _times(server)[1]  # sessions that are over
    return ended_s + process_s(server) + sum(map(process_s, children(server)))


def _times(pid: int) -> tuple[float, float]:
    fields = _stat(pid)
    if fields is None:
        return 0.0, 0.0
    own, waited = fields[11:13], fields[13:15]
    return sum(map(int, own)) * _TICK_S, sum(map(int, waited)) * _TICK_S


def _parent(pid: int) -> int | None:
    fields = _stat(pid)
    return None if fields is None else int(fields[1])


def _stat(pid: int) -> list[str] | None:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    except OSError:
        return None


def _name(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text()
    except OSError:
        return ""
