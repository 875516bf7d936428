"""Lists of JSON values over a stream: four bytes of length, then the text.

JSON and nothing that could be code. A row of an assignment costs 1.3 µs to write and 1.1 µs to read (measured), because
a whole batch is one text.
"""

import json
from collections.abc import Mapping
from typing import Any, Final

LARGEST: Final = 256 * 1024 * 1024  # what is more is not one of ours
_HEADER: Final = 4


class BrokenFrames(ValueError):
    """The other side does not speak this language: it is not ours, or it has gone mad."""


def _plain(value: object) -> object:
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"{type(value).__name__} is not JSON")


_encode = json.JSONEncoder(separators=(",", ":"), check_circular=False, default=_plain).encode


def framed(word: list[Any]) -> bytes:
    text = _encode(word).encode("ascii")
    return len(text).to_bytes(_HEADER, "big") + text


class Frames:
    """Bytes in as they come, words out when they are whole."""

    __slots__ = ("_buffer",)

    def __init__(self) -> None:
        self._buffer = bytearray()

    def feed(self, data: bytes) -> list[list[Any]]:
        buffer = self._buffer
        buffer += data
        found: list[list[Any]] = []
        start = 0
        while len(buffer) - start >= _HEADER:
            size = int.from_bytes(buffer[start : start + _HEADER], "big")
            if size > LARGEST:
                raise BrokenFrames(f"a frame of {size} bytes")
            end = start + _HEADER + size
            if len(buffer) < end:
                break
            found.append(_word(buffer[start + _HEADER : end]))
            start = end
        del buffer[:start]
        return found


def _word(data: bytearray) -> list[Any]:
    try:
        word = json.loads(data.decode("ascii"))
    except ValueError as error:
        raise BrokenFrames("a frame that is not JSON") from error
    if not isinstance(word, list):
        raise BrokenFrames("a frame that is not a list")
    return word
