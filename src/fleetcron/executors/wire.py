"""One end of a socket between two of our processes, on an event loop: words out at once, words in by callback.

Straight on the socket instead of a transport: a word leaves inside `send`, not in a later turn of the loop.
"""

import asyncio
import socket
from collections.abc import Callable
from typing import Any

from fleetcron.executors.frames import BrokenFrames, Frames, framed

_READ = 256 * 1024


class Wire:
    """`heard` gets every word; `ended` is called once, when the other side is gone or speaks nonsense.

    `heard` may raise `BrokenFrames` for a word that makes no sense.
    """

    def __init__(self, end: socket.socket, heard: Callable[[list[Any]], None], ended: Callable[[], None]) -> None:
        end.setblocking(False)
        self._loop = asyncio.get_running_loop()
        self._end = end
        self._heard = heard
        self._ended = ended
        self._frames = Frames()
        self._backlog = bytearray()
        self.is_broken = False  # it ended because the other side spoke nonsense
        self._loop.add_reader(end, self._readable)

    @property
    def is_open(self) -> bool:
        return self._end.fileno() >= 0

    @property
    def backlog(self) -> int:
        """Bytes that the other side has not taken yet."""
        return len(self._backlog)

    def send(self, word: list[Any]) -> None:
        """A word to somebody who is gone is dropped: `ended` tells."""
        if not self.is_open:
            return
        data = framed(word)
        if self._backlog:
            self._backlog += data
            return
        sent = self._send(data)
        if self.is_open and sent < len(data):
            self._backlog += data[sent:]
            self._loop.add_writer(self._end, self._writable)

    def close(self) -> None:
        """Without calling `ended`."""
        if self.is_open:
            self._loop.remove_reader(self._end)
            self._loop.remove_writer(self._end)
            self._end.close()
            self._backlog.clear()

    def _send(self, data: bytes | bytearray) -> int:
        try:
            return self._end.send(data)
        except (BlockingIOError, InterruptedError):
            return 0
        except OSError:
            # what the other side wrote before it died is still to be read, so the reader tells the end
            self._loop.remove_writer(self._end)
            self._backlog.clear()
            return len(data)

    def _writable(self) -> None:
        del self._backlog[: self._send(self._backlog)]
        if not self._backlog and self.is_open:
            self._loop.remove_writer(self._end)

    def _readable(self) -> None:
        try:
            data = self._end.recv(_READ)
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            data = b""
        try:
            for word in self._frames.feed(data) if data else ():
                self._heard(word)
        except BrokenFrames:
            self.is_broken = True
            data = b""
        if not data and self.is_open:
            self.close()
            self._ended()
