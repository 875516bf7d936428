"""Replays, asked for until their answer is known: a run that has died again meanwhile is not opened a second time."""

from collections.abc import Sequence

from fleetcron.store.steering import Steered, Steering
from fleetcron.views.asking import answer


async def replay(steering: Steering, run_ids: Sequence[int], *, actor: str) -> list[Steered]:
    """One answer for each, in order."""
    rounds = await steering.rounds(run_ids)
    return await answer(lambda: steering.replay(run_ids, actor=actor, rounds=rounds))
