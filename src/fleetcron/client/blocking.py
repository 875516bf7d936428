"""`Client`: the face that waits. It stands on the standard library, so that a command that uses it starts fast."""

import ssl
import time
from collections.abc import Iterator
from types import TracebackType
from typing import Any, Self, TypeVar

from fleetcron.client.address import address
from fleetcron.client.calls import Blocking, Walk
from fleetcron.client.connections import Connections
from fleetcron.client.nouns import AGENT, Nouns
from fleetcron.client.sse import Following
from fleetcron.client.wire import Answer, Broken, Heard, Play, Sleep, Terms

T = TypeVar("T")


class Client(Nouns[Blocking]):
    """`Client("https://cron.example.com", key="fck_…")`. Threads may share one; connections are reused."""

    def __init__(
        self,
        url: str | None = None,
        *,
        key: str | None = None,
        tenant: str | None = None,
        timeout: float = 30.0,
        tries: int = 4,
        patience: float = 60.0,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        """`timeout` is for one request, `tries` and `patience` for all of its repeats together (docs/learn/client.md).
        Without `url` and `key`: FLEETCRON_API_URL and FLEETCRON_API_KEY, then the settings."""
        super().__init__(self, tenant)
        self.terms = Terms(timeout, tries, patience)
        self._address = address(url, key)
        self._connections = Connections(self._address, AGENT, timeout, tls)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.url!r})"

    @property
    def url(self) -> str:
        return self._address.url

    def close(self) -> None:
        self._connections.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def play(self, play: Play[T]) -> T:
        heard: Heard | None = None
        while True:
            try:
                step = play.send(heard)
            except StopIteration as end:
                found: T = end.value
                return found
            heard = None
            if isinstance(step, Sleep):
                time.sleep(step.seconds)  # before a repeat, as the pure play says
            else:
                heard = self._connections.send(step)

    def walk(self, walked: Walk[Any, T], noun: Any, args: Any, kwargs: Any) -> Iterator[T]:
        left, cursor = kwargs.get("limit"), None
        while left is None or left > 0:
            page = self.play(walked.next(noun, cursor, left, args, kwargs))
            yield from page[walked.key]
            left = None if left is None else left - len(page[walked.key])
            cursor = page["next"]
            if cursor is None:
                return

    def follow(self, following: Following) -> Iterator[Any]:
        while not following.is_over():
            heard = None
            with self._connections.opened(following.request) as lines:
                if isinstance(lines, Answer | Broken):
                    heard = lines
                else:
                    for line in lines:
                        if (data := following.feed(line)) is not None:
                            yield data
                        if following.is_over():
                            return
            time.sleep(following.broke(heard))  # before it asks again; raises when it has been tried often enough
