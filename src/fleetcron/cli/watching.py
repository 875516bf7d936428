"""`--watch`: a list that is asked for again and again.

On a terminal each round is drawn over the one before, on a screen of its own; when it ends (Ctrl-C) the screen is as it
was, with the last round under the command. Elsewhere the rounds follow each other, with --json one object a line. The
command itself knows nothing of it: what it would print is caught and shown.
"""

import io
import json
import shutil
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout, suppress
from functools import wraps
from typing import Any, Final, NoReturn, TypeVar

import click

from fleetcron.cli.ranges import FloatRange
from fleetcron.cli.when import json_text
from fleetcron.client.errors import Unavailable
from fleetcron.clock import utc_now
from fleetcron.errors import StoreUnavailable
from fleetcron.times.instants import iso

Command = TypeVar("Command", bound=Callable[..., Any])

SECONDS: Final = 2.0
INTERVAL: Final = FloatRange(0.1, 3600)
_ENTER: Final = "\x1b[?1049h\x1b[?25l\x1b[?7l"  # another screen, no cursor, and lines that are cut and not wrapped
_LEAVE: Final = "\x1b[?7h\x1b[?25h\x1b[?1049l"
_HOME, _REST_OF_LINE, _REST_OF_SCREEN = "\x1b[H", "\x1b[K", "\x1b[J"


def watchable(function: Command) -> Command:
    """Add --watch. It stands above every other option of the command."""

    @wraps(function)
    def command(*arguments: Any, watch: float | None, **values: Any) -> Any:
        if watch is None or click.get_current_context().invoked_subcommand is not None:
            return function(*arguments, **values)
        return watched(lambda: function(*arguments, **values), watch, as_json=bool(values.get("as_json")))

    option = click.option(
        "--watch",
        is_flag=False,
        flag_value=SECONDS,
        type=INTERVAL,
        metavar="[SECONDS]",
        help=f"Show it again every {SECONDS:g} s, or so often, until Ctrl-C. With --json: one object a line.",
    )
    return option(command)  # type: ignore[return-value]


def watched(show: Callable[[], object], every_s: float, *, as_json: bool) -> None:
    """Until Ctrl-C. A database or an API that is away for a while ends it only in the first round."""
    is_screen = sys.stdout.isatty() and not as_json
    frame, is_first = "", True
    with suppress(KeyboardInterrupt), _screen(is_screen) as draw:
        while True:
            try:
                frame = _caught(show, coloured=is_screen)
            except (StoreUnavailable, Unavailable) as error:
                if is_first:
                    raise
                frame = _trouble(error, as_json=as_json)
            is_first = False
            if is_screen:
                draw(frame, every_s)
            else:
                _follow(frame, as_json=as_json)
            time.sleep(every_s)  # what the user asked for; Ctrl-C ends it
    if is_screen:
        click.echo(frame.rstrip("\n"))


def _caught(show: Callable[[], object], *, coloured: bool) -> str:
    """What it prints; in colour only if that is for a terminal, and nobody has forbidden it."""
    context = click.get_current_context()
    before, said = context.color, io.StringIO()
    if coloured and before is None:
        context.color = True
    try:
        with redirect_stdout(said):
            show()
    finally:
        context.color = before
    return said.getvalue()


def _follow(frame: str, *, as_json: bool) -> None:
    if as_json:
        if frame:
            click.echo(json_text(json.loads(frame)))
    else:
        click.echo(f"--- {_now()}\n{frame.rstrip()}")
    sys.stdout.flush()


def _trouble(error: StoreUnavailable | Unavailable, *, as_json: bool) -> str:
    click.echo(f"{_now()} {error}", err=True)
    return "" if as_json else f"{error}\n"


def _now() -> str:
    return iso(utc_now().replace(microsecond=0))


@contextmanager
def _screen(wanted: bool) -> Iterator[Callable[[str, float], None]]:
    if not wanted:
        yield lambda *_: None
        return

    def ended(*_: object) -> NoReturn:
        raise SystemExit(128 + signal.SIGTERM)

    before = signal.signal(signal.SIGTERM, ended)  # so that the screen is given back
    sys.stdout.write(_ENTER)
    try:
        yield _draw
    finally:
        sys.stdout.write(_LEAVE)
        sys.stdout.flush()
        signal.signal(signal.SIGTERM, before)


def _draw(frame: str, every_s: float) -> None:
    """Over the frame before, without a blank moment in between. What does not fit is counted."""
    height = shutil.get_terminal_size().lines
    lines = [f"{click.get_current_context().command_path}, every {every_s:g} s; Ctrl-C ends it.  {_now()}", ""]
    lines += frame.rstrip("\n").split("\n")
    if len(lines) > height:
        lines[height - 1 :] = [f"… {len(lines) - height + 1} more lines: a taller window, or --limit"]
    sys.stdout.write(_HOME + f"{_REST_OF_LINE}\n".join(lines) + _REST_OF_LINE + _REST_OF_SCREEN)
    sys.stdout.flush()
