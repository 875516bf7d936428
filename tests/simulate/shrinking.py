"""Make a failing world smaller: take away one fault after the other, then time, as long as the same law is broken."""

from collections.abc import Callable
from dataclasses import replace

from tests.simulate.campaign import Prepare, Result, Wanted, apart

_MINUTES = (2.0, 5.0, 10.0, 15.0)


def shrunk(wanted: Wanted, failed: Result, prepare: Prepare, tell: Callable[[str], None]) -> Result:
    law, best, result = failed.laws[0], wanted, failed

    def still_fails(each: Wanted) -> bool:
        nonlocal best, result
        [found] = list(apart([each], prepare))
        if law not in found.laws:
            return False
        best, result = each, found
        tell(f"still {law}: {each.command()}")
        return True

    for kind in wanted.scenario().faults:
        still_fails(replace(best, without=(*best.without, kind)))
    for minutes in _MINUTES:
        if minutes < best.minutes and still_fails(replace(best, minutes=minutes)):
            break
    return result
