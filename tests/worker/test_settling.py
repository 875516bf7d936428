"""What an outcome becomes when its run was asked to stop."""

from fleetcron.model.outcome import Fault, Lost
from fleetcron.model.states import RunState
from fleetcron.model.transition import Budget
from fleetcron.store.ends import Held
from fleetcron.worker.settling import settling


def test_a_lost_attempt_of_a_run_that_was_asked_to_stop_is_counted() -> None:
    """The row of the attempt says lost: the run must not say that it never lost one."""
    held = Held(1, 1, "default", "shop", 0, Budget(), "run 2 takes its place")
    made = settling({}, lambda: 0.0)(held, Lost(Fault("lost", "its worker is gone")), (), 1000)
    assert (made.state, made.budget) == (RunState.CANCELLED, Budget(failures=0, losses=1))
