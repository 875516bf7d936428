"""Two promises of the Linux kernel that Python has no name for."""

import ctypes
import os
import signal

_SET_PDEATHSIG = 1
_SET_CHILD_SUBREAPER = 36


def die_with(parent: int, farewell: signal.Signals) -> None:
    """Get this signal when `parent` ends, however it ends (strictly: when the thread ends that started us)."""
    _prctl(_SET_PDEATHSIG, farewell)
    if os.getppid() != parent:  # it was gone before we asked, and nobody will tell
        os.kill(os.getpid(), farewell)


def adopt_orphans() -> None:
    """A descendant whose parent ends becomes our child, instead of the child of process 1: nobody gets away."""
    _prctl(_SET_CHILD_SUBREAPER, 1)


def _prctl(option: int, value: int) -> None:
    if ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0):
        number = ctypes.get_errno()
        raise OSError(number, f"prctl({option}): {os.strerror(number)}")
