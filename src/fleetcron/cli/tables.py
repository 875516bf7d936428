"""Lists for people: aligned columns, one colour for each state, and a word about what is not on the page."""

import re
from collections.abc import Mapping, Sequence

import click

from fleetcron.views.numbers import numbered as numbered

_COLOURS: Mapping[str, str] = {
    "active": "green", "alive": "green", "succeeded": "green", "created": "green", "resumed": "green",
    "planned": "cyan", "running": "blue", "dispatched": "blue", "finished": "cyan",
    "paused": "yellow", "waiting": "yellow", "retrying": "yellow", "changed": "yellow", "skipped": "yellow",
    "missed": "red", "dead": "red", "refused": "red", "silent": "red",
}  # fmt: skip
# what a terminal obeys, takes for a line end, or turns the text after it around with
_UNSEEN = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def coloured(word: str, *, text: str | None = None) -> str:
    """A state in its colour; the word says the same without it."""
    colour = _COLOURS.get(word)
    return click.style(text or word, fg=colour) if colour else text or word


def printable(text: str) -> str:
    """What somebody else wrote, without what would command a terminal."""
    return _UNSEEN.sub(lambda found: _escaped(ord(found[0])), text)


def harmless(text: str) -> str:
    """The same of a text that has lines and tabs, which stay."""
    lines = text.replace("\r\n", "\n").split("\n")
    return "\n".join("\t".join(map(printable, line.split("\t"))) for line in lines)


def shortened(text: str, most: int) -> str:
    """One line that fits; an ellipsis says that there is more."""
    return text if len(text) <= most else f"{text[: most - 1]}…"


def _escaped(code: int) -> str:
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


def table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Columns two spaces apart, under their heads if there are some. Empty columns are left out."""
    kept = [at for at in range(len(rows[0])) if any(row[at] for row in rows)]
    shown = [[row[at] for at in kept] for row in rows]
    if heads:
        shown.insert(0, [click.style(heads[at], bold=True) if heads[at] else "" for at in kept])
    widths = [max(len(click.unstyle(row[at])) for row in shown) for at in range(len(kept))]
    return "\n".join(_line(row, widths) for row in shown)


def _line(row: Sequence[str], widths: Sequence[int]) -> str:
    padded = [cell + " " * (width - len(click.unstyle(cell))) for cell, width in zip(row, widths, strict=True)]
    return "  ".join([*padded[:-1], row[-1]]).rstrip()


def say_more(shown: int, how: str) -> None:
    """The line under a page that is not the last one."""
    click.echo(f"{shown:,} shown, there are more: {how}, or a higher --limit.")


limit_option = click.option(
    "--limit", default=50, show_default=True, type=click.IntRange(1, 100_000), help="How many at most."
)
