"""What an outcome becomes: the pure policy, asked with the rules of the run's own definition."""

from collections.abc import Callable, Mapping, Sequence

from fleetcron.executors.codes import is_permanent
from fleetcron.model.errand import Errand
from fleetcron.model.outcome import Failed, Outcome
from fleetcron.model.queued import Control
from fleetcron.model.rules import RetryRule
from fleetcron.model.transition import Transition
from fleetcron.policy.incident import slowed, under
from fleetcron.policy.settle import settle
from fleetcron.store.ends import Held, Settle

_DEFAULT = RetryRule()


def settling(errands: Mapping[int, Errand], chance: Callable[[], float]) -> Settle:
    """For one transaction: `errands` by run."""

    def decide(held: Held, outcome: Outcome, controls: Sequence[Control], now_ms: int) -> Transition:
        known = errands.get(held.run_id)
        rule = under(known.retry if known else _DEFAULT, controls, held.tenant, held.type)
        permanent = isinstance(outcome, Failed) and is_permanent(outcome.error.code)
        if isinstance(outcome, Failed):
            outcome = slowed(outcome, controls, held.tenant, held.type)
        return settle(
            outcome,
            held.budget,
            rule,
            scheduled_for_ms=held.scheduled_for_ms,
            now_ms=now_ms,
            chance=chance(),
            permanent=permanent,
            cancel=held.cancel,
        )

    return decide
