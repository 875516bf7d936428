"""What a worker has to know of a job: what it calls, with what, for how long, and how often it is tried again.

A definition has five times as much, and reading all of it was more than half of what a worker computed for a run. Many
jobs share their handler, their timeout and their retry rule, so these are read once for each text.
"""

import json
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final, NamedTuple

from fleetcron.model import writing
from fleetcron.model.rules import HOUR_MS, RetryRule
from fleetcron.model.target import Target, target_from

_KEPT: Final = 10_000
_DEFAULT: Final = RetryRule()
_NO_PAYLOAD: Final[Mapping[str, Any]] = {}


class Errand(NamedTuple):
    run: Target
    payload: Mapping[str, Any] = _NO_PAYLOAD
    timeout_ms: int = HOUR_MS
    retry: RetryRule = _DEFAULT


def errand(run: str, payload: str | None, timeout: str | None, retry: str | None) -> Errand:
    """From the parts of a canonical document, each as text. What is missing was written by a release without it."""
    given = _NO_PAYLOAD if payload is None or payload == "{}" else json.loads(payload)
    return Errand(_target(run), given, _timeout_ms(timeout), _retry(retry))


@lru_cache(_KEPT)
def _target(text: str) -> Target:
    return target_from(json.loads(text))


@lru_cache(_KEPT)
def _timeout_ms(text: str | None) -> int:
    ms = writing.duration_from(text)
    return HOUR_MS if ms is None else ms


@lru_cache(_KEPT)
def _retry(text: str | None) -> RetryRule:
    return _DEFAULT if text is None else writing.retry_from(json.loads(text))
