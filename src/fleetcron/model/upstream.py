"""What is known of a job that another one depends on, for one period."""

from typing import Literal, NamedTuple, TypeAlias

from fleetcron.model.states import RunState

OnUpstreamFailure: TypeAlias = Literal["skip", "run", "wait"]


class Upstream(NamedTuple):
    """One upstream job of one run, in the period (previous tick of the run, its own tick].

    `answer` belongs to the upstream's latest tick in the period: the state of its run (of the run that stands for it,
    if it was merged or is covered), or what the ledger says. None: no tick in the period has an answer.
    `undecided`: there may be a later tick in the period that nobody has decided yet.
    `paused`: the upstream was paused before the end of the period; what it would have done since, nobody knows.
    """

    job_id: str
    name: str
    on_failure: OnUpstreamFailure
    answer: RunState | Literal["missed"] | None
    undecided: bool
    paused: bool
