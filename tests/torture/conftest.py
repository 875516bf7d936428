"""The command in an empty folder, and where it keeps its evidence."""

from pathlib import Path

import pytest

from tests.cli.conftest import fleetcron, quick
from tests.store.conftest import own_postgres

__all__ = ["fleetcron", "own_postgres", "quick"]


@pytest.fixture
def evidence(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder for the evidence of this test alone."""
    folder = tmp_path_factory.mktemp("evidence")
    monkeypatch.setenv("TMPDIR", str(folder))
    return folder
