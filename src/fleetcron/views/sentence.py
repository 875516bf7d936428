"""Why a run stands where it stands, for people: the sentence of the policy, and who works for a run that was merged."""

from fleetcron.model.situation import Situation
from fleetcron.model.states import RunState
from fleetcron.policy.why import why
from fleetcron.store.history import RunShown
from fleetcron.store.store import Store


async def told(store: Store, known: Situation) -> tuple[str, list[int]]:
    """The sentence; and the runs that a merged one was merged into, the last of which does the work."""
    run = known.line.run
    shown = await store.history.run(run.run_id) if run.state is RunState.MERGED else None
    return sentence(known, shown), [] if shown is None else list(shown.way)


def sentence(known: Situation, shown: RunShown | None) -> str:
    said = why(known)
    if shown is None or not shown.way:
        return said
    first, last = shown.way[0], shown.way[-1]
    now = "is not there any more" if shown.worker is None else stands(shown.worker.run.state)
    if first == last:
        return f"{said}; run {last} {now}"
    return f"{said}; run {first} was merged too, in the end into run {last}, which {now}"


def stands(state: RunState) -> str:
    return "has succeeded" if state is RunState.SUCCEEDED else f"is {state}"
