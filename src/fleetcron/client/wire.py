"""What goes over the wire, and what is decided about it. Pure: no socket, no clock.

A *play* is a generator: it yields what is to be done (send this request, sleep so long), is told what came of it, and
returns the result. Both faces of the client play the same plays, one by blocking and one by awaiting.
"""

import json
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, TypeAlias, TypeVar

from fleetcron.client.errors import ApiError, TooManyRequests, Unavailable, error_of, retry_after

T = TypeVar("T")
SAFE: Final = ("GET", "HEAD")
KEY_HEADER: Final = "Idempotency-Key"
REPLAYED: Final = "idempotent-replayed"
_LOOK_S: Final = 2.0
_PASSING: Final = (502, 503, 504)  # of these the next try may be answered


@dataclass(frozen=True, slots=True)
class Request:
    """`repeatable`: asking twice does no harm, whatever became of the first time."""

    method: str
    target: str
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes | None = None
    repeatable: bool = False


@dataclass(frozen=True, slots=True)
class Answer:
    status: int
    headers: Mapping[str, str]  # in small letters
    body: bytes

    @property
    def is_good(self) -> bool:
        return 200 <= self.status < 300

    def document(self) -> Any:
        """What a good answer says, or the ApiError that another one means."""
        if not self.is_good:
            raise error_of(self.status, self.headers, self.body)
        if not self.body:
            return None
        try:
            return json.loads(self.body)
        except ValueError:
            what = self.headers.get("content-type", "nothing that is named")
            raise ApiError(
                f"the answer is no JSON ({what})", status=self.status, hint="is that the address of a fleetcron API?"
            ) from None


@dataclass(frozen=True, slots=True)
class Broken:
    """No answer. `sent`: the server may have got the request, and carried it out. `lost_s`: what was waited for it."""

    words: str
    sent: bool
    hint: str | None = None
    lost_s: float = 0.0

    def error(self) -> Unavailable:
        return Unavailable(self.words, code="unreachable", hint=self.hint)


def broken(url: str, words: str, *, sent: bool, lost_s: float = 0.0) -> Broken:
    said = f"{url}: {words[0].lower()}{words[1:]}"
    return Broken(said, sent, None if sent else "is it running there? fleetcron api", lost_s)


def untrusted(url: str, why: str) -> Broken:
    hint = "give tls= a context that knows who signed it, or name a file of certificates in SSL_CERT_FILE"
    return Broken(f"{url}: its certificate is not trusted ({why})", sent=False, hint=hint)


@dataclass(frozen=True, slots=True)
class Sleep:
    seconds: float


Heard: TypeAlias = Answer | Broken
Play: TypeAlias = Generator[Request | Sleep, Any, T]


@dataclass(frozen=True, slots=True)
class Terms:
    """How long one request may take, how often it is sent at most (None: as often as it takes), and how long all waits
    between may be together."""

    timeout: float = 30.0
    tries: int | None = 4
    patience: float = 60.0
    first_wait: float = 0.2
    longest_wait: float = 10.0

    def waiting(self, most: float | None = None) -> "Terms":
        """Of somebody who only waits, for a run or for what it prints: while the API is away there is nothing better to
        do, so patience alone ends it, and nobody is kept from the news for long."""
        patience = self.patience if most is None else min(self.patience, most)
        return replace(self, tries=None, patience=patience, longest_wait=_LOOK_S)


class Tries:
    """How often something was tried and how long was waited, held against the terms."""

    def __init__(self, terms: Terms, chance: Callable[[], float]) -> None:
        self._terms, self._chance = terms, chance
        self.begin()

    def begin(self) -> None:
        self._number, self._waited = 0, 0.0

    def wait(self, request: Request, heard: Heard) -> float | None:
        """Seconds until it is sent again; None: it is not."""
        self._number += 1
        seconds = pause(request, heard, self._terms, self._number, self._chance())
        if self._terms.tries is None:
            self._waited += heard.lost_s if isinstance(heard, Broken) else 0.0
        elif self._number >= self._terms.tries and not _is_at_work(request, heard):
            return None
        if seconds is None or self._waited + seconds > self._terms.patience:
            return None
        self._waited += seconds
        return seconds


def exchange(request: Request, terms: Terms, chance: Callable[[], float]) -> Play[Answer]:
    """The answer, good or not; an Unavailable if none came. Sent again where that is safe."""
    tries = Tries(terms, chance)
    while True:
        heard: Heard = yield request
        if (seconds := tries.wait(request, heard)) is None:
            break
        yield Sleep(seconds)
    if isinstance(heard, Broken):
        raise heard.error()
    return heard


def timed(play: Play[T]) -> Play[tuple[T, float]]:
    """The same play, and how long it slept."""
    slept = 0.0
    heard: Heard | None = None
    while True:
        try:
            step = play.send(heard)
        except StopIteration as end:
            return end.value, slept
        if isinstance(step, Sleep):
            slept += step.seconds
        heard = yield step


def pause(request: Request, heard: Heard, terms: Terms, tries: int, chance: float) -> float | None:
    """Seconds until it is sent again; None: it is not. A server that refuses to look (429) has done nothing, and so has
    one that could not be reached; everything else is repeated only if twice is as good as once."""
    repeatable = request.method in SAFE or request.repeatable
    ours: float = min(terms.longest_wait, terms.first_wait * 2 ** min(tries - 1, 30)) * (0.5 + chance / 2)
    if isinstance(heard, Broken):
        return ours if repeatable or not heard.sent else None
    said = retry_after(heard.headers)
    again = heard.status == 429 or (heard.status in _PASSING and repeatable) or _is_at_work(request, heard)
    if not again:
        return None
    return ours if said is None else max(said, ours)


def _is_at_work(request: Request, heard: Heard) -> bool:
    """The answer to its first sending is still being made (409 `in_progress`), and will be given to whoever asks again:
    patience alone ends that. No other 409 says when to come back."""
    if isinstance(heard, Broken) or KEY_HEADER not in request.headers:
        return False
    return heard.status == 409 and retry_after(heard.headers) is not None


def is_passing(error: ApiError) -> bool:
    return isinstance(error, TooManyRequests | Unavailable)
