import shutil
from pathlib import Path

import pytest

from tests.cli.folder import Folder, InThisProcess

EXAMPLES = Path(__file__).parents[2] / "examples/jobs.yaml"


@pytest.fixture
def fleetcron(tmp_path: Path) -> Folder:
    """The command in an empty folder, on the SQLite file that it makes there."""
    return Folder(tmp_path)


@pytest.fixture
def quick(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Folder:
    """The same in this process, for tests that call it often."""
    return InThisProcess(tmp_path, monkeypatch, capsys)


@pytest.fixture
def with_examples(fleetcron: Folder) -> Folder:
    """The same with examples/jobs.yaml in it."""
    shutil.copy(EXAMPLES, fleetcron.path / "jobs.yaml")
    return fleetcron


@pytest.fixture
def on_postgres(tmp_path: Path, postgres18_database: str) -> Folder:
    """The command on an empty PostgreSQL 18, named by DATABASE_URL."""
    shutil.copy(EXAMPLES, tmp_path / "jobs.yaml")
    return Folder(tmp_path, postgres18_database)
