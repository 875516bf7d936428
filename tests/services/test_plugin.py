"""`--without` and `--soak`, asked of a pytest of their own."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TESTS = """
import pytest

def test_of_a_service(valkey_server):
    pass

def test_of_nothing():
    pass

@pytest.mark.soak
def test_that_is_long():
    pass
"""


@pytest.fixture
def test_file(tmp_path: Path) -> Path:
    path = tmp_path / "test_these.py"
    path.write_text(TESTS)
    return path


def ask_pytest(*arguments: str | Path, ci: str = "") -> tuple[int, str]:
    plugins = ["-p", "tests.conftest", "-p", "no:hypothesispytest", "-p", "no:valkey"]  # those two cost a second
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-c", "pyproject.toml", *plugins, "-v", *arguments],
        cwd=ROOT,
        env={**os.environ, "CI": ci},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout


def test_what_is_left_out_is_seen_to_be_skipped(test_file: Path) -> None:
    code, output = ask_pytest("--without", "valkey", test_file)
    assert code == 0, output
    assert "test_of_a_service SKIPPED" in output
    assert "--without valkey" in output.partition("short test summary")[2]
    assert "1 passed, 1 skipped, 1 deselected" in output


def test_nothing_is_left_out_in_ci(test_file: Path) -> None:
    code, output = ask_pytest("--without", "valkey", test_file, ci="true")
    assert code == pytest.ExitCode.USAGE_ERROR
    assert "CI is set" in output


def test_the_long_suites_run_when_asked_for(test_file: Path) -> None:
    code, output = ask_pytest("--soak", "-k", "long", test_file)
    assert code == 0, output
    assert "test_that_is_long PASSED" in output
