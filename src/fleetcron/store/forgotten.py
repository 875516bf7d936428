"""Part of the sweep: runs that are parked, and what holds them back is not there any more.

A changed control or limit lets a flood go page by page (`looking`). Whoever does it may die between two pages, and the
rest would wait for something that nobody opens. Two looks find them, a page of each in a sweep. What waits for a
control or a limit that is gone is let go as it is found. What a control in force holds back, or the want of a handler,
is gone through round by round: a control that was raised lets some of them start, and a job may have ended.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from fleetcron.model.control import ALL
from fleetcron.model.queued import Control
from fleetcron.store.counting import control_rows
from fleetcron.store.engine import Script
from fleetcron.store.looking import Place, look_again
from fleetcron.store.rows import ids, texts

_SEEN: Final = 2_000  # runs that one sweep goes through
_KEYS: Final = 50  # and keys


class LetGo(NamedTuple):
    runs: int
    more: bool  # there is another page of those that nothing holds back
    after: Place | None  # where the round goes on


class _Round(NamedTuple):
    """What has to be gone through, in order; `controls` are those in force, by the key of their runs."""

    places: Sequence[Place]
    controls: Mapping[str, Control]


def let_go(after: Place | None, now_ms: int) -> Script[LetGo]:
    gates = {row["gate"] for row in (yield "queue_gates", {})}
    controls = {f"{each.scope}:{each.name}": each for each in (yield from control_rows(now_ms))}
    paused = (yield from _keys("paused")) if "paused" in gates else []
    free = [Place("paused", key) for key in paused if key not in controls or controls[key].percent == ALL]
    free += yield from _without_limit(gates)
    looked, rest = yield from look_again(free)
    held = [Place("handler", key) for key in ((yield from _keys("handler")) if "handler" in gates else [])]
    held += [Place("paused", key) for key in paused if key in controls and controls[key].percent < ALL]
    found, next_place = yield from _go_on(_Round(sorted(held), controls), after)
    if found:
        yield "notify", {"topic": "work"}
    return LetGo(looked + found, bool(rest), next_place)


def _keys(gate: str) -> Script[list[str]]:
    return [row["key"] for row in (yield "queue_parked_keys", {"gate": gate})]


def _without_limit(gates: set[str]) -> Script[list[Place]]:
    """Where runs wait for a limit that nobody has set any more. While there is one, claims let go who has room
    (`counting.pull`); where there is none they do not count."""
    found: list[Place] = []
    for gate, field in (("rate", "rate_per_s"), ("tenant", "max_in_flight")):
        if gate in gates:
            keys = yield from _keys(gate)
            caps = {row["tenant"]: row[field] for row in (yield "limits_of_tenants", {"tenants": texts(keys)})}
            found += [Place(gate, key) for key in keys if caps.get(key) is None]
    if gates & {"quota_tenant", "quota_type"}:
        pools = {row["pool"]: row for row in (yield "pools_list", {"pool": None})}
        for gate in ("quota_tenant", "quota_type"):
            for key in (yield from _keys(gate)):
                name, _, whose = key.partition(":")
                pool = pools.get(name)
                is_set = pool is not None and (
                    pool["per_tenant"] is not None if gate == "quota_tenant" else whose in json.loads(pool["per_type"])
                )
                if not is_set:
                    found.append(Place(gate, key))
    return found


def _go_on(round_: _Round, after: Place | None) -> Script[tuple[int, Place | None]]:
    """How many were let go, and where the next sweep goes on; None: it begins anew."""
    begin = round_.places if after is None else [each for each in round_.places if each[:2] >= after[:2]]
    found = seen = 0
    for number, each in enumerate(begin):
        if number == _KEYS:
            return found, each
        place = after if after is not None and after[:2] == each[:2] else each
        page = yield "queue_parked_page", {**place._asdict(), "most": _SEEN - seen}
        control = round_.controls[place.key] if place.gate == "paused" else None
        gone = [
            row["run_id"]
            for row in page
            if row["ended"] or (control and control.lets_start(row["run_id"], str(row["job_id"]), row["overlap"]))
        ]
        if gone:
            found += len((yield "queue_let_go", {"gate": place.gate, "ids": ids(gone)}))
        seen += len(page)
        if seen == _SEEN:
            return found, Place(place.gate, place.key, page[-1]["scheduled_for_ms"], page[-1]["run_id"])
    return found, None
