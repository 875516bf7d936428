"""The pytest plugin, in a real run of pytest."""

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.house.blocks import ROOT, blocks

pytest_plugins = ["pytester"]

[OF_THE_DOCS] = [each.text for each in blocks(ROOT / "docs/learn/testing.md") if each.kind == "py"]
[JOBS_OF_THE_README] = [each.text for each in blocks(ROOT / "README.md") if each.kind == "python"]
TEST = """
JOBS = '''
jobs:
  - name: hourly
    schedule: {cron: "0 * * * *"}
    run: {command: ["true"]}
'''


def test_hours(fleetcron_world):
    w = fleetcron_world(JOBS, start="2027-01-04 00:30")
    w.run_until("02:30")
    assert w.runs("hourly") == ["01:00", "02:00"]


def test_that_is_wrong(fleetcron_world):
    w = fleetcron_world(JOBS, start="2027-01-04 00:30")
    w.run_until("01:30")
    assert w.runs("hourly") == ["01:00 dead"]
"""


def test_pytest_finds_the_fixture_and_a_failure_can_be_read(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The entry point of pyproject.toml, as an installed package has it."""
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text("utf-8"))
    [(name, module)] = project["project"]["entry-points"]["pytest11"].items()
    installed = pytester.mkdir("fleetcron_as_installed-1.dist-info")
    (installed / "METADATA").write_text("Metadata-Version: 2.1\nName: fleetcron-as-installed\nVersion: 1\n")
    (installed / "entry_points.txt").write_text(f"[pytest11]\n{name} = {module}\n")
    monkeypatch.setenv("PYTHONPATH", str(pytester.path))
    pytester.makepyfile(TEST, test_of_the_docs=OF_THE_DOCS)
    pytester.mkpydir("shop").joinpath("jobs.py").write_text(JOBS_OF_THE_README)
    found = pytester.runpytest_subprocess("-p", "no:cacheprovider", "-W", "error")
    found.assert_outcomes(passed=2, failed=1)
    found.stdout.fnmatch_lines(["*<hourly 2027-01-04 01:00+00:00 succeeded>*"])


def test_the_plugin_costs_next_to_nothing_where_nobody_uses_it() -> None:
    code = "import sys, fleetcron.testing.plugin; print([n for n in sys.modules if n.startswith('fleetcron.s')])"
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert said.stdout.strip() == "[]"
