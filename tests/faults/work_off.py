"""One worker does whatever is left, and somebody looks at the tables after every step of it."""

from collections.abc import Sequence

from tests.worker.inspection import Inspector, Tables

ROUNDS = 60
ROOM = 50  # enough for everything that could start


async def work_off(inspector: Inspector, by: str, pools: Sequence[str]) -> Tables:
    """Until nothing happens any more. The clock goes on only when the store says that there is something then."""
    shop = inspector.shop
    for _ in range(ROUNDS):
        tables = await inspector.look()
        held = [lease for lease in tables.leases.values() if lease["node_id"] is not None]
        await shop.promote()
        claimed = []
        for pool in pools:
            claimed += await shop.claimed(by, pool, ROOM)
        tables = await inspector.look()
        for pool in pools:
            inspector.nothing_idle(tables, pool, 1, 1)
        for lease in held:
            await shop.finish(lease["node_id"], lease["run_id"], lease["attempt"])
        if not held and not claimed:
            found = await shop.store.queue.next_look(list(pools))
            whens = [when for when in (found.upcoming_ms, found.look_ms) if when is not None]
            if not whens:
                return await inspector.look()
            await shop.clock.set(max(shop.now + 1, min(whens)))
    raise AssertionError("it does not come to rest")


async def to_the_end(inspector: Inspector, by: str, pools: Sequence[str]) -> Tables:
    """Until every run has its answer."""
    tables = await work_off(inspector, by, pools)
    assert (tables.queue, tables.leases, tables.upcoming) == ({}, {}, {})
    assert all(run["finished_ms"] is not None for run in tables.runs.values())
    return tables
