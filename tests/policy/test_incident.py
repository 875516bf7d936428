"""What somebody switched in an incident: fewer attempts, longer delays, for a tenant or a type."""

from dataclasses import replace
from typing import Any

import pytest

from fleetcron.model.outcome import Failed, Fault
from fleetcron.model.queued import Control
from fleetcron.model.rules import RetryRule
from fleetcron.policy.incident import slowed, under

RULE = RetryRule(max_attempts=4, delays_ms=(1_000, 5_000), max_delay_ms=60_000)


def control(scope: Any, name: str, retries: int | None = None, backoff: float = 1.0, percent: int = 100) -> Control:
    return Control(scope, name, percent, retries, backoff, None)


@pytest.mark.parametrize(
    "other",
    [
        control("tenant", "globex", 1, 9),
        control("type", "mail", 1, 9),
        control("pool", "acme", 1, 9),
        control("type", "acme", 1, 9),
        control("tenant", "acme", percent=0),
    ],
)
def test_others_and_holds_change_nothing(other: Control) -> None:
    """S3-85: a pool slows nobody down, and a tenant that is called like a type is not that type."""
    assert under(RULE, [other], "acme", "export") == RULE
    assert under(RULE, [], "acme", "export") == RULE


@pytest.mark.parametrize(("scope", "name"), [("tenant", "acme"), ("type", "export")])
def test_fewer_attempts_and_longer_delays(scope: str, name: str) -> None:
    """S3-85: capped and slowed down by tenant or by type; a cap never gives more attempts than the job has."""
    assert under(RULE, [control(scope, name, 2)], "acme", "export") == replace(RULE, max_attempts=2)
    assert under(RULE, [control(scope, name, 9)], "acme", "export") == RULE
    slowed = replace(RULE, delays_ms=(2_500, 12_500), max_delay_ms=150_000)
    assert under(RULE, [control(scope, name, backoff=2.5)], "acme", "export") == slowed


def test_of_two_the_lower_cap_counts_and_delays_multiply() -> None:
    both = [control("tenant", "acme", 3, 2), control("type", "export", 1, 3)]
    found = under(RULE, both, "acme", "export")
    assert (found.max_attempts, found.delays_ms, found.max_delay_ms) == (1, (6_000, 30_000), 360_000)


def test_who_says_itself_when_it_is_tried_again_is_slowed_down_too() -> None:
    """S3-85: `Retry(after=…)` is exact, and would not notice that delays are multiplied."""
    both = [control("tenant", "acme", 3, 2), control("type", "export", 1, 3), control("type", "mail", backoff=9)]
    asked = Failed(Fault("retry", "later"), 1_000, is_exact=True)
    assert slowed(asked, both, "acme", "export").retry_after_ms == 6_000
    assert slowed(asked, both, "globex", "import") == asked
    for other in (replace(asked, is_exact=False), replace(asked, retry_after_ms=None)):
        assert slowed(other, both, "acme", "export") == other
