"""Several blackouts on one job. The first one whose window holds a tick decides: skip drops it, defer moves it on.

A deferred tick may land in the window of another blackout, which then decides in its turn. Windows that touch or
overlap are one stretch, so whatever is not dropped ends up at the end of its stretch.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

from fleetcron.errors import ScheduleError
from fleetcron.times.windows import Blackout, Window, Windows

OnWindow = Literal["skip", "defer"]


@dataclass(frozen=True, slots=True)
class BlackoutRule:
    """How a job uses a blackout."""

    blackout: Blackout
    on: OnWindow = "skip"

    def __post_init__(self) -> None:
        if self.on not in ("skip", "defer"):
            raise ScheduleError(f"blackout {self.blackout.name}: '{self.on}' is not one of skip, defer")


class Blackouts(Windows):
    """The stretches that the blackouts cover together."""

    def __init__(self, rules: Iterable[BlackoutRule]) -> None:
        self._rules = tuple(rules)
        self._whole = Blackout(
            ", ".join(rule.blackout.name for rule in self._rules),
            tuple(sorted(window for rule in self._rules for window in rule.blackout.fixed)),
            tuple(starts for rule in self._rules for starts in rule.blackout.repeated),
        )
        self._whole.ending_after(0)  # windows that together never end are found out now

    def ending_after(self, t: int) -> Window | None:
        return self._whole.ending_after(t)

    def starting_before(self, t: int) -> Window | None:
        return self._whole.starting_before(t)

    def deferring(self, window: Window) -> list[Window]:
        policies = {rule.on for rule in self._rules}
        if policies == {"skip"}:
            return []
        if policies == {"defer"}:
            return [window]
        # Between two edges of windows, every instant has the same fate.
        start, end = window
        edges = {start, end}
        for rule in self._rules:
            for inner in rule.blackout.within(start - 1, end - 1):
                edges.update(inner)
        return [piece for piece in pairwise(sorted(edges)) if self._is_kept(piece[0])]

    def _is_kept(self, t: int) -> bool:
        while True:
            for rule in self._rules:
                window = rule.blackout.around(t)
                if window is not None:
                    break
            else:
                return True
            if rule.on == "skip":
                return False
            t = window[1]
