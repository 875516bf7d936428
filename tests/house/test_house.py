"""The house itself: the public surface, the pins, and docs that say what is true."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import fleetcron
from fleetcron.cli.main import COMMANDS
from fleetcron.times import lint
from fleetcron.times.expression import MACROS
from tests.house.blocks import PAGES as TEXTS
from tests.house.blocks import ROOT, blocks


def tracked() -> list[Path]:
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return [ROOT / name for name in listed.split("\0") if name]


def test_the_public_names() -> None:
    assert sorted(fleetcron.__all__) == fleetcron.__all__
    assert set(fleetcron.__all__) == {
        "AsyncClient", "Client", "Cron", "Every", "Fleetcron", "FleetcronError", "LeaseLost", "Once", "ScheduleError",
        "__version__", "fenced", "guarded",
    }  # fmt: skip
    assert issubclass(fleetcron.ScheduleError, ValueError)


@pytest.mark.parametrize("path", TEXTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_the_python_of_the_docs_runs(path: Path, tmp_path: Path) -> None:
    for block in blocks(path):
        if block.kind == "python" and block.is_ours:
            subprocess.run([sys.executable, "-c", block.text], cwd=tmp_path, check=True, capture_output=True)


@pytest.mark.parametrize("path", TEXTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_of_the_docs_lead_somewhere(path: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)\)", path.read_text("utf-8")):
        assert target.startswith("https://") or (path.parent / target).exists(), target


def test_every_command_lint_code_and_macro_is_documented() -> None:
    page = (ROOT / "docs/learn/command-line.md").read_text("utf-8")
    assert [name for name in COMMANDS if f"fleetcron {name}" not in page and name != "demo"] == []
    source = Path(lint.__file__).read_text("utf-8")
    codes = re.findall(r'Finding\(\s*"(?:warning|info)",\s*"([a-z-]+)"', source)
    assert len(codes) > 10
    assert [code for code in codes if f"`{code}`" not in page] == []
    schedules = (ROOT / "docs/learn/schedules.md").read_text("utf-8")
    assert [macro for macro in MACROS if f"`{macro}`" not in schedules] == []


def test_every_dependency_is_pinned_and_has_a_reason() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    reasons = (ROOT / "docs/decide/dependencies.md").read_text("utf-8")
    groups = [entry for group in project["dependency-groups"].values() for entry in group if isinstance(entry, str)]
    for file, wanted in (("runtime", project["project"]["dependencies"]), ("dev", groups)):
        pinned = (ROOT / f"requirements/{file}.txt").read_text("utf-8")
        for requirement in wanted:
            name = re.split(r"[\[<>=~! ]", requirement)[0]
            assert re.search(rf"^{re.escape(name)}==", pinned, re.MULTILINE), f"run `make lock`: {name} is not pinned"
            assert name in reasons, f"{name} has no reason in docs/decide/dependencies.md"


def test_no_file_names_a_registry_host_or_a_machine_path() -> None:
    # spelled in pieces, so that this file does not name them either
    hosts = ["pypi." + "org", "pythonhosted." + "org", "debian." + "org", "npmjs." + "org", "npmjs." + "com"]
    banned = re.compile("|".join(map(re.escape, [*hosts, "/ro" + "ot/", "/wo" + "rk/"])))
    named = [
        f"{path.relative_to(ROOT)}: {found[0]}"
        for path in tracked()
        if path.is_file() and (found := banned.search(path.read_bytes().decode("utf-8", "replace")))
    ]
    assert named == []


def test_files_stay_small_enough_to_hold_in_the_head() -> None:
    long = {
        str(p.relative_to(ROOT)): n for p in ROOT.glob("src/**/*.py") if (n := p.read_text("utf-8").count("\n")) > 450
    }
    assert long == {}


def test_ci_runs_the_command_of_the_readme() -> None:
    assert "exec make test" in (ROOT / ".ci/run").read_text("utf-8")
    assert (ROOT / ".ci/run").stat().st_mode & 0o111
    assert "make test" in (ROOT / "README.md").read_text("utf-8")
