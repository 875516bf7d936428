"""What the docs say about the command line is so: every command parses, every reason and kind of event is there."""

import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import get_args

import click
import pytest
from click.testing import CliRunner

from fleetcron.api.problems import TITLES
from fleetcron.cli.jobs import COMMANDS as JOBS_COMMANDS
from fleetcron.cli.ledger import ANSWERS
from fleetcron.cli.main import BAD_INPUT, COMMANDS, FINDINGS, FINE, UNAVAILABLE, failed, root
from fleetcron.cli.plan import CHANGES
from fleetcron.client.errors import error_of
from fleetcron.client.wire import Broken
from fleetcron.errors import (
    ConfigError,
    DefinitionError,
    FleetcronError,
    RefusedError,
    ScheduleError,
    SchemaError,
    StoreUnavailable,
)
from fleetcron.events import KINDS
from fleetcron.model.answer import WORDS, Answer, Reason

ROOT = Path(__file__).parents[2]
PAGES = sorted(path for path in (*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")))
BLOCK = re.compile(r"^```(?:sh|console|)\n(.*?)^```", re.DOTALL | re.MULTILINE)


def commands_in(page: Path) -> list[list[str]]:
    found = []
    for block in BLOCK.findall(page.read_text("utf-8")):
        for line in block.replace("\\\n", " ").splitlines():
            words = re.match(r"(?:\$ )?(?:[A-Z_]+=\S+ )*(?:\.venv/bin/)?(fleetcron .*)", line)
            if words and not words[1].startswith("fleetcron 0"):  # the greeting of a node
                found.append(shlex.split(words[1].split(" | ")[0].split(" > ")[0], comments=True)[1:])
    return found


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_command_in_the_docs_is_one(page: Path) -> None:
    for words in commands_in(page):
        parse(root, "fleetcron", words)


def parse(command: click.Command, name: str, words: list[str], parent: click.Context | None = None) -> None:
    """As click would, down to the last option, and without doing anything."""
    try:
        context = command.make_context(name, list(words), parent=parent)
    except click.exceptions.Exit:  # --help, --version
        return
    with context:
        rest = [*context._protected_args, *context.args]
        if isinstance(command, click.Group) and rest:
            _, inner, after = command.resolve_command(context, rest)
            assert inner is not None, words
            parse(inner, rest[0], after, context)


def test_the_check_above_can_fail() -> None:
    for wrong in (["jobs", "--colour"], ["jobs", "shwo"], ["serv"], ["jobs", "show", "a", "--jsno"]):
        with pytest.raises(click.UsageError):
            parse(root, "fleetcron", wrong)
    assert sum(len(commands_in(page)) for page in PAGES) > 40


def test_every_reason_is_explained() -> None:
    page = (ROOT / "docs/learn/missed-ticks.md").read_text("utf-8")
    assert set(WORDS) == set(get_args(Reason))
    assert [reason for reason in get_args(Reason) if f"| `{reason}` |" not in page] == []
    assert set(ANSWERS) == set(get_args(Answer.__annotations__["answer"]))
    assert [words for words in WORDS.values() if words not in page] == []


def test_every_command_and_kind_of_event_is_named() -> None:
    page = (ROOT / "docs/learn/command-line.md").read_text("utf-8")
    assert [name for name in COMMANDS if f"fleetcron {name}" not in page] == []
    assert [name for name in JOBS_COMMANDS if f"fleetcron jobs {name}" not in page] == []
    found = (ROOT / "docs/operate/when-it-does-not-run.md").read_text("utf-8")
    assert [kind for kind in KINDS if f"`{kind}`" not in found] == []


def test_the_exit_codes_of_the_page_are_those_of_the_code(capsys: pytest.CaptureFixture[str]) -> None:
    """By what a command fails with, and by what an API answers."""
    page = (ROOT / "docs/learn/command-line.md").read_text("utf-8").partition("### Exit codes")[2]
    rows = dict(re.findall(r"^\| ([^|]+) \| ([^|]+) \|$", page.partition("Messages go to")[0], re.MULTILINE))
    codes = {"0": FINE, "1": FINDINGS, "2": BAD_INPUT, "2 of `plan`": CHANGES, "3": UNAVAILABLE}
    assert [head for head in rows if head[0].isdigit() and "," not in head] == list(codes)
    assert [int(head[0]) for head in codes] == list(codes.values())
    assert "bad input" in rows["2"]
    assert "the database is not available" in rows["3"]
    errors: list[FleetcronError] = [ConfigError([]), DefinitionError([]), RefusedError("x"), ScheduleError("x")]
    assert {failed(error, None) for error in (*errors, SchemaError("x"))} == {BAD_INPUT}
    assert failed(StoreUnavailable("x"), None) == failed(Broken("x", sent=False).error(), None) == UNAVAILABLE
    told = {int(status): int(code) for head, code in rows.items() for status in re.findall(r"\b[45]\d\d\b", head)}
    assert told.keys() == set(TITLES) | {502, 504}
    assert told == {status: failed(error_of(status, {}, b""), None) for status in told}
    capsys.readouterr()


def test_help_says_where_the_database_is() -> None:
    for words in (["jobs", "--help"], ["serve", "--help"], ["apply", "--help"], ["jobs", "show", "--help"]):
        said = CliRunner().invoke(root, words).output
        assert "sqlite:///fleetcron.db" in said
        assert "DATABASE_URL" in said


def test_the_calculator_waits_for_none_of_the_store(tmp_path: Path) -> None:
    heavy = {"sqlite3", "pydantic", "yaml", "asyncpg", "asyncio", "fleetcron.store", "fleetcron.scheduler"}
    script = (
        "import sys; sys.argv = ['fleetcron', *sys.argv[1:]]\n"
        "from fleetcron.cli import main\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        f"print(sorted({heavy!r} & set(sys.modules)), file=sys.stderr)"
    )
    for words in (["next", "0 2 * * *"], ["explain", "0 2 * * *"], ["--help"]):
        assert imported(script, words, tmp_path) == "[]"
    listing = imported(script, ["nodes"], tmp_path)
    assert "sqlite3" in listing
    assert "pydantic" not in listing
    assert "yaml" not in listing


def imported(script: str, words: list[str], folder: Path) -> str:
    command = [sys.executable, "-c", script, *words]
    said = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)
    return said.stderr.splitlines()[-1]
