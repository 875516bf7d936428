"""How many examples a law is held against: a bounded share in `make test`, forty times more in `make soak`."""

from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

AMOUNT = pytest.mark.parametrize(
    "amount",
    [pytest.param(0.5, id="bounded"), pytest.param(40, id="long", marks=[pytest.mark.soak, pytest.mark.timeout(3600)])],
)


def for_all(examples: float, *drawn: st.SearchStrategy, shrink: bool = False) -> Callable[[Callable], None]:
    """Run a law now, on that many examples, the same in every run. Shrinking takes minutes with a slow model."""
    same_in_every_run = settings(
        max_examples=round(examples),
        derandomize=True,
        database=None,
        deadline=None,
        phases=[Phase.generate, Phase.shrink] if shrink else [Phase.generate],
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much],
    )

    def run(law: Callable) -> None:
        same_in_every_run(given(*drawn)(law))()

    return run
