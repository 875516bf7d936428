"""What a handler prints, within limits: the first part in chunks as it comes, and always the end.

Whatever a handler prints, this holds at most `CHUNKS + TAIL` bytes. They are counted as they are stored: bytes that are
no text become three each, and the store would have no room left for the end of a log that is full of them.
"""

import codecs
from collections import deque
from typing import Final

TAIL: Final = 64 * 1024
CHUNKS: Final = 8 * 1024 * 1024
CHUNK: Final = 64 * 1024  # a chunk is handed on when it has this size, or after a moment


class Output:
    """Bytes go in, from one thread at a time; text comes out."""

    __slots__ = (
        "_decoder", "_has_ended", "_is_cut", "_kept", "_reader", "_seq", "_size", "_tail", "_tail_size", "_waiting",
        "_waiting_size", "total",
    )  # fmt: skip

    def __init__(self) -> None:
        self.total = 0  # bytes that were printed
        self._size = 0  # and the same as text
        self._kept = 0
        self._is_cut = False  # the last chunk of the beginning was handed out
        self._has_ended = False
        self._seq = 0
        self._waiting: list[bytes] = []
        self._waiting_size = 0
        self._tail: deque[bytes] = deque()
        self._tail_size = 0
        self._reader = codecs.getincrementaldecoder("utf-8")("replace")
        self._decoder = codecs.getincrementaldecoder("utf-8")("ignore")  # half a character where the rest is left out

    def write(self, data: bytes) -> None:
        self.total += len(data)
        self._add(self._reader.decode(data))

    def _add(self, text: str) -> None:
        if not text:
            return
        data = printable(text).encode()
        self._size += len(data)
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
        """What has come since the last call: numbered texts, each with whether something is left out after it. Then
        one more comes at the end, the last that was printed."""
        ends_now, self._has_ended = ended and not self._has_ended, self._has_ended or ended
        if ends_now:
            self._add(self._reader.decode(b"", final=True))
        data = b"".join(self._waiting)
        self._waiting.clear()
        self._waiting_size = 0
        beyond = self._size - self._kept
        if ends_now and 0 < beyond <= TAIL:  # all is here after all
            data += b"".join(self._tail)[-beyond:]
        is_cut = beyond > TAIL and not self._is_cut
        self._is_cut = self._is_cut or is_cut
        found = [(self._decoder.decode(data[at : at + CHUNK]), False) for at in range(0, len(data), CHUNK)]
        found = [each for each in found if each[0]]
        if is_cut:
            found.append((found.pop()[0] if found else "", True))
        if ends_now and self._is_cut:
            found.append((self.tail(), False))
        self._seq += len(found)
        return [(self._seq - len(found) + at, *each) for at, each in enumerate(found)]

    def tail(self) -> str:
        data = b"".join(self._tail)[-TAIL:]
        if self._size > len(data):  # not in the middle of a character
            while data and data[0] & 0xC0 == 0x80:
                data = data[1:]
        return data.decode()


def printable(text: str) -> str:
    """No database takes a NUL."""
    return text.replace("\0", "�")
