"""Connections of the standard library: reused, shared by threads, and honest about what may have arrived."""

import http.client
import select
import socket
import ssl
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from fleetcron.client.address import Address
from fleetcron.client.errors import Closed
from fleetcron.client.wire import Answer, Broken, Heard, Request, broken, untrusted

SILENCE_S: Final = 60.0  # a stream says something every 5 s
_IDLE: Final = 8  # connections that are kept for the next request


class Connections:
    def __init__(self, address: Address, agent: str, timeout: float, tls: ssl.SSLContext | None) -> None:
        self._address = address
        self._headers = address.headers(agent)
        self._timeout = timeout
        self._tls = tls
        self._idle: deque[http.client.HTTPConnection] = deque()
        self._is_closed = False

    def send(self, request: Request) -> Heard:
        connection = self._free() or self._new()
        response = self._response(connection, request, self._timeout)
        if isinstance(response, Broken):
            connection.close()
            return response
        try:
            body = response.read()
        except (OSError, http.client.HTTPException) as error:
            connection.close()
            return self._broken(error, sent=True)
        if response.will_close or self._is_closed or len(self._idle) >= _IDLE:
            connection.close()
        else:
            self._idle.append(connection)  # from here on it may be in the hands of another thread
        return _answer(response, body)

    @contextmanager
    def opened(self, request: Request) -> Iterator[Heard | Iterator[bytes]]:
        """The lines of a good answer as they come, or what came instead of them. A line that breaks off ends them."""
        connection = self._new()
        try:
            response = self._response(connection, request, max(self._timeout, SILENCE_S))
            if isinstance(response, Broken):
                yield response
            elif response.status == 200:
                yield _lines(response)
            else:
                yield _answer(response, response.read())
        finally:
            connection.close()

    def close(self) -> None:
        self._is_closed = True
        while self._idle:
            self._idle.pop().close()

    def _response(
        self, connection: http.client.HTTPConnection, request: Request, timeout: float
    ) -> http.client.HTTPResponse | Broken:
        try:
            if connection.sock is None:
                connection.connect()
            connection.sock.settimeout(timeout)
        except OSError as error:
            return self._broken(error, sent=False)
        headers = {**self._headers, **request.headers}
        try:
            connection.request(request.method, self._address.prefix + request.target, request.body, headers)
        except OSError as error:
            return _said_meanwhile(connection) or self._broken(error, sent=True)
        except http.client.HTTPException as error:
            return self._broken(error, sent=True)
        try:
            return connection.getresponse()
        except (OSError, http.client.HTTPException) as error:
            return self._broken(error, sent=True)

    def _broken(self, error: Exception, *, sent: bool) -> Broken:
        if isinstance(error, ssl.SSLCertVerificationError):
            return untrusted(self._address.url, error.verify_message)
        if isinstance(error, TimeoutError):
            return broken(self._address.url, "there was no answer in time", sent=sent, lost_s=self._timeout)
        if isinstance(error, OSError):
            words = error.strerror or str(error)
        else:
            words = f"the connection broke ({type(error).__name__})"
        return broken(self._address.url, words, sent=sent)

    def _new(self) -> http.client.HTTPConnection:
        if self._is_closed:
            raise Closed
        host, port = self._address.host, self._address.port
        if self._address.scheme == "http":
            return http.client.HTTPConnection(host, port, timeout=self._timeout)
        if self._tls is None:
            self._tls = ssl.create_default_context()
        return http.client.HTTPSConnection(host, port, timeout=self._timeout, context=self._tls)

    def _free(self) -> http.client.HTTPConnection | None:
        """One that is still open: what a server has closed meanwhile can be read, and has nothing to say."""
        while self._idle:
            try:
                connection = self._idle.pop()
            except IndexError:  # another thread was faster
                return None
            if connection.sock is not None and not _is_readable(connection.sock):
                return connection
            connection.close()
        return None


def _is_readable(there: socket.socket) -> bool:
    looking = select.poll()  # select() itself knows only the first 1,024 files of a process
    looking.register(there, select.POLLIN)
    return bool(looking.poll(0))


def _said_meanwhile(connection: http.client.HTTPConnection) -> http.client.HTTPResponse | None:
    """A server that does not want the rest of a body answers, and closes: what it said is here, and says why."""
    try:
        response = connection.getresponse()
    except (OSError, http.client.HTTPException):
        return None
    response.will_close = True  # half a request is on its way
    return response


def _answer(response: http.client.HTTPResponse, body: bytes) -> Answer:
    return Answer(response.status, {name.lower(): value for name, value in response.getheaders()}, body)


def _lines(response: http.client.HTTPResponse) -> Iterator[bytes]:
    try:
        while line := response.readline():
            yield line
    except (OSError, http.client.HTTPException):
        return
