"""Requests with an `Idempotency-Key`: asked twice, done once, answered alike, for a day.

One row for each (scope, key); the unique key decides between two who come at once. Whoever begins gives an id of its
own (`owner`): a begin whose reply was lost finds itself, and nobody else can finish it. A request whose server has
vanished is taken over after a while; what it had done by then may be done again, so it must be safe to repeat itself,
as every verb of the store is.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from fleetcron.errors import DefinitionError, Mistake
from fleetcron.store.engine import Engine, Script
from fleetcron.store.written import Refused, Written

KEPT_MS: Final = 24 * 3_600_000
STALE_MS: Final = 60_000  # far longer than a request may take: its calls to the store have deadlines
LONGEST_KEY: Final = 255
MOST_BODY: Final = 1024 * 1024
PURGED_AT_ONCE: Final = 2_000


@dataclass(frozen=True, slots=True)
class New:
    """Do it, then `finish` or `abandon`."""


@dataclass(frozen=True, slots=True)
class Running:
    """Somebody is at it."""

    started_ms: int


@dataclass(frozen=True, slots=True)
class Done:
    """Answer the same. `body` None: it was done, and its answer was too long to be kept."""

    status: int
    headers: Mapping[str, str]
    body: bytes | None


@dataclass(frozen=True, slots=True)
class Different:
    """The key was used before, for another request."""


Begun: TypeAlias = New | Running | Done | Different


class Idempotency:
    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    async def begin(
        self, scope: str, key: str, request_hash: str, *, owner: str, stale_ms: int = STALE_MS
    ) -> Written[Begun]:
        """`scope` is the credential's key_id; `owner` an id of this one request to this one server."""
        if not 0 < len(key) <= LONGEST_KEY or not (key.isascii() and key.isprintable()):
            raise DefinitionError([Mistake("/idempotency-key", f"must be 1 to {LONGEST_KEY} ASCII characters")])
        whose = {"scope": scope, "key": key}
        call = {**whose, "request": request_hash, "owner": owner, "kept_ms": KEPT_MS, "stale_ms": stale_ms}

        def script() -> Script[Begun | Refused]:
            if (yield "idempotency_take", call):
                return New()
            [row] = yield "idempotency_read", whose  # it cannot vanish: the statement above holds it
            if row["request"] != request_hash:
                return Different()
            if row["finished_ms"] is not None:
                return Done(row["status"], json.loads(row["headers"]), row["body"])
            return New() if row["owner"] == owner else Running(row["started_ms"])

        return await self._engine.write(script)

    async def finish(
        self, scope: str, key: str, *, owner: str, status: int, headers: Mapping[str, str], body: bytes
    ) -> Written[None]:
        """Keep the answer. Refused if somebody else has taken the request over: his answer counts."""
        kept = body if len(body) <= MOST_BODY else None
        whose = {"scope": scope, "key": key}
        answer: dict[str, Any] = {"status": status, "headers": json.dumps(dict(headers)), "body": kept}

        def script() -> Script[Refused | None]:
            if (yield "idempotency_finish_if_mine", {**whose, "owner": owner, **answer}):
                return None
            found = yield "idempotency_read", whose
            if found and found[0]["owner"] == owner and found[0]["finished_ms"] is not None:
                return None  # by this very call, before
            return Refused("somebody else has taken this request over")

        return await self._engine.write(script)

    async def abandon(self, scope: str, key: str, *, owner: str) -> Written[bool]:
        """Nothing was done: whoever asks again need not wait. False: it was not ours, or is finished."""

        def script() -> Script[bool | Refused]:
            return bool((yield "idempotency_abandon_if_mine", {"scope": scope, "key": key, "owner": owner}))

        return await self._engine.write(script)

    async def purge(self) -> Written[int]:
        """Forget some of those that are older than a day; the sweep does it by itself."""

        def script() -> Script[int | Refused]:
            return (yield from forget_old())

        return await self._engine.write(script)


def forget_old() -> Script[int]:
    """Part of another verb's script."""
    return len((yield "idempotency_purge", {"kept_ms": KEPT_MS, "most": PURGED_AT_ONCE}))
