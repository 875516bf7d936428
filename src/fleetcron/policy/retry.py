"""When a failed attempt is tried again. Pure: chance is an argument.

The jitter makes a delay longer, never shorter, by a share of it and by at most five minutes, so that thousands of runs
that failed together do not come back together.
"""

from typing import Final

from fleetcron.model.outcome import Fault
from fleetcron.model.rules import RetryRule

MOST_JITTER_MS: Final = 300_000
LONGEST_ASKED_MS: Final = 24 * 3_600_000  # whatever the other side asks for


def delay_ms(rule: RetryRule, failures: int, chance: float, asked_ms: int | None = None) -> int:
    """How long to wait after the `failures`-th failure (1 is the first). `chance` is in [0, 1).

    What the other side asked for (Retry-After) is a lower bound. A list that is used up repeats its last delay.
    """
    match rule.backoff:
        case "fixed":
            delay = rule.delays_ms[0]
        case "exponential":
            # the exponent is bounded before it is used: 2 ** 10_000 is a number, but not a delay
            delay = min(rule.max_delay_ms, rule.delays_ms[0] << min(failures - 1, 40))
        case "list":
            delay = rule.delays_ms[min(failures, len(rule.delays_ms)) - 1]
    delay = max(delay, min(asked_ms or 0, LONGEST_ASKED_MS))
    return delay + int(min(delay * rule.jitter, MOST_JITTER_MS) * chance)


def is_worth_it(rule: RetryRule, error: Fault, *, permanent: bool = False) -> bool:
    """Whether this kind of error may pass by itself. `give_up_on` wins; an empty `retry_on` means every other, except
    those that their executor calls permanent."""
    if any(_names(code, error) for code in rule.give_up_on):
        return False
    if not rule.retry_on:
        return not permanent
    return any(_names(code, error) for code in rule.retry_on)


def _names(code: str, error: Fault) -> bool:
    """`http_503` names itself, `http_*` all of its kind, `ValueError` also `builtins.ValueError`."""
    if code.endswith("*"):
        return error.code.startswith(code[:-1])
    return error.code == code or error.code.endswith(f".{code}")
