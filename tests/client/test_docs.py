"""What docs/learn/client.md shows runs, against a real server."""

import os
import re
import subprocess
import sys
from pathlib import Path

from tests.api.server import Api

PAGE = Path(__file__).parents[2] / "docs/learn/client.md"


def test_every_program_of_the_page_runs_and_says_what_it_says(server: Api, tmp_path: Path) -> None:
    assert server._key is not None
    env = {**os.environ, "FLEETCRON_API_URL": server.url, "FLEETCRON_API_KEY": server._key}
    blocks = re.findall(r"```py\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    said = [
        subprocess.run(
            [sys.executable, "-W", "error", "-c", block],
            cwd=tmp_path,
            env=env,
            check=True,
            capture_output=True,
            text=True,
        ).stdout
        for block in blocks
    ]
    assert len(said) == 4
    assert "nightly-report 2027-01-16 02:00-05:00 new" in said[0]
    assert "{'created': 2, 'refused': 1}\n3 /schedule is missing" in said[2]
    assert "/schedule/cron" in said[3]


def test_who_does_not_ask_does_not_pay() -> None:
    """Neither `import fleetcron` nor the client that waits loads what the other one needs."""
    looks = ["print('fleetcron.client' in sys.modules)", "fleetcron.Client", "print('aiohttp' in sys.modules)"]
    code = "\n".join(["import sys, fleetcron", *looks])
    said = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert said.stdout == "False\nFalse\n"
