"""What a Python function says, from any of its threads, while the event loop passes it on.

The garbage collector may call a finalizer at any allocation, also in the middle of what is done here, and finalizers
print: a session that nobody has closed, a task whose exception nobody has looked at. With a plain lock that was the end
of a whole handler host. So whoever speaks puts its words into a line first, and whoever has the lock in the same thread
already leaves them there for itself.
"""

import threading
from collections import deque
from collections.abc import Callable
from typing import TypeVar

from fleetcron.executors.outputs import Output

T = TypeVar("T")


class Spoken:
    __slots__ = ("_is_busy", "_lock", "_output", "_words")

    def __init__(self) -> None:
        self._words: deque[bytes] = deque()  # those who wait for the lock have one each here
        self._lock = threading.RLock()
        self._is_busy = False  # the thread that has the lock is inside `_output`
        self._output: Output | None = None  # most functions say nothing

    @property
    def is_empty(self) -> bool:
        return self._output is None and not self._words

    def write(self, data: bytes) -> None:
        self._words.append(data)
        with self._lock:  # `with` and no more: an exception that is thrown into this thread finds no gap before it
            if not self._is_busy:
                self._alone(bool)

    def chunks(self, *, ended: bool = False) -> list[tuple[int, str, bool]]:
        with self._lock:
            return self._alone(lambda output: output.chunks(ended=ended))

    def end(self) -> tuple[str, int]:
        """The last that was said, and how many bytes it were in all."""
        with self._lock:
            return self._alone(lambda output: (output.tail(), output.total))

    def _alone(self, look: Callable[[Output], T]) -> T:
        self._is_busy = True
        try:
            if self._output is None:
                self._output = Output()
            while self._words:
                self._output.write(self._words.popleft())
            return look(self._output)
        finally:
            self._is_busy = False
