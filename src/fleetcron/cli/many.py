"""Many runs at once: shown how many, asked for, done some at a time. Exactly those that were counted are touched."""

import sys
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TypeAlias

import click

from fleetcron.client.run_shapes import SteeredRuns
from fleetcron.store.steering import BATCH, Steered
from fleetcron.store.written import Written
from fleetcron.views.asking import answer

Verb: TypeAlias = Callable[[Sequence[int]], Awaitable[Written[list[Steered]]]]
Ask: TypeAlias = Callable[[Sequence[int]], SteeredRuns]  # the same over an API

yes_option = click.option("--yes", "-y", is_flag=True, help="Do not ask.")


def confirm(question: str, *, yes: bool, as_json: bool) -> None:
    """Nobody who is asked says no by accident: whatever is not a yes ends the command with exit code 1."""
    if yes:
        return
    if as_json:
        raise click.UsageError("--json asks nobody: add --yes, or look first with --dry-run.")
    click.confirm(question, abort=True, err=True)


async def steered(run_ids: Sequence[int], label: str, verb: Verb) -> Counter[str]:
    """How many runs of which answer. Interrupted, it is simply repeated: what is done is not met again."""
    done: Counter[str] = Counter()
    with progress(len(run_ids), label) as told:
        for start in range(0, len(run_ids), BATCH):
            batch = run_ids[start : start + BATCH]
            done.update(each.done for each in await _batch(verb, batch))
            told(len(batch))
    return done


def steered_there(run_ids: Sequence[int], label: str, ask: Ask) -> Counter[str]:
    """The same over an API."""
    done: Counter[str] = Counter()
    with progress(len(run_ids), label) as told:
        for start in range(0, len(run_ids), BATCH):
            batch = run_ids[start : start + BATCH]
            done.update(each["done"] for each in ask(batch)["runs"])
            told(len(batch))
    return done


@contextmanager
def progress(runs: int, label: str) -> Iterator[Callable[[int], None]]:
    """A bar on a terminal, for more than one batch."""
    if runs <= BATCH or not sys.stderr.isatty():
        yield lambda _: None
        return
    with click.progressbar(length=runs, label=label, file=sys.stderr, show_pos=True) as bar:
        yield bar.update


async def _batch(verb: Verb, batch: Sequence[int]) -> list[Steered]:
    return await answer(lambda: verb(batch))
