"""Turn what a handler said into what we write. Pure: no clock, no store."""

from typing import Final, assert_never

from fleetcron.model.outcome import Cancelled, Failed, Fault, Lost, Outcome, Snoozed, Succeeded, TimedOut
from fleetcron.model.rules import RetryRule
from fleetcron.model.states import RunState
from fleetcron.model.transition import Budget, Transition
from fleetcron.policy import retry

# A handler may ask for anything, also for nonsense. Never at once: that would be a loop; and within a week. A worker
# that says of whatever it gets that it was stopped asks for nonsense, too.
SHORTEST_ASKED_S: Final = 1.0
LONGEST_ASKED_S: Final = 7 * 86_400.0


def settle(
    outcome: Outcome,
    budget: Budget,
    rule: RetryRule,
    *,
    scheduled_for_ms: int,
    now_ms: int,
    chance: float,
    permanent: bool = False,
    cancel: str | None = None,
) -> Transition:
    """A run that is to be tried again is never due before its tick: a clock that went back cannot start it early.

    `permanent`: whoever executed it says that trying again is no use; only a `retry_on` that names the error does it.
    `cancel`: why it was asked to stop. Unless it succeeded all the same it is cancelled, and what its last attempt cost
    is counted: failures and losses are those of its attempts, whatever becomes of the run.
    """
    become = _become(outcome, budget, rule, scheduled_for_ms, now_ms, chance, permanent)
    if cancel is None or become.state is RunState.SUCCEEDED:
        return become
    return Transition(RunState.CANCELLED, become.budget, error=Fault("cancelled", cancel))


def _become(
    outcome: Outcome,
    budget: Budget,
    rule: RetryRule,
    scheduled_for_ms: int,
    now_ms: int,
    chance: float,
    permanent: bool,
) -> Transition:
    match outcome:
        case Succeeded():
            return Transition(RunState.SUCCEEDED, budget)
        case Cancelled(reason):
            return Transition(RunState.CANCELLED, budget, error=Fault("cancelled", reason))
        case Snoozed(seconds):  # costs no failure
            return Transition(RunState.RETRYING, budget, max(scheduled_for_ms, now_ms + _bounded_ms(seconds)))
        case Lost(error) if outcome.is_orderly:  # however often somebody deploys: it costs nothing
            return Transition(RunState.RETRYING, budget, max(scheduled_for_ms, now_ms + _bounded_ms(0)), error)
        case Lost(error):  # nobody's fault: its own budget, and no waiting
            spent = Budget(budget.failures, budget.losses + 1)
            if spent.losses >= rule.max_losses:
                return Transition(RunState.DEAD, spent, error=error)
            return Transition(RunState.RETRYING, spent, max(scheduled_for_ms, now_ms), error)
        case Failed():
            return _failed(outcome, budget, rule, scheduled_for_ms, now_ms, chance, permanent)
        case TimedOut(error):
            return _failed(Failed(error), budget, rule, scheduled_for_ms, now_ms, chance, permanent)
        case never:
            assert_never(never)  # a new outcome is a type error here


def _failed(
    failed: Failed,
    budget: Budget,
    rule: RetryRule,
    scheduled_for_ms: int,
    now_ms: int,
    chance: float,
    permanent: bool,
) -> Transition:
    error = failed.error
    spent = Budget(budget.failures + 1, budget.losses)
    if spent.failures >= rule.max_attempts or not retry.is_worth_it(rule, error, permanent=permanent):
        return Transition(RunState.DEAD, spent, error=error)
    if failed.is_exact and failed.retry_after_ms is not None:
        delay_ms = _bounded_ms(failed.retry_after_ms / 1000)
    else:
        delay_ms = retry.delay_ms(rule, spent.failures, chance, failed.retry_after_ms)
    due = now_ms + delay_ms
    return Transition(RunState.RETRYING, spent, max(scheduled_for_ms, due), error)


def _bounded_ms(seconds: float) -> int:
    return round(min(max(SHORTEST_ASKED_S, seconds), LONGEST_ASKED_S) * 1000)
