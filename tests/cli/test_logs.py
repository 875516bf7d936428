"""The log of a node: what a line looks like, and that trouble does not flood it."""

import io
import json
import logging
import sys

from fleetcron.cli.logs import Json, Ration, Text


def record(message: str, *values: object, at_s: float = 1.8e9, level: int = logging.WARNING) -> logging.LogRecord:
    made = logging.LogRecord("fleetcron.node", level, "node.py", 1, message, values, None)
    made.created = at_s
    return made


def test_lines() -> None:
    entry = record("the clock is %s", "0.5 s\nbehind", at_s=1_800_000_000.25)
    assert Text().format(entry) == "2027-01-15T08:00:00.250Z warning the clock is 0.5 s\\nbehind"
    assert json.loads(Json().format(entry)) == {
        "at": "2027-01-15T08:00:00.250Z",
        "level": "warning",
        "logger": "fleetcron.node",
        "message": "the clock is 0.5 s\nbehind",
    }


def test_what_a_handler_raised_cannot_command_the_terminal() -> None:
    try:
        raise ValueError("\x1b]0;owned\x07\u009b")
    except ValueError as error:
        entry = record("run 3: %s", error)
        entry.exc_info = sys.exc_info()
    for said in (Text().format(entry), Json().format(entry)):
        assert not {"\x1b", "\x07", "\u009b"} & set(said)
    assert "run 3: \\x1b]0;owned\\x07\\x9b\nTraceback" in Text().format(entry)
    assert json.loads(Json().format(entry))["message"] == "run 3: \x1b]0;owned\x07\u009b"


def test_an_error_keeps_its_traceback() -> None:
    try:
        raise ValueError("broken")
    except ValueError:
        entry = record("it failed")
        entry.exc_info = sys.exc_info()
    assert "ValueError: broken" in Text().format(entry)
    assert "ValueError: broken" in json.loads(Json().format(entry))["traceback"]


def test_what_stays_broken_is_said_once_a_minute_and_counted() -> None:
    shown = io.StringIO()
    handler = logging.StreamHandler(shown)
    handler.addFilter(Ration(60))
    start = 1_800_000_000
    for second in range(0, 130, 10):
        handler.handle(record("cannot reach the store: %s", f"try {second}", at_s=start + second))
        handler.handle(record("it plans", at_s=start + second, level=logging.INFO))
    handler.handle(record("another trouble", at_s=start + 1))
    lines = [line for line in shown.getvalue().splitlines() if line != "it plans"]
    assert lines == [
        "cannot reach the store: try 0",
        "cannot reach the store: try 60 (5 more times since)",
        "cannot reach the store: try 120 (5 more times since)",
        "another trouble",
    ]
    assert shown.getvalue().count("it plans") == 13


def test_once_more_is_one_time() -> None:
    ration = Ration(60)
    said = [entry for second in (0, 10, 70) if ration.filter(entry := record("late", at_s=second))]
    assert [entry.getMessage() for entry in said] == ["late", "late (1 more time since)"]
