"""Worlds from a test: in a process of its own, because what is killed in a world is never cleaned up."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]


def asked(*arguments: str, hash_seed: str = "0") -> list[dict[str, Any]]:
    """What `python -m tests.simulate` answers; what it says beside goes to the standard error of the test."""
    lines = list(answers(*arguments, hash_seed=hash_seed))
    assert lines
    return lines


def answers(*arguments: str, hash_seed: str = "0") -> Iterator[dict[str, Any]]:
    """One after the other, as they come."""
    command = [sys.executable, "-m", "tests.simulate", *arguments, "--json"]
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
    with subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True) as playing:
        assert playing.stdout is not None
        yield from map(json.loads, playing.stdout)
