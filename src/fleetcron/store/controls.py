"""What was switched in an incident: hold a tenant, a pool or a type back, let it go on by and by, slow its retries.

S3-105. As the limits: one transaction under the lock that claims take, with an event, and the runs that were held back
are looked at again. What ends by itself needs no write: a control that is over is as if it were not there.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from fleetcron.errors import DefinitionError
from fleetcron.events import Event
from fleetcron.model.control import Scope, Switched, Wish, apply, in_force, mistakes_of_name
from fleetcron.model.queued import Control
from fleetcron.steps import step
from fleetcron.store.engine import Engine, Row, Script
from fleetcron.store.events import note
from fleetcron.store.looking import Changed, Place, and_the_rest, look_again
from fleetcron.store.written import Refused, Written


@dataclass(frozen=True, slots=True)
class ControlLine:
    """A control that is in force, and how many runs it holds back now."""

    switched: Switched
    waiting: int


@dataclass(frozen=True, slots=True)
class InForce:
    now_ms: int
    controls: Sequence[ControlLine]


Check = Callable[[Switched | None], None]


def _anybody(_before: Switched | None) -> None:
    """May change it."""


class ControlRecords:
    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    async def switch(self, wish: Wish, *, actor: str, check: Check = _anybody) -> Written[Changed[Switched]]:
        """Create or change a control. Refused if a wish goes on with something (`keeps_end`) that is not switched.
        `check` sees what is in force in the transaction that changes it, and raises if that is not for the actor."""
        wish.check()

        def script() -> Script[Changed[Switched] | Refused]:
            before, now_ms = yield from _begin(wish.scope, wish.name)
            check(before)
            if before is None and wish.keeps_end:
                return Refused(f"{wish.scope} {wish.name} is not held")
            after = apply(wish, before, actor, now_ms)
            return (yield from _write(wish.scope, wish.name, before, after, actor, now_ms))

        return await and_the_rest(self._engine, await self._engine.write(script))

    async def release(
        self, scope: Scope, name: str, *, actor: str, reason: str | None = None, check: Check = _anybody
    ) -> Written[Changed[Switched]]:
        """Nothing is switched any more for this name, whatever it was. `check`: as in `switch`."""
        if mistakes := list(mistakes_of_name(scope, name)):
            raise DefinitionError(mistakes)

        def script() -> Script[Changed[Switched] | Refused]:
            before, now_ms = yield from _begin(scope, name)
            check(before)
            return (yield from _write(scope, name, before, None, actor, now_ms, reason))

        return await and_the_rest(self._engine, await self._engine.write(script))

    async def list(self) -> InForce:
        def script() -> Script[InForce]:
            [facts] = yield "fleet_now", {}
            found = [_switched(row) for row in (yield "controls_list", {"scope": None, "name": None})]
            waiting = {row["key"]: row["runs"] for row in (yield "queue_paused", {})}
            lines = [
                ControlLine(each, waiting.get(_key(each.control.scope, each.control.name), 0))
                for each in found
                if in_force(each.control, facts["now_ms"])
            ]
            return InForce(facts["now_ms"], lines)

        return await self._engine.read(script)

    async def names(self, scope: Scope) -> Sequence[str]:
        """Whom a control of this scope can mean: a typing error must not look like a hold."""

        def script() -> Script[Sequence[str]]:
            return [row["name"] for row in (yield "controls_names", {"scope": scope})]

        return await self._engine.read(script)


def _begin(scope: Scope, name: str) -> Script[tuple[Switched | None, int]]:
    step("control.begin")
    yield "work_lock", {"name": "limits"}
    [facts] = yield "fleet_now", {}
    found = [_switched(row) for row in (yield "controls_list", {"scope": scope, "name": name})]
    alive = [each for each in found if in_force(each.control, facts["now_ms"])]
    return (alive[0] if alive else None), facts["now_ms"]


def _write(
    scope: Scope,
    name: str,
    before: Switched | None,
    after: Switched | None,
    actor: str,
    now_ms: int,
    reason: str | None = None,
) -> Script[Changed[Switched]]:
    if before != after:
        yield "controls_delete", {"scope": scope, "name": name, "now_ms": now_ms}
        if after is not None:
            yield "controls_put", _row(after)
        detail = {
            "scope": scope,
            "name": name,
            "before": before and before.as_document(),
            "after": after and after.as_document(),
        }
        if reason is not None:
            detail["reason"] = reason
        yield from note(Event("control_released" if after is None else "control_set", actor=actor, detail=detail))
        yield "notify", {"topic": "work"}
    looked, rest = yield from look_again([Place("paused", _key(scope, name))])
    step("control.written")
    return Changed(before, after, looked, rest)


def _key(scope: str, name: str) -> str:
    return f"{scope}:{name}"


def _switched(row: Row) -> Switched:
    control = Control(row["scope"], row["name"], row["percent"], row["retries"], row["backoff"], row["until_ms"])
    return Switched(control, row["reason"], row["actor"], row["updated_ms"])


def _row(switched: Switched) -> dict[str, object]:
    return {
        **switched.control._asdict(),
        "reason": switched.reason,
        "actor": switched.actor,
        "now_ms": switched.updated_ms,
    }
