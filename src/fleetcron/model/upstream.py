"""What is known of a job that another one depends on, for one period."""

from typing import Final, Literal, NamedTuple, TypeAlias

from fleetcron.model.states import RunState

OnUpstreamFailure: TypeAlias = Literal["skip", "run", "wait"]

COUNTED: Final = 10_000  # of those that wait for one job: some ms of a claim, whatever their number
FRONT: Final = 200  # of those, the first by their ticks: they are not kept waiting for the others


class Upstream(NamedTuple):
    """One upstream job of one run, in the period (previous tick of the run, its own tick].

    `answer` belongs to the upstream's latest tick in the period: the state of its run (of the run that stands for it,
    if it was merged or is covered), or what the ledger says. None: no tick in the period has an answer.
    `undecided`: there may be a later tick in the period that nobody has decided yet.
    `paused`: the upstream was paused before the end of the period; what it would have done since, nobody knows.
    `waiting`: how many runs wait for this upstream, counted up to COUNTED. `in_front`: no more than FRONT of them have
    an earlier tick than this one.
    """

    job_id: str
    name: str
    on_failure: OnUpstreamFailure
    answer: RunState | Literal["missed"] | None
    undecided: bool
    paused: bool
    waiting: int = 0
    in_front: bool = True

    @property
    def is_satisfied(self) -> bool:
        """Whatever is to happen if it fails."""
        if self.undecided:
            return False
        return self.answer == RunState.SUCCEEDED or (self.answer is None and not self.paused)
