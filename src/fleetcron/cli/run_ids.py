"""Runs by number on the command line, and what is said about something that is none."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

import click

from fleetcron.cli.tables import printable, shortened
from fleetcron.errors import RefusedError
from fleetcron.model.name import is_name

MOST: Final = 1000  # runs of one call: one transaction


class RunId(click.IntRange):
    """The number that `fleetcron runs` gives; people write the name of a job instead."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        try:
            return int(super().convert(value, param, ctx))
        except click.BadParameter:
            text = str(value)
        named = all(map(is_name, text.split("/", 1))) and not text.isdigit()
        where = f"fleetcron runs --job {text}" if named else "fleetcron runs"
        shown = printable(shortened(text, 60))
        message = f"'{shown}' is not the number of a run, such as 812. Numbers are in: {where}"
        raise click.BadParameter(message, ctx, param) from None


RUN_ID: Final = RunId(1, 2**63 - 1)

run_argument = click.argument("run_id", metavar="RUN", type=RUN_ID)


def checked_ids(_context: click.Context, _argument: click.Parameter, value: tuple[int, ...]) -> tuple[int, ...]:
    if len(value) > MOST:
        raise click.BadParameter(f"{len(value):,} runs are too many for one call; at most {MOST:,}")
    return value


@contextmanager
def numbering(run_id: int) -> Iterator[None]:
    """What an API does not find here is this run."""
    from fleetcron.client.errors import NotFound

    try:
        yield
    except NotFound:
        raise no_such_run(run_id) from None


def no_such_run(run_id: int) -> RefusedError:
    return RefusedError(f"there is no run {run_id}; `fleetcron runs` lists them, and what was archived is not there")
