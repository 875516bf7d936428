"""What a handler prints, within limits: the first part in chunks as it comes, and always the end.

Whatever a handler prints, this holds at most `CHUNKS + TAIL` bytes.
"""

import codecs
from collections import deque
from typing import Final

TAIL: Final = 64 * 1024
CHUNKS: Final = 8 * 1024 * 1024
CHUNK: Final = 64 * 1024  # a chunk is handed on when it has this size, or after a moment


class Output:
    """Bytes go in, from one thread at a time; text comes out."""

    __slots__ = ("_cut", "_decoder", "_kept", "_seq", "_tail", "_tail_size", "_waiting", "_waiting_size", "total")

    def __init__(self) -> None:
        self.total = 0
        self._kept = 0
        self._cut = False  # the last chunk was handed out
        self._seq = 0
        self._waiting: list[bytes] = []
        self._waiting_size = 0
        self._tail: deque[bytes] = deque()
        self._tail_size = 0
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def write(self, data: bytes) -> None:
        if not data:
            return
        self.total += len(data)
        kept = data[: CHUNKS - self._kept]
        if kept:
            self._kept += len(kept)
            self._waiting.append(kept)
            self._waiting_size += len(kept)
        self._tail.append(data[-TAIL:])
        self._tail_size += len(self._tail[-1])
        while self._tail_size - len(self._tail[0]) >= TAIL:
            self._tail_size -= len(self._tail.popleft())

    @property
    def is_full(self) -> bool:
        """Is there enough for a chunk?"""
        return self._waiting_size >= CHUNK

    def chunks(self, *, ended: bool = False) -> list[tuple[int, str, bool]]:
        """What has come since the last call: numbered texts, and with the last whether the rest is left out."""
        data = b"".join(self._waiting)
        self._waiting.clear()
        self._waiting_size = 0
        truncated = self.total > self._kept and not self._cut
        self._cut = self._cut or truncated
        texts = [self._decoder.decode(data[at : at + CHUNK]) for at in range(0, len(data), CHUNK)]
        texts.append(self._decoder.decode(b"", final=ended or truncated))  # half a character at the very end
        found = [(printable(text), False) for text in texts if text]
        if truncated:
            found.append((found.pop()[0] if found else "", True))
        self._seq += len(found)
        return [(self._seq - len(found) + at, *each) for at, each in enumerate(found)]

    def tail(self) -> str:
        data = b"".join(self._tail)[-TAIL:]
        if self.total > len(data):  # not in the middle of a character
            while data and data[0] & 0xC0 == 0x80:
                data = data[1:]
        return printable(data.decode("utf-8", "replace"))


def printable(text: str) -> str:
    """No database takes a NUL."""
    return text.replace("\0", "�")
