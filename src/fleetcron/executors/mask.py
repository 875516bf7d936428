"""Secrets out of everything that an attempt says: its log, its result, its errors, its notes.

A secret is hidden as it is and as JSON writes it; of one with several lines each line too. What a handler turns into
something else (base64, another case, letter by letter) is not recognised: this is a net under mistakes, not a wall
against a handler that wants to tell.
"""

import json
import re
from collections.abc import Iterable
from dataclasses import replace
from typing import Any, Final

from fleetcron.executors.reports import Done, LogChunk, Progress, Report
from fleetcron.model.outcome import Cancelled, Failed, Fault, Lost, Outcome, TimedOut

HIDDEN: Final = "***"
SHORTEST: Final = 4  # what is shorter stands in every second word
_LINE: Final = 8  # of a secret that has several


class Mask:
    """For one attempt. A log comes in pieces, and a secret may lie across two of them: what may be the beginning of one
    is held back until the next piece, or the end, shows what it was."""

    def __init__(self, secrets: Iterable[str]) -> None:
        self._forms = sorted(_forms(secrets), key=len, reverse=True)  # the longer one first, if one begins the other
        self._pattern = _any_of(self._forms)
        self._held = ""
        self._is_after_gap = False
        self._seq = 0

    def text(self, text: str) -> str:
        return self._pattern.sub(HIDDEN, text)

    def report(self, report: Report) -> list[Report]:
        match report:
            case LogChunk():
                return self._chunk(report)
            case Done():
                return [*self._rest(report), self._done(report)]
            case Progress(note=note):
                return [report._replace(note=self.text(note))]
        return [report]

    def _chunk(self, chunk: LogChunk) -> list[Report]:
        whole = self._held + (self._without_end(chunk.text) if self._is_after_gap else chunk.text)
        self._is_after_gap = chunk.truncated
        if chunk.truncated:  # what comes after it is left out, and it may be cut in the middle of a secret
            said, self._held = self._without_beginning(whole), ""
        else:
            cut = self._cut(whole)
            said, self._held = self.text(whole[:cut]), whole[cut:]
        if not said and not chunk.truncated:
            return []
        self._seq += 1
        return [chunk._replace(seq=self._seq - 1, text=said)]

    def _rest(self, done: Done) -> list[Report]:
        if not self._held:
            return []
        held, self._held = self.text(self._held), ""
        self._seq += 1
        return [LogChunk(done.run_id, done.attempt, self._seq - 1, held)]

    def _cut(self, text: str) -> int:
        """Where what could still become a secret begins. A secret that is whole is not cut in two for that."""
        cut = len(text) - self._begun(text)
        for found in self._pattern.finditer(text):
            if found.start() < cut < found.end():
                return found.start()
        return cut

    def _begun(self, text: str) -> int:
        """How long the end of the text is that begins a secret. A whole one is not begun."""
        return max((_overlap(text, form, len(form) - 1) for form in self._forms), default=0)

    def _without_beginning(self, text: str) -> str:
        cut = self._cut(text)
        rest = self.text(text[cut:])
        return self.text(text[:cut]) + (HIDDEN if len(rest) >= SHORTEST else rest)

    def _without_end(self, text: str) -> str:
        """Of a text that may begin in the middle of a secret."""
        longest = len(self._forms[0]) - 1 if self._forms else 0
        cut = max((_overlap(form, text, longest) for form in self._forms), default=0)
        return HIDDEN + text[cut:] if cut >= SHORTEST else text

    def _done(self, done: Done) -> Done:
        tail = done.log_tail
        if done.log_bytes > len(tail.encode("utf-8", "replace")):
            tail = self._without_end(tail)
        return done._replace(
            outcome=self._outcome(done.outcome), result_json=self._json(done.result_json), log_tail=self.text(tail)
        )

    def _outcome(self, outcome: Outcome) -> Outcome:
        match outcome:
            case Failed(error) | TimedOut(error) | Lost(error):
                return replace(outcome, error=self._fault(error))
            case Cancelled(reason):
                return Cancelled(self.text(reason))
        return outcome

    def _fault(self, fault: Fault) -> Fault:
        trace = None if fault.trace is None else self.text(fault.trace)
        return Fault(self.text(fault.code), self.text(fault.text), trace)

    def _json(self, text: str | None) -> str | None:
        """Value by value: a number that is a secret must not leave a text that is no JSON."""
        if text is None or not self._pattern.search(text):
            return text
        return json.dumps(self._value(json.loads(text)), ensure_ascii=False, separators=(",", ":"))

    def _value(self, value: Any) -> Any:
        match value:
            case str():
                return self.text(value)
            case dict():
                return {self.text(key): self._value(each) for key, each in value.items()}
            case list():
                return [self._value(each) for each in value]
            case bool() | None:
                return value
        return HIDDEN if self._pattern.search(json.dumps(value)) else value


def _forms(secrets: Iterable[str]) -> set[str]:
    found: set[str] = set()
    for secret in secrets:
        lines = [line for line in secret.splitlines() if len(line) >= _LINE] if "\n" in secret else []
        for each in (secret, *lines):
            found |= {each, json.dumps(each)[1:-1], json.dumps(each, ensure_ascii=False)[1:-1]}
    return {each for each in found if len(each) >= SHORTEST}


def _any_of(forms: Iterable[str]) -> re.Pattern[str]:
    """The first of them that fits. Put together by their first character: one after the other they took 40 ms for a
    piece of a log and a key of 250 lines, and this takes 4."""
    rests: dict[str, list[str]] = {}
    for form in forms:
        rests.setdefault(form[0], []).append(re.escape(form[1:]))
    return re.compile("|".join(f"{re.escape(first)}(?:{'|'.join(each)})" for first, each in rests.items()) or r"(?!)")


def _overlap(left: str, right: str, longest: int) -> int:
    """How long the end of the one is that begins the other. To compare only where the first character stands takes a
    millisecond for a key of 16 KiB; every length for each of its lines took seconds, on the loop of the worker."""
    at = len(left) - min(longest, len(left), len(right))
    while (at := left.find(right[:1], at)) >= 0:
        if right.startswith(left[at:]):
            return len(left) - at
        at += 1
    return 0
