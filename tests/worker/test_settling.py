"""What an outcome becomes when its run was asked to stop, or somebody slows it down."""

from fleetcron.model.outcome import Failed, Fault, Lost
from fleetcron.model.queued import Control
from fleetcron.model.states import RunState
from fleetcron.model.transition import Budget
from fleetcron.store.ends import Held
from fleetcron.worker.settling import settling


def test_a_lost_attempt_of_a_run_that_was_asked_to_stop_is_counted() -> None:
    """The row of the attempt says lost: the run must not say that it never lost one."""
    held = Held(1, 1, "default", "shop", 0, Budget(), "run 2 takes its place")
    made = settling({}, lambda: 0.0)(held, Lost(Fault("lost", "its worker is gone")), (), 1000)
    assert (made.state, made.budget) == (RunState.CANCELLED, Budget(failures=0, losses=1))


def test_who_says_itself_when_it_is_tried_again_waits_longer_while_its_tenant_is_slowed() -> None:
    held = Held(1, 1, "default", "shop", 0, Budget(), None)
    slow = Control("tenant", "default", 100, None, 4.0, None)
    asked = Failed(Fault("retry", "later"), 2_000, is_exact=True)
    assert settling({}, lambda: 0.0)(held, asked, (), 1_000).due_ms == 3_000
    assert settling({}, lambda: 0.0)(held, asked, (slow,), 1_000).due_ms == 9_000
