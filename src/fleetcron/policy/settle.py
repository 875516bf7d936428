"""Turn what a handler said into what we write. Pure: no clock, no store."""

from dataclasses import dataclass
from typing import assert_never

from fleetcron.model.outcome import Cancelled, Failed, Fault, Lost, Outcome, Snoozed, Succeeded, TimedOut
from fleetcron.model.rules import RetryRule
from fleetcron.model.states import RunState
from fleetcron.policy import retry


@dataclass(frozen=True, slots=True)
class Budget:
    """What a run has used up. The attempt number is not part of it: it only rises, and is the fence."""

    failures: int = 0
    losses: int = 0


@dataclass(frozen=True, slots=True)
class Transition:
    """What is written because of an outcome. `due_ms` is when the run may start again."""

    state: RunState
    budget: Budget
    due_ms: int | None = None
    error: Fault | None = None


def settle(
    outcome: Outcome, budget: Budget, rule: RetryRule, *, scheduled_for_ms: int, now_ms: int, chance: float
) -> Transition:
    """A run that is to be tried again is never due before its tick: a clock that went back cannot start it early."""
    match outcome:
        case Succeeded():
            return Transition(RunState.SUCCEEDED, budget)
        case Cancelled(reason):
            return Transition(RunState.CANCELLED, budget, error=Fault("cancelled", reason))
        case Snoozed(seconds):  # costs no failure
            due = now_ms + max(0, round(seconds * 1000))
            return Transition(RunState.RETRYING, budget, max(scheduled_for_ms, due))
        case Lost(error):  # nobody's fault: its own budget, and no waiting
            spent = Budget(budget.failures, budget.losses + 1)
            if spent.losses >= rule.max_losses:
                return Transition(RunState.DEAD, spent, error=error)
            return Transition(RunState.RETRYING, spent, max(scheduled_for_ms, now_ms), error)
        case Failed(error, asked_ms):
            return _failed(error, asked_ms, budget, rule, scheduled_for_ms, now_ms, chance)
        case TimedOut(error):
            return _failed(error, None, budget, rule, scheduled_for_ms, now_ms, chance)
        case never:
            assert_never(never)  # a new outcome is a type error here


def _failed(
    error: Fault,
    asked_ms: int | None,
    budget: Budget,
    rule: RetryRule,
    scheduled_for_ms: int,
    now_ms: int,
    chance: float,
) -> Transition:
    spent = Budget(budget.failures + 1, budget.losses)
    if spent.failures >= rule.max_attempts or not retry.is_worth_it(rule, error):
        return Transition(RunState.DEAD, spent, error=error)
    due = now_ms + retry.delay_ms(rule, spent.failures, chance, asked_ms)
    return Transition(RunState.RETRYING, spent, max(scheduled_for_ms, due), error)
