"""Worlds from a test: in a process of its own, because what is killed in a world is never cleaned up."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]


def asked(*arguments: str, hash_seed: str = "0") -> list[dict[str, Any]]:
    """What `python -m tests.simulate` answers."""
    command = [sys.executable, "-m", "tests.simulate", *arguments, "--json"]
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert lines, done.stderr
    return lines
