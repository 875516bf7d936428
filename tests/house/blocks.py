"""The code blocks of the docs. Each is checked by its language; one that is not says who does it, or why nobody can, in
a comment on the line before it: `<!-- run by tests/api/test_x.py -->` or `<!-- not run: why -->`."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = sorted((*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")))
_BLOCK = re.compile(r"(?:^<!-- (run by|not run:) (.+?) -->\n)?^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)


@dataclass(frozen=True)
class Block:
    page: Path
    line: int
    kind: str  # its language; none is a terminal
    text: str
    run_by: str | None = None
    not_run: str | None = None

    @property
    def is_ours(self) -> bool:
        """Checked by its language."""
        return self.run_by is None and self.not_run is None

    @property
    def place(self) -> str:
        return f"{self.page.relative_to(ROOT)}:{self.line}"


def blocks(*pages: Path) -> Iterator[Block]:
    for page in pages or PAGES:
        text = page.read_text("utf-8")
        for found in _BLOCK.finditer(text):
            noted, about, kind, body = found.groups()
            line = text[: found.start(4)].count("\n")
            yield Block(
                page, line, kind, body, about if noted == "run by" else None, about if noted == "not run:" else None
            )
