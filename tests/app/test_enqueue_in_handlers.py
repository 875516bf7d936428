"""A handler that asks for a run asks its worker's store, whatever the code and the environment say."""

import asyncio
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from fleetcron import Fleetcron
from fleetcron.errors import RefusedError
from tests.cli.folder import Folder

SHOP = """
import os, sqlite3
from fleetcron import Fleetcron

app = Fleetcron({url})
elsewhere = Fleetcron("sqlite:///elsewhere.db", name="elsewhere")

@app.job(on_demand=True)
async def order(ctx):
    if "MOVES" in os.environ:
        os.chdir("/")
    made = await app.enqueue("ship", key="order-1")
    try:
        await elsewhere.enqueue("ship")
    except Exception as error:
        ctx.log(error)
    return made.created

@app.job(on_demand=True)
def order_plainly():
    connection = sqlite3.connect(os.environ["SHOP"], isolation_level=None)
    connection.execute("BEGIN IMMEDIATE")
    made = app.enqueue_in_sync(connection, "ship", key="order-1")
    connection.execute("COMMIT")
    return made.created

@app.job(on_demand=True)
async def ship():
    return "shipped"
"""


@pytest.mark.parametrize(
    ("isolation", "url", "how"),
    [
        ("host", '"sqlite:///code.db"', "order"),
        ("host", "", "order-plainly"),
        ("inline", '"sqlite:///code.db"', "order-plainly"),
        ("inline", "", "order"),
    ],
)
def test_with_another_database_than_the_code_says(quick: Folder, isolation: str, url: str, how: str) -> None:
    """It failed, or the run was in the database of the code, or in a fleetcron.db that happened to be there."""
    quick.write("shop.py", SHOP.replace("{url}", url))
    quick.write("fleetcron.toml", f'[executor]\nisolation = "{isolation}"\n')
    for decoy in ("code.db", "fleetcron.db"):
        quick("migrate", "--database", f"sqlite:///{decoy}")
    env = {"SHOP": str(quick.path / "served.db"), **({"MOVES": "1"} if isolation == "host" else {})}
    with quick.serving("--app", "shop:app", "--database", "sqlite:///served.db", **env) as node:
        node.until("3 created")
        ended = _run(quick, how, "sqlite:///served.db")
        assert ended["attempts"][-1]["result"] is True
        if how == "order":
            log = quick("runs", "log", str(ended["run_id"]), "--database", "sqlite:///served.db").stdout
            assert "there is no database elsewhere.db yet" in log
        while not (shipped := _succeeded(quick, "ship", "sqlite:///served.db")):
            pass  # each look takes a while
        assert len(shipped) == 1
        node.stop()
    for decoy in ("code.db", "fleetcron.db"):
        assert _count(quick.path / decoy) == 0


@pytest.mark.parametrize("isolation", ["host", "inline"])
def test_with_a_url_that_only_the_settings_have(quick: Folder, postgres18_url: str, isolation: str) -> None:
    """The password is in no environment of a handler, and none of what it starts."""
    quick.write("shop.py", SHOP.replace("{url}", ""))
    quick.write("fleetcron.toml", f'[executor]\nisolation = "{isolation}"\n')
    with quick.serving("--app", "shop:app", FLEETCRON_DATABASE_URL=postgres18_url) as node:
        node.until("3 created")
        assert _run(quick, "order", postgres18_url)["attempts"][-1]["result"] is True
        while not _succeeded(quick, "ship", postgres18_url):
            pass  # each look takes a while
        node.stop()


def test_a_store_in_memory_is_nobody_elses() -> None:
    with pytest.raises(RefusedError, match="where nobody else can write; give it a file"):
        asyncio.run(Fleetcron(":memory:").enqueue("ship"))


def _run(folder: Folder, job: str, database: str) -> dict[str, Any]:
    made = folder.json("jobs", "trigger", job, "--database", database)
    while True:
        run: dict[str, Any] = folder.json("runs", "show", str(made["run_id"]), "--database", database)
        if run["state"] in ("succeeded", "dead", "retrying"):
            return run


def _succeeded(folder: Folder, job: str, database: str) -> list[object]:
    found: list[object] = folder.json("runs", "--job", job, "--state", "succeeded", "--database", database)["runs"]
    return found


def _count(path: Path) -> int:
    with sqlite3.connect(path) as connection:
        return int(connection.execute("SELECT count(*) FROM runs").fetchone()[0])
