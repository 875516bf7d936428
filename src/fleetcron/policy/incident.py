"""What somebody switched in an incident changes how runs are tried again. Pure."""

from collections.abc import Sequence
from dataclasses import replace

from fleetcron.model.queued import Control
from fleetcron.model.rules import RetryRule


def under(rule: RetryRule, controls: Sequence[Control], tenant: str, type_: str) -> RetryRule:
    """The rule with fewer attempts and longer delays, as long as a control of the tenant or the type says so."""
    for control in controls:
        if (control.scope, control.name) not in (("tenant", tenant), ("type", type_)):
            continue
        if control.retries is not None:
            rule = replace(rule, max_attempts=min(rule.max_attempts, max(1, control.retries)))
        if control.backoff > 1:
            delays = tuple(round(delay * control.backoff) for delay in rule.delays_ms)
            rule = replace(rule, delays_ms=delays, max_delay_ms=round(rule.max_delay_ms * control.backoff))
    return rule
