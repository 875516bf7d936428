"""What an outcome becomes, and when the next attempt is due."""

import pytest

from fleetcron.model.outcome import (
    WORKER_STOPPED,
    Cancelled,
    Failed,
    Fault,
    Lost,
    Outcome,
    Snoozed,
    Succeeded,
    TimedOut,
)
from fleetcron.model.rules import RetryRule
from fleetcron.model.states import RunState
from fleetcron.model.transition import Budget, Transition
from fleetcron.policy import retry
from fleetcron.policy.settle import settle

RULE = RetryRule()
BROKEN = Fault("builtins.ValueError", "no")


def settled(outcome: Outcome, budget: Budget | None = None, rule: RetryRule = RULE, now: int = 10_000) -> Transition:
    return settle(outcome, budget or Budget(), rule, scheduled_for_ms=5_000, now_ms=now, chance=0.0)


def test_what_is_over_is_over() -> None:
    assert settled(Succeeded()) == Transition(RunState.SUCCEEDED, Budget())
    assert settled(Cancelled("too late")).state is RunState.CANCELLED


@pytest.mark.parametrize("outcome", [Failed(BROKEN), TimedOut(BROKEN)])
def test_a_failure_is_tried_again_until_its_attempts_are_used_up(outcome: Outcome) -> None:
    """S1-28, S3-39, S3-95: `retrying` with the next due instant, or a dead letter."""
    budget, dues = Budget(), []
    while (made := settled(outcome, budget)).state is RunState.RETRYING:
        budget = made.budget
        assert made.due_ms is not None
        dues.append(made.due_ms - 10_000)
    assert dues == [30_000, 120_000, 600_000]  # S3-38
    assert (made.state, made.budget.failures, made.error) == (RunState.DEAD, 4, BROKEN)


def test_a_lost_attempt_has_a_budget_of_its_own_and_does_not_wait() -> None:
    made = settled(Lost(BROKEN), Budget(failures=3))
    assert (made.state, made.due_ms, made.budget) == (RunState.RETRYING, 10_000, Budget(3, 1))
    assert settled(Lost(BROKEN), Budget(losses=4)).state is RunState.DEAD


def test_an_orderly_stop_costs_nothing_however_often_somebody_deploys() -> None:
    """S0-4, S3-18: whoever runs longer than the drain is stopped by every deploy, and is not dead after the fifth."""
    stopped = Lost(Fault(WORKER_STOPPED, "the worker was stopped"))
    made = settled(stopped, Budget(failures=3, losses=4))
    assert made == Transition(RunState.RETRYING, Budget(3, 4), 11_000, stopped.error)  # at once, it would be a loop
    assert settled(stopped, Budget(3, 4), RetryRule(max_attempts=1, max_losses=1)).state is RunState.RETRYING
    assert settled(stopped, now=1_000).due_ms == 5_000


@pytest.mark.parametrize(
    ("outcome", "spent"),
    [
        (Lost(Fault(WORKER_STOPPED)), Budget(2, 1)),
        (Lost(BROKEN), Budget(2, 2)),
        (Failed(BROKEN), Budget(3, 1)),
        (TimedOut(BROKEN), Budget(3, 1)),
        (Cancelled("it said so itself"), Budget(2, 1)),
        (Snoozed(5), Budget(2, 1)),
    ],
)
def test_what_was_asked_to_stop_is_cancelled_and_counts_what_its_attempt_cost(outcome: Outcome, spent: Budget) -> None:
    """Also where it would have been a dead letter: whoever asked does not want it."""
    for rule in (RULE, RetryRule(max_attempts=1, max_losses=1)):
        made = settle(
            outcome, Budget(2, 1), rule, scheduled_for_ms=5_000, now_ms=10_000, chance=0.0, cancel="run 12 comes"
        )
        assert made == Transition(RunState.CANCELLED, spent, error=Fault("cancelled", "run 12 comes"))


def test_what_was_asked_to_stop_and_succeeded_has_succeeded() -> None:
    made = settle(Succeeded(), Budget(2, 1), RULE, scheduled_for_ms=0, now_ms=10_000, chance=0.0, cancel="run 12 comes")
    assert made == Transition(RunState.SUCCEEDED, Budget(2, 1))


def test_a_snooze_costs_nothing() -> None:
    assert settled(Snoozed(2.5), Budget(3, 4)) == Transition(RunState.RETRYING, Budget(3, 4), 12_500)


@pytest.mark.parametrize("outcome", [Lost(BROKEN), Snoozed(0)])
def test_a_clock_that_went_back_starts_nothing_before_its_tick(outcome: Outcome) -> None:
    assert settled(outcome, now=1_000).due_ms == 5_000


def test_what_cannot_pass_is_not_tried_again() -> None:
    """S3-37: give_up_on wins; an empty retry_on means every other error."""
    assert settled(Failed(BROKEN), rule=RetryRule(give_up_on=("ValueError",))).state is RunState.DEAD
    assert settled(Failed(BROKEN), rule=RetryRule(retry_on=("http_*",))).state is RunState.DEAD
    both = RetryRule(retry_on=("http_*",), give_up_on=("http_404",))
    assert settled(Failed(Fault("http_503")), rule=both).state is RunState.RETRYING
    assert settled(Failed(Fault("http_404")), rule=both).state is RunState.DEAD


def test_delays() -> None:
    """S3-38, S3-40: a list, a fixed delay, one that doubles; jitter only adds; Retry-After is the least."""
    listed = [retry.delay_ms(RULE, failures, 0.0) for failures in range(1, 8)]
    assert listed == [30_000, 120_000, 600_000, 1_800_000, 7_200_000, 7_200_000, 7_200_000]
    fixed = RetryRule(backoff="fixed", delays_ms=(5_000,))
    assert {retry.delay_ms(fixed, failures, 0.0) for failures in range(1, 50)} == {5_000}
    doubling = RetryRule(backoff="exponential", delays_ms=(1_000,), max_delay_ms=60_000)
    assert [retry.delay_ms(doubling, n, 0.0) for n in (1, 2, 3, 7, 10_000)] == [1_000, 2_000, 4_000, 60_000, 60_000]
    assert retry.delay_ms(fixed, 1, 0.999) < 6_000 <= retry.delay_ms(fixed, 1, 0.999) + 2
    assert retry.delay_ms(RULE, 5, 0.999999) <= 7_200_000 + retry.MOST_JITTER_MS
    assert retry.delay_ms(fixed, 1, 0.0, asked_ms=90_000) == 90_000
    assert retry.delay_ms(fixed, 1, 0.0, asked_ms=1) == 5_000


@pytest.mark.parametrize(
    ("asked_s", "given_s"),
    [(0, 1), (-5, 1), (float("nan"), 1), (1.5, 1.5), (1e300, 7 * 86_400), (float("inf"), 7 * 86_400)],
)
def test_a_snooze_is_neither_at_once_nor_for_ever(asked_s: float, given_s: float) -> None:
    """A handler may ask for nonsense: at once would be a loop, and no table holds a number without end."""
    become = settle(Snoozed(asked_s), Budget(), RULE, scheduled_for_ms=0, now_ms=1_000, chance=0)
    assert become.due_ms == 1_000 + given_s * 1000


def test_what_the_other_side_asks_for_is_bounded() -> None:
    failed = Failed(Fault("retry"), retry_after_ms=10**18)
    become = settle(failed, Budget(), RULE, scheduled_for_ms=0, now_ms=0, chance=0)
    assert become.due_ms == retry.LONGEST_ASKED_MS


@pytest.mark.parametrize(
    ("asked_ms", "given_ms"), [(5_000, 5_000), (1, 1_000), (2 * 86_400_000, 2 * 86_400_000), (10**18, 7 * 86_400_000)]
)
def test_a_handler_says_exactly_when_it_wants_to_be_tried_again(asked_ms: int, given_ms: int) -> None:
    """Sooner than the rule and without its jitter, too; within a second and a week. Its attempts are counted."""
    failed = Failed(Fault("retry"), asked_ms, is_exact=True)
    become = settle(failed, Budget(2), RULE, scheduled_for_ms=0, now_ms=1_000, chance=0.9)
    assert (become.state, become.due_ms, become.budget) == (RunState.RETRYING, 1_000 + given_ms, Budget(3))
    assert settle(failed, Budget(3), RULE, scheduled_for_ms=0, now_ms=1_000, chance=0.9).state is RunState.DEAD


def test_a_handler_that_does_not_say_when_follows_the_rule() -> None:
    failed = Failed(Fault("retry"), is_exact=True)
    assert settled(failed).due_ms == 10_000 + 30_000
