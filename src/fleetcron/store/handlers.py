"""Parts of a claim: runs for whose handler no worker of the pool is there.

They are parked, so that people see what they wait for and no claim has to pass them by. They stay parked, however many
they are, until somebody claims who does not lack their handler: because he came, or found it, or was never asked. Then
he takes with him what he has room for. So nobody has to tell anybody, and nobody looks at all of them.
"""

import json
from collections.abc import Sequence
from typing import Final, NamedTuple

from fleetcron.model.queued import Park, Queued, queued
from fleetcron.store.closing import release
from fleetcron.store.engine import Script
from fleetcron.store.rows import rows, texts

PAGE: Final = 1_000  # open runs of a queue that one claim looks at: about 0.2 s if all are parked, and the pool waits
_HANDLERS: Final = 20  # that one claim tries
_ENDED: Final = 100


class Unknown(NamedTuple):
    ended: Sequence[Queued] = ()  # their jobs have ended: whoever decides gives them their answer
    more: bool = False


def park_unknown(node_id: str, pool: str, lacks: Sequence[str], now_ms: int) -> Script[Unknown]:
    """Handlers that no worker of the pool has. Those that somebody else has are left to them: also if he is late with
    his lease, for he goes on with them then."""
    lacking = set(lacks)
    for row in (yield "workers_list", {}):
        if pool in json.loads(row["pools"]) and row["node_id"] != node_id:
            lacking &= set(json.loads(row["lacks"]))
    if not lacking:
        return Unknown()
    found = yield "queue_unknown", {"pool": pool, "handlers": texts(sorted(lacking)), "most": PAGE}
    ended = [queued(row, row["ended"]) for row in found if row["ended"] is not None]
    parked = [queued(row) for row in found if row["ended"] is None]
    if parked:
        parks = (Park(run.run_id, "handler", run.handler) for run in parked)
        yield "queue_park", {"rows": rows(each._asdict() for each in parks), "now_ms": now_ms}
    keys = {run.claim_key for run in parked if run.claim_key is not None and not run.leased}
    # somebody may have been let go on because a key was free: then it is the turn of the next
    if (yield from release((("key", key) for key in sorted(keys)), most=1)) - {pool}:
        yield "notify", {"topic": "work"}
    return Unknown(ended[:_ENDED], len(found) >= PAGE or len(ended) > _ENDED)


def pull_known(pool: str, lacks: Sequence[str], most: int, catchup_room: int) -> Script[bool]:
    """Runs that were parked for want of a handler which this one does not lack: whether there were any."""
    waited = [row["key"] for row in (yield "queue_handlers", {"pool": pool})]
    known = [("handler", key) for key in waited if key not in lacks][:_HANDLERS]
    return bool((yield from release(known, most, pool=pool, lane=None if catchup_room > 0 else "live")))
