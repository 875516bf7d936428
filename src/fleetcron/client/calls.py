"""One description of every call, for both faces.

A noun (`Jobs`, `Runs`, …) says what each call sends; `@verb` makes it a method. On a noun of the blocking client the
method gives the result, on one of the asynchronous client something to await: the types say so too, and no call is
written twice.
"""

import json
import secrets
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from functools import update_wrapper
from typing import Any, Concatenate, Final, Generic, ParamSpec, Protocol, TypeVar, overload
from urllib.parse import quote, urlencode

from fleetcron.client.errors import ApiError
from fleetcron.client.sse import Following
from fleetcron.client.values import plain, text
from fleetcron.client.wire import KEY_HEADER, REPLAYED, Play, Request, Terms, exchange

P = ParamSpec("P")
T = TypeVar("T")
V1: Final = "/api/v1"
PAGE: Final = 200  # what one answer of a list has, unless somebody wants fewer
FEW: Final = 500  # documents whose answer the server keeps for a day; of more it would keep megabytes
_NOT_KEPT: Final = "it was carried out, and the answer was lost: it is too long to be kept"


@dataclass(frozen=True, slots=True)
class Call(Generic[T]):
    """What a call sends, beside its route; its answer is a `T`. `lines` are documents for NDJSON. `once`: it gets an
    Idempotency-Key, so that it can be repeated and is answered alike. `repeatable`: it can be repeated without one, and
    the answer then is about the second time."""

    path: Mapping[str, object] = field(default_factory=dict)
    query: Mapping[str, object] = field(default_factory=dict)
    body: object = None
    lines: Sequence[object] | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    once: bool = False
    repeatable: bool = False


class Blocking(Protocol):
    """The face that waits."""

    terms: Terms

    def play(self, play: Play[T]) -> T: ...
    def follow(self, following: Following) -> Iterator[Any]: ...


class Asynchronous(Protocol):
    """The face that is awaited."""

    terms: Terms

    async def play(self, play: Play[T]) -> T: ...
    def follow(self, following: Following) -> AsyncIterator[Any]: ...


F = TypeVar("F", bound=Blocking | Asynchronous)


class Noun(Generic[F]):
    """`tenant` is the one that calls mean which name none."""

    def __init__(self, face: F, tenant: str | None = None) -> None:
        self._face = face
        self._tenant = tenant

    def of(self, tenant: str | None) -> str | None:
        return self._tenant if tenant is None else tenant


@dataclass(frozen=True, slots=True)
class Route:
    method: str
    path: str

    def request(self, call: Call[Any]) -> Request:
        values = {name: quote(str(value), safe="") for name, value in call.path.items()}
        target = f"{V1}{self.path.format(**values)}"
        query = {name: text(value) for name, value in call.query.items() if value is not None}
        headers = dict(call.headers)
        body = None
        if call.lines is not None:
            body = b"\n".join(_json(each) for each in call.lines)
            headers["Content-Type"] = "application/x-ndjson"
        elif call.body is not None:
            body = _json(call.body)
            headers["Content-Type"] = "application/json"
        if call.once:
            headers[KEY_HEADER] = secrets.token_hex(16)
        repeatable = call.repeatable or call.once
        return Request(self.method, f"{target}?{urlencode(query)}" if query else target, headers, body, repeatable)


class Verb(Generic[P, T]):
    """A call as a method."""

    def __init__(self, route: Route, describe: Callable[Concatenate[Any, P], Call[T]]) -> None:
        self.route = route
        self.describe = describe
        self.__doc__ = describe.__doc__

    def play(self, noun: Any, *args: P.args, **kwargs: P.kwargs) -> Play[T]:
        """The same as a part of a longer play."""
        return self.under(noun._face.terms, noun, *args, **kwargs)

    def under(self, terms: Terms, noun: Any, *args: P.args, **kwargs: P.kwargs) -> Play[T]:
        """The same under other terms than those of the client."""
        call = self.describe(noun, *args, **kwargs)
        request = self.route.request(call)
        answer = yield from exchange(request, terms, chance)
        if answer.headers.get(REPLAYED) == "true" and not answer.body:
            if not call.repeatable:
                raise ApiError(_NOT_KEPT, status=answer.status, code="not_kept", hint="look at what is there now")
            headers = {name: value for name, value in request.headers.items() if name != KEY_HEADER}
            answer = yield from exchange(replace(request, headers=headers), terms, chance)
        found: T = answer.document()
        return found

    @overload
    def __get__(self, noun: None, owner: Any) -> "Verb[P, T]": ...
    @overload
    def __get__(self, noun: Noun[Blocking], owner: Any) -> Callable[P, T]: ...
    @overload
    def __get__(self, noun: Noun[Asynchronous], owner: Any) -> Callable[P, Coroutine[Any, Any, T]]: ...
    def __get__(self, noun: Any, owner: Any) -> Any:
        if noun is None:
            return self
        return _method(self.describe, lambda *args, **more: noun._face.play(self.play(noun, *args, **more)), noun)


def verb(method: str, path: str) -> Callable[[Callable[Concatenate[Any, P], Call[T]]], Verb[P, T]]:
    return lambda describe: Verb(Route(method, path), describe)


class Story(Generic[P, T]):
    """Several calls, and waits between them, as one method."""

    def __init__(self, tell: Callable[Concatenate[Any, P], Play[T]]) -> None:
        self._tell = tell
        self.__doc__ = tell.__doc__

    @overload
    def __get__(self, noun: None, owner: Any) -> "Story[P, T]": ...
    @overload
    def __get__(self, noun: Noun[Blocking], owner: Any) -> Callable[P, T]: ...
    @overload
    def __get__(self, noun: Noun[Asynchronous], owner: Any) -> Callable[P, Coroutine[Any, Any, T]]: ...
    def __get__(self, noun: Any, owner: Any) -> Any:
        if noun is None:
            return self
        return _method(self._tell, lambda *args, **more: noun._face.play(self._tell(noun, *args, **more)), noun)


class Walk(Generic[P, T]):
    """A list from page to page, as an iterator: `limit` is how many at most, of all pages together."""

    def __init__(self, page: Verb[P, Any], key: str) -> None:
        self.page, self.key = page, key
        self._name = "list"

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def next(self, noun: Any, cursor: str | None, left: int | None, args: Any, kwargs: Any) -> Play[Any]:
        size = PAGE if left is None else min(PAGE, left)
        return self.page.play(noun, *args, **{**kwargs, "limit": size, "cursor": cursor or kwargs.get("cursor")})

    @overload
    def __get__(self, noun: None, owner: Any) -> "Walk[P, T]": ...
    @overload
    def __get__(self, noun: Noun[Blocking], owner: Any) -> Callable[P, Iterator[T]]: ...
    @overload
    def __get__(self, noun: Noun[Asynchronous], owner: Any) -> Callable[P, AsyncIterator[T]]: ...
    def __get__(self, noun: Any, owner: Any) -> Any:
        if noun is None:
            return self
        return _method(self.page.describe, lambda *a, **k: noun._face.walk(self, noun, a, k), noun, self._name)


def walk(page: Verb[P, Any], key: str, of: type[T]) -> Walk[P, T]:  # noqa: ARG001 - the type is all that is wanted
    return Walk(page, key)


class Stream(Generic[P, T]):
    """Events while they come, as an iterator."""

    def __init__(self, route: Route, describe: Callable[Concatenate[Any, P], Call[T]]) -> None:
        self.route = route
        self.describe = describe
        self.__doc__ = describe.__doc__

    @overload
    def __get__(self, noun: None, owner: Any) -> "Stream[P, T]": ...
    @overload
    def __get__(self, noun: Noun[Blocking], owner: Any) -> Callable[P, Iterator[T]]: ...
    @overload
    def __get__(self, noun: Noun[Asynchronous], owner: Any) -> Callable[P, AsyncIterator[T]]: ...
    def __get__(self, noun: Any, owner: Any) -> Any:
        return self if noun is None else _method(self.describe, lambda *a, **k: self._begin(noun, *a, **k), noun)

    def _begin(self, noun: Any, *args: P.args, **kwargs: P.kwargs) -> Any:
        request = self.route.request(self.describe(noun, *args, **kwargs))
        return noun._face.follow(Following(request, noun._face.terms.waiting(), chance))


def stream(path: str) -> Callable[[Callable[Concatenate[Any, P], Call[T]]], Stream[P, T]]:
    return lambda describe: Stream(Route("GET", path), describe)


def chance() -> float:
    return secrets.randbelow(1_000_000) / 1_000_000


def _method(described: Any, method: Callable[..., Any], noun: Any, name: str | None = None) -> Callable[..., Any]:
    """What is called in another way than was described is told at once, with the name that was called."""

    def called(*args: Any, **more: Any) -> Any:
        code = described.__code__
        known = code.co_varnames[1 : code.co_argcount + code.co_kwonlyargcount]
        if unknown := next((each for each in more if each not in known), None):
            near = get_close_matches(unknown, known, n=1)
            hint = f"did you mean {near[0]}?" if near else f"there are: {', '.join(known)}"
            place = f"{type(noun).__name__.lower()}.{name or described.__name__}"
            raise TypeError(f"{place}() has no argument {unknown!r}; {hint}")
        return method(*args, **more)

    return update_wrapper(called, described, ("__name__", "__doc__"))


def _json(value: object) -> bytes:
    return json.dumps(value, default=plain, ensure_ascii=False, separators=(",", ":")).encode()
