from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from tests.cli.folder import InThisProcess, Said


class Moments(InThisProcess):
    """The command at a chosen moment: `at("2027-03-10T02:30Z", "plan", "-f", "jobs.yaml")`."""

    def at(self, moment: str, *arguments: str, **options: Any) -> Said:
        there = datetime.fromisoformat(moment)
        return self(*arguments, shift_s=round((there - datetime.now(UTC)).total_seconds()), **options)

    def json_at(self, moment: str, *arguments: str, **options: Any) -> Any:
        return self.at(moment, *arguments, "--json", **options).json


@pytest.fixture
def moments(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Moments:
    return Moments(tmp_path, monkeypatch, capsys)
