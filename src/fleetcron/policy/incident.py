"""What somebody switched in an incident changes how runs are tried again. Pure."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from fleetcron.model.outcome import Failed
from fleetcron.model.queued import Control
from fleetcron.model.rules import RetryRule


def under(rule: RetryRule, controls: Sequence[Control], tenant: str, type_: str) -> RetryRule:
    """The rule with fewer attempts and longer delays, as long as a control of the tenant or the type says so."""
    for control in _of(controls, tenant, type_):
        if control.retries is not None:
            rule = replace(rule, max_attempts=min(rule.max_attempts, max(1, control.retries)))
        if control.backoff > 1:
            delays = tuple(round(delay * control.backoff) for delay in rule.delays_ms)
            rule = replace(rule, delays_ms=delays, max_delay_ms=round(rule.max_delay_ms * control.backoff))
    return rule


def slowed(failed: Failed, controls: Sequence[Control], tenant: str, type_: str) -> Failed:
    """A handler that says itself when it is to be tried again, later than it says. (Where its answer is only the least,
    the rule is what counts.)"""
    for control in _of(controls, tenant, type_):
        if control.backoff > 1 and failed.is_exact and failed.retry_after_ms is not None:
            failed = replace(failed, retry_after_ms=round(failed.retry_after_ms * control.backoff))
    return failed


def _of(controls: Sequence[Control], tenant: str, type_: str) -> Iterator[Control]:
    known = (("tenant", tenant), ("type", type_))
    return (control for control in controls if (control.scope, control.name) in known)
