"""The append-only log of what left the normal path. Written inside the transaction that did it."""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from fleetcron.events import Event
from fleetcron.store.engine import Engine, Script
from fleetcron.store.rows import rows


@dataclass(frozen=True, slots=True)
class Noted:
    event_id: int
    at_ms: int
    event: Event


class Events:
    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    async def list(self, *, kind: str | None = None, job_id: str | None = None, limit: int = 100) -> list[Noted]:
        """The newest first."""

        def script() -> Script[list[Noted]]:
            found = yield "events_list", {"kind": kind, "job_id": job_id, "most": limit}
            return [
                Noted(
                    row["event_id"],
                    row["at_ms"],
                    Event(
                        row["kind"],
                        None if row["job_id"] is None else str(row["job_id"]),
                        row["node_id"],
                        row["actor"],
                        row["count"],
                        json.loads(row["detail"]),
                    ),
                )
                for row in found
            ]

        return await self._engine.read(script)

    async def counts(self, since_ms: int) -> dict[str, int]:
        """How often each kind was noted since an instant: conflicts, refusals, take-overs, flaps."""

        def script() -> Script[dict[str, int]]:
            return {row["kind"]: int(row["count"]) for row in (yield "events_count", {"since_ms": since_ms})}

        return await self._engine.read(script)


def note(event: Event) -> Script[None]:
    """Part of another verb's script: `yield from note(Event(…))`."""
    yield (
        "events_insert",
        {
            "kind": event.kind,
            "count": event.count,
            "job_id": event.job_id,
            "node_id": event.node_id,
            "actor": event.actor,
            "detail": json.dumps(event.detail, sort_keys=True),
        },
    )


def note_all(events: Iterable[Event]) -> Script[None]:
    """As `note`, for many."""
    found: list[dict[str, Any]] = [
        {
            "kind": event.kind,
            "count": event.count,
            "job_id": event.job_id,
            "node_id": event.node_id,
            "actor": event.actor,
            "detail": dict(event.detail),
        }
        for event in events
    ]
    if found:
        yield "events_insert_many", {"rows": rows(found)}
