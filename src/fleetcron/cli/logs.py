"""The log of a node on standard error: text or JSON, and no flood while something stays broken."""

import logging
import sys
from datetime import UTC, datetime
from typing import Any, Final

from fleetcron.cli.tables import harmless, printable
from fleetcron.cli.when import json_text
from fleetcron.config import NodeConfig

AGAIN_S: Final = 60.0


_EACH = ("fleetcron.cli", "fleetcron.attempts")


class Ration(logging.Filter):
    """Of what is wrong again and again, one line a minute. What is left out is counted in the next one."""

    def __init__(self, again_s: float = AGAIN_S) -> None:
        super().__init__()
        self._again_s = again_s
        self._said: dict[tuple[str, str], tuple[float, int]] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        if record.levelno < logging.WARNING or record.name.startswith(_EACH):
            return True  # a command says each thing once; how an attempt ended is said of each
        key = record.name, str(record.msg)
        at, left_out = self._said.get(key, (None, 0))
        if at is not None and record.created - at < self._again_s:
            self._said[key] = at, left_out + 1
            return False
        self._said[key] = record.created, 0
        if left_out:
            more = "1 more time" if left_out == 1 else f"{left_out} more times"
            record.msg, record.args = f"{record.getMessage()} ({more} since)", None
        return True


class Text(logging.Formatter):
    """`2026-11-16T05:00:00Z info  the tables are now at version 1 (memory)`."""

    def format(self, record: logging.LogRecord) -> str:
        line = f"{_at(record)} {record.levelname.lower():<7} {_one_line(record.getMessage())}"
        return f"{line}\n{harmless(self.formatException(record.exc_info))}" if record.exc_info else line


class Json(logging.Formatter):
    """One object a line: at, level, logger, message."""

    def format(self, record: logging.LogRecord) -> str:
        entry: dict[str, Any] = {
            "at": _at(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        if record.exc_info:
            entry["traceback"] = self.formatException(record.exc_info)
        return json_text(entry)


def set_up(config: NodeConfig) -> None:
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(Json() if config.log_format == "json" else Text())
    handler.addFilter(Ration())
    logging.basicConfig(level=logging.WARNING, handlers=[handler], force=True)  # what libraries say
    logging.getLogger("fleetcron").setLevel(config.log_level.upper())


def _at(record: logging.LogRecord) -> str:
    at = datetime.fromtimestamp(record.created, UTC)
    return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _one_line(text: str) -> str:
    """A line break in somebody's text must not look like another entry, and nothing may command a terminal."""
    return printable(text.replace("\r", "\\r").replace("\n", "\\n"))
