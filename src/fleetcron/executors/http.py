"""HTTP calls: 2xx is success.

The URL was written by a tenant, so every address is checked (`addresses.py`): names are resolved here, once for each
connection, and the connection goes to the address that was checked. Redirects are followed by hand, each like the first
call. Nothing is shared between calls but connections: no cookies, no proxies from the environment.
"""

import asyncio
import json
import socket
import ssl
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, TypeAlias

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult
from yarl import URL

from fleetcron import __version__
from fleetcron.clock import Clock
from fleetcron.config import ExecutorConfig
from fleetcron.executors.addresses import AddressRefused, AddressRules
from fleetcron.executors.assignment import Assignment, Key
from fleetcron.executors.http_answer import Answer, outcome_of
from fleetcron.executors.outputs import Output
from fleetcron.executors.reports import Done, LogChunk, Outbox, Tell
from fleetcron.executors.signature import signature_headers
from fleetcron.executors.threads import in_a_thread
from fleetcron.executors.verdicts import LARGEST_RESULT, Why, limited, stopped
from fleetcron.model.outcome import Failed, Fault, Outcome
from fleetcron.model.target import HttpTarget, Target

_REDIRECTS: Final = 5
_CONNECT_S: Final = 10.0
_LOGGED: Final = 48 * 1024  # of an answer: with the line before it, it fits into the tail of a log
_MOVED: Final = frozenset({301, 302, 303, 307, 308})
# How a request is framed and where it goes is not the job's to say.
_OURS: Final = frozenset({"host", "content-length", "transfer-encoding", "connection", "te", "trailer", "upgrade"})

SecretOf: TypeAlias = Callable[[Assignment], bytes | None]


class CheckedResolver(AbstractResolver):
    """Each name in a thread of its own. The event loop has a handful of them for everybody, and a name whose servers do
    not answer keeps one for half a minute, however soon its call is over: some of those, and nobody else's name would
    be found."""

    def __init__(self, rules: AddressRules) -> None:
        self._rules = rules

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        try:
            found = await in_a_thread(partial(_found, host, port, family))
        except RuntimeError as error:
            raise OSError(f"no room for another thread: {error}") from error
        if isinstance(found, Exception):
            raise found
        for _, _, _, _, address in found:
            self._rules.check(host, str(address[0]))
        return [
            {"hostname": host, "host": str(address[0]), "port": port, "family": kind, "proto": proto, "flags": 0}
            for kind, _, proto, _, address in found
        ]

    async def close(self) -> None:
        """It holds nothing."""


_Addresses: TypeAlias = Sequence[tuple[socket.AddressFamily, socket.SocketKind, int, str, tuple[Any, ...]]]


def _found(host: str, port: int, family: socket.AddressFamily) -> _Addresses | Exception:
    try:
        return socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, family=family)
    except (OSError, ValueError) as error:  # a name that cannot be encoded is a ValueError
        return error


class _Refused(Exception):
    def __init__(self, code: str, text: str) -> None:
        self.fault = Fault(code, limited(text, 1000))


@dataclass(slots=True)
class _Call:
    assignment: Assignment
    started_ms: int
    work: asyncio.Task[None] | None = None
    has_begun: bool = False
    why: Why | None = None
    reason: str = ""


@dataclass(frozen=True, slots=True)
class _Request:
    url: URL
    method: str
    headers: Mapping[str, str]
    body: bytes | None


class HttpCalls:
    """`secret_of` gives the secret that a call is signed with, if there is one."""

    def __init__(self, config: ExecutorConfig, clock: Clock, tell: Tell, secret_of: SecretOf | None = None) -> None:
        self._rules = AddressRules(config.internal)
        self._clock = clock
        self._outbox = Outbox(tell)
        self._secret_of = secret_of
        self._session: aiohttp.ClientSession | None = None
        self._calls: dict[Key, _Call] = {}

    async def learn(self, targets: Sequence[Target]) -> None:
        """There is nothing to find out."""

    def knows(self, target: Target) -> bool:
        return isinstance(target, HttpTarget)

    def why_not(self, target: Target) -> str | None:
        return None if self.knows(target) else "it is not an HTTP call"

    def start(self, assignments: Sequence[Assignment]) -> None:
        for assignment in assignments:
            call = self._calls[assignment.key] = _Call(assignment, self._clock.monotonic_ms())
            call.work = asyncio.create_task(self._run(call))

    def cancel(self, run_id: int, attempt: int, reason: str, grace_s: float | None = None) -> None:  # noqa: ARG002
        """At once: there is nobody to be asked, and the other side may go on in any case."""
        call = self._calls.get((run_id, attempt))
        if call is not None:
            _break_off(call, "cancel", reason)

    def running(self) -> set[Key]:
        return set(self._calls) | self._outbox.ending()

    async def close(self, grace_s: float) -> None:
        works = [call.work for call in self._calls.values() if call.work is not None]
        if works:
            await asyncio.wait(works, timeout=grace_s)
        for call in list(self._calls.values()):
            _break_off(call, "closing", "the worker was stopped")
        if works:
            await asyncio.wait(works)
        self._outbox.flush()
        if self._session is not None:
            await self._session.close()

    async def _run(self, call: _Call) -> None:
        output = Output()
        result: str | None = None
        outcome: Outcome
        call.has_begun = True
        try:
            if call.why is not None:
                raise asyncio.CancelledError
            async with asyncio.timeout(call.assignment.timeout_ms / 1000) as limit:
                answer = await self._answer(call.assignment, output)
            outcome, result = outcome_of(answer, self._clock.now_ms())
        except (Exception, asyncio.CancelledError) as error:
            if call.why is not None:
                outcome = stopped(call.why, 0, call.reason)
            elif limit.expired():
                outcome = stopped("timeout", call.assignment.timeout_ms, "")
            else:
                outcome = Failed(_fault(error))
        self._ended(call, outcome, result or None, output)

    async def _answer(self, assignment: Assignment, output: Output) -> Answer:
        request = self._request(assignment)
        for _ in range(_REDIRECTS + 1):
            answer, moved_to = await self._send(request, output)
            if moved_to is None:
                return answer
            request = _moved(request, answer.status, moved_to)
        raise _Refused("too_many_redirects", f"more than {_REDIRECTS} redirects, the last to {_shown(request.url)}")

    def _request(self, assignment: Assignment) -> _Request:
        target = assignment.target
        assert isinstance(target, HttpTarget)
        body: bytes | None = None
        if target.body is not None:
            body = target.body.encode()
        elif target.method.upper() not in ("GET", "HEAD"):
            body = json.dumps(dict(assignment.payload), ensure_ascii=False, separators=(",", ":")).encode()
        headers = {name: value for name, value in target.headers.items() if name.lower() not in _OURS}
        given = {name.lower() for name in headers}
        if body is not None and "content-type" not in given:
            headers["Content-Type"] = "application/json"
        if "user-agent" not in given:
            headers["User-Agent"] = f"fleetcron/{__version__}"
        ours = assignment.headers()
        secret = self._secret_of(assignment) if self._secret_of is not None else None
        if secret is not None:
            now_s = self._clock.now_ms() // 1000
            ours |= signature_headers(secret, assignment.idempotency_key, now_s, body or b"")
        taken = {name.lower() for name in (*ours, "accept-encoding")}
        headers = {name: value for name, value in headers.items() if name.lower() not in taken}
        # an answer that unpacks to a gigabyte is not wanted
        return _Request(
            URL(target.url), target.method.upper(), {**headers, **ours, "Accept-Encoding": "identity"}, body
        )

    async def _send(self, request: _Request, output: Output) -> tuple[Answer, URL | None]:
        url = request.url
        self._rules.check_literal(_host_of(url))
        began_ms = self._clock.monotonic_ms()
        async with self._opened().request(
            request.method, url, headers=request.headers, data=request.body, allow_redirects=False
        ) as response:
            body, is_whole = await _read(response)
            if not is_whole:
                response.close()  # the rest would have to be read before the connection can be used again
            took_ms = self._clock.monotonic_ms() - began_ms
            output.write(f"{request.method} {_shown(url)}: {response.status} in {took_ms} ms\n".encode())
            output.write(body[:_LOGGED])
            answer = Answer(
                response.status,
                response.reason or "",
                response.headers.get("Content-Type", ""),
                response.headers.get("Retry-After"),
                body,
                is_whole,
            )
            location = response.headers.get("Location") if response.status in _MOVED else None
            return answer, url.join(URL(location)) if location else None

    def _opened(self) -> aiohttp.ClientSession:
        if self._session is None:
            connector = aiohttp.TCPConnector(resolver=CheckedResolver(self._rules), use_dns_cache=False, limit=0)
            self._session = aiohttp.ClientSession(
                connector=connector,
                cookie_jar=aiohttp.DummyCookieJar(),
                timeout=aiohttp.ClientTimeout(total=None, sock_connect=_CONNECT_S),
                auto_decompress=False,
                trust_env=False,
            )
        return self._session

    def _ended(self, call: _Call, outcome: Outcome, result: str | None, output: Output) -> None:
        key = call.assignment.key
        del self._calls[key]
        for seq, text, truncated in output.chunks(ended=True):
            self._outbox.put(LogChunk(*key, seq, text, truncated))
        finished_ms = self._clock.monotonic_ms()
        self._outbox.put(Done(*key, outcome, call.started_ms, finished_ms, result, output.tail(), output.total))


def _break_off(call: _Call, why: Why, reason: str) -> None:
    if call.why is None:
        call.why, call.reason = why, reason
        if call.work is not None and call.has_begun:  # cancelled before its first step it would never tell
            call.work.cancel()


async def _read(response: aiohttp.ClientResponse) -> tuple[bytes, bool]:
    body = bytearray()
    async for data in response.content.iter_chunked(16 * 1024):
        body += data
        if len(body) > LARGEST_RESULT:
            return bytes(body[:LARGEST_RESULT]), False
    return bytes(body), True


def _moved(request: _Request, status: int, url: URL) -> _Request:
    """What the job wrote into its headers is for the host that it named, and encryption is not given up on the way."""
    _host_of(url)
    if request.url.scheme == "https" and url.scheme == "http":
        raise _Refused("address_refused", f"a redirect from https to {_shown(url)}")
    headers = dict(request.headers)
    if url.origin() != request.url.origin():
        kept = ("fleetcron-", "idempotency-key", "traceparent", "accept-encoding", "content-type", "user-agent")
        headers = {name: value for name, value in headers.items() if name.lower().startswith(kept)}
    if status == 303 or (status in (301, 302) and request.method == "POST"):
        headers = {name: value for name, value in headers.items() if name.lower() != "content-type"}
        return _Request(url, "GET", headers, None)
    return _Request(url, request.method, headers, request.body)


def _host_of(url: URL) -> str:
    if url.scheme not in ("http", "https") or not url.host:
        raise _Refused("address_refused", f"{_shown(url)} is not an http or https address")
    return url.host


def _fault(error: BaseException) -> Fault:
    match error:
        case _Refused():
            return error.fault
        case AddressRefused():
            return Fault("address_refused", str(error))
        case aiohttp.ClientConnectorDNSError():
            return Fault("name_not_found", limited(str(error), 500))
        case aiohttp.ClientSSLError() | ssl.SSLError():
            return Fault("tls_failed", limited(str(error), 500))
        case aiohttp.InvalidURL() | ValueError():
            return Fault("bad_request", limited(f"the request cannot be sent: {error}", 500))
        case aiohttp.ClientError() | OSError():
            return Fault("connection_failed", limited(f"{type(error).__name__}: {error}", 500))
    return Fault("bad_request", limited(f"the request cannot be sent: {type(error).__name__}: {error}", 500))


def _shown(url: URL) -> str:
    """Without what may be secret: the user and the query."""
    port = f":{url.explicit_port}" if url.explicit_port else ""
    return f"{url.scheme}://{url.host_subcomponent or ''}{port}{url.path}"
