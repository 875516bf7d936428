"""What a handler prints goes into the log of its attempt: standard output and error, told apart by context variables.

A thread that a handler starts itself has no such context; what it prints goes to the process's own output.
"""

import io
import sys
from typing import TextIO

from fleetcron.executors.performer import CURRENT


class _Bytes(io.RawIOBase):
    def __init__(self, beside: TextIO) -> None:
        self._beside = beside

    def writable(self) -> bool:
        return True

    def write(self, data: object) -> int:
        given = bytes(data)  # type: ignore[call-overload]
        playing = CURRENT.get()
        if playing is not None:
            playing.wrote(given)
        else:
            self._beside.buffer.write(given)
            self._beside.flush()
        return len(given)


class Captured(io.TextIOBase):
    """In place of `sys.stdout`."""

    def __init__(self, beside: TextIO) -> None:
        self._beside = beside
        self.buffer = _Bytes(beside)

    @property
    def encoding(self) -> str:  # type: ignore[override]
        return "utf-8"

    @property
    def errors(self) -> str:  # type: ignore[override]
        return "replace"

    def writable(self) -> bool:
        return True

    def write(self, text: str) -> int:
        playing = CURRENT.get()
        if playing is not None:
            playing.wrote(text.encode("utf-8", "replace"))
        else:
            self._beside.write(text)
        return len(text)

    def flush(self) -> None:
        self._beside.flush()

    def fileno(self) -> int:
        """Of the process: what programs write that a handler starts is not told apart."""
        return self._beside.fileno()


def capture() -> None:
    sys.stdout = Captured(sys.stdout)
    sys.stderr = Captured(sys.stderr)
