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
def quick(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> InThisProcess:
    """The same in this process, for tests that call it often."""
    return InThisProcess(tmp_path, monkeypatch, capsys)


@pytest.fixture
def with_examples(quick: InThisProcess) -> InThisProcess:
    """The same with examples/jobs.yaml in it."""
    shutil.copy(EXAMPLES, quick.path / "jobs.yaml")
    return quick


@pytest.fixture
def on_postgres(with_examples: InThisProcess, postgres18_database: str) -> InThisProcess:
    """The same on an empty PostgreSQL 18, named by DATABASE_URL."""
    with_examples.database = postgres18_database
    return with_examples
