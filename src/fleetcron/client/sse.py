"""Server-sent events, line by line, and a stream that goes on where it broke. Pure: lines in, events out."""

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

from fleetcron.client.wire import Answer, Broken, Heard, Request, Terms, Tries

_END: Final = "end"
_NO_DATA: Final = ("", _END, "refused")  # refused: the key has ended; whoever asks again is told so, as an error


class Following:
    """A stream until its event `end`. `feed` takes lines and gives what they say; `broke` says how long to wait before
    `request` is sent again, or raises."""

    def __init__(self, request: Request, terms: Terms, chance: Callable[[], float]) -> None:
        self._request = request
        self._tries = Tries(terms, chance)
        self._last_id: str | None = None
        self._kind, self._data = "", ""
        self._ended = False

    @property
    def request(self) -> Request:
        headers = {**self._request.headers, "Accept": "text/event-stream"}
        if self._last_id is not None:
            headers["Last-Event-ID"] = self._last_id
        return replace(self._request, headers=headers)

    def is_over(self) -> bool:
        return self._ended

    def feed(self, line: bytes) -> Any | None:
        """The data of an event, when its last line has come."""
        text = line.decode("utf-8", "replace").rstrip("\r\n")
        if not text:
            kind, data, self._kind, self._data = self._kind, self._data, "", ""
            self._ended = self._ended or kind == _END
            return json.loads(data) if data and kind not in _NO_DATA else None
        name, _, value = text.partition(":")
        value = value.removeprefix(" ")
        match name:
            case "event":
                self._kind = value
            case "data":
                self._data = f"{self._data}\n{value}" if self._data else value
            case "id":
                self._last_id = value
                self._tries.begin()
            case "":  # a comment, now and then: somebody is there, and has nothing to say
                self._tries.begin()
        return None

    def broke(self, heard: Heard | None) -> float:
        """None: the stream was cut off. An answer: it did not begin."""
        self._kind, self._data = "", ""
        told = heard if heard is not None else Broken("the stream was cut off", sent=True)
        wait = self._tries.wait(self._request, told)
        if wait is None:
            if isinstance(told, Answer):
                told.document()
                raise Broken("the answer is no stream", sent=True).error()
            raise told.error()
        return wait
