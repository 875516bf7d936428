"""Numbers of options."""

from math import isnan
from typing import Any

import click


class FloatRange(click.FloatRange):
    """Which `nan` is not in, though it is neither below nor above."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        found = super().convert(value, param, ctx)
        if isnan(found):
            self.fail(f"{value} is not in the range {self._describe_range()}.", param, ctx)
        return found
