"""Let runs be looked at again that were parked because of a limit or a control that has changed.

A flood can leave a million runs at one gate. The transaction that changes the limit takes the first ones with it, more
than any claim needs; the rest follows in transactions of their own. Pages go on after the last run, so a run that a
claim parks again meanwhile (a control lets only a share of them start) is not met twice. If whoever does it dies
between two pages, the sweep goes on (`forgotten`).
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final, Generic, NamedTuple, TypeVar

from fleetcron.errors import StoreUnavailable
from fleetcron.steps import step
from fleetcron.store.engine import Engine, Script
from fleetcron.store.written import Ok, Refused, Written

T = TypeVar("T")

PAGE: Final = 2_000  # about 0.2 s, measured on a busy machine; claims wait for the first page
_BEFORE_ALL: Final = -(2**62)


class Place(NamedTuple):
    """Runs that wait at a gate for a key, after a certain one."""

    gate: str
    key: str
    after_ms: int = _BEFORE_ALL
    after_id: int = 0


@dataclass(frozen=True, slots=True)
class Changed(Generic[T]):
    """`before` and `after` are None where the defaults hold. `looked` runs may start if nothing else holds them back;
    `rest` are places where more wait: repeat the verb."""

    before: T | None
    after: T | None
    looked: int = 0
    rest: tuple[Place, ...] = ()


def look_again(places: Sequence[Place]) -> Script[tuple[int, tuple[Place, ...]]]:
    """Part of another verb: one page. How many runs it were, and the places that are left."""
    looked = 0
    left = list(places)
    while left and looked < PAGE:
        place, most = left[0], PAGE - looked
        found = yield "queue_look_again", {**place._asdict(), "most": most}
        looked += len(found)
        if len(found) < most:
            left.pop(0)
        else:
            last = max((row["scheduled_for_ms"], row["run_id"]) for row in found)
            left[0] = Place(place.gate, place.key, *last)
    if looked:
        yield "notify", {"topic": "work"}
    return looked, tuple(left)


async def and_the_rest(engine: Engine, written: Written[Changed[T]]) -> Written[Changed[T]]:
    """The pages that did not fit. The change itself is written: whatever happens here is told in its answer."""
    while isinstance(written, Ok) and written.value.rest:
        places = written.value.rest

        def script(places: Sequence[Place] = places) -> Script[tuple[int, tuple[Place, ...]] | Refused]:
            step("limits.look")
            return (yield from look_again(places))

        try:
            more = await engine.write(script)
        except StoreUnavailable:
            break
        if not isinstance(more, Ok):
            break
        looked, left = more.value
        written = Ok(replace(written.value, looked=written.value.looked + looked, rest=left))
    return written


def quotas(pool: str) -> Script[list[Place]]:
    """Where runs wait for a quota of a pool."""
    found: list[Place] = []
    for gate in ("quota_tenant", "quota_type"):
        keys: Iterable[str] = [row["key"] for row in (yield "queue_parked_keys", {"gate": gate})]
        found += [Place(gate, key) for key in keys if key.partition(":")[0] == pool]
    return found
