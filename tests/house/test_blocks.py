"""Every code block of the docs is run, or says why not. By language: Python runs (test_house), commands of ours parse
(tests/cli/test_docs), documents can be read, settings too. ```text is no code."""

import configparser
import re
import sqlite3
from collections.abc import Callable

import pytest

from bench.__main__ import BENCHMARKS
from fleetcron.cli.main import root
from fleetcron.config import read
from fleetcron.imports.crontab import read_crontab
from fleetcron.model.interpolation import interpolated
from fleetcron.model.reading import read_definitions, read_job, read_yaml
from tests.cli.test_docs import parse
from tests.house.blocks import ROOT, Block, blocks

ALL = list(blocks())


def a_document(block: Block) -> None:
    raw = read_yaml(block.text, block.place)
    assert isinstance(raw, dict)
    if "run" in raw:  # a part of a job
        assert read_job({"name": "a", "schedule": {"every": "1h"}, **raw})
    else:
        filled, mistakes = interpolated(raw, dict.fromkeys(raw.get("env", []), "value"))
        assert mistakes == []
        assert read_definitions(filled).jobs


def settings(block: Block) -> None:
    assert read(block.text, {}, {})


def a_unit(block: Block) -> None:
    unit = configparser.ConfigParser(interpolation=None)
    unit.optionxform = str  # type: ignore[assignment,method-assign]
    unit.read_string(block.text)
    program, *words = unit["Service"]["ExecStart"].split()
    assert program.endswith("/bin/fleetcron")
    parse(root, "fleetcron", words)


def statements(block: Block) -> None:
    sqlite3.connect(":memory:").executescript(block.text)


def lines_of_cron(block: Block) -> None:
    found = read_crontab(block.text, system=False)
    assert found.entries
    assert not found.troubles


def a_terminal(block: Block) -> None:
    """What is typed is something that can be typed; what is shown below a prompt is a picture of it."""
    has_prompt = "\n$ " in f"\n{block.text}"
    lines = [line for line in block.text.replace("\\\n", " ").splitlines() if line.strip()]
    typed = [line.removeprefix("$ ") for line in lines if line.startswith("$ ") or not has_prompt]
    assert typed
    for line in typed:
        words = re.sub(r"^(?:export )?(?:[A-Z][A-Z_]*=\S+ *)+", "", line).split("#")[0].split()
        match words:
            case [] | ["fleetcron", *_] | ["pip", "install", *_]:
                pass
            case ["make", target]:
                assert f"\n{target}:" in (ROOT / "Makefile").read_text("utf-8")
            case ["python", "-m", "bench", *names]:
                assert {name for name in names if not name.startswith("-")} <= set(BENCHMARKS)
            case _:
                pytest.fail(f"{block.place}: who runs this? {line}")


KINDS: dict[str, Callable[[Block], None]] = {
    "yaml": a_document,
    "toml": settings,
    "ini": a_unit,
    "sql": statements,
    "crontab": lines_of_cron,
    "": a_terminal,
    "sh": a_terminal,
}


@pytest.mark.parametrize("block", [each for each in ALL if each.is_ours], ids=lambda block: block.place)
def test_a_block_is_what_its_language_says(block: Block) -> None:
    if block.kind not in ("python", "text"):
        assert block.kind in KINDS, f"{block.place}: who runs {block.kind}?"
        KINDS[block.kind](block)


def test_whoever_is_said_to_run_a_block_reads_its_page() -> None:
    assert len(ALL) > 90
    for block in ALL:
        if block.run_by is not None:
            assert block.page.name in (ROOT / block.run_by).read_text("utf-8"), block.place


def test_no_block_is_overlooked() -> None:
    for page in {block.page for block in ALL}:
        fences = len(re.findall(r"^```", page.read_text("utf-8"), re.MULTILINE))
        assert fences == 2 * len(list(blocks(page))), page
