from pathlib import Path

import pytest

from tests.cli.folder import Folder, InThisProcess


@pytest.fixture
def fleetcron(tmp_path: Path) -> Folder:
    """The command in an empty folder."""
    return Folder(tmp_path)


@pytest.fixture
def quick(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Folder:
    """The same in this process."""
    return InThisProcess(tmp_path, monkeypatch, capsys)
